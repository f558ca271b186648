"""Which rows a person asks for: by time, by instrument, and as the ledger stood at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..clock import format_instant
from ..engines.base import Snapshot
from ..entry import COLUMNS, Entry
from ..rows import EntryFilter
from ..symbols import Line
from .schemas import RETRIEVALS, SCHEMAS
from .tables import Rows, Table

RETRIEVED = "memory.retrieved"


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that are set; times in microseconds UTC, both ends included. None and () mean any.

    `since` and `until` are held against a row's `effective_at`, `lines` against its symbol at that time, of a search
    the one that it was narrowed to. `as_of` is the one cut: the ledger as it stood then.
    """

    since: int | None = None
    until: int | None = None
    symbol: str | None = None
    lines: tuple[Line, ...] = ()
    as_of: int | None = None

    def cut(self, snapshot: Snapshot) -> int:
        """The last sequence that counts."""
        if self.as_of is not None:
            return snapshot.cut_at(self.as_of)
        head = snapshot.head()
        return head.sequence if head is not None else 0

    def told(self) -> Mapping[str, Any] | None:
        """The conditions as JSON values; None when there are none."""
        named = {
            name: None if value is None else format_instant(value)
            for name, value in (("since", self.since), ("until", self.until), ("as_of", self.as_of))
        }
        named["symbol"] = self.symbol
        return {name: value for name, value in named.items() if value is not None} or None

    def rows(self, table: Table, snapshot: Snapshot, cut: int) -> Rows:
        """The rows of a table that meet the conditions."""
        rows = table.rows(snapshot, 0, cut, cut)
        if self.since is None and self.until is None and not self.lines:
            return rows
        names = [column.name for column in SCHEMAS[table.name]]
        at = names.index("effective_at")
        symbol_of = _symbol_asked(names) if table.name == RETRIEVALS else _symbol_of(names)
        return (row for row in rows if self._meets(row[1][at], symbol_of(row[1])))

    def entries(self, snapshot: Snapshot, cut: int) -> Iterator[Entry]:
        """The ledger's entries that meet the conditions."""
        for entry in snapshot.raw_entries(EntryFilter(until_sequence=cut, limit=-1)):
            if self._meets(entry.effective_at, _asked(entry) if self.lines else None):
                yield entry

    def _meets(self, at: int, symbol: str | None) -> bool:
        if (self.since is not None and at < self.since) or (self.until is not None and at > self.until):
            return False
        return not self.lines or any(line.symbol == symbol and line.holds(at) for line in self.lines)


def _symbol_of(names: list[str]) -> Callable[[tuple[Any, ...]], str | None]:
    symbol = names.index("symbol")
    kind, content = (names.index(name) if name in names else None for name in ("event_type", "content"))

    def read(row: tuple[Any, ...]) -> str | None:
        if kind is not None and content is not None and row[kind] == RETRIEVED:
            # Of a search whose content was taken away, nobody can tell here what it was narrowed to.
            return _in_filters(json.loads(row[content])["filters"]) if row[content] else None
        return None if row[symbol] is None else str(row[symbol])

    return read


def _symbol_asked(names: list[str]) -> Callable[[tuple[Any, ...]], str | None]:
    filters = names.index("filters")
    return lambda row: _in_filters(json.loads(row[filters]))


def _in_filters(filters: Mapping[str, Any]) -> str | None:
    symbol = filters.get("symbol")
    return None if symbol is None else str(symbol)


def _asked(entry: Entry) -> str | None:
    return _symbol_of(list(COLUMNS))(tuple(getattr(entry, name) for name in COLUMNS))
