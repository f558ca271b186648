"""What serves each path: sessions of the older protocols, single requests of the newer, and the legacy stream pair.

The SDK's transports do the protocol's work. Here a request meets its session, is told to the server as an `Arrival`,
and is handed over.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import uuid4

import anyio
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CLIENT_INFO_META_KEY, JSONRPCNotification, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from ..app import DeskServer
from ..calls import Arrival
from ..sdk import end_session, lifespan_state, serve_streams
from .answers import SESSION_HEADER, Answers, Opening
from .asgi import Message, Receive, Scope, Send, header, without_header
from .gate import Admitted, Endpoint
from .refusals import answer_json, id_in_use, session_required, stream_in_use, unknown_session
from .sessions import Session, Sessions

logger = logging.getLogger(__name__)

current: ContextVar[Arrival] = ContextVar("arrival")
"""The request that is being served; set for each one, and carried by the SDK to where it is handled."""

HTTP: Final = "http"
SSE: Final = "sse"
CANCELLED: Final = "notifications/cancelled"
VERSION_HEADER: Final = "mcp-protocol-version"
LISTEN: Final = "subscriptions/listen"
MESSAGES: Final = "/messages/"
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
        self._pipes: dict[str, Answers] = {}
        self._posts = 0

    def table(self) -> Mapping[str, Endpoint]:
        """Which path is served by what."""
        messages = Endpoint(("POST",), self._messages)
        return {
            "/mcp": Endpoint(("GET", "POST", "DELETE"), self._mcp, ("application/json", "text/event-stream")),
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
        return bool(self._posts) or self._server.busy() or self._sessions.busy()

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

        stream = Session(uuid4().hex, request.who, LISTEN, end)
        async with self._sessions.opening(request.who) as hold:
            hold(stream)
        try:
            with stream.streaming():
                await self._manager.handle_request(scope, receive, send)
        finally:
            self._sessions.forget(stream.key)

    async def _initialize(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session; the id of one that is gone, as after a restart, opens a new one."""
        named = header(scope, SESSION_HEADER)
        known = self._sessions.find(named) if named is not None else None
        if known is not None and known.who.owner == request.who.owner and known.transport == HTTP:
            await self._in_session(request, scope, receive, send)
            return
        if known is not None:
            await self._refuse_foreign(request)
        opened = Opening()

        async def watched(message: Message) -> None:
            if (key := opened.see(message)) is not None:
                hold(Session(key, request.who, HTTP, partial(end_session, self._manager, key)))
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
        session = await self._own(named, request, HTTP)
        current.set(self._arrival(request, session.desk_session, HTTP))
        if scope["method"] == "GET":
            if session.streams:
                raise stream_in_use()
            with session.streaming():
                await self._manager.handle_request(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._manager.handle_request(scope, receive, send)
            self._sessions.forget(named)
        else:
            await self._call_in(session, request, scope, receive, send)

    async def _call_in(
        self, session: Session, request: Admitted, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """A posted message in a session, which has one unanswered request under an id at most."""
        message = request.message
        request_id = message.id if isinstance(message, JSONRPCRequest) else None
        if request_id is not None and request_id in session.unanswered:
            raise id_in_use()
        if request_id is None:
            with session.in_use():
                await self._hand_over(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            # Before its last part goes out: the client may use the id again as soon as it has it.
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                session.unanswered.discard(request_id)
            await send(message)

        session.unanswered.add(request_id)
        try:
            with session.in_use():
                await self._hand_over(scope, receive, answer)
        finally:
            session.unanswered.discard(request_id)

    async def _hand_over(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a posted message served; until it is answered, the server is busy."""
        self._posts += 1
        try:
            await self._manager.handle_request(scope, receive, send)
        finally:
            self._posts -= 1

    async def _stream(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """The older transport's one stream, on which every answer goes out (protocol 2024-11-05)."""
        session = Session("", request.who, SSE, _nothing)

        async def announced(message: Message) -> None:
            # The first event names the address to post to, and with it the session.
            if not session.key and message["type"] == "http.response.body":
                session.key = _session_in(bytes(message["body"]).decode().strip().rpartition("?")[2])
                self._pipes[session.key] = answers
                hold(session)
            await send(message)

        async with self._sessions.opening(request.who) as hold:
            arrival = self._arrival(request, session.desk_session, SSE)
            current.set(arrival)
            async with self._sse.connect_sse(scope, receive, announced) as (inbound, outbound):
                answers = Answers(outbound, session)
                session.end = partial(answers.end, inbound.aclose)
                with session.streaming():
                    try:
                        await serve_streams(
                            self._server, inbound, answers, state=lifespan_state(self._manager)
                        )
                    finally:
                        self._sessions.forget(session.key)
                        self._pipes.pop(session.key, None)

    async def _messages(self, request: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        """A message for a stream that is open elsewhere; its answer goes out there."""
        named = _session_in(scope["query_string"].decode("latin-1"))
        session = await self._own(named, request, SSE)
        answers, message = self._pipes.get(named), request.message
        if answers is None:
            raise unknown_session()
        arrival = self._arrival(request, session.desk_session, SSE)
        current.set(replace(arrival, ending=answers.ending))
        taken = _Status(send)
        if isinstance(message, JSONRPCRequest):
            answers.expect(message.id, request.body, listened_on=message.method == LISTEN)
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, int | str):
                answers.forget(cancelled)
        # Only the session that was checked: the query may name others, in ways that readers differ about.
        checked = {**scope, "path": MESSAGES, "query_string": f"session_id={named}".encode()}
        try:
            await self._sse.handle_post_message(checked, receive, taken.send)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.info("a client of %s closed its stream while it posted", session.who.identity.agent)
        if taken.status >= 400 and isinstance(message, JSONRPCRequest):
            answers.forget(message.id)

    async def _own(self, named: str, request: Admitted, transport: str) -> Session:
        """The session of that name, if it is the caller's; another's is recorded and looks like none."""
        session = self._sessions.find(named)
        if session is None or session.transport != transport:
            raise unknown_session()
        if session.who.owner != request.who.owner:
            await self._refuse_foreign(request)
            raise unknown_session()
        return session

    async def _refuse_foreign(self, request: Admitted) -> None:
        visit = self._sessions.visit(request.who, ("", ""))
        await self._server.refuse(self._arrival(request, visit, HTTP), FOREIGN)

    def _arrival(self, request: Admitted, desk_session: str, transport: str) -> Arrival:
        who = request.who
        return Arrival(who.identity, desk_session, transport, headers=request.labels, token_id=who.owner)


async def _nothing() -> None:
    """Nothing is open yet."""


class _Status:
    """What a posted message was answered with, on its way to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _session_in(query: str) -> str:
    """The one session that a query names, "" for none or several."""
    named = parse_qs(query, keep_blank_values=True).get("session_id", [])
    return named[0] if len(named) == 1 else ""


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
