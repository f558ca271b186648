"""What stands, listed and counted without walking past all that has ended.

A connection keeps, for the few conditions that are asked for often, the entries of the versions that stand. Moved on
from cut to cut, that takes a look at the versions written meanwhile and never at the whole ledger again. What stood
after an entry follows from the ledger up to it, so what is kept holds as long as that entry is there. An earlier cut
is answered from the file; what was undone with its transaction, and projections made anew, are read anew.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Any
from weakref import WeakKeyDictionary

import apsw

from ...lifecycle import DECISION, LESSON, ORDER_ACTION, THESIS
from ...rows import Filter, Version
from .reading import STANDING, VERSION, Reading, to_version

CONDITIONS_KEPT = 16
_PART = 64
_FAR = 2_000
"""Entries after which it is less work to look at all that stands anew."""
_ENDLESS = 2**63
_PLACE = "v.sequence_from, v.memory_id, v.symbol, v.effective_at"

_REDACTED = (
    "(SELECT event_id FROM memory_events WHERE event_type = 'memory.redacted'"
    # Said again as the index of the rare types says it, so that it is used.
    " AND event_type IN ('memory.redacted', 'publication.begun', 'publication.ended')"
    " ORDER BY sequence DESC LIMIT 1)"
)
_NEWEST = (
    "SELECT (SELECT max(sequence_from) FROM memory_versions WHERE sequence_from <= ?),"
    f" (SELECT event_id FROM memory_events WHERE sequence = ?), {_REDACTED}"
)
_MADE = "SELECT event_id FROM memory_events WHERE sequence = ?"
_ENDED = (
    "SELECT p.sequence_from FROM memory_versions n CROSS JOIN memory_versions p"
    " ON p.memory_id = n.memory_id AND p.version = n.version - 1"
    " WHERE n.sequence_from > ?1 AND n.sequence_from <= ?2 AND n.version > 1 AND p.sequence_from <= ?1"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What versions must meet besides standing, in SQL on `v`; only a redaction ever changes a column in it.

    `mark` is an instant of theirs by which they are told apart: when they expire, or are due.
    """

    where: str
    bindings: tuple[Any, ...] = ()
    mark: str = "NULL"


SPEAKS = f"(v.kind IN ('{THESIS}', '{DECISION}', '{ORDER_ACTION}') OR v.text <> '')"
"""What still says something once its text was taken away: what may be open, and what was done."""

SHOWN = f"v.review_state NOT IN ('pending', 'rejected') AND {SPEAKS}"
OPEN_THESES = Condition(f"v.kind = ? AND v.status = ? AND {SHOWN}", (THESIS, "open"), "v.expires_at")
DUE = Condition(
    "v.stale_at IS NOT NULL"
    # Not by an index on kinds: with "v.kind" SQLite would walk past all that was ever open.
    f" AND ((+v.kind = '{THESIS}' AND +v.status = 'open')"
    f" OR (+v.kind = '{LESSON}' AND +v.status IN ('proposed', 'validated'))) AND {SHOWN}",
    mark="v.stale_at",
)
"""What is due for review once its mark is reached."""


@dataclass(slots=True)
class Standing:
    """The versions that meet a condition and stand, by the entry that created each."""

    unmarked: list[int] = field(default_factory=list)
    marked: list[tuple[int, int]] = field(default_factory=list)
    """Instant and entry, in this order."""
    mark_of: dict[int, int] = field(default_factory=dict)

    def add(self, rows: list[tuple[int, int | None]]) -> None:
        """Take in versions that are newer than all others here."""
        marks = {sequence: mark for sequence, mark in rows if mark is not None}
        self.unmarked.extend(sorted(sequence for sequence, mark in rows if mark is None))
        if marks:
            self.mark_of |= marks
            self.marked.extend((mark, sequence) for sequence, mark in marks.items())
            self.marked.sort()

    @property
    def all(self) -> list[int]:
        """All of them, in no order."""
        return [*self.unmarked, *self.mark_of]

    def drop(self, sequence: int) -> None:
        mark = self.mark_of.pop(sequence, None)
        if mark is not None:
            del self.marked[bisect_right(self.marked, (mark, sequence)) - 1]
            return
        place = bisect_right(self.unmarked, sequence) - 1
        if place >= 0 and self.unmarked[place] == sequence:
            del self.unmarked[place]

    def until(self, at: int) -> int:
        """How many are marked with an instant that is not after `at`."""
        return bisect_right(self.marked, (at, _ENDLESS))

    def count_after(self, at: int) -> int:
        """How many are not marked, or with an instant after `at`."""
        return len(self.unmarked) + len(self.marked) - self.until(at)

    def newest_after(self, at: int, limit: int) -> list[int]:
        """The newest of those, newest first."""
        if limit < 1:
            return []
        marked = nlargest(limit, (sequence for _, sequence in self.marked[self.until(at) :]))
        return sorted([*self.unmarked[-limit:], *marked], reverse=True)[:limit]

    def first_until(self, at: int, limit: int) -> list[int]:
        """Those marked with an instant that is not after `at`, earliest first."""
        return [sequence for _, sequence in self.marked[: min(self.until(at), max(limit, 0))]]


