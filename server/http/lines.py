"""Connections: one that says nothing, or never finishes the head of a request, does not keep its place for ever."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS: Final = 30.0
"""How long a client may take for the head of a request, from the connection or the first byte of it on."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which of itself waits for a request's head without end."""

    most: ClassVar[int] = 65_536
    """Connections at once; one more is closed before the process runs out of files and can do nothing at all."""

    _silence: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected; its request should follow."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Some bytes came: the rest of a head is awaited, unless they began a request."""
        super().data_received(data)
        if self._in_request():
            self._stop_waiting()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _in_request(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _await_head(self) -> None:
        if self._silence is None:
            self._silence = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _give_up(self) -> None:
        self._silence = None
        if not self._in_request() and not self.transport.is_closing():
            self.transport.close()
