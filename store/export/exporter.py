"""One pass that brings the Parquet copies beside a ledger up to its head.

    exports/manifest.json                                what there is; written last
    exports/segments/TABLE/FIRST-HASH.parquet            files that never change
    exports/TABLE/FIRST.parquet                          the same files, as a plain glob finds them

A segment holds every row that began in a range of sequences. The last one of a table is merged with what is new
until it has `GROWS_TO` rows; then it stands, and another begins. An older segment is written anew only when one of
its rows changed. So a pass costs what is new, and at most `GROWS_TO` rows around it in each segment it touches.

A glob is right at every instant, because a name, once it is there, only ever gets new content: the last segment and
what has been merged into it replace each other in one rename, no row is ever under two names, and none goes away.
Whoever has begun to read the old content can read on in the new (`versions`).
All tables are taken from one snapshot. One process at a time makes a pass; what it leaves when it is killed is either
not named by the manifest yet, and taken away by the next pass, or whole.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..clock import Clock, WallClock
from ..engines.base import Snapshot
from ..errors import StoreError
from ..files import lock_at_once, write_whole
from ..ledger import genesis_of
from ..paths import refuse_link, refuse_links
from .manifest import (
    FOLDER,
    LOCK,
    MANIFEST,
    SEGMENTS,
    Manifest,
    Origin,
    Segment,
    Stand,
    forget_failure,
    read_manifest,
)
from .schemas import written_schema
from .segments import HASH, TEMPORARY, Source, Work, sync_folders, write_segment
from .tables import TABLES, Table

GROWS_TO: Final = 4_096
"""Rows up to which a table's last segment is merged with what is new."""

_GLOBBED = re.compile(r"[0-9]{12,}\.parquet")


@dataclass(frozen=True, slots=True)
class Done:
    """What a pass did: how far the exports reach, and its work; `busy` when another process was at it."""

    through: int
    work: Work
    changed: bool
    busy: bool = False


OpenSnapshot = Callable[[], AbstractContextManager[Snapshot]]


def bring_up_to_date(
    root: Path, ledger: Path, snapshot: OpenSnapshot, work: Work | None = None, clock: Clock | None = None
) -> Done:
    """Bring the exports beside the ledger file at `ledger`, below `root`, up to its head.

    Returns at once when another process is doing it. Raises Abandoned when `work` says stop, StoreError for what
    the ledger or a link in the exports' place raises, OSError for what the disk does; the exports are then as they
    were, or between two passes, and the next one goes on from there.
    """
    work = work or Work()
    with snapshot() as opened:
        folder = _made(root, ledger.parent / FOLDER)
        with _alone(folder) as mine:
            if not mine:
                return Done(0, work, changed=False, busy=True)
            return _Pass(folder, opened, work, clock or WallClock()).run()


