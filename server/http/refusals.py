"""Requests that are refused before they are a call: a status, and a body that says what to do.

The body is a JSON-RPC error without an id (a client shows its message) whose `data` is the shape that every error of
Deskbook has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from ..frames import scrub
from .asgi import Receive, Scope, Send

RETRY_SECONDS: Final = 1
REALM: Final = "deskbook"


class Refused(Exception):
    """A request that goes no further."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str,
        *,
        headers: Mapping[str, str] | None = None,
        request_id: float | str | None = None,
        rpc_code: int = INVALID_REQUEST,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})
        self.request_id = request_id
        self.rpc_code = rpc_code

    @property
    def retryable(self) -> bool:
        """Whether the same request may be served later."""
        return self.status in (408, 429, 503)

    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        told = {
            "code": self.code,
            "message": self.message,
            "stored": "no",
            "retryable": self.retryable,
            "hint": self.hint,
        }
        error = {"code": self.rpc_code, "message": f"{self.message} {self.hint}", "data": told}
        return {"jsonrpc": "2.0", "id": self.request_id, "error": error}

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer the request, as an ASGI application."""
        await answer_json(send, self.status, self.body(), self.headers)


async def answer_json(
    send: Send, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> None:
    """Send one whole JSON answer that nobody may cache."""
    content = json.dumps(scrub(dict(body)), ensure_ascii=False).encode()
    lines = {"content-type": "application/json", "cache-control": "no-store"} | dict(headers or {})
    raw = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in lines.items()]
    raw.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


def unauthorized(message: str, hint: str, *, given: bool) -> Refused:
    """No token, or none that is accepted; `given` says whether one was sent (RFC 6750, section 3)."""
    challenge = f'Bearer realm="{REALM}"'
    if given:
        challenge += ', error="invalid_token"'
    return Refused(401, "unauthorized", message, hint, headers={"WWW-Authenticate": challenge})


def forbidden_agent() -> Refused:
    """A good token of an agent that this server does not serve."""
    return Refused(
        403,
        "wrong_agent",
        "This server serves another agent alone.",
        "Connect to the server of your own agent, or have it started without --agent.",
    )


def forbidden_origin() -> Refused:
    """A browser page of an origin that is not allowed."""
    return Refused(
        403,
        "origin_refused",
        "The request comes from a web page of an origin that is not allowed here.",
        "The operator can add the origin, as the page's browser sends it, to [http] allowed_origins.",
    )


def misdirected(host: str) -> Refused:
    """A request for a host name that this server does not go by."""
    shown = "".join(character for character in host[:100] if character.isprintable()) or "(none)"
    return Refused(
        421,
        "host_refused",
        f"This server does not go by the host name {shown}.",
        "Use the name it goes by; the operator can add this one, with or without a port, to [http] allowed_hosts.",
    )


def no_such_path() -> Refused:
    """A path that is none of ours."""
    return Refused(
        404,
        "not_found",
        "There is nothing at this path.",
        "MCP is served at /mcp (Streamable HTTP) and /sse (HTTP+SSE).",
    )


def wrong_method(allowed: tuple[str, ...]) -> Refused:
    """A method that the path does not take."""
    return Refused(
        405,
        "method_refused",
        "The path does not take this method.",
        f"It takes {', '.join(allowed)}.",
        headers={"Allow": ", ".join(allowed)},
    )


def too_large(limit: int) -> Refused:
    """A body over the cap; it was not read to its end."""
    return Refused(
        413,
        "body_too_large",
        f"The body is larger than {limit} bytes; nothing of it was read.",
        "Shorten the text or split it into several memories; the operator can raise [http] max_body_bytes.",
        headers={"Connection": "close"},
    )


def too_slow() -> Refused:
    """A body that did not arrive in time."""
    return Refused(
        408,
        "body_too_slow",
        "The body did not arrive in time; nothing was done.",
        "Send the request again.",
        headers={"Connection": "close"},
    )


def unknown_session() -> Refused:
    """A session that never was, has ended, or belongs to another token: all look the same."""
    return Refused(
        404,
        "session_not_found",
        "There is no such session for this token; it may have expired, or the server was started again.",
        "Initialize anew, without a session id.",
    )


def session_required(versions: str) -> Refused:
    """An older protocol's request outside of a session."""
    return Refused(
        400,
        "session_required",
        "The request has no session.",
        "Send `initialize` first and then the Mcp-Session-Id it answers with, or speak protocol 2026-07-28, "
        f"which has none, with its header MCP-Protocol-Version. Served versions: {versions}.",
    )


def not_acceptable(kinds: tuple[str, ...]) -> Refused:
    """A client that says it could not read the answer."""
    return Refused(
        406,
        "not_acceptable",
        f"The answer may come as {' or '.join(kinds)}, which the client does not accept.",
        f"Send the header Accept: {', '.join(kinds)}.",
    )


def wrong_content_type() -> Refused:
    """A body that is not called JSON."""
    return Refused(
        415,
        "wrong_content_type",
        "The body is not called JSON.",
        "Send the header Content-Type: application/json.",
    )


def id_in_use() -> Refused:
    """A second request under an id whose first one is still unanswered in the same session."""
    return Refused(
        409,
        "id_in_use",
        "The session has an unanswered request under this id; nothing was done.",
        "Give every request of a session an id of its own.",
    )


def stream_in_use() -> Refused:
    """A second standing stream of one session."""
    return Refused(
        409,
        "stream_in_use",
        "The session has its stream of notifications open already.",
        "Use the one that is open, or close it first.",
    )


def too_many_streams(most: int) -> Refused:
    """One session listens on as many streams as it may."""
    return Refused(
        429,
        "too_many_streams",
        f"The session listens on {most} streams already; nothing was done.",
        "End one of them first; one stream tells of every change.",
        headers={"Retry-After": str(RETRY_SECONDS)},
        rpc_code=INTERNAL_ERROR,
    )


def malformed(message: str, hint: str, *, rpc_code: int, request_id: float | str | None = None) -> Refused:
    """A body that is no message of the protocol."""
    return Refused(400, "malformed", message, hint, rpc_code=rpc_code, request_id=request_id)


def bad_header(name: str) -> Refused:
    """A header that was sent twice or cannot be read."""
    return Refused(
        400, "bad_header", f"The header {name} cannot be read or was sent more than once.", "Send it once."
    )


def over_capacity(message: str) -> Refused:
    """No room at the moment."""
    return Refused(
        503,
        "over_capacity",
        message,
        "Close what is not needed, then send the request again.",
        headers={"Retry-After": str(RETRY_SECONDS)},
        rpc_code=INTERNAL_ERROR,
    )


def too_many_at_once() -> Refused:
    """One agent has too much under way."""
    return Refused(
        429,
        "rate_limited",
        "This agent has too much under way at once; nothing was done.",
        "Wait for answers, then send the request again.",
        headers={"Retry-After": str(RETRY_SECONDS)},
        rpc_code=INTERNAL_ERROR,
    )


def ending() -> Refused:
    """The server is on its way out."""
    return Refused(
        503,
        "ending",
        "The server is ending; nothing was done.",
        "Send the request again once it is back.",
        headers={"Retry-After": str(RETRY_SECONDS), "Connection": "close"},
        rpc_code=INTERNAL_ERROR,
    )
