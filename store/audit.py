"""Proof that nothing in a ledger was changed, cut out, moved or invented.

This module reads the file on a connection of its own and computes every hash anew from the stored columns,
with none of the code that wrote them: a fault in the writer cannot hide itself here. The rules are those of
`canonical` and of docs/ledger.md, written down a second time on purpose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import apsw

from .audit_columns import COLUMNS, fits, leaf_of
from .audit_mark import TABLES, Mark
from .audit_schema import schema_faults
from .audit_text import text_fault
from .audit_tree import Checked, Claim, Roots, checked
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
MARK_EVERY = 10_000
MENDED = "`deskbook rebuild` mends it"

Unversioned = Retrieval | Delivery | Session | Flag | Intent | Holdings | Caution


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `sequence` is None when it belongs to no single entry.

    `derived` says that it is in what is made from the entries, so that a rebuild mends it.
    """

    sequence: int | None
    what: str
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found: the entries read, the last chain hash in hex, and at most 20 findings.

    `checkpoints` says of each that was given whether the ledger holds what it signed; where it does not, that is a
    finding beside those 20.
    """

    path: str
    entries: int
    chain: str | None
    findings: tuple[Finding, ...]
    checkpoints: tuple[Checked, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def mendable(self) -> bool:
        """Whether something is wrong, and all of it in what is made from the entries."""
        return bool(self.findings) and all(finding.derived for finding in self.findings)


def verify(
    path: Path,
    strategy: str,
    run: str | None,
    progress: Callable[[int, int], None] | None = None,
    claims: Sequence[Claim] = (),
    *,
    since: Mark | None = None,
    keep: Callable[[Mark], None] | None = None,
) -> Report:
    """Check chain, content, sequence, genesis and projections of the ledger at `path`, and checkpoints of it.

    The signatures of `claims` are verified already. `keep` is told now and then how far all was found sound, and
    `since` is what it was told last by a verification that was broken off: the entries up to there are not read
    again, unless the ledger no longer has that chain hash there or there are claims. `progress` is told entries
    done and entries in all. Raises NotFound when there is no file.
    """
    if absent(path):
        raise NotFound("There is no ledger to verify.", hint="Check --root, --strategy and --run.")
    try:
        recognise(path)
        with closing(connect(path, reading_access(path))) as connection:
            connection.execute("BEGIN")
            return _Verification(connection, path, strategy, run, progress, claims, since, keep).report()
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
        claims: Sequence[Claim],
        since: Mark | None,
        keep: Callable[[Mark], None] | None,
    ) -> None:
        self._connection = connection
        self._since, self._keep = since, keep
        self._claims = claims
        self._roots = Roots(claim.size for claim in claims)
        self._store_id: str | None = None
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
        entries, chain = self._go_on() if readable else (0, bytes(32))
        if readable:
            total = self._count("memory_events")
            try:
                for columns in self._rows(entries):
                    chain = self._check_entry(columns, entries, chain)
                    entries = columns["sequence"]
                    if entries % MARK_EVERY == 0 and not self._findings:
                        self._leave_mark(entries, chain)
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
                self._check_text()
                self._check_pages()
        held = checked(
            self._claims, self._store_id, self._roots, self._count("memory_events") if readable else 0
        )
        faults = [Finding(None, claim.fault) for claim in held if claim.fault is not None]
        findings = (*self._findings, *faults)
        return Report(str(self._path), entries, chain.hex() if entries else None, findings, held)

    def _go_on(self) -> tuple[int, bytes]:
        """Where a verification that was broken off had come to, if the ledger still stands there as it stood."""
        mark = self._since
        if mark is None or self._claims or not self._current:
            return 0, bytes(32)
        row = self._connection.execute(
            "SELECT chain_sha256, (SELECT subject_id FROM memory_events WHERE sequence = 1),"
            " (SELECT count(*) FROM memory_events WHERE sequence <= ?1) FROM memory_events WHERE sequence = ?1",
            (mark.sequence,),
        ).fetchone()
        if row != (bytes.fromhex(mark.chain), mark.store_id, mark.sequence):
            return 0, bytes(32)
        self._store_id = mark.store_id
        self._expected = {kind: mark.expected[name] for kind, name in TABLES.items() if name in mark.expected}
        self._memories, self._terms = mark.memories, mark.terms
        self._clock_rows, self._latest = mark.clock_rows, mark.latest
        return mark.sequence, bytes.fromhex(mark.chain)

    def _leave_mark(self, sequence: int, chain: bytes) -> None:
        if self._keep is None or self._store_id is None or not self._current:
            return
        expected = {TABLES[kind]: count for kind, count in self._expected.items()}
        came = (self._memories, self._terms, self._clock_rows, self._latest)
        self._keep(Mark(self._store_id, sequence, chain.hex(), expected, *came))

    def _find(self, sequence: int | None, what: str, *, derived: bool = False) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(Finding(sequence, what, derived))

    def _count(self, table: str) -> int:
        row = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(row[0]) if row else 0

    def _check_tables(self) -> bool:
        """Check columns, guards and the tables made from entries; false when the entries cannot be read."""
        try:
            columns = [row[1] for row in self._connection.execute("PRAGMA table_info (memory_events)")]
            if columns != COLUMNS:
                self._find(None, "the ledger table does not have the columns of a Deskbook ledger")
            for what, derived in schema_faults(self._connection):
                self._find(None, f"{what}; {MENDED}" if derived else what, derived=derived)
        except (ValueError, TypeError, AttributeError):
            self._find(None, "the file's list of tables cannot be read: the page was damaged")
            return False
        return columns == COLUMNS

    def _rows(self, after: int) -> Iterator[dict[str, Any]]:
        later = f"WHERE sequence > {after:d}" if after else ""
        for row in self._connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM memory_events {later} ORDER BY sequence"
        ):
            yield dict(zip(COLUMNS, row, strict=True))

    def _check_entry(self, columns: dict[str, Any], before: int, chain: bytes) -> bytes:
        sequence = columns["sequence"]
        if sequence != before + 1:
            self._find(before + 1, f"entry {before + 1} is missing; {sequence} follows {before}")
        if misfits := [name for name in COLUMNS if not fits(name, columns[name])]:
            self._find(sequence, f"{', '.join(misfits)} cannot be what was written: the page was damaged")
            self._roots.add(b"")
            return chain
        if columns["event_type"] == "genesis" or sequence == 1:
            self._check_genesis(columns)
        if (columns["strategy"], columns["run_id"]) != self._owner:
            self._find(sequence, "the entry belongs to another strategy or run")
        content = str(columns["content"]).encode()
        if hashlib.sha256(columns["content_salt"] + content).digest() != columns["content_sha256"]:
            self._find(sequence, "content or content_salt was changed: it does not match content_sha256")
        leaf = leaf_of(columns)
        self._roots.add(leaf)
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
            self._store_id = content["store_id"]
        except (ValueError, KeyError, TypeError, AttributeError):
            self._find(sequence, "the genesis entry binds no strategy and run")
            return
        if bound != self._owner:
            self._find(
                sequence, "the genesis entry binds another strategy or run: this ledger was moved here"
            )

    def _check_projection(self, entry: Entry) -> None:
        """Compare the rows that the entry must have left with the rows that are there."""
        self._check_clock(entry)
        try:
            standing = self._snapshot.version(entry.subject_id, entry.sequence - 1)
        except (ValueError, TypeError):
            self._find(entry.sequence, "memory_versions cannot be read as of the entry", derived=True)
            return
        try:
            event = read_event(entry.event_type, json.loads(entry.content))
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
                if not self._shows(row):
                    self._find(
                        entry.sequence,
                        f"memory_versions does not show {row.memory_id} as the entry left it",
                        derived=True,
                    )
            elif not self._stored(row):
                self._find(entry.sequence, f"{TABLES[type(row)]} does not show the entry", derived=True)

    def _check_clock(self, entry: Entry) -> None:
        if self._latest is not None and entry.effective_at <= self._latest:
            return
        self._latest = entry.effective_at
        self._clock_rows += 1
        try:
            before, until = (self._snapshot.cut_at(entry.effective_at - early) for early in (1, 0))
            placed = before == entry.sequence - 1 and until >= entry.sequence
        except (ValueError, TypeError):  # a page was damaged, so that a number is none
            placed = False
        if not placed:
            self._find(entry.sequence, "memory_clock does not place the entry in time", derived=True)

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
        named = {field.name: getattr(row, field.name) for field in fields(row)}
        same = " AND ".join(f"{name} IS ?" for name in named)
        found = self._connection.execute(
            f"SELECT 1 FROM {TABLES[type(row)]} WHERE {same}", tuple(named.values())
        ).fetchone()
        return found is not None

    def _check_text(self) -> None:
        """Find terms of the full-text index that no version accounts for, and versions whose terms it lost."""
        if not self._current or self._findings:
            return
        try:
            fault = text_fault(self._connection)
        except (ValueError, TypeError, AttributeError):
            fault = "the full-text index or the versions in it cannot be read"
        if fault is not None:
            self._find(None, f"{fault}; {MENDED}", derived=True)

    def _check_pages(self) -> None:
        """Find damage that no entry shows, such as in an index or a page that is not used."""
        found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != ("ok",):
            self._find(None, f"the file is damaged: {found[0] if found else 'no answer'}")

    def _check_counts(self) -> None:
        """Find rows that no entry accounts for, and versions that the index lost."""
        if not self._current or self._findings:
            return
        for kind, table in TABLES.items():
            surplus = self._count(table) - self._expected.get(kind, 0)
            if surplus and not self._findings:
                self._find(
                    None,
                    f"{table} has {abs(surplus)} rows too {'many' if surplus > 0 else 'few'}",
                    derived=True,
                )
        if self._count("memory_clock") != self._clock_rows and not self._findings:
            self._find(
                None,
                "memory_clock has rows that no entry accounts for; `deskbook rebuild` mends it",
                derived=True,
            )
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
                self._find(None, f"{count} {what}; {MENDED}", derived=True)
