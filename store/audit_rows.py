"""The rows made from entries, entry by entry against those that are stored.

Versions and clock are read side by side with the entries, in the same order, so that most entries cost no statement
of their own. What does not meet what is expected is looked up and judged by `project`, which knows every content.
Every version that passes goes into the second full-text index too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from json.decoder import JSONDecoder
from typing import Any

import apsw

from .audit_columns import COLUMNS, READ, Values
from .audit_mark import TABLES, Mark
from .audit_plain import (
    DELIVERY_COLUMNS,
    RETRIEVAL_COLUMNS,
    VERSION_COLUMNS,
    PlainVersions,
    plain_delivery,
    plain_retrieval,
)
from .audit_text import ExpectedText
from .engines.sqlite.snapshot import SqliteSnapshot
from .entry import Entry
from .events import read_event
from .projection import Before, project
from .rows import (
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

Unversioned = Retrieval | Delivery | Session | Flag | Settlement | Redaction | Intent | Holdings | Caution
Fault = tuple[str, bool]

_CONTENT, _SEQUENCE, _TYPE, _AT = map(READ.index, ("content", "sequence", "event_type", "effective_at"))
_IN_ORDER = [READ.index(name) for name in COLUMNS]
_ORDINAL, _TERMS_TOTAL = map(VERSION_COLUMNS.index, ("ordinal", "terms_total"))

_VERSIONS = f"SELECT {', '.join(VERSION_COLUMNS)} FROM memory_versions ORDER BY sequence_from"  # noqa: S608
_CLOCK = "SELECT effective_at, sequence FROM memory_clock WHERE effective_at > ? ORDER BY effective_at"
_RETRIEVAL = f"SELECT {', '.join(RETRIEVAL_COLUMNS)} FROM memory_retrievals WHERE sequence = ?"  # noqa: S608
_DELIVERY = f"SELECT {', '.join(DELIVERY_COLUMNS)} FROM memory_deliveries WHERE sequence = ?"  # noqa: S608
_BEFORE_ALL = -(2**63)
# What reading and projecting raise for a content, or a kind, that no writer can have written.
_NO_CONTENT = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

_scan = JSONDecoder().raw_decode


class Projections:
    """What the entries so far account for, of which every row was found as it must be."""

    def __init__(self, connection: apsw.Connection, text: ExpectedText) -> None:
        self._connection = connection
        self._text = text
        self._snapshot = SqliteSnapshot(connection)
        self._plain = PlainVersions()
        self._expected: defaultdict[type[Row], int] = defaultdict(int)
        self._memories = self._terms = self._clock_rows = 0
        self._latest: int | None = None
        self._versions: Iterator[Values] = iter(())
        self._clock: Iterator[Values] = iter(())
        self._version: Values | None = None
        self.looked_up = 0
        """How many entries were judged by `project`, row by row."""

    def start(self, after: int, mark: Mark | None) -> None:
        """Begin behind the entry `after`, up to which the mark says what there was."""
        if mark is not None:
            self._expected.update(
                {kind: mark.expected[name] for kind, name in TABLES.items() if name in mark.expected}
            )
            self._memories, self._terms = mark.memories, mark.terms
            self._clock_rows, self._latest = mark.clock_rows, mark.latest
        since = _BEFORE_ALL if self._latest is None else self._latest
        self._versions = iter(self._connection.execute(_VERSIONS))
        self._clock = iter(self._connection.execute(_CLOCK, (since,)))
        self._next_version()
        self._pass_to(after + 1)

    def mark(self, store_id: str, sequence: int, chain: bytes) -> Mark:
        """What to keep of the entries up to `sequence`."""
        expected = {TABLES[kind]: count for kind, count in self._expected.items()}
        came = (self._memories, self._terms, self._clock_rows, self._latest)
        return Mark(store_id, sequence, chain.hex(), expected, *came)

    def faults(self, entry: Values) -> list[Fault]:
        """What is wrong with the rows of an entry (its columns as in READ), and whether a rebuild mends it."""
        faults: list[Fault] = []
        if (self._latest is None or entry[_AT] > self._latest) and not self._placed(entry):
            faults.append(("memory_clock does not place the entry in time", True))
        if not self._as_expected(entry):
            faults += self._judged(entry)
        return faults

    def surplus(self) -> Fault | None:
        """The first table with more or fewer rows than the entries account for."""
        for kind, table in TABLES.items():
            if surplus := self._count(table) - self._expected[kind]:
                return f"{table} has {abs(surplus)} rows too {'many' if surplus > 0 else 'few'}", True
        if self._count("memory_clock") != self._clock_rows:
            return "memory_clock has rows that no entry accounts for; `deskbook rebuild` mends it", True
        return None

    def _count(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {table}").get or 0)  # noqa: S608

    def _pass_to(self, sequence: int) -> Values | None:
        """The version of the entry, when it has one; those before it are passed."""
        while (version := self._version) is not None and version[0] < sequence:
            self._next_version()
        return version if version is not None and version[0] == sequence else None

    def _next_version(self) -> None:
        try:
            version = self._version = next(self._versions, None)
        except ValueError:  # a text that is none: what it belongs to is looked up, and found
            version = self._version = None
        if version is not None:
            self._text.add(version)

    def _placed(self, entry: Values) -> bool:
        """Whether the next row of the clock is that of the entry, which is later than all before it."""
        self._latest = entry[_AT]
        self._clock_rows += 1
        try:
            return next(self._clock, None) == (entry[_AT], entry[_SEQUENCE])
        except ValueError:
            return False

    def _as_expected(self, entry: Values) -> bool:
        """Whether the content is plain, and the row there that it leaves."""
        sequence = entry[_SEQUENCE]
        version = self._pass_to(sequence)
        try:
            content, end = _scan(entry[_CONTENT])
        except (ValueError, RecursionError):
            return False
        if type(content) is not dict or end != len(entry[_CONTENT]):
            return False
        if version is not None:
            row = self._plain.row(entry, content, self._memories, self._terms)
            if row is None or row != version:
                return False
            self._memories, self._terms = row[_ORDINAL], row[_TERMS_TOTAL]
            self._expected[Version] += 1
            return True
        if entry[_TYPE] == "memory.retrieved":
            return self._stored_plain(_RETRIEVAL, sequence, plain_retrieval(entry, content), Retrieval)
        if entry[_TYPE] == "memory.delivered":
            return self._stored_plain(_DELIVERY, sequence, plain_delivery(entry, content), Delivery)
        return False

    def _stored_plain(self, sql: str, sequence: int, row: Values | None, kind: type[Row]) -> bool:
        if row is None:
            return False
        try:
            found = self._connection.execute(sql, (sequence,)).fetchone()
        except ValueError:
            return False
        if found != row:
            return False
        self._expected[kind] += 1
        return True

    def _judged(self, columns: Values) -> list[Fault]:
        """Compare the rows that the entry must have left with the rows that are there."""
        self.looked_up += 1
        entry = Entry(*(columns[at] for at in _IN_ORDER))
        try:
            standing = self._snapshot.version(entry.subject_id, entry.sequence - 1)
        except (ValueError, TypeError):
            return [("memory_versions cannot be read as of the entry", True)]
        try:
            event = read_event(entry.event_type, json.loads(entry.content))
            rows = project(entry, event, Before(standing, self._memories, self._terms))
        except _NO_CONTENT as fault:
            return [(f"the content is not that of a {entry.event_type}: {type(fault).__name__}", False)]
        faults: list[Fault] = []
        for row in rows:
            self._expected[type(row)] += 1
            if isinstance(row, Version):
                if row.version == 1:
                    self._memories, self._terms = row.ordinal, row.terms_total
                if not self._shows(row):
                    what = f"memory_versions does not show {row.memory_id} as the entry left it"
                    faults.append((what, True))
            elif not self._stored(row):
                faults.append((f"{TABLES[type(row)]} does not show the entry", True))
        return faults

    def _shows(self, row: Version) -> bool:
        """Whether the version is there as it must be, its JSON as it is written and not only what it says."""
        written = [json.dumps(part, ensure_ascii=False, sort_keys=True) for part in (row.tags, row.details)]
        try:
            texts = self._connection.execute(
                "SELECT tags, details FROM memory_versions WHERE sequence_from = ?", (row.sequence_from,)
            ).fetchone()
            return texts == tuple(written) and self._snapshot.version_at(row.sequence_from) == row
        except (ValueError, TypeError):  # its columns were changed
            return False

    def _stored(self, row: Unversioned) -> bool:
        named: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(row)}
        same = " AND ".join(f"{name} IS ?" for name in named)
        try:
            found = self._connection.execute(
                f"SELECT 1 FROM {TABLES[type(row)]} WHERE {same}",  # noqa: S608
                tuple(named.values()),
            ).fetchone()
        except (ValueError, OverflowError):  # a lone surrogate, or a number no column holds
            return False
        return found is not None
