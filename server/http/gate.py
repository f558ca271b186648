"""The way in: what is asked of every request, in this order, before any of it is served.

Host and origin, the path and its method, whose it is, what it accepts, a body within bounds. What fails is answered
with a body that says what to do. Whoever does not read what they are sent is cut off, with or without a token, so
that a stuck client holds nothing for ever.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import quote

import anyio
from mcp_types import JSONRPCMessage

from ..identity import LABEL_HEADERS
from .asgi import App, Message, Receive, Scope, Send, header, header_values
from .bodies import Bodies, Body, as_read, message_of, read_again
from .callers import Callers, Who
from .names import Names, answer_preflight, is_preflight, readable_by
from .refusals import (
    Refused,
    bad_header,
    ending,
    no_such_path,
    not_acceptable,
    wrong_content_type,
    wrong_method,
)

logger = logging.getLogger(__name__)

STALLED_SECONDS: Final = 60.0
"""How long a client may leave what it is sent unread."""

FAREWELL_SECONDS: Final = 0.2
CLOSE_LOOK_SECONDS: Final = 0.01
LOGGED_A_SECOND: Final = 10
"""Refusals told to the log one by one; more of them in one second are counted."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be served: whose it is, its labels, and its message where it has a body."""

    who: Who
    labels: Mapping[str, str]
    message: JSONRPCMessage | None = None
    body: Body | None = None


Serve: TypeAlias = Callable[[Admitted, Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What serves a path: its methods, and what a client must accept in answer to a POST."""

    methods: tuple[str, ...]
    serve: Serve
    answers: tuple[str, ...] = ()


class Gate:
    """The ASGI application."""

    def __init__(
        self, names: Names, callers: Callers, endpoints: Mapping[str, Endpoint], health: App, bodies: Bodies
    ) -> None:
        self._names = names
        self._callers = callers
        self._endpoints = endpoints
        self._health = health
        self._bodies = bodies
        self._under_way: set[anyio.CancelScope] = set()
        self._ending = False
        self._log = _Summed()

    def end(self) -> None:
        """Let nobody in any more; what is in is still served."""
        self._ending = True

    async def close(self, patience: float) -> None:
        """Let what is under way come to its end, for so many seconds at most, and give up the rest."""
        with anyio.move_on_after(patience):
            while self._under_way:  # noqa: ASYNC110 - only the end asks
                await anyio.sleep(CLOSE_LOOK_SECONDS)
        for request in list(self._under_way):
            request.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        with anyio.CancelScope() as request:
            line = _Line(send, request, scope)
            self._under_way.add(request)
            try:
                await self._serve(scope, receive, line.send)
            finally:
                self._under_way.discard(request)
        if request.cancelled_caught and not line.answered:
            with anyio.move_on_after(FAREWELL_SECONDS):
                await ending()(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        if method == "POST":
            await self._admit_body(endpoint, who, labels, scope, receive, send)
        else:
            await endpoint.serve(Admitted(who, labels), scope, receive, send)

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
        body = Body(self._bodies, agent)
        try:
            content = await body.read(scope, receive)
            if content is None:
                logger.info("a client of %s left before its request had arrived", agent)
                return
            _check_types(endpoint, scope)
            message = message_of(content)
            admitted = Admitted(who, labels, message, body)
            await endpoint.serve(admitted, scope, read_again(as_read(message, content), receive), send)
        finally:
            body.after_request()

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        self._log.tell(refused, scope)
        await refused(scope, receive, send)


class _Line:
    """The way back to a client: whether an answer was begun, and the patience with who does not read it."""

    def __init__(self, send: Send, request: anyio.CancelScope, scope: Scope) -> None:
        self._send = send
        self._request = request
        self._scope = scope
        self.answered = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer; a client that leaves it unread for too long loses its request."""
        self.answered = True
        with anyio.move_on_after(STALLED_SECONDS) as sending:
            await self._send(message)
        if sending.cancelled_caught:
            logger.info("a client of %s did not read what it was sent", _address(self._scope))
            self._request.cancel()


class _Summed:
    """Tells refusals to the log, a flood of them as a number."""

    def __init__(self) -> None:
        self._second = 0
        self._told = 0
        self._more = 0

    def tell(self, refused: Refused, scope: Scope) -> None:
        """One request was refused."""
        second = int(time.monotonic())
        if second != self._second:
            if self._more:
                logger.info("refused %d more requests", self._more)
            self._second, self._told, self._more = second, 0, 0
        if self._told == LOGGED_A_SECOND:
            self._more += 1
            return
        self._told += 1
        logger.info("refused %s of %s: %s", scope["method"], _address(scope), refused)


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("unknown",))[0])


def _check_types(endpoint: Endpoint, scope: Scope) -> None:
    """Raise the 406 or 415 for a client that could not read the answer, or sends what is not JSON."""
    sent = (header(scope, "content-type") or "").split(";")[0].strip().casefold()
    if sent != "application/json":
        raise wrong_content_type()
    accepted = {
        kind.split(";")[0].strip().casefold() for kind in ",".join(header_values(scope, "accept")).split(",")
    }
    for kind in endpoint.answers:
        if not accepted & {kind, f"{kind.partition('/')[0]}/*", "*/*"}:
            raise not_acceptable(endpoint.answers)


def _labels(scope: Scope) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in LABEL_HEADERS:
        values = header_values(scope, name)
        if len(values) > 1:
            raise bad_header(name)
        if values:
            found[name] = values[0]
    return MappingProxyType(found)


def _naming(agent: str, scope: Scope, send: Send) -> Send:
    """`send`, telling the client as whom it was served, and the log at level debug what was answered."""
    named = (b"deskbook-agent", quote(agent).encode())

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), named]}
            logger.debug("%s %s of %s: %s", scope["method"], scope["path"], agent, message["status"])
        await send(message)

    return told
