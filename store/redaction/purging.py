"""Takes the traces of redacted contents away beside the entries: pages, log, Parquet copies, vectors, older copies.

Every step can be done again and says what remains where it cannot be done. The pages come first: once the log is
empty nobody reads the ledger as it stood before, so what is made anew from it afterwards holds no trace either.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw

from ..engines.base import Snapshot
from ..engines.sqlite import SqliteEngine
from ..engines.sqlite.faults import translate_opening
from ..engines.sqlite.purging import purge_file
from ..errors import DeskbookError, StoreBusy
from ..export.exporter import bring_up_to_date
from ..export.manifest import FOLDER as EXPORTS
from ..export.manifest import LOCK, SEGMENTS, read_manifest
from ..export.schemas import SCHEMAS
from ..files import lock_at_once
from ..ledger import genesis_of, projected
from ..lifecycle import HIDDEN
from ..paths import refuse_links
from ..rows import Version
from ..vectors.blanking import Facts, blank_rows
from ..vectors.index import FOLDER as VECTORS
from ..vectors.layout import tag_bits
from .traces import REPLACED, older_copies

LOCK_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_ALL: Final = 2**62
_AGAIN: Final = "Mend that, then run the same command again, which finishes it."
_LEFT_BEHIND: Final = (".schema*.bak", ".schema*.bak.part*", ".*.restoring*")


@dataclass(slots=True)
class Purged:
    """What was taken away besides the entries, and what remains because it could not be."""

    removed: list[str] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def purge(root: Path, path: Path, *, pages: bool = True) -> Purged:
    """Purge the ledger file at `path`, below `root`, and everything beside it of what its redactions cover.

    Without `pages`, only what lies beside it.
    """
    done = Purged()
    if pages:
        _tried(done, "the pages of the file", lambda: purge_file(path))
    engine = SqliteEngine(path, projected, create=False, writes=False)
    with closing(engine):
        with engine.read() as snapshot:
            gone = [kept.sequence for kept in snapshot.kept_until(_ALL)]
            touched = _touched(snapshot, gone)
        rows = sorted({*gone, *touched.born})
        _tried(done, "Parquet copies", lambda: _purge_exports(root, path, engine, rows))
    _tried(done, "vectors", lambda: _purge_vectors(root, path, touched))
    _tried(done, "older copies", lambda: _remove_copies(path, done))
    for left in older_copies(path, gone):
        done.remains.append(left.what)
        done.hints.append(left.hint)
    return done


def _tried(done: Purged, what: str, step: Callable[[], None]) -> None:
    """Do a step, or note why it could not be done."""
    try:
        step()
    except (DeskbookError, apsw.Error, OSError) as fault:
        known = fault if isinstance(fault, DeskbookError) else translate_opening(fault)
        said = known.message if isinstance(known, DeskbookError) else str(known)
        hint = (fault.hint if isinstance(fault, DeskbookError) else None) or _AGAIN
        done.remains.append(f"{what}: {said}")
        done.hints.append(hint)


@dataclass(slots=True)
class _Touched:
    """The memories that redacted entries are about: where they began, and all their versions as they are now."""

    store_id: str
    born: list[int] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)


def _touched(snapshot: Snapshot, gone: Iterable[int]) -> _Touched:
    genesis = genesis_of(snapshot)
    found = _Touched(genesis.store_id if genesis else "")
    seen: set[str] = set()
    for entry in filter(None, map(snapshot.raw_entry, gone)):
        if entry.subject_type != "memory" or entry.subject_id in seen:
            continue
        seen.add(entry.subject_id)
        versions = [snapshot.version_at(each.sequence) for each in snapshot.history(entry.subject_id, _ALL)]
        standing = [version for version in versions if version is not None]
        found.versions += standing
        found.born += [version.sequence_from for version in standing[:1]]
    return found


def _purge_exports(root: Path, path: Path, engine: SqliteEngine, rows: list[int]) -> None:
    """Remove the Parquet files that hold one of the rows, and those that no manifest names, and write them anew."""
    folder = path.parent / EXPORTS
    if not folder.is_dir():
        return
    refuse_links(root, folder)
    with _locked(folder / LOCK):
        manifest = read_manifest(folder)
        kept: set[str] = set()
        for segments in manifest.tables.values() if manifest else ():
            for segment in segments:
                if not _holds_any(rows, segment.first, segment.last):
                    kept |= {segment.path, segment.glob}
        for table in SCHEMAS:
            for file in [*folder.glob(f"{table}/*"), *folder.glob(f"{SEGMENTS}/{table}/*")]:
                if file.is_file() and str(file.relative_to(folder)) not in kept:
                    file.unlink()
    if manifest is not None and bring_up_to_date(root, path, engine.read).busy:
        raise StoreBusy(
            "Another process was at the Parquet copies, which lack some rows now.",
            hint="Its next pass writes them anew; so does the same command again.",
            stored="yes",
        )


def _holds_any(rows: list[int], first: int, last: int) -> bool:
    at = bisect_left(rows, first)
    return at < len(rows) and rows[at] <= last


def _purge_vectors(root: Path, path: Path, touched: _Touched) -> None:
    folder = path.parent / VECTORS
    if not folder.is_dir():
        return
    refuse_links(root, folder)
    told = {
        version.sequence_from: Facts(
            tag_bits(version.tags), version.review_state in HIDDEN, blank=not version.text
        )
        for version in touched.versions
    }
    ledger = hashlib.sha256(touched.store_id.encode()).digest()
    with _locked(folder / LOCK):
        for left in folder.glob(".*.vectors.*"):
            left.unlink()
        for file in folder.glob("*.vectors"):
            blank_rows(file, ledger, told)


def _remove_copies(path: Path, done: Purged) -> None:
    """Remove what an upgrade or a restore that was cut off left, and Parquet copies that a restore moved aside."""
    for pattern in _LEFT_BEHIND:
        for left in sorted(path.parent.glob(f"{path.name}{pattern}")):
            left.unlink()
            done.removed.append(left.name)
    for folder in sorted(path.parent.glob(f"{EXPORTS}{REPLACED}")):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
            done.removed.append(folder.name)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock of a folder, in which others work a batch or a pass at a time."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not lock_at_once(handle):
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"Another process has been at the {file.parent.name} for too long.",
                    hint="Run the same command again.",
                    stored="yes",
                )
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)
