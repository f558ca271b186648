"""A whole export into a folder of a person's choice, as Parquet or CSV, cut to what was asked for.

The folder is new or empty, or holds an export that is to be replaced; a file that is not of such an export is never
touched. Every file comes whole, the manifest last. Memory stays flat: rows are streamed in groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

from ..clock import Clock, WallClock
from ..engines.base import Snapshot
from ..errors import ConfigError, NotFound, StoreError
from ..files import new_file, write_whole
from ..jsonl import header_of, write_jsonl
from ..ledger import genesis_of
from ..paths import sync_folder
from ..rows import Head
from .cells import write_cells
from .manifest import (
    ENTRIES,
    MANIFEST,
    Manifest,
    Origin,
    Segment,
    Stand,
    read_manifest,
)
from .schemas import written_schema
from .segments import TEMPORARY, Hashed, Source, Work, write_segment
from .selection import Selection
from .tables import TABLES, Values

Format = Literal["parquet", "jsonl", "csv"]
Advance = Callable[[int, int], None]
JSONL_FILE: Final = f"{ENTRIES}.jsonl"


@dataclass(frozen=True, slots=True)
class Handmade:
    """What was written: files relative to the folder, rows by table, and the last sequence they hold."""

    files: tuple[str, ...]
    rows: dict[str, int]
    through: int


def check_target(folder: Path, root: Path, *, force: bool) -> None:
    """Raise ConfigError or StoreError for a folder that no export may be written into; it stays as it is."""
    with _told(folder):
        if folder.resolve().is_relative_to(root.resolve()):
            raise ConfigError(
                f"{folder} lies in the store's root.",
                field="DIR",
                hint="Name a folder elsewhere; the ledger's own exports lie beside it.",
            )
        if not folder.exists():
            return
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder.", field="DIR", hint="Name a new or empty folder.")
        for name in TABLES:
            if (folder / name).is_symlink():
                raise ConfigError(
                    f"{folder / name} is a symbolic link.",
                    field="DIR",
                    hint="Name a new folder; nothing was touched.",
                )
        old = read_manifest(folder)
        filled = next(folder.iterdir(), None) is not None
        if filled and not force:
            raise ConfigError(
                f"{folder} is not empty.",
                field="DIR",
                hint="Name a new folder, or say --force to replace the export that is there.",
            )
        if filled and old is None:
            raise ConfigError(
                f"{folder} holds files and no export's manifest.",
                field="DIR",
                hint="Name a new or empty folder; --force replaces an export, and nothing else. Nothing was touched.",
            )
        foreign = _ours(folder) - (old.names() if old else set())
        if foreign:
            raise ConfigError(
                f"{folder} holds {min(foreign)}, which no manifest of an export names.",
                field="DIR",
                hint="Move it away, or name a new folder; nothing was touched.",
            )


def _ours(folder: Path) -> set[str]:
    """Files under names that an export uses, relative to the folder."""
    names = {f"{table}{kind}" for table in TABLES for kind in (".parquet", ".csv")} | {JSONL_FILE}
    found = {name for name in names if (folder / name).exists()}
    for table in TABLES:
        found |= {f"{table}/{path.name}" for path in (folder / table).glob("*.parquet")}
    return found


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Say in our words what the disk did."""
    try:
        yield
    except OSError as fault:
        raise StoreError(
            f"{folder} cannot be written: {os.strerror(fault.errno or 0)}.",
            hint="Name a folder that may be written, on a disk with room; what is there of the export is not whole.",
        ) from None


def _without_genesis() -> StoreError:
    return StoreError("The ledger has no genesis entry.", hint="Restore it from a backup.")


@dataclass(frozen=True, slots=True)
class _Utf8:
    """Text into a file of bytes."""

    out: Hashed

    def write(self, text: str) -> int:
        return self.out.write(text.encode())


