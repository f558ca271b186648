"""Under which names this server may be reached, and from which web pages.

A page in a browser can be made to send requests to any address (DNS rebinding), so a request must name a host that
this server goes by; and a request that a page sends names the page's origin, which must be allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from .asgi import Message, Scope, Send, header, header_values
from .refusals import forbidden_origin, misdirected

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_ALLOWED_HEADERS = (
    "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID, "
    "Deskbook-Now, Deskbook-Run, Deskbook-Model-Call, Deskbook-Session"
)


class Names:
    """The hosts and origins that are allowed beside this machine's own; a host without a port is allowed with any."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._hosts = {_host_of(host) for host in hosts} | {(name, None) for name in LOOPBACK_NAMES}
        self._origins = {origin.casefold().rstrip("/") for origin in origins}

    def check(self, scope: Scope) -> str | None:
        """The origin to be told that it may read the answer, None where no other page asks.

        Raises the refusal that fits a host or an origin that is not allowed.
        """
        hosts = header_values(scope, "host")
        if len(hosts) != 1 or not self._goes_by(hosts[0]):
            raise misdirected(hosts[0] if hosts else "")
        origins = header_values(scope, "origin")
        if not origins:
            return None
        origin = origins[0].casefold().rstrip("/")
        if len(origins) == 1 and origin in self._origins:
            return origins[0]
        if len(origins) == 1 and origin == f"{scope['scheme']}://{hosts[0]}".casefold():
            return None
        raise forbidden_origin()

    def _goes_by(self, host: str) -> bool:
        name, port = _host_of(host)
        return bool(name) and ((name, None) in self._hosts or (name, port) in self._hosts)


def readable_by(origin: str, send: Send) -> Send:
    """`send`, with what a browser needs to let the origin's page read the answer."""

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {
                **message,
                "headers": [
                    *message.get("headers", ()),
                    (b"access-control-allow-origin", origin.encode("latin-1", "replace")),
                    (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate, Deskbook-Agent"),
                    (b"vary", b"Origin"),
                ],
            }
        await send(message)

    return told


async def answer_preflight(send: Send, methods: tuple[str, ...]) -> None:
    """Answer a browser that asks what an allowed page may send."""
    headers = [
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-allow-headers", _ALLOWED_HEADERS.encode()),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks on behalf of a page before it sends the page's request."""
    return scope["method"] == "OPTIONS" and header(scope, "access-control-request-method") is not None


def _host_of(text: str) -> tuple[str, int | None]:
    """Host and port as written in a Host header; an empty host for what cannot be read."""
    try:
        parts = urlsplit(f"//{text.strip()}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return "", None
    return name.casefold().rstrip("."), port
