"""Pure: an entry, its event and the memory's current version give the rows to write.

Nothing here reads or writes a store, so a rebuild that replays the ledger gives the rows the writes gave.
"""

from __future__ import annotations

from typing import Final

from ..entry import Entry
from ..event_parts import Event
from ..events import LessonJudged, OrderOutcome, StatusChanged, ThesisClosed, ThesisUpdated
from ..review_events import Approved, Edited, Rejected, Renewed, Settled, SignedOff
from ..rows import Row
from . import reviews
from .base import Before, rows_of
from .records import proposed_version, shown_text

CHANGES: Final = (
    OrderOutcome, LessonJudged, ThesisUpdated, ThesisClosed, StatusChanged, Approved, Edited, Rejected, Renewed,
    Settled, SignedOff,
)  # fmt: skip
"""The events that give a memory its next version, and so need the one before."""

__all__ = ["CHANGES", "Before", "project", "proposed_version", "reviews", "shown_text"]


def project(entry: Entry, event: Event, before: Before) -> list[Row]:
    """The projection rows that `entry` adds, given what stood before it."""
    return rows_of(event, entry, before)
