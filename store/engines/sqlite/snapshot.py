"""All SQL that reads or writes rows, over one connection inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import singledispatchmethod
from typing import Any

import apsw

from ...entry import COLUMNS, Entry
from ...lifecycle import LESSON, THESIS
from ...rows import (
    Delivery,
    EntryFilter,
    Filter,
    Flag,
    Head,
    Posting,
    Retrieval,
    Row,
    Session,
    Version,
)
from ...terms import facet, index_text

_ENTRY = ", ".join(COLUMNS)
_VERSION_FIELDS = tuple(field.name for field in fields(Version))
_VERSION = ", ".join(f"v.{name}" for name in _VERSION_FIELDS)
_RETRIEVAL = ", ".join(field.name for field in fields(Retrieval))
_DELIVERY = ", ".join(field.name for field in fields(Delivery))
_FLAG = ", ".join(f"f.{field.name}" for field in fields(Flag))
_STANDING = "v.sequence_from <= ? AND (v.sequence_to IS NULL OR v.sequence_to > ?)"

_FLAGGED = (
    "FROM memory_flags f JOIN memory_versions v ON v.memory_id = f.memory_id"
    f" WHERE f.sequence <= ? AND {_STANDING}"
    " AND v.status NOT IN ('superseded', 'retired', 'withdrawn', 'resolved')"
)
_DUE = (
    f"FROM memory_versions v WHERE v.stale_at <= ? AND {_STANDING}"
    f" AND ((v.kind = '{THESIS}' AND v.status = 'open')"
    f" OR (v.kind = '{LESSON}' AND v.status IN ('proposed', 'validated')))"
)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


class SqliteSnapshot:
    """Reads; the engine holds a transaction open around it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def _one(self, sql: str, bindings: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._connection.execute(sql, bindings).fetchone()
        return found

    def head(self) -> Head | None:
        row = self._one(
            "SELECT sequence, chain_sha256, effective_at,"
            " (SELECT max(effective_at) FROM memory_clock) FROM memory_events ORDER BY sequence DESC LIMIT 1"
        )
        return None if row is None else Head(*row)

    def cut_at(self, instant: int) -> int:
        row = self._one(
            "SELECT sequence FROM memory_clock WHERE effective_at > ? ORDER BY effective_at LIMIT 1",
            (instant,),
        )
        if row is not None:
            return int(row[0]) - 1
        last = self._one("SELECT max(sequence) FROM memory_events")
        return int(last[0] or 0) if last else 0

    def entry(self, sequence: int) -> Entry | None:
        row = self._one(f"SELECT {_ENTRY} FROM memory_events WHERE sequence = ?", (sequence,))
        return None if row is None else Entry(*row)

    def entry_of_event(self, event_id: str) -> Entry | None:
        row = self._one(f"SELECT {_ENTRY} FROM memory_events WHERE event_id = ?", (event_id,))
        return None if row is None else Entry(*row)

    def entries(self, conditions: EntryFilter) -> Iterator[Entry]:
        wanted: list[tuple[str, Any]] = [
            ("sequence > ?", conditions.after),
            ("sequence <= ?", conditions.until_sequence),
            ("event_type = ?", conditions.event_type),
            ("agent = ?", conditions.agent),
            ("symbol = ?", conditions.symbol),
            ("kind = ?", conditions.kind),
            ("subject_id = ?", conditions.subject_id),
            ("session_id = ?", conditions.session_id),
            ("effective_at >= ?", conditions.since),
            ("effective_at <= ?", conditions.until),
        ]
        named = [(clause, value) for clause, value in wanted if value is not None]
        order = "DESC" if conditions.newest_first else "ASC"
        rows = self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE {' AND '.join(clause for clause, _ in named)}"
            f" ORDER BY sequence {order} LIMIT ?",
            (*(value for _, value in named), conditions.limit),
        )
        for row in rows:
            yield Entry(*row)

    def history(self, subject_id: str, cut: int) -> list[Entry]:
        rows = self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE subject_id = ? AND sequence <= ? ORDER BY sequence",
            (subject_id, cut),
        )
        return [Entry(*row) for row in rows]

    def replay(self, agent: str, tool: str | None, key: str) -> Entry | None:
        row = self._one(
            f"SELECT {_ENTRY} FROM memory_events WHERE agent = ? AND tool IS ? AND idempotency_key = ?",
            (agent, tool, key),
        )
        return None if row is None else Entry(*row)

    def version(self, memory_id: str, cut: int) -> Version | None:
        row = self._one(
            f"SELECT {_VERSION} FROM memory_versions v WHERE memory_id = ? AND sequence_from <= ?"
            " ORDER BY version DESC LIMIT 1",
            (memory_id, cut),
        )
        return None if row is None else _to_version(row)

    def version_at(self, sequence_from: int) -> Version | None:
        row = self._one(f"SELECT {_VERSION} FROM memory_versions v WHERE sequence_from = ?", (sequence_from,))
        return None if row is None else _to_version(row)

    def versions(
        self, conditions: Filter, cut: int, at: int, *, limit: int, before: int | None
    ) -> list[Version]:
        where, bindings = _where(conditions, cut, at)
        if before is not None:
            where, bindings = f"{where} AND v.sequence_from < ?", (*bindings, before)
        rows = self._connection.execute(
            f"SELECT {_VERSION} FROM memory_versions v WHERE {where} ORDER BY v.sequence_from DESC LIMIT ?",
            (*bindings, limit),
        )
        return [_to_version(row) for row in rows]

    def count_versions(self, conditions: Filter, cut: int, at: int) -> int:
        where, bindings = _where(conditions, cut, at)
        row = self._one(f"SELECT count(*) FROM memory_versions v WHERE {where}", bindings)
        return int(row[0]) if row else 0

    def containing(self, literal: str, conditions: Filter, cut: int, at: int, *, scan: int) -> list[int]:
        where, bindings = _where(conditions, cut, at)
        rows = self._connection.execute(
            "SELECT sequence_from FROM (SELECT v.sequence_from, v.text FROM memory_versions v"
            f" WHERE {where} ORDER BY v.sequence_from DESC LIMIT ?) WHERE instr(text, ?) > 0",
            (*bindings, scan, literal),
        )
        return [int(sequence) for (sequence,) in rows]

    def match(self, term: str, conditions: Filter, cut: int, at: int, *, limit: int) -> list[Posting]:
        where, bindings = _where(conditions, cut, at)
        rows = self._connection.execute(
            "SELECT t.rowid, v.terms FROM memory_text t"
            " CROSS JOIN memory_versions v ON v.sequence_from = t.rowid"
            f" WHERE memory_text MATCH ? AND t.rowid <= ? AND {where} ORDER BY t.rowid DESC LIMIT ?",
            (_match_expression(term, conditions), cut, *bindings, limit),
        )
        return [Posting(*row) for row in rows]

    def changed_by(self, agent: str, cut: int, *, limit: int) -> list[Version]:
        rows = self._connection.execute(
            f"SELECT {_VERSION} FROM memory_versions v WHERE v.changed_by = ? AND v.sequence_from <= ?"
            " ORDER BY v.sequence_from DESC LIMIT ?",
            (agent, cut, limit),
        )
        return [_to_version(row) for row in rows]

    def totals(self, cut: int) -> tuple[int, int]:
        row = self._one(
            "SELECT ordinal, terms_total FROM memory_versions WHERE version = 1 AND sequence_from <= ?"
            " ORDER BY sequence_from DESC LIMIT 1",
            (cut,),
        )
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def flags(self, cut: int, *, limit: int) -> list[Flag]:
        rows = self._connection.execute(
            f"SELECT {_FLAG} {_FLAGGED} ORDER BY f.sequence DESC LIMIT ?", (cut, cut, cut, limit)
        )
        return [Flag(*row) for row in rows]

    def count_flags(self, cut: int) -> int:
        row = self._one(f"SELECT count(*) {_FLAGGED}", (cut, cut, cut))
        return int(row[0]) if row else 0

    def due(self, cut: int, at: int, *, limit: int) -> list[Version]:
        rows = self._connection.execute(
            f"SELECT {_VERSION} {_DUE} ORDER BY v.stale_at, v.sequence_from LIMIT ?", (at, cut, cut, limit)
        )
        return [_to_version(row) for row in rows]

    def count_due(self, cut: int, at: int) -> int:
        row = self._one(f"SELECT count(*) {_DUE}", (at, cut, cut))
        return int(row[0]) if row else 0

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        row = self._one(f"SELECT {_RETRIEVAL} FROM memory_retrievals WHERE retrieval_id = ?", (retrieval_id,))
        return None if row is None else Retrieval(*row)

    def last_delivery(
        self, agent: str, session_id: str | None, model_call_id: str | None, subject_id: str
    ) -> Delivery | None:
        row = self._one(
            f"SELECT {_DELIVERY} FROM memory_deliveries WHERE agent = ? AND session_id IS ?"
            " AND model_call_id IS ? AND subject_id = ? ORDER BY sequence DESC LIMIT 1",
            (agent, session_id, model_call_id, subject_id),
        )
        return None if row is None else Delivery(*row)

    def has_session(self, session_id: str, agent: str) -> bool:
        found = self._one(
            "SELECT 1 FROM memory_sessions WHERE session_id = ? AND agent = ?", (session_id, agent)
        )
        return found is not None


