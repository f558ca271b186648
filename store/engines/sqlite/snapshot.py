"""Reads of the ledger, of versions and of what was shown, over one connection inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ...entry import COLUMNS, Entry
from ...lifecycle import ORDER_ACTION
from ...rows import Delivery, EntryFilter, Filter, Head, Retrieval, Text, Version
from ...symbols import Line
from ...terms import facet
from .counting import DUE, SHOWN, SPEAKS
from .export_reads import ExportReads
from .order_reads import OrderReads
from .reading import STANDING, VERSION, to_version
from .redaction_reads import RedactionReads
from .review_reads import ReviewReads

_ENTRY = ", ".join(COLUMNS)
_RARE = ("memory.redacted", "publication.begun", "publication.ended")
_RETRIEVAL = ", ".join(field.name for field in fields(Retrieval))
_DELIVERY = ", ".join(field.name for field in fields(Delivery))

_TEXT_FIELDS = tuple(field.name for field in fields(Text))
_TEXT = (
    "v.sequence_from, v.sequence_to, p.sequence_from, p.text, v.kind, v.status, v.review_state, v.symbol, v.text,"
    " v.tags, v.agent, v.effective_at, v.expires_at, e.content_sha256"
)
_TEXTS = (
    "FROM memory_versions v JOIN memory_events e ON e.sequence = v.sequence_from"
    " LEFT JOIN memory_versions p ON p.memory_id = v.memory_id AND p.version = v.version - 1"
    f" WHERE v.sequence_from > ? AND v.sequence_from <= ? AND v.kind <> '{ORDER_ACTION}'"
)
_DUE = f"FROM memory_versions v WHERE v.stale_at <= ? AND {STANDING} AND {DUE.where}"


class SqliteSnapshot(OrderReads, ExportReads, ReviewReads, RedactionReads):
    """Reads; the engine holds a transaction open around it."""

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
        return None if row is None else self._entry(row)

    def entry_of_event(self, event_id: str) -> Entry | None:
        row = self._one(f"SELECT {_ENTRY} FROM memory_events WHERE event_id = ?", (event_id,))
        return None if row is None else self._entry(row)

    def entries(self, conditions: EntryFilter) -> Iterator[Entry]:
        for row in self._entry_rows(conditions):
            yield self._entry(row)

    def raw_entry(self, sequence: int) -> Entry | None:
        row = self._one(f"SELECT {_ENTRY} FROM memory_events WHERE sequence = ?", (sequence,))
        return None if row is None else Entry(*row)

    def raw_entries(self, conditions: EntryFilter) -> Iterator[Entry]:
        for row in self._entry_rows(conditions):
            yield Entry(*row)

    def _entry_rows(self, conditions: EntryFilter) -> Iterator[tuple[Any, ...]]:
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
        clauses = [clause for clause, _ in named]
        if (
            conditions.event_type in _RARE
        ):  # said again as the index of the rare types says it, so that it is used
            clauses.append(f"event_type IN {_RARE}")
        order = "DESC" if conditions.newest_first else "ASC"
        yield from self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE {' AND '.join(clauses)}"
            f" ORDER BY sequence {order} LIMIT ?",
            (*(value for _, value in named), conditions.limit),
        )

    def history(self, subject_id: str, cut: int) -> list[Entry]:
        rows = self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE subject_id = ? AND sequence <= ? ORDER BY sequence",
            (subject_id, cut),
        )
        return [self._entry(row) for row in rows]

    def replay(self, agent: str, tool: str | None, key: str) -> Entry | None:
        row = self._one(
            f"SELECT {_ENTRY} FROM memory_events WHERE agent = ? AND tool IS ? AND idempotency_key = ?",
            (agent, tool, key),
        )
        return None if row is None else self._entry(row)

    def version(self, memory_id: str, cut: int) -> Version | None:
        row = self._one(
            # With "= ?" SQLite would plan the statement anew for every id that is bound (ORDER BY looks at it).
            f"SELECT {VERSION} FROM memory_versions v WHERE memory_id = +? AND sequence_from <= ?"
            " ORDER BY version DESC LIMIT 1",
            (memory_id, cut),
        )
        return None if row is None else to_version(row)

    def version_at(self, sequence_from: int) -> Version | None:
        row = self._one(f"SELECT {VERSION} FROM memory_versions v WHERE sequence_from = ?", (sequence_from,))
        return None if row is None else to_version(row)

    def versions_at(self, sequences: list[int], cut: int) -> list[tuple[Version, bool]]:
        rows = self._connection.execute(
            f"SELECT {VERSION}, {STANDING} FROM memory_versions v"
            " WHERE sequence_from IN (SELECT value FROM json_each(?)) ORDER BY sequence_from",
            (cut, cut, json.dumps(sequences)),
        )
        return [(to_version(row[:-1]), bool(row[-1])) for row in rows]

    def versions(self, conditions: Filter, cut: int, at: int, *, limit: int) -> list[Version]:
        standing = self.standing_of(conditions, cut)
        if standing is not None:
            return self.loaded(standing.newest_after(at, limit))
        where, bindings = _where(conditions, cut, at)
        rows = self._connection.execute(
            f"SELECT {VERSION} FROM memory_versions v WHERE {where} ORDER BY v.sequence_from DESC LIMIT ?",
            (*bindings, limit),
        )
        return [to_version(row) for row in rows]

    def count_versions(self, conditions: Filter, cut: int, at: int) -> int:
        standing = self.standing_of(conditions, cut)
        if standing is not None:
            return standing.count_after(at)
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

    def match(
        self, term: str, conditions: Filter, cut: int, at: int, *, limit: int, symbols: tuple[str, ...] = ()
    ) -> list[tuple[int, int]]:
        where, bindings = _where(conditions, cut, at)
        rows = self._connection.execute(
            "SELECT t.rowid, v.terms FROM memory_text t"
            " CROSS JOIN memory_versions v ON v.sequence_from = t.rowid"
            f" WHERE memory_text MATCH ? AND t.rowid <= ? AND {where} AND v.text <> ''"
            " ORDER BY t.rowid DESC LIMIT ?",
            (_match_expression(term, conditions, symbols), cut, *bindings, limit),
        )
        return list(rows)

    def holding(self, term: str, sequences: list[int], *, symbols: tuple[str, ...] = ()) -> list[int]:
        expression = _match_expression(term, Filter(), symbols)
        asked = "SELECT 1 FROM memory_text WHERE memory_text MATCH ? AND rowid = ?"
        return [sequence for sequence in sequences if self._one(asked, (expression, sequence))]

    def changed_by(self, agent: str, cut: int, *, limit: int) -> list[Version]:
        rows = self._connection.execute(
            f"SELECT {VERSION} FROM memory_versions v WHERE v.changed_by = ? AND v.sequence_from <= ?"
            f" AND {SPEAKS} ORDER BY v.sequence_from DESC LIMIT ?",
            (agent, cut, limit),
        )
        return [to_version(row) for row in rows]

    def count_matches(
        self, term: str, conditions: Filter, cut: int, *, most: int, symbols: tuple[str, ...] = ()
    ) -> int:
        row = self._one(
            "SELECT count(*), min(rowid) FROM (SELECT rowid FROM memory_text"
            " WHERE memory_text MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?)",
            (_match_expression(term, conditions, symbols), cut, most),
        )
        if row is None or not row[0]:
            return 0
        count, oldest = row
        return int(count if count < most else count * cut // (cut - oldest + 1))

    def texts(self, after: int, until: int, *, limit: int) -> list[Text]:
        rows = self._connection.execute(
            f"SELECT {_TEXT} {_TEXTS} ORDER BY v.sequence_from LIMIT ?", (after, until, limit)
        )
        return [_to_text(row) for row in rows]

    def count_texts(self, after: int, until: int) -> int:
        row = self._one(
            "SELECT count(*) FROM memory_versions v"
            f" WHERE v.sequence_from > ? AND v.sequence_from <= ? AND v.kind <> '{ORDER_ACTION}'",
            (after, until),
        )
        return int(row[0]) if row else 0

    def has_symbol(self, symbol: str, cut: int) -> bool:
        found = self._one(
            "SELECT 1 FROM memory_versions WHERE symbol = ? AND sequence_from <= ? LIMIT 1", (symbol, cut)
        )
        return found is not None

    def totals(self, cut: int) -> tuple[int, int]:
        row = self._one(
            "SELECT ordinal, terms_total FROM memory_versions WHERE version = 1 AND sequence_from <= ?"
            " ORDER BY sequence_from DESC LIMIT 1",
            (cut,),
        )
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def due(self, cut: int, at: int, *, limit: int) -> list[Version]:
        standing = self.standing(DUE, cut)
        if standing is not None:
            return self.loaded(standing.first_until(at, limit))
        rows = self._connection.execute(
            f"SELECT {VERSION} {_DUE} ORDER BY v.stale_at, v.sequence_from LIMIT ?", (at, cut, cut, limit)
        )
        return [to_version(row) for row in rows]

    def count_due(self, cut: int, at: int) -> int:
        standing = self.standing(DUE, cut)
        if standing is not None:
            return standing.until(at)
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

    def advanced_clock(self) -> int | None:
        row = self._one(
            "SELECT effective_at FROM memory_events WHERE subject_id = 'clock' AND event_type = 'clock.advanced'"
            " ORDER BY sequence DESC LIMIT 1"
        )
        return None if row is None else int(row[0])

    def has_session(self, session_id: str, agent: str) -> bool:
        found = self._one(
            "SELECT 1 FROM memory_sessions WHERE session_id = ? AND agent = ?", (session_id, agent)
        )
        return found is not None


def _to_text(row: tuple[Any, ...]) -> Text:
    named = dict(zip(_TEXT_FIELDS, row, strict=True))
    named["tags"] = tuple(json.loads(named["tags"]))
    return Text(**named)


def _match_expression(term: str, conditions: Filter, symbols: tuple[str, ...]) -> str:
    """An FTS5 query of quoted strings only; nothing the caller typed is read as syntax."""
    choices = []
    if term:
        quoted = '"' + term.replace('"', '""') + '"'
        choices.append(f"({{body labels}} : {quoted})")
    if symbols:
        choices.append(_on_symbols(symbols))
    expression = " OR ".join(choices)
    named = [("kind", conditions.kind), ("status", conditions.status), ("agent", conditions.agent)]
    named += [("tag", tag) for tag in conditions.tags]
    facets = [f'(facets : "{facet(name, value)}")' for name, value in named if value]
    spellings = tuple(line.symbol for line in conditions.lines)
    if not spellings and conditions.symbol:
        spellings = (conditions.symbol,)
    if spellings:
        facets.append(_on_symbols(spellings))
    return " AND ".join([f"({expression})", *facets])


def _on_symbols(symbols: tuple[str, ...]) -> str:
    digests = dict.fromkeys(facet("symbol", symbol) for symbol in symbols)
    return "(facets : (" + " OR ".join(f'"{each}"' for each in digests) + "))"


def _where(conditions: Filter, cut: int, at: int) -> tuple[str, tuple[Any, ...]]:
    """The standing, unexpired and not pending versions that meet the conditions."""
    clauses = [
        STANDING,
        SHOWN,
    ]
    bindings: list[Any] = [cut, cut]
    if not conditions.expired:
        clauses.append("(v.expires_at IS NULL OR v.expires_at > ?)")
        bindings.append(at)
    if conditions.kind is None:
        clauses.append(f"v.kind <> '{ORDER_ACTION}'")
    wanted = [
        ("v.kind = ?", conditions.kind),
        ("v.status = ?", conditions.status),
        ("v.symbol = ?", None if conditions.lines else conditions.symbol),
        ("v.agent = ?", conditions.agent),
        ("v.effective_at >= ?", conditions.since),
        ("v.effective_at <= ?", conditions.until),
        *(("EXISTS (SELECT 1 FROM json_each(v.tags) WHERE value = ?)", tag) for tag in conditions.tags),
    ]
    for clause, value in wanted:
        if value is not None:
            clauses.append(clause)
            bindings.append(value)
    if conditions.lines:
        clause, more = _on_lines(conditions.lines)
        clauses.append(clause)
        bindings.extend(more)
    return " AND ".join(clauses), tuple(bindings)


def _on_lines(lines: tuple[Line, ...]) -> tuple[str, list[Any]]:
    """Versions of one instrument under any of its spellings, each in its own time."""
    choices: list[str] = []
    bindings: list[Any] = []
    for line in lines:
        parts: list[tuple[str, Any]] = [
            ("v.symbol = ?", line.symbol),
            ("v.effective_at >= ?", line.from_us),
            ("v.effective_at < ?", line.until_us),
        ]
        named = [(part, value) for part, value in parts if value is not None]
        choices.append(f"({' AND '.join(part for part, _ in named)})")
        bindings.extend(value for _, value in named)
    return f"({' OR '.join(choices)})", bindings
