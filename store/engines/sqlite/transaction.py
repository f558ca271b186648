"""Writing rows: the ledger entry and the projection rows it leads to, inside the writer's transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter
from typing import Any

import apsw

from ...entry import COLUMNS, Entry
from ...lifecycle import REPEATABLE
from ...rows import (
    Caution,
    Delivery,
    Flag,
    Holdings,
    Intent,
    Redaction,
    Retrieval,
    Row,
    Session,
    Settlement,
    Version,
)
from ...terms import facet, index_text, same_mark
from .reading import VERSION_FIELDS
from .snapshot import SqliteSnapshot


def _insert(table: str, names: Iterable[str]) -> str:
    named = tuple(names)
    return f"INSERT INTO {table} ({', '.join(named)}) VALUES ({', '.join('?' * len(named))})"


def _plain_table(table: str, kind: type[Row]) -> tuple[str, Callable[[Any], tuple[Any, ...]]]:
    names = [field.name for field in fields(kind)]
    return _insert(table, names), attrgetter(*names)


_INSERT_ENTRY = _insert("memory_events", COLUMNS)
_BLANK = "UPDATE memory_events SET content = '', content_salt = x'' WHERE sequence = ?"
_INSERT_VERSION = _insert("memory_versions", VERSION_FIELDS)
_PLAIN = {
    kind: _plain_table(table, kind)
    for kind, table in (
        (Retrieval, "memory_retrievals"),
        (Delivery, "memory_deliveries"),
        (Flag, "memory_flags"),
        (Settlement, "memory_settlements"),
        (Redaction, "memory_redactions"),
        (Session, "memory_sessions"),
        (Intent, "memory_intents"),
        (Holdings, "memory_holdings"),
        (Caution, "memory_warnings"),
    )
}
"""For each row that is written as it is: the statement, and what gives its values."""
# A rebuild knows them before it comes to their entries, which then say the same again.
_PLAIN[Redaction] = (_PLAIN[Redaction][0].replace("INSERT", "INSERT OR IGNORE"), _PLAIN[Redaction][1])
_REPLACED = {
    Retrieval: "memory_retrievals",
    Flag: "memory_flags",
    Holdings: "memory_holdings",
    Caution: "memory_warnings",
}
"""The rows, each found by its entry, that may hold a text; the others stay as they are when it goes."""
_of_entry = attrgetter(*COLUMNS)
_of_version = attrgetter(*VERSION_FIELDS)
_TAGS, _DETAILS = VERSION_FIELDS.index("tags"), VERSION_FIELDS.index("details")
_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


@contextmanager
def savepoint(connection: apsw.Connection) -> Iterator[None]:
    """Undo what was done inside when it ends with an error, unless the whole transaction is lost already."""
    connection.execute("SAVEPOINT inner")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO inner; RELEASE inner")
        raise
    connection.execute("RELEASE inner")


class SqliteTransaction(SqliteSnapshot):
    """Reads and writes; the writer holds BEGIN IMMEDIATE around it."""

    def insert_entry(self, entry: Entry) -> None:
        self._connection.execute(_INSERT_ENTRY, _of_entry(entry))
        self.note_clock(entry)

    def note_clock(self, entry: Entry) -> None:
        """Keep the entry's place in time when it is the latest so far, for `cut_at`."""
        latest = self._one("SELECT max(effective_at) FROM memory_clock")
        if latest is None or latest[0] is None or entry.effective_at > latest[0]:
            self._connection.execute(
                "INSERT INTO memory_clock (effective_at, sequence) VALUES (?, ?)",
                (entry.effective_at, entry.sequence),
            )

    def apply(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if isinstance(row, Version):
                self._write_version(row)
            else:
                statement, values = _PLAIN[type(row)]
                self._connection.execute(statement, values(row))

    def blank(self, sequences: Iterable[int]) -> None:
        self._connection.executemany(_BLANK, ((sequence,) for sequence in sequences))

    def rewrite(self, memory_id: str, versions: list[Version]) -> None:
        sequences = [(version.sequence_from,) for version in versions]
        self._connection.executemany("DELETE FROM memory_text WHERE rowid = ?", sequences)
        self._connection.execute("DELETE FROM memory_versions WHERE memory_id = ?", (memory_id,))
        self.apply(versions)

    def replace_rows(self, sequence: int, rows: Iterable[Row]) -> None:
        for row in rows:
            if (table := _REPLACED.get(type(row))) is not None:
                self._connection.execute(f"DELETE FROM {table} WHERE sequence = ?", (sequence,))
                self.apply([row])

    def _write_version(self, row: Version) -> None:
        if row.version > 1:
            self._connection.execute(
                "UPDATE memory_versions SET sequence_to = ? WHERE memory_id = ? AND sequence_to IS NULL",
                (row.sequence_from, row.memory_id),
            )
        columns = list(_of_version(row))
        columns[_TAGS], columns[_DETAILS] = _json(row.tags), _json(row.details)
        self._connection.execute(_INSERT_VERSION, columns)
        self._connection.execute(
            "INSERT INTO memory_text (rowid, body, labels, facets) VALUES (?, ?, ?, ?)",
            (
                row.sequence_from,
                index_text(row.text),
                index_text(" ".join(_labels(row))),
                " ".join(_facets(row)),
            ),
        )


def _labels(version: Version) -> Iterator[str]:
    """Words besides the text under which a memory is found."""
    if version.symbol:
        yield version.symbol
    yield from version.tags
    for name in ("action", "category", "direction"):
        if name in version.details:
            yield str(version.details[name])


def _facets(version: Version) -> Iterator[str]:
    if version.kind in REPEATABLE and version.text:
        yield same_mark(version.agent, version.kind, version.symbol, version.text)
    yield facet("kind", version.kind)
    yield facet("status", version.status)
    yield facet("agent", version.agent)
    if version.symbol:
        yield facet("symbol", version.symbol)
    for tag in version.tags:
        yield facet("tag", tag)
