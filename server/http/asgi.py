"""The forms of an ASGI application, and what of a request's headers is read here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def header_values(scope: Scope, name: str) -> list[str]:
    """Every value sent under a header's name, as text; bytes that are no UTF-8 are read as Latin-1."""
    wanted = name.lower().encode()
    return [_text(value) for key, value in scope["headers"] if key == wanted]


def header(scope: Scope, name: str) -> str | None:
    """The first value of a header, or None."""
    return next(iter(header_values(scope, name)), None)


def without_header(scope: Scope, name: str) -> Scope:
    """The request as if the header had not been sent."""
    unwanted = name.lower().encode()
    return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != unwanted]}


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
