"""What goes back to a client and is looked at on its way: the opening of a session, and answers on a stream pair."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, RequestId

from ..sdk import Outbound
from .asgi import Message
from .bodies import Body
from .refusals import id_in_use, too_many_at_once, too_many_streams
from .sessions import Session

SESSION_HEADER: Final = "mcp-session-id"
FAREWELL_SECONDS: Final = 0.5
FAREWELL_LOOK_SECONDS: Final = 0.01
MOST_LISTENED_ON: Final = 4
"""Streams that one session may listen on; one already tells of every change."""

MOST_UNANSWERED: Final = 256
"""Calls of one session that may be under way at once."""


class Opening:
    """What the answer to an `initialize` tells: the session's id in its head, and whether it was refused."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.failed = False

    def see(self, message: Message) -> str | None:
        """Look at a part of the answer; gives the session's id when this part names it."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            named = (value for name, value in message["headers"] if name.lower() == SESSION_HEADER.encode())
            self.key = next((value.decode() for value in named), None)
            return self.key
        for line in bytes(message.get("body", b"")).splitlines():
            if line.startswith(b"data: {"):
                self.failed = "error" in json.loads(line[6:])
        return None


class Answers:
    """The outgoing half of a stream pair, which knows what is still unanswered."""

    def __init__(self, outbound: Outbound, session: Session) -> None:
        self._outbound = outbound
        self._session = session
        self._bodies: dict[RequestId, Body] = {}
        self._listened_on: set[RequestId] = set()
        self.ending = anyio.Event()

    def expect(self, request_id: RequestId, body: Body | None, *, listened_on: bool) -> None:
        """A request was posted; one that is listened on is answered when it ends.

        Raises the refusal for an id that is in use, or for more than a session may have under way.
        """
        if request_id in self._session.unanswered or request_id in self._listened_on:
            raise id_in_use()
        if listened_on:
            if len(self._listened_on) >= MOST_LISTENED_ON:
                raise too_many_streams(MOST_LISTENED_ON)
            self._listened_on.add(request_id)
            return
        if len(self._session.unanswered) >= MOST_UNANSWERED:
            raise too_many_at_once()
        self._session.unanswered.add(request_id)
        if body is not None:
            body.keep()
            self._bodies[request_id] = body

    def forget(self, request_id: RequestId) -> None:
        """It is answered, or never will be."""
        self._session.unanswered.discard(request_id)
        self._listened_on.discard(request_id)
        if (body := self._bodies.pop(request_id, None)) is not None:
            body.let_go()

    async def end(self, close: Callable[[], Awaitable[None]]) -> None:
        """End what is listened on, in the way that tells the client so, and then the stream."""
        self.ending.set()
        with anyio.move_on_after(FAREWELL_SECONDS):
            while self._listened_on:  # noqa: ASYNC110 - only the end asks
                await anyio.sleep(FAREWELL_LOOK_SECONDS)
        await close()

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message to the client."""
        await self._outbound.send(item)
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self.forget(message.id)

    async def aclose(self) -> None:
        """End the stream once all was sent, and let go of what was never answered."""
        for request_id in [*self._session.unanswered, *self._listened_on]:
            self.forget(request_id)
        await self._outbound.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()
