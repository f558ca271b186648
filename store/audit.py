"""Proof that nothing in a ledger was changed, cut out, moved or invented.

This module reads the file on a connection of its own and computes every hash anew from the stored columns,
with none of the code that wrote them: a fault in the writer cannot hide itself here. The rules are those of
`canonical` and of docs/ledger.md, written down a second time on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import apsw

from .audit_columns import COLUMNS, READ, Shapes, Values, leaf_of
from .audit_mark import Mark
from .audit_pages import Beside, beside
from .audit_redactions import Withdrawals
from .audit_rows import Projections
from .audit_schema import schema_faults
from .audit_text import UNREADABLE, ExpectedText
from .audit_tree import Checked, Claim, Roots, checked
from .engines.sqlite import schema
from .engines.sqlite.connection import connect, reading_access
from .engines.sqlite.preparation import recognise
from .errors import NotFound, StoreError
from .paths import absent

MOST_FINDINGS = 20
MARK_EVERY = 10_000
MENDED = "`deskbook rebuild` mends it"

_STRATEGY, _RUN, _EVENT_TYPE, _SEQUENCE = map(READ.index, ("strategy", "run_id", "event_type", "sequence"))
_CONTENT, _SALT, _CONTENT_SHA256 = map(READ.index, ("content", "content_salt", "content_sha256"))
_LEAF, _CHAIN = map(READ.index, ("leaf_sha256", "chain_sha256"))


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
        with closing(connect(path, reading_access(path))) as connection, beside(path, connection) as asked:
            return _Verification(
                connection, asked, path, strategy, run, progress, claims, since, keep
            ).report()
    except (apsw.Error, StoreError) as fault:
        return Report(str(path), 0, None, (Finding(None, f"the file cannot be read: {fault}"),))


class _Verification:
    def __init__(
        self,
        connection: apsw.Connection,
        asked: Beside,
        path: Path,
        strategy: str,
        run: str | None,
        progress: Callable[[int, int], None] | None,
        claims: Sequence[Claim],
        since: Mark | None,
        keep: Callable[[Mark], None] | None,
    ) -> None:
        self._connection, self._beside = connection, asked
        self._since, self._keep = since, keep
        self._claims = claims
        self._roots = Roots(claim.size for claim in claims)
        self._store_id: str | None = None
        # The projections of an older schema are rebuilt by the next start; its entries are proven all the same.
        self._current = connection.pragma("user_version") == schema.CURRENT
        self._gone: Withdrawals | None = None
        self._path = path
        self._owner = (strategy, run)
        self._progress = progress
        self._findings: list[Finding] = []
        self._shapes = Shapes()
        self._text = ExpectedText(connection)
        self._projections = Projections(connection, self._text)

    def report(self) -> Report:
        readable = self._check_tables()
        # A missing guard is no reason to stop: what was changed while it was away is what one wants to know.
        about_tables = len(self._findings)
        entries, chain, total = 0, bytes(32), 0
        if readable:
            total = self._count("memory_events")
            entries, chain = self._check_entries(total)
            if len(self._findings) == about_tables:
                self._check_counts()
                self._check_text()
                self._check_pages()
        held = checked(self._claims, self._store_id, self._roots, total)
        faults = [Finding(None, claim.fault) for claim in held if claim.fault is not None]
        findings = (*self._findings, *faults)
        return Report(str(self._path), entries, chain.hex() if entries else None, findings, held)

    def _check_entries(self, total: int) -> tuple[int, bytes]:
        """The last entry that was read, and its chain hash."""
        self._gone = Withdrawals(self._connection, any_at_all=self._current)
        entries, chain = self._go_on()
        later = "WHERE sequence > ?" if entries else ""
        rows = self._connection.execute(
            f"SELECT {', '.join(READ)} FROM memory_events {later} ORDER BY sequence",
            (entries,) if entries else (),
        )
        try:
            for row in rows:
                chain = self._check_entry(row, entries, chain)
                entries = row[_SEQUENCE]
                if entries % MARK_EVERY == 0 and not self._findings:
                    self._leave_mark(entries, chain)
                if self._progress is not None:
                    self._progress(entries, total)
                if len(self._findings) >= MOST_FINDINGS:
                    break
        except UnicodeDecodeError:
            self._find(entries + 1, f"a text of the entry after {entries} is not UTF-8: a column was changed")
        return entries, chain

    def _go_on(self) -> tuple[int, bytes]:
        """Where a verification that was broken off had come to, if the ledger still stands there as it stood."""
        mark, row = self._since, None
        if mark is not None and self._current and not self._claims:
            row = self._connection.execute(
                "SELECT chain_sha256, (SELECT subject_id FROM memory_events WHERE sequence = 1),"
                " (SELECT count(*) FROM memory_events WHERE sequence <= ?1) FROM memory_events WHERE sequence = ?1",
                (mark.sequence,),
            ).fetchone()
        if mark is None or row != (bytes.fromhex(mark.chain), mark.store_id, mark.sequence):
            mark = None
        entries, chain = 0, bytes(32)
        if mark is not None:
            entries, chain, self._store_id = mark.sequence, bytes.fromhex(mark.chain), mark.store_id
        if self._current:
            self._projections.start(entries, mark)
        return entries, chain

    def _leave_mark(self, sequence: int, chain: bytes) -> None:
        if self._keep is not None and self._store_id is not None and self._current:
            self._keep(self._projections.mark(self._store_id, sequence, chain))

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

    def _check_entry(self, row: Values, before: int, chain: bytes) -> bytes:
        sequence = row[_SEQUENCE]
        shape = self._shapes.of(row)
        if sequence != before + 1:
            self._find(before + 1, f"entry {before + 1} is missing; {sequence} follows {before}")
        if shape.misfits:
            misfits = ", ".join(shape.misfits)
            self._find(sequence, f"{misfits} cannot be what was written: the page was damaged")
            self._roots.add(b"")
            return chain
        if row[_EVENT_TYPE] == "genesis" or sequence == 1:
            self._check_genesis(row)
        if (row[_STRATEGY], row[_RUN]) != self._owner:
            self._find(sequence, "the entry belongs to another strategy or run")
        row = self._check_content(row)
        leaf = leaf_of(row, shape)
        if self._claims:
            self._roots.add(leaf)
        if leaf != row[_LEAF]:
            self._find(sequence, "a column was changed: the entry does not match leaf_sha256")
        if sha256(b"\x01" + chain + leaf).digest() != row[_CHAIN]:
            self._find(sequence, "the chain is broken: chain_sha256 does not follow from the entry before")
        if self._current and not self._findings:
            for what, derived in self._projections.faults(row):
                self._find(sequence, what, derived=derived)
        return bytes(row[_CHAIN])

    def _check_content(self, row: Values) -> Values:
        """Check a content against its hash or, where it was taken away, that it may; gives the row as it is read."""
        gone = self._gone
        fault = gone.fault(row) if gone is not None else None
        blank = not row[_CONTENT] and not row[_SALT]
        if (
            fault is None
            and not blank
            and sha256(row[_SALT] + row[_CONTENT].encode()).digest() != row[_CONTENT_SHA256]
        ):
            fault = "content or content_salt was changed: it does not match content_sha256"
        if fault is not None:
            self._find(row[_SEQUENCE], fault)
        return row if gone is None or not blank else gone.shown(row)

    def _check_genesis(self, row: Values) -> None:
        sequence = row[_SEQUENCE]
        if row[_EVENT_TYPE] != "genesis" or sequence != 1:
            self._find(sequence, "the genesis entry must be the first and only the first")
            return
        try:
            content = json.loads(row[_CONTENT])
            bound = (content["strategy"], content.get("run"))
            self._store_id = content["store_id"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._find(sequence, "the genesis entry binds no strategy and run")
            return
        if bound != self._owner:
            self._find(
                sequence, "the genesis entry binds another strategy or run: this ledger was moved here"
            )

    def _check_text(self) -> None:
        """Find terms of the full-text index that no version accounts for, and versions whose terms it lost."""
        if not self._current or self._findings:
            return
        try:
            fault = self._text.fault(*self._beside.copied())
        except (ValueError, TypeError, AttributeError):
            fault = UNREADABLE
        if fault is not None:
            self._find(None, f"{fault}; {MENDED}", derived=True)

    def _check_pages(self) -> None:
        """Find damage that no entry shows, such as in an index or a page that is not used."""
        damage = self._beside.damage()
        if damage is not None:
            self._find(None, f"the file is damaged: {damage}")

    def _check_counts(self) -> None:
        """Find rows that no entry accounts for, and versions that the index lost."""
        if not self._current or self._findings:
            return
        surplus = self._projections.surplus()
        if surplus is not None:
            self._find(None, surplus[0], derived=surplus[1])
        for what in self._beside.drifts():
            self._find(None, f"{what}; {MENDED}", derived=True)
