"""Carries the frames of one client to the SDK loop that owns them, and every answer back exactly once.

There is one loop for each protocol era, started when a request of that era arrives, so that
`server/discover` and `initialize` both work on one pipe. The exchange knows which calls are unanswered:
ending cleanly, doubtful ids and holding back a flood all build on that.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from .frames import Frame, Refusal, encode, error_body
from .pipes import LineWriter
from .sdk import has_modern_envelope, serve_streams

__all__ = ["Exchange"]

logger = logging.getLogger(__name__)

MAX_UNANSWERED: Final = 256
"""Calls in flight at which no more input is read until one is answered."""

CLOSE_PATIENCE: Final = 1.5  # seconds; the SDK's own last writes are bounded to 1
LISTEN: Final = "subscriptions/listen"  # open for as long as the client wants, so nothing waits for it

EraName: TypeAlias = Literal["handshake", "modern"]


@dataclass(slots=True)
class _Era:
    """One running SDK loop."""

    name: EraName
    inbound: MemoryObjectSendStream[SessionMessage | Exception]
    ended: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that was read and is not answered yet."""

    era: _Era
    method: str


class _Outlet:
    """The write stream handed to one SDK loop."""

    def __init__(self, exchange: Exchange, era: _Era) -> None:
        self._exchange = exchange
        self._era = era

    async def send(self, item: SessionMessage, /) -> None:
        await self._exchange.send_out(self._era, item.message)

    async def aclose(self) -> None:
        """Nothing to close: the pipe outlives every loop."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()


class Exchange:
    """Carries every frame to the loop that owns it, and every answer out exactly once.

    Two requests in flight under one id would make their answers undistinguishable: the later one waits until
    the earlier is answered.
    """

    def __init__(self, server: MCPServer[Any], state: Any, tasks: TaskGroup, writer: LineWriter) -> None:
        self._server = server
        self._state = state
        self._tasks = tasks
        self._writer = writer
        self._eras: dict[EraName, _Era] = {}
        self._calls: dict[RequestId, _Call] = {}
        self._parked: dict[RequestId, deque[JSONRPCRequest]] = {}
        self._asked: set[RequestId] = set()
        self._input_open = True
        self._stopped = False
        self._between_batches = anyio.CancelScope()
        self._change = anyio.Event()

    # --- inwards

    async def pump(self, batches: MemoryObjectReceiveStream[list[Frame]]) -> None:
        """Route what was read, no faster than it is answered and than the answers are read, until it ends."""
        async with batches:
            while not self._stopped:
                batch: list[Frame] = []
                with anyio.CancelScope() as self._between_batches:
                    try:
                        batch = await batches.receive()
                    except anyio.EndOfStream:
                        break
                for frame in batch:
                    await self._writer.room()
                    await self._take(frame)
        self._input_open = False
        for asked in list(self._asked):
            await self._hang_up(asked)
        self.wake()

    def stop_reading(self) -> None:
        """Take nothing more from the reader thread; what it delivered already is still served."""
        self._stopped = True
        self._between_batches.cancel()

    async def _take(self, frame: Frame) -> None:
        if isinstance(frame, Refusal):
            self._refuse(frame)
        elif isinstance(frame, JSONRPCRequest):
            while len(self._calls) + len(self._parked) >= MAX_UNANSWERED:
                await self.next_change()
            await self._begin(frame)
        elif isinstance(frame, JSONRPCNotification):
            await self._notify(frame)
        else:
            self._asked.discard(frame.id if frame.id is not None else "")
            await self._deliver(self._eras.get("handshake"), SessionMessage(frame))

    async def _begin(self, request: JSONRPCRequest) -> None:
        holder = self._calls.get(request.id)
        if holder is None:
            await self._hand_over(self._admit(request), request)
        elif holder.method == LISTEN:
            self._refuse(Refusal(INVALID_REQUEST, f"id {request.id!r} belongs to an open subscription"))
        else:
            self._parked.setdefault(request.id, deque()).append(request)

    def _admit(self, request: JSONRPCRequest) -> _Era:
        era = self._era_of(request)
        self._calls[request.id] = _Call(era, request.method)
        return era

    async def _hand_over(self, era: _Era, request: JSONRPCRequest) -> None:
        unanswered = partial(self._settle_cancelled, era, request.id)
        metadata = ServerMessageMetadata(on_request_unanswered=unanswered)
        await self._deliver(era, SessionMessage(request, metadata))

    async def _notify(self, note: JSONRPCNotification) -> None:
        if note.method != "notifications/cancelled":
            await self._deliver(self._eras.get("handshake") or self._eras.get("modern"), SessionMessage(note))
            return
        wanted = (note.params or {}).get("requestId")
        for known in _spellings(wanted):
            self._parked.pop(known, None)
            if (call := self._calls.get(known)) is not None:
                await self._deliver(call.era, SessionMessage(note))
                return

    async def _deliver(self, era: _Era | None, item: SessionMessage) -> None:
        if era is None:
            logger.debug("dropped a message that no request came before")
            return
        try:
            await era.inbound.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("dropped a message to a loop that has ended")

    # --- eras

    def _era_of(self, request: JSONRPCRequest) -> _Era:
        if request.method == "initialize":
            return self._open("handshake")
        if has_modern_envelope(request.params):
            return self._open("modern")
        # Neither says so itself: a handshake client, unless only a modern one has spoken on this pipe.
        only_modern = "modern" in self._eras and "handshake" not in self._eras
        return self._open("modern" if only_modern else "handshake")

    def _open(self, name: EraName) -> _Era:
        if name not in self._eras:
            inbound, receiver = anyio.create_memory_object_stream[SessionMessage | Exception](16)
            self._eras[name] = _Era(name, inbound)
            self._tasks.start_soon(self._run, self._eras[name], receiver)
        return self._eras[name]

    async def _run(self, era: _Era, receiver: MemoryObjectReceiveStream[SessionMessage | Exception]) -> None:
        try:
            await serve_streams(self._server, receiver, _Outlet(self, era), state=self._state)
        except Exception:
            logger.exception("the %s loop failed; the next request starts it anew", era.name)
        finally:
            del self._eras[era.name]
            era.inbound.close()
            for request_id in [key for key, call in self._calls.items() if call.era is era]:
                self._answer(request_id, Refusal(INTERNAL_ERROR, "Internal server error", request_id))
            era.ended.set()

    # --- outwards

    async def send_out(self, era: _Era, message: JSONRPCMessage) -> None:
        """Write one message of a loop; an answer to a call that is settled already is dropped."""
        await self._writer.room()
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            call = self._calls.get(message.id) if message.id is not None else None
            if message.id is not None and call is not None and call.era is era:
                self._writer.write(_line_of(message))
                self._settle(message.id)
            return
        try:
            line = encode(message)
        except (TypeError, ValueError, RecursionError):
            logger.exception("dropped a %s that is not JSON", message.method)
            return
        self._writer.write(line)
        if isinstance(message, JSONRPCRequest):
            self._asked.add(message.id)
            if not self._input_open:
                await self._hang_up(message.id)

    def _refuse(self, refusal: Refusal) -> None:
        if refusal.id is not None and refusal.id in self._calls:
            refusal = replace(refusal, id=None)  # it would pass for the answer to that call
        self._writer.write(encode(error_body(refusal)))

    def _answer(self, request_id: RequestId, refusal: Refusal) -> None:
        self._writer.write(encode(error_body(refusal)))
        self._settle(request_id)

    def _settle(self, request_id: RequestId) -> None:
        del self._calls[request_id]
        if (queue := self._parked.get(request_id)) is not None:
            request = queue.popleft()
            if not queue:
                del self._parked[request_id]
            self._tasks.start_soon(self._hand_over, self._admit(request), request)
        self.wake()

    async def _settle_cancelled(self, era: _Era, request_id: RequestId) -> None:
        call = self._calls.get(request_id)
        if call is not None and call.era is era:
            self._settle(request_id)

    async def _hang_up(self, asked: RequestId) -> None:
        """Tell a handler that waits for the client that no reply can come any more."""
        self._asked.discard(asked)
        error = ErrorData(code=CONNECTION_CLOSED, message="the client closed its end")
        reply = JSONRPCError(jsonrpc="2.0", id=asked, error=error)
        await self._deliver(self._eras.get("handshake"), SessionMessage(reply))

    # --- the end

    def wake(self) -> None:
        """Let everyone who waits for a change look again."""
        self._change.set()
        self._change = anyio.Event()

    async def next_change(self) -> None:
        await self._change.wait()

    def busy(self) -> bool:
        """Whether anything that was or may still be read waits for its answer."""
        return self._input_open or bool(self._parked) or any(c.method != LISTEN for c in self._calls.values())

    def give_up(self) -> None:
        """Answer what cannot be waited for any longer."""
        for request_id, queue in list(self._parked.items()):
            del self._parked[request_id]
            for _ in queue:
                self._writer.write(encode(error_body(_shutting_down(request_id, stored="no"))))
        for request_id, call in list(self._calls.items()):
            if call.method != LISTEN:
                logger.warning("gave up a %s still running at shutdown", call.method)
                self._answer(request_id, _shutting_down(request_id, stored="unknown"))

    async def close(self) -> None:
        """End both loops; a handler that cannot be cancelled may keep one open."""
        eras = list(self._eras.values())
        for era in eras:
            era.inbound.close()
        with anyio.move_on_after(CLOSE_PATIENCE):
            for era in eras:
                await era.ended.wait()

    def open_eras(self) -> bool:
        return bool(self._eras)


def _line_of(answer: JSONRPCResponse | JSONRPCError) -> bytes:
    if isinstance(answer, JSONRPCError) and answer.error.code == 0:
        # The SDK's catch-all in the handshake era carries the exception's text, which is not for clients.
        return encode(error_body(Refusal(INTERNAL_ERROR, "Internal server error", answer.id)))
    try:
        return encode(answer)
    except (TypeError, ValueError, RecursionError):
        logger.exception("a result is not JSON")
        refusal = Refusal(INTERNAL_ERROR, "the result could not be written as JSON", answer.id)
        return encode(error_body(refusal))


def _shutting_down(request_id: RequestId, *, stored: Literal["no", "unknown"]) -> Refusal:
    told = {"code": "shutting_down", "stored": stored, "retryable": True}
    return Refusal(CONNECTION_CLOSED, "the server is shutting down", request_id, told)


def _spellings(wanted: object) -> Iterator[RequestId]:
    """The ids a cancellation may mean: clients are known to send the number 7 back as the string "7"."""
    if isinstance(wanted, bool) or not isinstance(wanted, int | str):
        return
    yield wanted
    if isinstance(wanted, int):
        yield str(wanted)
    elif wanted.isdecimal() and len(wanted) < 20:
        yield int(wanted)
