"""Writing rows: the ledger entry and the projection rows it leads to, inside the writer's transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import singledispatchmethod
from typing import Any

from ...entry import COLUMNS, Entry
from ...rows import Caution, Delivery, Flag, Holdings, Intent, Retrieval, Row, Session, Version
from ...terms import facet, index_text
from .reading import VERSION_FIELDS, values
from .snapshot import SqliteSnapshot

_ENTRY = ", ".join(COLUMNS)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


class SqliteTransaction(SqliteSnapshot):
    """Reads and writes; the writer holds BEGIN IMMEDIATE and a savepoint around it."""

    def insert_entry(self, entry: Entry) -> None:
        self._connection.execute(
            f"INSERT INTO memory_events ({_ENTRY}) VALUES ({_marks(len(COLUMNS))})", values(entry, COLUMNS)
        )
        self.note_clock(entry)

    def note_clock(self, entry: Entry) -> None:
        """Keep the entry's place in time when it is the latest so far, for `cut_at`."""
        self._connection.execute(
            "INSERT INTO memory_clock (effective_at, sequence)"
            " SELECT ?, ? WHERE ? > coalesce((SELECT max(effective_at) FROM memory_clock), ? - 1)",
            (entry.effective_at, entry.sequence, entry.effective_at, entry.effective_at),
        )

    def apply(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._write(row)

    @singledispatchmethod
    def _write(self, row: Row) -> None:
        raise TypeError(f"no table holds {type(row).__name__}")

    @_write.register
    def _(self, row: Version) -> None:
        self._connection.execute(
            "UPDATE memory_versions SET sequence_to = ? WHERE memory_id = ? AND sequence_to IS NULL",
            (row.sequence_from, row.memory_id),
        )
        names = ", ".join(VERSION_FIELDS)
        self._connection.execute(
            f"INSERT INTO memory_versions ({names}) VALUES ({_marks(len(VERSION_FIELDS))})",
            _from_version(row),
        )
        self._connection.execute(
            "INSERT INTO memory_text (rowid, body, labels, facets) VALUES (?, ?, ?, ?)",
            (
                row.sequence_from,
                index_text(row.text),
                index_text(" ".join(_labels(row))),
                " ".join(_facets(row)),
            ),
        )

    @_write.register
    def _(self, row: Retrieval) -> None:
        self._insert("memory_retrievals", row)

    @_write.register
    def _(self, row: Delivery) -> None:
        self._insert("memory_deliveries", row)

    @_write.register
    def _(self, row: Flag) -> None:
        self._insert("memory_flags", row)

    @_write.register
    def _(self, row: Session) -> None:
        self._insert("memory_sessions", row)

    @_write.register
    def _(self, row: Intent) -> None:
        self._insert("memory_intents", row)

    @_write.register
    def _(self, row: Holdings) -> None:
        self._insert("memory_holdings", row)

    @_write.register
    def _(self, row: Caution) -> None:
        self._insert("memory_warnings", row)

    def _insert(
        self, table: str, row: Retrieval | Delivery | Flag | Session | Intent | Holdings | Caution
    ) -> None:
        names = [field.name for field in fields(row)]
        self._connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({_marks(len(names))})", values(row, names)
        )


def _from_version(version: Version) -> tuple[Any, ...]:
    named = dict(zip(VERSION_FIELDS, values(version, VERSION_FIELDS), strict=True))
    for name in ("tags", "details"):
        named[name] = json.dumps(named[name], ensure_ascii=False, sort_keys=True)
    return tuple(named.values())


def _labels(version: Version) -> Iterator[str]:
    """Words besides the text under which a memory is found."""
    if version.symbol:
        yield version.symbol
    yield from version.tags
    for name in ("action", "category", "direction"):
        if name in version.details:
            yield str(version.details[name])


def _facets(version: Version) -> Iterator[str]:
    yield facet("kind", version.kind)
    yield facet("status", version.status)
    yield facet("agent", version.agent)
    if version.symbol:
        yield facet("symbol", version.symbol)
    for tag in version.tags:
        yield facet("tag", tag)
