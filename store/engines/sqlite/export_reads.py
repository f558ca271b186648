"""Reads for copies in other forms: whole rows in order of sequence, streamed, as plain tuples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ...entry import COLUMNS
from ...lifecycle import ORDER_ACTION, first_status
from ...rows import INDEX_COLUMNS, ORDER_COLUMNS, REPORT_COLUMNS, Retrieval
from .reading import STANDING, Reading

_ENTRY = ", ".join(COLUMNS)
_RETRIEVAL = ", ".join(field.name for field in fields(Retrieval))
_INDEX = ", ".join("NULL" if name == "sequence_to" else f"v.{name}" for name in INDEX_COLUMNS)
_REPORT = ", ".join(f"{'e' if name == 'recorded_at' else 'h'}.{name}" for name in REPORT_COLUMNS)
_OF_ORDER = {
    "sequence": "f.sequence_from",
    "event_id": "e.event_id",
    "action_id": "v.memory_id",
    "outcome_sequence": "o.sequence",
    "outcome_at": "o.effective_at",
    "outcome_recorded_at": "o.recorded_at",
    "outcome_by": "o.agent",
}
_FROM_VERSION = frozenset({"version", "status", "symbol", "text", "details", "agent", "profile"})
_ORDER = ", ".join(
    _OF_ORDER.get(name) or f"{'v' if name in _FROM_VERSION else 'e'}.{name}" for name in ORDER_COLUMNS
)
_BORN = "f.version = 1 AND f.sequence_from > ? AND f.sequence_from <= ?"


class ExportReads(Reading):
    """Rows after one sequence and up to another, both of the entry that they began with."""

    def entry_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
            (after, until),
        )

    def retrieval_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(
            f"SELECT {_RETRIEVAL} FROM memory_retrievals WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
            (after, until),
        )

    def report_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(
            f"SELECT {_REPORT} FROM memory_holdings h JOIN memory_events e ON e.sequence = h.sequence"
            " WHERE h.sequence > ? AND h.sequence <= ? ORDER BY h.sequence",
            (after, until),
        )

    def index_rows(self, after: int, until: int, cut: int) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(
            f"SELECT f.sequence_from, {_INDEX} FROM memory_versions f"
            f" CROSS JOIN memory_versions v ON v.memory_id = f.memory_id WHERE {_BORN} AND {STANDING}"
            " ORDER BY f.sequence_from",
            (after, until, cut, cut),
        )

    def order_rows(self, after: int, until: int, cut: int) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(
            f"SELECT {_ORDER} FROM memory_versions f CROSS JOIN memory_versions v ON v.memory_id = f.memory_id"
            " CROSS JOIN memory_events e ON e.sequence = f.sequence_from"
            " LEFT JOIN memory_events o ON o.sequence = v.sequence_from AND v.version > 1"
            f" WHERE f.kind = ? AND f.status = ? AND {_BORN} AND {STANDING} ORDER BY f.sequence_from",
            (ORDER_ACTION, first_status(ORDER_ACTION), after, until, cut, cut),
        )

    def changed_births(self, kind: str | None, after: int, until: int) -> list[int]:
        rows = self._connection.execute(
            "SELECT DISTINCT f.sequence_from FROM memory_versions v"
            " CROSS JOIN memory_versions f ON f.memory_id = v.memory_id AND f.version = 1"
            " WHERE v.sequence_from > ?1 AND v.sequence_from <= ?2 AND f.sequence_from <= ?1"
            " AND (?3 IS NULL OR v.kind = ?3) ORDER BY 1",
            (after, until, kind),
        )
        return [int(sequence) for (sequence,) in rows]
