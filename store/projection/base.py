"""What turning entries into rows rests on: what stood before an entry, and who knows which event's rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

from ..entry import Entry
from ..event_parts import Event
from ..rows import Row, Version


@dataclass(frozen=True, slots=True)
class Before:
    """What stood before an entry: the subject's current version and the totals over all memories.

    The version counts for `CHANGES` alone and the totals for `Recorded` alone.
    """

    version: Version | None
    memories: int
    terms_total: int


@singledispatch
def rows_of(event: Event, entry: Entry, before: Before) -> list[Row]:
    """The rows of an event, empty for those that leave none; the modules beside register theirs."""
    return []


def existing(entry: Entry, before: Before) -> Version:
    """The version that an entry changes; raises ValueError when nothing recorded it."""
    if before.version is None:
        raise ValueError(
            f"entry {entry.sequence} changes {entry.subject_id}, which no entry before it recorded"
        )
    return before.version


def following(old: Version, entry: Entry, **changes: object) -> Version:
    """The next version, with what the entry changed."""
    told = {"changed_by": entry.agent, "effective_at": entry.effective_at} | changes
    return replace(old, sequence_from=entry.sequence, version=old.version + 1, **told)  # type: ignore[arg-type]
