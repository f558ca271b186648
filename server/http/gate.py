"""The way in: what is asked of every request, in this order, before any of it is served.

Host and origin, the path and its method, whose it is, a body within bounds. What fails is answered with a body that
says what to do. Whoever does not read their answers is cut off, so that a stuck client holds nothing for ever.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import quote

import anyio
from mcp_types import INVALID_REQUEST, JSONRPCMessage

from ..frames import Refusal, read_line
from ..identity import LABEL_HEADERS
from .asgi import Message, Receive, Scope, Send, header, header_values
from .callers import Callers, Who
from .names import Names, answer_preflight, is_preflight, readable_by
from .refusals import (
    Refused,
    bad_header,
    ending,
    malformed,
    no_such_path,
    too_large,
    too_many_at_once,
    too_slow,
    wrong_method,
)

logger = logging.getLogger(__name__)

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""

STALLED_SECONDS: Final = 60.0
"""How long a client may leave what it is sent unread."""

BODIES_HELD: Final = 16
"""Bodies of the largest size that one agent may have under way at once, in bytes together."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be served: whose it is, its labels, and its message where it has a body."""

    who: Who
    labels: Mapping[str, str]
    message: JSONRPCMessage | None


Serve: TypeAlias = Callable[[Admitted, Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What serves a path: its methods, and whether everybody may ask, without a token."""

    methods: tuple[str, ...]
    serve: Serve


Open: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """The ASGI application."""

    def __init__(
        self,
        names: Names,
        callers: Callers,
        endpoints: Mapping[str, Endpoint],
        health: Open,
        *,
        max_body_bytes: int,
    ) -> None:
        self._names = names
        self._callers = callers
        self._endpoints = endpoints
        self._health = health
        self._max_body_bytes = max_body_bytes
        self._bytes_held: Counter[str] = Counter()
        self._ending = False

    def end(self) -> None:
        """Let nobody in any more; what is in is still served."""
        self._ending = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            origin = self._names.check(scope)
        except Refused as refused:
            await self._refuse(refused, scope, receive, send)
            return
        if origin is not None:
            send = readable_by(origin, send)
        try:
            await self._admit(scope, receive, send, asked_by_page=origin is not None)
        except Refused as refused:
            await self._refuse(refused, scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send, *, asked_by_page: bool) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/healthz":
            if method not in ("GET", "HEAD"):
                raise wrong_method(("GET", "HEAD"))
            await self._health(scope, receive, send)
            return
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            raise no_such_path()
        if asked_by_page and is_preflight(scope):
            await answer_preflight(send, endpoint.methods)
            return
        if method not in endpoint.methods:
            raise wrong_method(endpoint.methods)
        if self._ending:
            raise ending()
        who = self._callers.of(scope)
        send = _naming(who.identity.agent, scope, send)
        labels = _labels(scope)
        if method != "POST":
            await _watched(endpoint.serve, Admitted(who, labels, None), scope, receive, send)
            return
        await self._admit_body(endpoint, who, labels, scope, receive, send)

    async def _admit_body(
        self,
        endpoint: Endpoint,
        who: Who,
        labels: Mapping[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        agent = who.identity.agent
        body = _Body(self._max_body_bytes, lambda size: self._hold(agent, size))
        try:
            content = await body.read(scope, receive)
            if content is None:
                logger.info("a client of %s left before its request had arrived", agent)
                return
            message = _message(content)
            await _watched(
                endpoint.serve, Admitted(who, labels, message), scope, _again(content, receive), send
            )
        finally:
            self._hold(agent, -body.held)

    def _hold(self, agent: str, size: int) -> None:
        """Count bytes of an agent's requests under way; raises the 429 for more than it may have."""
        if size > 0 and self._bytes_held[agent] + size > BODIES_HELD * self._max_body_bytes:
            raise too_many_at_once()
        self._bytes_held[agent] += size

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        address = (scope.get("client") or ("unknown",))[0]
        logger.info("refused %s of %s: %s", scope["method"], address, refused)
        await refused(scope, receive, send)


class _Body:
    """One request's body as it arrives; `held` is what is counted of it."""

    def __init__(self, limit: int, hold: Callable[[int], None]) -> None:
        self._limit = limit
        self._hold = hold
        self.held = 0

    async def read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None when the client left; raises the refusal for one too large or too slow."""
        told = header(scope, "content-length") or ""
        if told.isdecimal() and int(told[:20]) > self._limit:
            raise too_large(self._limit)
        parts: list[bytes] = []
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                part = message.get("body", b"")
                if self.held + len(part) > self._limit:
                    raise too_large(self._limit)
                self._hold(len(part))
                self.held += len(part)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
        raise too_slow()


def _message(content: bytes) -> JSONRPCMessage:
    frame = read_line(content, len(content))
    if frame is None:
        raise malformed(
            "The body is no message of the protocol.",
            "Send one JSON-RPC request, notification or response.",
            rpc_code=INVALID_REQUEST,
        )
    if isinstance(frame, Refusal):
        raise malformed(
            f"{frame.message[:1].upper()}{frame.message[1:]}.",
            "Send one JSON-RPC message as UTF-8 JSON.",
            rpc_code=frame.code,
            request_id=frame.id,
        )
    return frame


def _labels(scope: Scope) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in LABEL_HEADERS:
        values = header_values(scope, name)
        if len(values) > 1:
            raise bad_header(name)
        if values:
            found[name] = values[0]
    return MappingProxyType(found)


def _again(content: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, then whatever comes after it."""
    waiting = [content]

    async def read() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return read


def _naming(agent: str, scope: Scope, send: Send) -> Send:
    """`send`, telling the client as whom it was served, and the log at level debug what was answered."""
    named = (b"deskbook-agent", quote(agent).encode())

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), named]}
            logger.debug("%s %s of %s: %s", scope["method"], scope["path"], agent, message["status"])
        await send(message)

    return told


async def _watched(serve: Serve, admitted: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve until the end or until the client has left an answer unread for too long."""
    with anyio.CancelScope() as serving:

        async def send_in_time(message: Message) -> None:
            with anyio.move_on_after(STALLED_SECONDS) as sending:
                await send(message)
            if sending.cancelled_caught:
                logger.info("a client of %s did not read its answers", admitted.who.identity.agent)
                serving.cancel()

        await serve(admitted, scope, receive, send_in_time)
