"""What a tool is to the rest of the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp_types import ToolAnnotations

from store import Book, Caller, Reply
from store.commands import Command

from ..arguments import Arguments, WriteArguments
from ..sections import LimitSettings

A = TypeVar("A", bound=Arguments)
W = TypeVar("W", bound=WriteArguments)

Handler = Callable[[Book, Caller, Any, LimitSettings], Reply]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: what clients see of it, and what it does in a worker thread."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    annotations: ToolAnnotations
    handler: Handler
    recorded_first: bool = False
    time_of: Callable[[Any], int] | None = None
    """Where the call's own time is one of its arguments: reads it, in microseconds since the epoch, UTC."""
    if_it_fails: str = ""
    """What a caller must know when the ledger could not take the call, said before the error's own hint."""

    @property
    def changes(self) -> bool:
        """Whether a call of the tool is meant to change memory."""
        return not self.annotations.read_only_hint

    @property
    def waits(self) -> bool:
        """Whether the answer waits for the write lock: a change, or a reading that must be on record first."""
        return self.changes or self.recorded_first


def writing(
    name: str,
    title: str,
    description: str,
    arguments: type[W],
    command: Callable[[W], Command],
    *,
    destructive: bool = False,
    if_it_fails: str = "",
) -> ToolSpec:
    """A tool that turns its arguments into one command. Without a key, sending it twice stores it twice."""
    hints = ToolAnnotations(
        read_only_hint=False, destructive_hint=destructive, idempotent_hint=False, open_world_hint=False
    )

    def handle(book: Book, caller: Caller, given: W, limits: LimitSettings) -> Reply:
        written = book.execute(caller, command(given), idempotency_key=given.idempotency_key)
        return book.answer(written)

    return ToolSpec(name, title, description, arguments, hints, handle, if_it_fails=if_it_fails)


def reading(
    name: str,
    title: str,
    description: str,
    arguments: type[A],
    handler: Handler,
    *,
    recorded_first: bool = False,
) -> ToolSpec:
    """A tool that only reads; that a reading is recorded changes no memory."""
    hints = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return ToolSpec(name, title, description, arguments, hints, handler, recorded_first)
