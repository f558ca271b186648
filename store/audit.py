"""Proof that nothing in a ledger was changed, cut out, moved or invented.

This module reads the file on a connection of its own and computes every hash anew from the stored columns,
with none of the code that wrote them: a fault in the writer cannot hide itself here. The rules are those of
`canonical` and of docs/ledger.md, written down a second time on purpose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import apsw

from .engines.sqlite import schema
from .engines.sqlite.connection import connect, reading_access
from .engines.sqlite.preparation import recognise
from .engines.sqlite.snapshot import SqliteSnapshot
from .entry import Entry
from .errors import NotFound, StoreError
from .events import read_event
from .paths import absent
from .projection import Before, project
from .rows import Caution, Delivery, Flag, Holdings, Intent, Retrieval, Row, Session, Version

MOST_FINDINGS = 20

_COLUMNS = (
    "sequence event_id event_type subject_type subject_id kind symbol effective_at recorded_at strategy run_id"
    " agent profile session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key content"
    " content_salt content_sha256 leaf_sha256 chain_sha256 schema_version"
).split()
_NUMBERS = {"sequence", "effective_at", "recorded_at", "schema_version"}
_BYTES = {"arguments_sha256", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"}
_MAY_BE_ABSENT = {
    "kind",
    "symbol",
    "run_id",
    "session_id",
    "model_call_id",
    "retrieval_id",
    "tool",
    "arguments_sha256",
    "idempotency_key",
}
_OUTSIDE_LEAF = {"content", "content_salt", "leaf_sha256", "chain_sha256"}
Unversioned = Retrieval | Delivery | Session | Flag | Intent | Holdings | Caution

_TABLES: dict[type, str] = {
    Retrieval: "memory_retrievals",
    Delivery: "memory_deliveries",
    Session: "memory_sessions",
    Flag: "memory_flags",
    Intent: "memory_intents",
    Holdings: "memory_holdings",
    Caution: "memory_warnings",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `sequence` is None when it belongs to no single entry."""

    sequence: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found: the entries read, the last chain hash in hex, and at most 20 findings."""

    path: str
    entries: int
    chain: str | None
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def verify(
    path: Path,
    strategy: str,
    run: str | None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Check chain, content, sequence, genesis and projections of the ledger at `path`.

    `progress` is told entries done and entries in all. Raises NotFound when there is no file.
    """
    if absent(path):
        raise NotFound("There is no ledger to verify.", hint="Check --root, --strategy and --run.")
    try:
        recognise(path)
        with closing(connect(path, reading_access(path))) as connection:
            connection.execute("BEGIN")
            return _Verification(connection, path, strategy, run, progress).report()
    except (apsw.Error, StoreError) as fault:
        return Report(str(path), 0, None, (Finding(None, f"the file cannot be read: {fault}"),))