@dataclass(slots=True)
class _Pass:
    """A pass under way: one folder, one snapshot."""

    folder: Path
    snapshot: Snapshot
    work: Work
    clock: Clock

    def run(self) -> Done:
        origin, head = self._stand()
        old = read_manifest(self.folder)
        if old is not None and not self._continues(old, origin, head):
            old = None
        if old is not None and old.head == head and self._intact(old):
            return Done(head.sequence, self.work, changed=False)
        if old is None:
            self._clear()
        tables = {name: tuple(self._table(table, old, head.sequence)) for name, table in TABLES.items()}
        new = Manifest(origin, head, self.clock.now(), tables)
        sync_folders(self.folder / SEGMENTS / name for name in TABLES)
        self._link(new)
        self.work.check()
        write_whole(self.folder / MANIFEST, new.to_json())
        self._sweep(new.paths() | (old.paths() if old else set()))
        forget_failure(self.folder)
        return Done(head.sequence, self.work, changed=True)

    def _stand(self) -> tuple[Origin, Stand]:
        head, genesis = self.snapshot.head(), genesis_of(self.snapshot)
        if head is None or genesis is None:
            raise StoreError("The ledger has no genesis entry.", hint="Restore it from a backup.")
        origin = Origin(genesis.store_id, genesis.strategy, genesis.run)
        return origin, Stand(head.sequence, head.chain_sha256.hex(), head.effective_at)

    def _continues(self, old: Manifest, origin: Origin, head: Stand) -> bool:
        """Whether the exports are of this ledger, as it stood once."""
        if old.origin != origin or old.head.sequence > head.sequence or old.tables.keys() != TABLES.keys():
            return False
        entry = self.snapshot.entry(old.head.sequence)
        return entry is not None and entry.chain_sha256.hex() == old.head.chain_sha256

    def _intact(self, old: Manifest) -> bool:
        return all(
            _same_columns(old, table)
            and all(
                self._whole(each) and _same_file(self.folder / each.path, self.folder / each.glob)
                for each in segments
            )
            for table, segments in old.tables.items()
        )

    def _whole(self, segment: Segment) -> bool:
        try:
            found = (self.folder / segment.path).lstat()
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == segment.bytes

    def _table(self, table: Table, old: Manifest | None, cut: int) -> Iterator[Segment]:
        """The table's segments as they are to be, those that must be written among them."""
        before = old.tables[table.name] if old is not None else ()
        redo = old is not None and not _same_columns(old, table.name)
        touched = self._touched(table, before, old.head.sequence if old else 0, cut)
        *standing, tail = before or (None,)
        for segment in standing:
            if segment is not None:
                fresh = not redo and segment.first not in touched and self._whole(segment)
                yield segment if fresh else self._again(table, segment, segment.last, cut)
        grown_from = 1
        if tail is not None:
            coming = Source(table.rows(self.snapshot, tail.last, cut, cut), self.work).at
            if coming is None or tail.rows >= GROWS_TO:
                until = cut if coming is None else tail.last
                fresh = not redo and tail.first not in touched and self._whole(tail)
                yield replace(tail, last=until) if fresh else self._again(table, tail, until, cut)
                grown_from = until + 1
            else:
                grown_from = tail.first
        if tail is None or grown_from <= cut:
            yield from self._onward(table, grown_from, cut)

    def _touched(self, table: Table, before: tuple[Segment, ...], after: int, cut: int) -> set[int]:
        """The first sequences of the segments that hold a row which the entries since have changed."""
        if not before:
            return set()
        firsts = [segment.first for segment in before]
        return {firsts[bisect_right(firsts, born) - 1] for born in table.changed(self.snapshot, after, cut)}

    def _again(self, table: Table, segment: Segment, until: int, cut: int) -> Segment:
        source = Source(table.rows(self.snapshot, segment.first - 1, segment.last, cut), self.work)
        return self._written(table, segment.first, until, source, None)

    def _onward(self, table: Table, first: int, cut: int) -> Iterator[Segment]:
        source = Source(table.rows(self.snapshot, first - 1, cut, cut), self.work)
        while True:
            segment = self._written(table, first, None, source, table.largest)
            if source.at is None:
                yield replace(segment, last=cut)
                return
            yield segment
            first = segment.last + 1

    def _written(
        self, table: Table, first: int, last: int | None, source: Source, most: int | None
    ) -> Segment:
        made = write_segment(
            self.folder / SEGMENTS / table.name,
            table.name,
            source,
            self.work,
            most,
            f"{first:012d}-{HASH}.parquet",
            self.folder / table.name / f"{first:012d}.parquet",
        )
        return Segment(
            path=f"{SEGMENTS}/{table.name}/{made.path.name}",
            glob=f"{table.name}/{first:012d}.parquet",
            first=first,
            last=made.last if last is None else last,
            rows=made.rows,
            bytes=made.bytes,
            sha256=made.sha256,
        )

    def _link(self, new: Manifest) -> None:
        """Let a plain glob find the segments, each by one rename, from the oldest to the newest."""
        for table, segments in new.tables.items():
            for segment in segments:
                link(self.folder / segment.path, self.folder / segment.glob)
            named = {Path(segment.glob).name for segment in segments}
            for found in (self.folder / table).iterdir():
                if found.name.endswith(TEMPORARY) or (
                    _GLOBBED.fullmatch(found.name) and found.name not in named
                ):
                    found.unlink(missing_ok=True)
        sync_folders(self.folder / table for table in new.tables)

    def _sweep(self, kept: set[str]) -> None:
        """Take away what no manifest names any more; the one before this is spared for those who read by it."""
        for table in TABLES:
            for found in (self.folder / SEGMENTS / table).iterdir():
                if f"{SEGMENTS}/{table}/{found.name}" not in kept:
                    found.unlink(missing_ok=True)

    def _clear(self) -> None:
        """Begin anew: what is there is of another ledger, or of another version."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for table in TABLES:
            found = [each for each in (self.folder / table).iterdir() if _GLOBBED.fullmatch(each.name)]
            for path in sorted(found, reverse=True):
                path.unlink(missing_ok=True)


def _same_columns(old: Manifest, table: str) -> bool:
    return old.columns.get(table) == written_schema(table)


def link(source: Path, target: Path) -> None:
    """Put the file at `source` under the name `target` too, in one step; a copy where the disk knows no links."""
    if _same_file(source, target):
        return
    partial = target.with_name(f".{target.name}{TEMPORARY}")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except PermissionError:  # what a file system without links answers, by its manual
        _copy(source, partial)
    partial.replace(target)


def _copy(source: Path, target: Path) -> None:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as copy, source.open("rb") as original:
        while block := original.read(2**20):
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    os.utime(target, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))


def _same_file(one: Path, other: Path) -> bool:
    """Whether two names are one file or, where there are no links, a copy of it."""
    try:
        first, second = one.lstat(), other.lstat()
    except OSError:
        return False
    if (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino):
        return True
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)


def _made(root: Path, folder: Path) -> Path:
    """The exports folder with its folders, mode 0700; links in their place are refused. The root is never made."""
    refuse_links(root, folder)
    for place in (folder, folder / SEGMENTS, *_table_folders(folder)):
        refuse_link(place)
        place.mkdir(mode=0o700, exist_ok=True)
    return folder


def _table_folders(folder: Path) -> Iterable[Path]:
    for table in TABLES:
        yield folder / table
        yield folder / SEGMENTS / table


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether this process alone makes a pass now; the kernel lets go of the lock when its holder dies."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield lock_at_once(handle)
    finally:
        os.close(handle)
