"""What a request carries: its body within bounds, read once, and the message in it."""

from __future__ import annotations

from collections import Counter
from typing import Final

import anyio
import pydantic_core
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError, JSONRPCMessage

from ..frames import Refusal, encode, read_line
from .asgi import Message, Receive, Scope, header
from .refusals import malformed, too_large, too_many_at_once, too_slow

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""

BODIES_HELD: Final = 16
"""Bodies of the largest size that one agent may have under way at once, in bytes together."""


class Bodies:
    """Reads bodies, and counts by agent the bytes of those that are not answered yet."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._held: Counter[str] = Counter()

    def hold(self, agent: str, size: int) -> None:
        """Count so many bytes more; raises the 429 for more than an agent may have under way."""
        if self._held[agent] + size > BODIES_HELD * self.largest:
            raise too_many_at_once()
        self._held[agent] += size

    def let_go(self, agent: str, size: int) -> None:
        """Count so many bytes less."""
        self._held[agent] -= size
        if self._held[agent] <= 0:
            del self._held[agent]


class Body:
    """One request's body; it is counted until `let_go`, which whoever `keep`s it has to call."""

    def __init__(self, bodies: Bodies, agent: str) -> None:
        self._bodies = bodies
        self._agent = agent
        self._size = 0
        self._kept = False

    async def read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None when the client left; raises the refusal for one too large or too slow."""
        largest = self._bodies.largest
        told = header(scope, "content-length") or ""
        if told.isdecimal() and int(told[:20]) > largest:
            raise too_large(largest)
        parts: list[bytes] = []
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                part = message.get("body", b"")
                if self._size + len(part) > largest:
                    raise too_large(largest)
                self._bodies.hold(self._agent, len(part))
                self._size += len(part)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
        raise too_slow()

    def keep(self) -> None:
        """Its message is answered later than its request: count it until then."""
        self._kept = True

    def let_go(self) -> None:
        """It is answered."""
        self._bodies.let_go(self._agent, self._size)
        self._size = 0

    def after_request(self) -> None:
        """Its request has ended."""
        if not self._kept:
            self.let_go()


def message_of(content: bytes) -> JSONRPCMessage:
    """The message in a body; raises the 400 that says why there is none."""
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
    try:
        pydantic_core.from_json(content)  # as the transports behind will read it
    except ValueError:
        raise malformed(
            "The body holds half a character (a lone surrogate) or a number too long to read.",
            "Send text as whole characters, and long numbers as text.",
            rpc_code=PARSE_ERROR,
        ) from None
    return frame


def as_read(message: JSONRPCMessage, content: bytes) -> bytes:
    """A body for the transport behind, which reads it once more: where an answer was malformed, the error for it."""
    return encode(message) if isinstance(message, JSONRPCError) else content


def read_again(content: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, then whatever comes after it."""
    waiting = [content]

    async def read() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return read