@dataclass(slots=True)
class _Kept:
    """What one connection knows to stand after the version that the entry `sequence`, with `event_id`, created.

    `redacted` is the event id of the last redaction by then.
    """

    made: int
    sequence: int
    event_id: str | None
    redacted: str | None = None
    by_condition: dict[Condition, Standing] = field(default_factory=dict)


_KEPT: WeakKeyDictionary[apsw.Connection, _Kept] = WeakKeyDictionary()


class StandingReads(Reading):
    """Reads of what stands."""

    def standing(self, condition: Condition, cut: int) -> Standing | None:
        """What meets a condition at the cut; None at a cut that is already past, where only the file can tell."""
        kept = _KEPT.get(self._connection)
        row = self._one(_NEWEST, (cut, kept.sequence if kept else 0))
        newest, event_id, redacted = (int(row[0] or 0), *row[1:]) if row else (0, None, None)
        if kept is not None and (kept.event_id, kept.redacted) != (event_id, redacted):
            kept = None
        if kept is None or kept.sequence != newest:
            kept = self._kept_at(newest, kept)
            if kept is None:
                return None
            kept.redacted = redacted
        found = kept.by_condition.get(condition)
        if found is None:
            found = Standing()
            found.add(self._written(condition, 0, newest))
            if len(kept.by_condition) >= CONDITIONS_KEPT:
                kept.by_condition.clear()
            kept.by_condition[condition] = found
        return found

    def _kept_at(self, newest: int, kept: _Kept | None) -> _Kept | None:
        """What is kept, moved on to its version of the entry `newest`, or begun anew; None where that is past."""
        made = int(self._connection.pragma("schema_version"))
        if kept is not None and kept.made == made and newest < kept.sequence:
            return None
        # Out of reach while it is moved on: an error half-way must leave nothing half moved.
        _KEPT.pop(self._connection, None)
        if kept is None or kept.made != made or newest - kept.sequence > _FAR:
            kept = _Kept(made, newest, None)
        else:
            self._move_on(kept, newest)
        row = self._one(_MADE, (newest,))
        kept.event_id = str(row[0]) if row else None
        _KEPT[self._connection] = kept
        return kept

    def standing_of(self, conditions: Filter, cut: int) -> Standing | None:
        """As `standing`, for a filter by kind and status; None for any other, too."""
        if not conditions.kind or not conditions.status:
            return None
        if conditions != Filter(kind=conditions.kind, status=conditions.status):
            return None
        named = replace(OPEN_THESES, bindings=(conditions.kind, conditions.status))
        return self.standing(named, cut)

    def _move_on(self, kept: _Kept, newest: int) -> None:
        for (ended,) in self._rows(_ENDED, (kept.sequence, newest)):
            for standing in kept.by_condition.values():
                standing.drop(ended)
        for condition, standing in kept.by_condition.items():
            standing.add(self._written(condition, kept.sequence, newest))
        kept.sequence = newest

    def _written(self, condition: Condition, after: int, until: int) -> list[tuple[int, int | None]]:
        """Versions with after < sequence_from <= until that meet the condition and stand at `until`."""
        # Few are written meanwhile, and no index leads to them as straight as their entries do. But to begin with,
        # by their entries SQLite would walk through the whole table.
        how, entry = (" NOT INDEXED", "v.sequence_from") if after else ("", "+v.sequence_from")
        return self._rows(
            f"SELECT v.sequence_from, {condition.mark} FROM memory_versions v{how}"
            f" WHERE {entry} > ? AND {entry} <= ? AND (v.sequence_to IS NULL OR v.sequence_to > ?)"
            f" AND {condition.where}",
            (after, until, until, *condition.bindings),
        )

    def _rows(self, sql: str, bindings: tuple[Any, ...]) -> list[Any]:
        return self._connection.execute(sql, bindings).fetchall()

    def loaded(self, sequences: Sequence[int]) -> list[Version]:
        """The versions that those entries created, in the order given."""
        if not sequences:
            return []
        found = {
            row[0]: to_version(row)
            for row in self._connection.execute(
                f"SELECT {VERSION} FROM memory_versions v"
                " WHERE v.sequence_from IN (SELECT value FROM json_each(?))",
                (json.dumps(sequences),),
            )
        }
        return [found[sequence] for sequence in sequences if sequence in found]

    def open_theses(self, cut: int, at: int) -> Iterator[tuple[int, str, str | None, int]]:
        """See `Snapshot.open_theses`; read in growing parts, as far as it is asked for."""
        standing = self.standing(OPEN_THESES, cut)
        if standing is None:
            yield from self._rows(
                f"SELECT {_PLACE} FROM memory_versions v WHERE {STANDING} AND {OPEN_THESES.where}"
                " AND (v.expires_at IS NULL OR v.expires_at > ?) ORDER BY v.sequence_from DESC",
                (cut, cut, *OPEN_THESES.bindings, at),
            )
            return
        told = standing.newest_after(at, standing.count_after(at))
        done, size = 0, _PART
        while done < len(told):
            yield from self._rows(
                f"SELECT {_PLACE} FROM memory_versions v"
                " WHERE v.sequence_from IN (SELECT value FROM json_each(?)) ORDER BY v.sequence_from DESC",
                (json.dumps(told[done : done + size]),),
            )
            done, size = done + size, size * 4
