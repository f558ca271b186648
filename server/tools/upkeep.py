"""Ending one's own memories, and asking a person to look at any."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from store.commands import FlagMemory, ResolveMemory

from ..arguments import Integer, OptionalId, OptionalText, Word, WriteArguments
from .spec import writing


class ResolveArguments(WriteArguments):
    """Arguments of resolve_memory."""

    memory_id: Annotated[str, Field(description="Id of your memory.")]
    status: Annotated[Literal["withdrawn", "resolved", "retired"], Word, Field(description="New status.")]
    note: Annotated[OptionalText, Field(description="Why.")] = None
    expected_version: Annotated[Integer, Field(description="Fail unless current.")] = None


class FlagArguments(WriteArguments):
    """Arguments of flag_memory."""

    memory_id: Annotated[str, Field(description="Id of any memory.")]
    reason: Annotated[
        Literal["stale", "wrong", "conflicting", "other"], Word, Field(description="What is wrong.")
    ]
    other_id: Annotated[OptionalId, Field(description="Memory it conflicts with.")] = None
    note: Annotated[OptionalText, Field(description="Why.")] = None


TOOLS = (
    writing(
        "resolve_memory",
        "Resolve a memory",
        "End your own memory: withdraw a proposal, resolve a risk note, retire a note or lesson.",
        ResolveArguments,
        lambda given: ResolveMemory(
            memory_id=given.memory_id,
            status=given.status,
            note=given.note,
            expected_version=given.expected_version,
        ),
    ),
    writing(
        "flag_memory",
        "Flag a memory",
        "Ask a person to look at a memory. Its status stays.",
        FlagArguments,
        lambda given: FlagMemory(
            memory_id=given.memory_id, reason=given.reason, other_id=given.other_id, note=given.note
        ),
    ),
)
