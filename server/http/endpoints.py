"""What serves each path: sessions of the older protocols, single requests of the newer, and the legacy stream pair.

The SDK's transports do the protocol's work. Here a request meets its session, is told to the server as an `Arrival`,
and is handed over.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self
from urllib.parse import parse_qs
from uuid import uuid4

import anyio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_INFO_META_KEY, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from ..app import DeskServer
from ..calls import Arrival
from ..sdk import Outbound, end_session, lifespan_state, serve_streams
from .asgi import Message, Receive, Scope, Send, header, without_header
from .gate import Admitted, Endpoint
from .refusals import answer_json, session_required, unknown_session
from .sessions import Session, Sessions

logger = logging.getLogger(__name__)

current: ContextVar[Arrival] = ContextVar("arrival")
"""The request that is being served; set for each one, and carried by the SDK to where it is handled."""

HTTP: Final = "http"
SSE: Final = "sse"
SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
LISTEN: Final = "subscriptions/listen"
MESSAGES: Final = "/messages/"
FAREWELL_SECONDS: Final = 0.5
FAREWELL_LOOK_SECONDS: Final = 0.01
FOREIGN: Final = "session"
"""What the record names when somebody reaches for a session that is not theirs."""
_VERSIONS: Final = ", ".join([*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])


class Endpoints:
    """The paths of one server."""

    def __init__(
        self,
        server: DeskServer,
        manager: StreamableHTTPSessionManager,
        sessions: Sessions,
        max_body_bytes: int,
    ) -> None:
        self._server = server
        self._manager = manager
        self._sessions = sessions
        self._sse = SseServerTransport(MESSAGES, max_request_body_size=max_body_bytes)
        self._pipes: dict[str, _Answers] = {}
        self._posts = 0

    def table(self) -> Mapping[str, Endpoint]:
        """Which path is served by what."""
        messages = Endpoint(("POST",), self._messages)
        return {
            "/mcp": Endpoint(("GET", "POST", "DELETE"), self._mcp),
            "/sse": Endpoint(("GET",), self._stream),
            MESSAGES: messages,
            MESSAGES.rstrip("/"): messages,
        }

    async def health(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Say whether all is well, and which parts are not; nothing else, since everybody may ask."""
        ailing = await anyio.to_thread.run_sync(self._server.ailing)
        body: dict[str, Any] = {"status": "degraded" if ailing else "ok", "degraded": ailing}
        await answer_json(
            _headless(send) if scope["method"] == "HEAD" else send, 503 if ailing else 200, body
        )

    def busy(self) -> bool:
        """Whether a call is unanswered, those whose answer goes out on a stream of its own included."""
        return bool(self._posts) or self._server.busy() or any(pipe.waiting for pipe in self._pipes.values())

    async def _mcp(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        version = header(scope, VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._single(request, scope, receive, send)
        elif isinstance(request.message, JSONRPCRequest) and request.message.method == "initialize":
            await self._initialize(request, scope, receive, send)
        else:
            await self._in_session(request, without_header(scope, "last-event-id"), receive, send)

    async def _single(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """A request of protocol 2026-07-28, which stands alone; only a stream that is listened on is held."""
        message = request.message
        arrival = self._arrival(request, self._sessions.visit(request.who, _claimed_client(message)), HTTP)
        current.set(arrival)
        if not isinstance(message, JSONRPCRequest) or message.method != LISTEN:
            await self._hand_over(scope, receive, send)
            return
        ending = anyio.Event()
        current.set(replace(arrival, ending=ending))

        async def end() -> None:
            ending.set()

        stream = Session(uuid4().hex, request.who, end)
        async with self._sessions.opening(request.who) as hold:
            hold(stream)
        try:
            with stream.in_use():
                await self._manager.handle_request(scope, receive, send)
        finally:
            self._sessions.forget(stream.key)

    async def _initialize(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session; the id of one that is gone, as after a restart, opens a new one."""
        named = header(scope, SESSION_HEADER)
        known = self._sessions.find(named) if named is not None else None
        if known is not None and known.who.owner == request.who.owner:
            await self._in_session(request, scope, receive, send)
            return

        opened = _Opening()

        async def watched(message: Message) -> None:
            if (key := opened.see(message)) is not None:
                hold(Session(key, request.who, partial(end_session, self._manager, key)))
            await send(message)

        async with self._sessions.opening(request.who) as hold:
            current.set(self._arrival(request, "", HTTP))
            await self._hand_over(without_header(scope, SESSION_HEADER), receive, watched)
            if opened.key is not None and opened.failed:
                self._sessions.forget(opened.key)
                await end_session(self._manager, opened.key)

    async def _in_session(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        named = header(scope, SESSION_HEADER)
        if named is None:
            raise session_required(_VERSIONS)
        session = await self._own(named, request)
        current.set(self._arrival(request, session.desk_session, HTTP))
        with session.in_use():
            if scope["method"] == "POST":
                await self._hand_over(scope, receive, send)
            else:
                await self._manager.handle_request(scope, receive, send)
        if scope["method"] == "DELETE":
            self._sessions.forget(named)

    async def _hand_over(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a posted message served; until it is answered, the server is busy."""
        self._posts += 1
        try:
            await self._manager.handle_request(scope, receive, send)
        finally:
            self._posts -= 1

    async def _stream(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """The older transport's one stream, on which every answer goes out (protocol 2024-11-05)."""
        session, ending = Session("", request.who, _nothing), anyio.Event()

        async def announced(message: Message) -> None:
            # The first event names the address to post to, and with it the session.
            if not session.key and message["type"] == "http.response.body":
                session.key = _session_of(bytes(message["body"]).decode().strip())
                self._pipes[session.key] = answers
                hold(session)
            await send(message)

        async with self._sessions.opening(request.who) as hold:
            arrival = self._arrival(request, session.desk_session, SSE)
            current.set(replace(arrival, ending=ending))
            async with self._sse.connect_sse(scope, receive, announced) as (inbound, outbound):
                answers = _Answers(outbound, ending)
                session.end = partial(answers.end, inbound.aclose)
                with session.in_use():
                    try:
                        await serve_streams(
                            self._server, inbound, answers, state=lifespan_state(self._manager)
                        )
                    finally:
                        self._sessions.forget(session.key)
                        self._pipes.pop(session.key, None)

    async def _messages(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """A message for a stream that is open elsewhere; its answer goes out there."""
        named = _session_of(scope["query_string"].decode("latin-1"))
        session = await self._own(named, request)
        answers = self._pipes[named]
        arrival = self._arrival(request, session.desk_session, SSE)
        current.set(replace(arrival, ending=answers.ending))
        message = request.message
        if isinstance(message, JSONRPCRequest):
            answers.expect(message.id, listened_on=message.method == LISTEN)
        try:
            await self._sse.handle_post_message({**scope, "path": MESSAGES}, receive, send)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.info("a client of %s closed its stream while it posted", session.who.identity.agent)

    async def _own(self, named: str, request: Admitted) -> Session:
        """The session of that name, if it is the caller's; another's is recorded and looks like none."""
        session = self._sessions.find(named)
        if session is None:
            raise unknown_session()
        if session.who.owner != request.who.owner:
            await self._server.refuse(
                self._arrival(request, self._sessions.visit(request.who, ("", "")), HTTP), FOREIGN
            )
            raise unknown_session()
        return session

    def _arrival(self, request: Admitted, desk_session: str, transport: str) -> Arrival:
        who = request.who
        return Arrival(who.identity, desk_session, transport, headers=request.labels, token_id=who.owner)


class _Opening:
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


class _Answers:
    """The outgoing half of a stream pair, which knows what is still unanswered."""

    def __init__(self, outbound: Outbound, ending: anyio.Event) -> None:
        self._outbound = outbound
        self.ending = ending
        self.waiting: set[RequestId] = set()
        self._listened_on: set[RequestId] = set()

    def expect(self, request_id: RequestId, *, listened_on: bool) -> None:
        """A request was posted; one that is listened on is answered when it ends."""
        (self._listened_on if listened_on else self.waiting).add(request_id)

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
            self.waiting.discard(message.id)
            self._listened_on.discard(message.id)

    async def aclose(self) -> None:
        """End the stream once all was sent."""
        await self._outbound.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()


async def _nothing() -> None:
    """Nothing is open yet."""


def _session_of(text: str) -> str:
    """The session named in an address or its query, "" for none."""
    query = text.rpartition("?")[2].split("\n")[0].strip()
    return parse_qs(query).get("session_id", [""])[-1]


def _claimed_client(message: object) -> tuple[str, str]:
    """Name and version that a request claims for its client, shortened; told apart by them, trusted for nothing."""
    params = message.params if isinstance(message, JSONRPCRequest) else None
    meta = (params or {}).get("_meta")
    told = meta.get(CLIENT_INFO_META_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(told, Mapping):
        return "", ""
    return str(told.get("name"))[:128], str(told.get("version"))[:128]


def _headless(send: Send) -> Send:
    async def head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return head
