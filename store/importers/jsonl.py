"""Makes a ledger of an export that equals the one it came from, in every column and with the same chain."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import apsw

from ..clock import WallClock
from ..engines.base import Transaction
from ..engines.sqlite import SqliteEngine
from ..engines.sqlite.lock import FairLock
from ..entry import Entry
from ..errors import Conflict, DeskbookError, ForeignFile, NotFound, StoreDamaged
from ..events import AnyEvent, Genesis
from ..jsonl import read_jsonl
from ..ledger import Ledger, projected
from ..paths import absent, ledger_path, make_folders, refuse_links
from ..rows import Redaction
from .checks import Checks
from .redacted import redactions_in

BATCH = 500
_SECONDS = 120.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of an import: the ledger, its entries, and how many of them were new."""

    strategy: str
    run: str | None
    path: str
    entries: int
    added: int
    chain_sha256: str
    dry_run: bool = False


def import_jsonl(
    path: Path,
    root: Path,
    *,
    strategy: str | None = None,
    dry_run: bool = False,
    durability: str = "full",
    progress: Progress | None = None,
) -> Restored:
    """Restore the ledger of an export below a root, under the strategy and run that its genesis binds.

    The whole file is proven and checked before anything is written, and a ledger that an import which fails has begun
    is taken away again. A ledger that holds the first of its entries gets the rest.
    `progress` is told entries done and in all, twice over. Raises NotFound, the StoreError that fits a file that is
    no export or was changed, and Conflict for a ledger that is another one, or a `strategy` that is not the file's.
    """
    tell = progress or _untold
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ForeignFile("The export is not a plain file.", hint="Name a plain file.", where=path)
        with path.open("rb") as source:
            redacted = redactions_in(source)
            source.seek(0)
            header, total, chain = _proven(source, tell, redacted)
            if strategy is not None and strategy != header["strategy"]:
                raise Conflict(
                    f"The export is of the strategy {header['strategy']!r}, which its chain binds.",
                    field="--strategy",
                    hint="Leave out --strategy.",
                )
            target = ledger_path(root, header["strategy"], header["run"])
            refuse_links(root, target)
            source.seek(0)
            _, entries = read_jsonl(source)
            added = _restore(
                target, root, header, entries, total, tell, durability, dry_run=dry_run, redacted=redacted
            )
    except OSError as fault:
        if isinstance(fault, FileNotFoundError):
            raise NotFound(f"There is no file at {path}.", hint="Name the export.") from None
        raise ForeignFile("The export cannot be read.", hint="Name a plain file.", where=path) from None
    return Restored(header["strategy"], header["run"], str(target), total, added, chain, dry_run)


def _proven(
    source: BinaryIO, tell: Progress, redacted: Mapping[int, Redaction]
) -> tuple[dict[str, Any], int, str]:
    """The header of a file of which every line is proven, its entries, and the last chain hash in hex."""
    header, entries = read_jsonl(source)
    total = 2 * int(header["head"]["sequence"])
    last = None
    with closing(Checks(redacted)) as checks:
        for last in entries:
            event = checks.check(last)
            if last.event_type == "genesis" or last.sequence == 1:
                _check_genesis(last, event, header)
            tell(last.sequence, total)
    if last is None:
        raise ForeignFile("The export holds no entry.", hint="Take the export again.")
    return header, last.sequence, last.chain_sha256.hex()


def _check_genesis(entry: Entry, event: AnyEvent, header: dict[str, Any]) -> None:
    bound = (event.store_id, event.strategy, event.run) if isinstance(event, Genesis) else None
    if entry.sequence != 1 or bound != (header["store_id"], header["strategy"], header["run"]):
        raise ForeignFile(
            "The genesis entry binds another ledger than the header.", hint="Take the export again."
        )


def _restore(
    target: Path,
    root: Path,
    header: dict[str, Any],
    entries: Iterator[Entry],
    total: int,
    tell: Progress,
    durability: str,
    *,
    dry_run: bool,
    redacted: Mapping[int, Redaction],
) -> int:
    begun = absent(target)
    if begun:
        if dry_run:
            return total
        make_folders(root, target)
    engine = SqliteEngine(
        target,
        projected,
        durability="normal" if durability == "normal" else "full",
        create=not dry_run,
        writes=not dry_run,
    )
    with closing(engine):
        standing = _standing(engine, entries, total)
        if dry_run:
            return total - standing
        ledger = Ledger(WallClock(), header["strategy"], header["run"])
        placed = None
        try:
            while page := list(islice(entries, BATCH)):
                _place(engine, ledger, page, redacted)
                placed = page[-1]
                tell(total + placed.sequence, 2 * total)
        except Exception:
            engine.close()
            if begun:
                _take_away(target, placed)
            raise
    return total - standing


def _take_away(target: Path, placed: Entry | None) -> None:
    """Remove a ledger that this import made, unless somebody else has written to it since; no writer is let in
    between. What cannot be taken away stays: the first entries of the export, which the next import goes on from."""
    with suppress(DeskbookError, OSError), closing(FairLock(str(target))) as lock, lock.hold_within(_SECONDS):
        engine = SqliteEngine(target, projected, create=False, writes=False)
        with closing(engine), engine.read() as snapshot:
            head = snapshot.head()
        if (head and head.chain_sha256) == (placed and placed.chain_sha256):
            for suffix in ("", "-wal", "-shm"):
                target.with_name(target.name + suffix).unlink(missing_ok=True)


def _standing(engine: SqliteEngine, entries: Iterator[Entry], total: int) -> int:
    """How many of the entries the ledger holds, taken off the iterator; raises Conflict when it holds others."""
    with engine.read() as snapshot:
        head = snapshot.head()
        standing = 0 if head is None else head.sequence
        last = None
        for last in islice(entries, min(standing, total)):
            if snapshot.raw_entry(last.sequence) != last:
                raise _another(f"differs from the export at sequence {last.sequence}")
    if standing > total:
        raise _another(f"holds {standing} entries, the export {total}")
    return standing


def _place(
    engine: SqliteEngine, ledger: Ledger, page: list[Entry], redacted: Mapping[int, Redaction]
) -> None:
    def job(transaction: Transaction) -> None:
        for entry in page:
            if (kept := redacted.get(entry.sequence)) is not None:
                transaction.apply([kept])
            try:
                ledger.restore(transaction, entry)
            except (apsw.ConstraintError, ArithmeticError, LookupError, TypeError):
                raise StoreDamaged(
                    f"Line {entry.sequence + 1}: Entry {entry.sequence} contradicts the entries before it.",
                    hint="Take the export again from its ledger.",
                ) from None

    engine.write(job, timeout=_SECONDS, grace=_SECONDS)


def _another(what: str) -> Conflict:
    return Conflict(
        f"The ledger in its place {what}.",
        hint="Choose another --root, or move that ledger away; it was not changed.",
    )


def _untold(_done: int, _total: int) -> None:
    """Nobody watches."""