class _Verification:
    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        strategy: str,
        run: str | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._connection = connection
        # The projections of an older schema are rebuilt by the next start; its entries are proven all the same.
        self._current = connection.pragma("user_version") == schema.CURRENT
        self._snapshot = SqliteSnapshot(connection)
        self._path = path
        self._owner = (strategy, run)
        self._progress = progress
        self._findings: list[Finding] = []
        self._expected: dict[type[Row], int] = {}
        self._memories = self._terms = self._clock_rows = 0
        self._latest: int | None = None

    def report(self) -> Report:
        readable = self._check_tables()
        # A missing guard is no reason to stop: what was changed while it was away is what one wants to know.
        about_tables = len(self._findings)
        entries, chain = 0, bytes(32)
        if readable:
            total = self._count("memory_events")
            try:
                for columns in self._rows():
                    chain = self._check_entry(columns, entries, chain)
                    entries = columns["sequence"]
                    if self._progress is not None:
                        self._progress(entries, total)
                    if len(self._findings) >= MOST_FINDINGS:
                        break
            except UnicodeDecodeError:
                self._find(
                    entries + 1, f"a text of the entry after {entries} is not UTF-8: a column was changed"
                )
            if len(self._findings) == about_tables:
                self._check_counts()
                self._check_pages()
        return Report(str(self._path), entries, chain.hex() if entries else None, tuple(self._findings))

    def _find(self, sequence: int | None, what: str) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(Finding(sequence, what))

    def _count(self, table: str) -> int:
        row = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(row[0]) if row else 0

    def _check_tables(self) -> bool:
        """Check columns and guards of the ledger table; false when its entries cannot be read."""
        columns = [row[1] for row in self._connection.execute("PRAGMA table_info (memory_events)")]
        if columns != _COLUMNS:
            self._find(None, "the ledger table does not have the columns of a Deskbook ledger")
        expected, present = _guards(_scratch()), _guards(self._connection)
        if not self._current:
            expected, present = (
                {name: guard for name, guard in guards.items() if guard[0] != "index"}
                for guards in (expected, present)
            )
        for name, (kind, sql) in sorted(expected.items()):
            if name not in present:
                self._find(None, f"the {kind} {name} that keeps the ledger append-only is missing")
            elif present[name] != (kind, sql):
                self._find(None, f"the {kind} {name} that keeps the ledger append-only was changed")
        for name in sorted(present.keys() - expected.keys()):
            self._find(None, f"the {present[name][0]} {name} on the ledger is none of Deskbook's")
        return columns == _COLUMNS

    def _rows(self) -> Iterator[dict[str, Any]]:
        for row in self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM memory_events ORDER BY sequence"
        ):
            yield dict(zip(_COLUMNS, row, strict=True))

    def _check_entry(self, columns: dict[str, Any], before: int, chain: bytes) -> bytes:
        sequence = columns["sequence"]
        if sequence != before + 1:
            self._find(before + 1, f"entry {before + 1} is missing; {sequence} follows {before}")
        if misfits := [name for name in _COLUMNS if not _fits(name, columns[name])]:
            self._find(sequence, f"{', '.join(misfits)} cannot be what was written: the page was damaged")
            return chain
        if columns["event_type"] == "genesis" or sequence == 1:
            self._check_genesis(columns)
        if (columns["strategy"], columns["run_id"]) != self._owner:
            self._find(sequence, "the entry belongs to another strategy or run")
        content = str(columns["content"]).encode()
        if hashlib.sha256(columns["content_salt"] + content).digest() != columns["content_sha256"]:
            self._find(sequence, "content or content_salt was changed: it does not match content_sha256")
        leaf = _leaf(columns)
        if leaf != columns["leaf_sha256"]:
            self._find(sequence, "a column was changed: the entry does not match leaf_sha256")
        follows = hashlib.sha256(b"\x01" + chain + leaf).digest()
        if follows != columns["chain_sha256"]:
            self._find(sequence, "the chain is broken: chain_sha256 does not follow from the entry before")
        if not self._findings and self._current:
            self._check_projection(Entry(**columns))
        return bytes(columns["chain_sha256"])

    def _check_genesis(self, columns: dict[str, Any]) -> None:
        sequence = columns["sequence"]
        if columns["event_type"] != "genesis" or sequence != 1:
            self._find(sequence, "the genesis entry must be the first and only the first")
            return
        try:
            content = json.loads(columns["content"])
            bound = (content["strategy"], content.get("run"))
        except (ValueError, KeyError, TypeError, AttributeError):
            self._find(sequence, "the genesis entry binds no strategy and run")
            return
        if bound != self._owner:
            self._find(
                sequence, "the genesis entry binds another strategy or run: this ledger was moved here"
            )

    def _check_projection(self, entry: Entry) -> None:
        """Compare the rows that the entry must have left with the rows that are there."""
        if self._latest is None or entry.effective_at > self._latest:
            self._latest = entry.effective_at
            self._clock_rows += 1
            before, until = (self._snapshot.cut_at(entry.effective_at - early) for early in (1, 0))
            if before != entry.sequence - 1 or until < entry.sequence:
                self._find(entry.sequence, "memory_clock does not place the entry in time")
        try:
            event = read_event(entry.event_type, json.loads(entry.content))
            standing = self._snapshot.version(entry.subject_id, entry.sequence - 1)
            rows = project(entry, event, Before(standing, self._memories, self._terms))
        except ValueError as fault:
            self._find(
                entry.sequence, f"the content is not that of a {entry.event_type}: {type(fault).__name__}"
            )
            return
        for row in rows:
            self._expected[type(row)] = self._expected.get(type(row), 0) + 1
            if isinstance(row, Version):
                if row.version == 1:
                    self._memories, self._terms = row.ordinal, row.terms_total
                if self._shown(entry.sequence) != row:
                    self._find(
                        entry.sequence, f"memory_versions does not show {row.memory_id} as the entry left it"
                    )
            elif not self._stored(row):
                self._find(entry.sequence, f"{_TABLES[type(row)]} does not show the entry")

    def _shown(self, sequence: int) -> Version | None:
        try:
            return self._snapshot.version_at(sequence)
        except ValueError:  # its JSON columns were changed
            return None

    def _stored(self, row: Unversioned) -> bool:
        named = {field.name: getattr(row, field.name) for field in fields(row)}
        same = " AND ".join(f"{name} IS ?" for name in named)
        found = self._connection.execute(
            f"SELECT 1 FROM {_TABLES[type(row)]} WHERE {same}", tuple(named.values())
        ).fetchone()
        return found is not None

    def _check_pages(self) -> None:
        """Find damage that no entry shows, such as in an index or a page that is not used."""
        found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != ("ok",):
            self._find(None, f"the file is damaged: {found[0] if found else 'no answer'}")

    def _check_counts(self) -> None:
        """Find rows that no entry accounts for, and versions that the index lost."""
        if not self._current:
            return
        for kind, table in {Version: "memory_versions", **_TABLES}.items():
            surplus = self._count(table) - self._expected.get(kind, 0)
            if surplus and not self._findings:
                self._find(None, f"{table} has {abs(surplus)} rows too {'many' if surplus > 0 else 'few'}")
        if self._count("memory_clock") != self._clock_rows and not self._findings:
            self._find(None, "memory_clock has rows that no entry accounts for; `deskbook rebuild` mends it")
        drift = self._connection.execute(
            "SELECT (SELECT count(*) FROM memory_versions v"
            "   WHERE NOT EXISTS (SELECT 1 FROM memory_text_docsize d WHERE d.id = v.sequence_from)),"
            " (SELECT count(*) FROM memory_text_docsize d"
            "   WHERE NOT EXISTS (SELECT 1 FROM memory_versions v WHERE v.sequence_from = d.id)),"
            " (SELECT count(*) FROM memory_versions v WHERE v.sequence_to IS NOT"
            "   (SELECT n.sequence_from FROM memory_versions n"
            "    WHERE n.memory_id = v.memory_id AND n.version = v.version + 1))"
        ).fetchone()
        named = (
            "versions are missing from the full-text index",
            "full-text rows have no version",
            "versions end wrongly",
        )
        for count, what in zip(drift or (), named, strict=False):
            if count:
                self._find(None, f"{count} {what}; `deskbook rebuild` mends it")


def _scratch() -> apsw.Connection:
    """An empty ledger in memory, to know how an untouched one is made."""
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    return connection


def _guards(connection: apsw.Connection) -> dict[str, tuple[str, str]]:
    """Kind and definition of what stands on the ledger table, itself included, and of every trigger."""
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_schema"
        " WHERE (tbl_name = 'memory_events' OR type = 'trigger') AND sql IS NOT NULL"
    )
    return {name: (kind, sql) for name, kind, sql in rows}


def _fits(name: str, value: Any) -> bool:
    """Whether a value is of its column's type, which SQLite does not check again when it reads."""
    if value is None:
        return name in _MAY_BE_ABSENT
    return isinstance(value, int if name in _NUMBERS else bytes if name in _BYTES else str)


def _leaf(columns: dict[str, Any]) -> bytes:
    covered = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in columns.items()
        if name not in _OUTSIDE_LEAF
    }
    # With ASCII keys and only text, integers and null as values this is RFC 8785.
    text = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(b"\x00" + text.encode()).digest()