class SqliteTransaction(SqliteSnapshot):
    """Reads and writes; the writer holds BEGIN IMMEDIATE and a savepoint around it."""

    def insert_entry(self, entry: Entry) -> None:
        self._connection.execute(
            f"INSERT INTO memory_events ({_ENTRY}) VALUES ({_marks(len(COLUMNS))})", _values(entry, COLUMNS)
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
        names = ", ".join(_VERSION_FIELDS)
        self._connection.execute(
            f"INSERT INTO memory_versions ({names}) VALUES ({_marks(len(_VERSION_FIELDS))})",
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

    def _insert(self, table: str, row: Retrieval | Delivery | Flag | Session) -> None:
        names = [field.name for field in fields(row)]
        self._connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({_marks(len(names))})", _values(row, names)
        )


def _values(row: Any, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def _to_version(row: tuple[Any, ...]) -> Version:
    named = dict(zip(_VERSION_FIELDS, row, strict=True))
    named["tags"] = tuple(json.loads(named["tags"]))
    named["details"] = json.loads(named["details"])
    return Version(**named)


def _from_version(version: Version) -> tuple[Any, ...]:
    named = dict(zip(_VERSION_FIELDS, _values(version, _VERSION_FIELDS), strict=True))
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


def _match_expression(term: str, conditions: Filter) -> str:
    """An FTS5 query of quoted strings only; nothing the caller typed is read as syntax."""
    quoted = '"' + term.replace('"', '""') + '"'
    named = [("kind", conditions.kind), ("status", conditions.status), ("agent", conditions.agent)]
    named += [("symbol", conditions.symbol), *(("tag", tag) for tag in conditions.tags)]
    facets = [f'"{facet(name, value)}"' for name, value in named if value]
    expression = f"{{body labels}} : {quoted}"
    return f"({expression}) AND (facets : ({' AND '.join(facets)}))" if facets else expression


def _where(conditions: Filter, cut: int, at: int) -> tuple[str, tuple[Any, ...]]:
    """The standing, unexpired and not pending versions that meet the conditions."""
    clauses = [
        _STANDING,
        "(v.expires_at IS NULL OR v.expires_at > ?)",
        "v.review_state IN ('none', 'approved')",
    ]
    bindings: list[Any] = [cut, cut, at]
    wanted = [
        ("v.kind = ?", conditions.kind),
        ("v.status = ?", conditions.status),
        ("v.symbol = ?", conditions.symbol),
        ("v.agent = ?", conditions.agent),
        ("v.effective_at >= ?", conditions.since),
        ("v.effective_at <= ?", conditions.until),
        *(("EXISTS (SELECT 1 FROM json_each(v.tags) WHERE value = ?)", tag) for tag in conditions.tags),
    ]
    for clause, value in wanted:
        if value is not None:
            clauses.append(clause)
            bindings.append(value)
    return " AND ".join(clauses), tuple(bindings)