@dataclass(slots=True)
class Export:
    """An export to be made of one snapshot into a folder that `check_target` has passed."""

    folder: Path
    snapshot: Snapshot
    selection: Selection
    advance: Advance = lambda _done, _total: None
    clock: Clock | None = None

    def parquet(self, *, single_file: bool = False) -> Handmade:
        """Write every table as Parquet, in segments or as one file each, and the manifest.

        Raises ConfigError or StoreError when it cannot be written.
        """
        with _told(self.folder):
            cut = self._begin()
            work = Work(progress=self._progress(cut))
            tables = {name: tuple(self._segments(name, cut, work, single_file)) for name in TABLES}
            return self._end(cut, tables)

    def csv(self) -> Handmade:
        """Write every table as one CSV file; see `cells`."""
        with _told(self.folder):
            cut = self._begin()
            tables = {name: (self._cells(name, cut),) for name in TABLES}
            return self._end(cut, tables)

    def jsonl(self) -> Handmade:
        """Write the ledger's entries as one file of JSON lines; see `store.jsonl`.

        Cut by time or instrument it has gaps, so it is to be read, and no ledger can be made of it.
        """
        with _told(self.folder):
            cut = self._begin()
            genesis, last = genesis_of(self.snapshot), self.snapshot.entry(cut)
            if genesis is None or last is None:
                raise _without_genesis()
            head = Head(cut, last.chain_sha256, last.effective_at, last.effective_at)
            told, events = self._progress(cut), next(iter(TABLES))

            def write(out: Hashed) -> int:
                return write_jsonl(
                    self.selection.entries(self.snapshot, cut),
                    header_of(genesis, head),
                    cast("BinaryIO", out),
                    lambda sequence: told(events, sequence),
                )

            return self._end(cut, {ENTRIES: (self._whole(JSONL_FILE, cut, write),)})

    def _begin(self) -> int:
        """Make the folder, take away the export that it held, and give the cut."""
        cut = self.selection.cut(self.snapshot)
        if cut == 0:
            raise NotFound(
                "The ledger holds nothing as of that time.", field="--as-of", hint="Name a later time."
            )
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (old := read_manifest(self.folder)) is not None:
            (self.folder / MANIFEST).unlink()
            for name in old.names():
                place = self.folder / name
                if place.parent in (self.folder, *(self.folder / name for name in TABLES)):
                    place.unlink(missing_ok=True)
        return cut

    def _end(self, cut: int, tables: Mapping[str, tuple[Segment, ...]]) -> Handmade:
        entry, genesis = self.snapshot.entry(cut), genesis_of(self.snapshot)
        if genesis is None or entry is None:
            raise _without_genesis()
        manifest = Manifest(
            Origin(genesis.store_id, genesis.strategy, genesis.run),
            Stand(cut, entry.chain_sha256.hex(), entry.effective_at),
            (self.clock or WallClock()).now(),
            tables,
            columns={name: written_schema(name) if name in TABLES else [] for name in tables},
            selection=self.selection.told(),
        )
        write_whole(self.folder / MANIFEST, manifest.to_json())
        rows = {name: sum(each.rows for each in segments) for name, segments in tables.items()}
        return Handmade(tuple(sorted(manifest.paths())), rows, cut)

    def _segments(self, name: str, cut: int, work: Work, single_file: bool) -> Iterator[Segment]:
        table = TABLES[name]
        folder = self.folder if single_file else self.folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        source = Source(self.selection.rows(table, self.snapshot, cut), work)
        first = 1
        while True:
            file = f"{name}.parquet" if single_file else f"{first:012d}.parquet"
            most = None if single_file else table.largest
            made = write_segment(folder, name, source, work, most, file)
            path = str(made.path.relative_to(self.folder))
            last = cut if source.at is None else made.last
            yield Segment(path, path, first, last, made.rows, made.bytes, made.sha256)
            if source.at is None:
                sync_folder(folder)
                return
            first = last + 1

    def _cells(self, name: str, cut: int) -> Segment:
        told = self._progress(cut)

        def rows() -> Iterator[Values]:
            for number, (sequence, row) in enumerate(self.selection.rows(TABLES[name], self.snapshot, cut)):
                if number % 1_000 == 0:
                    told(name, sequence)
                yield row

        return self._whole(f"{name}.csv", cut, lambda out: write_cells(_Utf8(out), name, rows()))

    def _whole(self, name: str, cut: int, write: Callable[[Hashed], int]) -> Segment:
        """Write a file so that it is there whole or not at all; `write` gives the number of its rows."""
        partial = self.folder / f".{name}.{os.getpid()}{TEMPORARY}"
        try:
            with new_file(partial) as file:
                hashed = Hashed(file)
                rows = write(hashed)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.folder / name)
        finally:
            partial.unlink(missing_ok=True)
        return Segment(name, name, 1, cut, rows, hashed.size, hashed.digest.hexdigest())

    def _progress(self, cut: int) -> Callable[[str, int], None]:
        places = {name: place * cut for place, name in enumerate(TABLES)}
        return lambda table, sequence: self.advance(places[table] + sequence, cut * len(places))
