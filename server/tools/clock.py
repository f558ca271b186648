"""The clock of a run, moved on by a harness."""

from __future__ import annotations

from typing import Annotated

from mcp_types import ToolAnnotations
from pydantic import Field

from store import Book, Caller, Reply
from store.clock import parse_instant

from ..arguments import Arguments
from ..sections import LimitSettings
from .spec import ToolSpec


class AdvanceArguments(Arguments):
    """Arguments of advance_clock."""

    now: Annotated[str, Field(description="New simulated time: ISO with offset.")]


def _time(given: AdvanceArguments) -> int:
    return parse_instant(given.now, field="now")


def _advance(book: Book, caller: Caller, given: AdvanceArguments, limits: LimitSettings) -> Reply:
    return book.answer(book.advance_clock(caller, _time(given)))


TOOLS = (
    ToolSpec(
        "advance_clock",
        "Advance the clock",
        "Move the run's simulated clock on; later calls then need no time of their own. It never goes back.",
        AdvanceArguments,
        ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
        _advance,
        time_of=_time,
    ),
)
