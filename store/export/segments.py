"""Parquet files, each made whole in one step: a temporary file, fsync, a hash of what was written, a rename."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..files import new_file
from ..paths import sync_folder
from .arrow import arrow_schema, batch_of
from .tables import TABLES, Rows, Values
from .versions import Pages, begin_behind, pages_of, put_before

GROUP_CHARS: Final = 8 * 2**20
"""A row group is closed at so many characters of text, however few rows it has."""

LEVEL: Final = 3
TEMPORARY: Final = ".tmp"
HASH: Final = "<hash>"


class Abandoned(Exception):
    """A pass was told to stop; what it had begun is taken away again."""


@dataclass(slots=True)
class Work:
    """What one pass does, counted, and whether it is to go on."""

    stop: Callable[[], bool] = lambda: False
    progress: Callable[[str, int], None] = lambda _table, _sequence: None
    rows_read: int = 0
    rows_written: int = 0
    files_written: int = 0

    def check(self) -> None:
        """Raise Abandoned when the pass is to stop."""
        if self.stop():
            raise Abandoned


@dataclass(frozen=True, slots=True)
class Made:
    """A file that was made: where, what it covers, its rows, bytes and hash in hex."""

    path: Path
    last: int
    rows: int
    bytes: int
    sha256: str


@dataclass(slots=True)
class Hashed:
    """A file that hashes what is written to it; pyarrow writes it from front to back."""

    file: Any
    digest: Any = field(default_factory=hashlib.sha256)
    size: int = 0
    closed: bool = False

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.size += len(data)
        return int(self.file.write(data))

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class Source:
    """Rows with a look at the next one, so that a file can end where another begins."""

    def __init__(self, rows: Rows, work: Work) -> None:
        self._rows = rows
        self._work = work
        self._next: tuple[int, Values] | None = None
        self._advance()

    def _advance(self) -> None:
        self._next = next(self._rows, None)
        self._work.rows_read += self._next is not None

    @property
    def at(self) -> int | None:
        """The sequence of the next row; None when there is none."""
        return None if self._next is None else self._next[0]

    def take(self) -> Values:
        """The next row."""
        if self._next is None:
            raise StopIteration
        row = self._next[1]
        self._advance()
        return row


def write_segment(
    folder: Path,
    table: str,
    source: Source,
    work: Work,
    most: int | None,
    name: str,
    over: Path | None = None,
) -> Made:
    """Write the next rows, at most `most` but never a part of one sequence's, into a file of the folder.

    In the file's `name` HASH stands for the hash of what is in it. A table without rows gives a file with
    its schema. What is to take the place of the file `over` can be read by that one's footer too; see `versions`.
    Raises Abandoned, or the OSError that kept it from being written; then nothing is left of it.
    """
    partial = folder / f".{table}.{os.getpid()}{TEMPORARY}"
    try:
        with new_file(partial) as file:
            hashed = Hashed(file)
            old = pages_of(over) if over is not None else None
            last, rows = _fill(hashed, table, source, work, most, old)
            if old is not None and old.room_before and put_before(file, old):
                hashed = _hashed_anew(file)
            file.flush()
            os.fsync(file.fileno())
        sha256 = hashed.digest.hexdigest()
        target = folder / name.replace(HASH, sha256[:16])
        partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    work.rows_written += rows
    work.files_written += 1
    return Made(target, last, rows, hashed.size, sha256)


def _hashed_anew(file: Any) -> Hashed:
    hashed = Hashed(None)
    file.seek(0)
    while block := file.read(2**20):
        hashed.digest.update(block)
        hashed.size += len(block)
    return hashed


def _fill(
    hashed: Hashed, table: str, source: Source, work: Work, most: int | None, old: Pages | None
) -> tuple[int, int]:
    schema = arrow_schema(table)
    last = rows = 0
    # pyarrow counts what goes through its own stream, and places pages by that.
    stream = pa.PythonFile(hashed, mode="w")
    with pq.ParquetWriter(stream, schema, compression="zstd", compression_level=LEVEL) as writer:
        if old is not None and not old.room_before:
            begin_behind(stream.write, old)
        for group, last in _groups(table, source, most):
            work.check()
            writer.write_batch(batch_of(table, group, schema))
            rows += len(group)
            work.progress(table, last)
    return last, rows


def _groups(table: str, source: Source, most: int | None) -> Iterator[tuple[list[Values], int]]:
    """Row groups up to the end of the file, each with the sequence of its last row."""
    limit, taken, last = TABLES[table].group, 0, 0
    group: list[Values] = []
    chars = 0
    while (at := source.at) is not None and (most is None or taken < most or at == last):
        last = at
        row = source.take()
        group.append(row)
        taken += 1
        chars += sum(len(value) for value in row if isinstance(value, str))
        if len(group) >= limit or chars >= GROUP_CHARS:
            yield group, last
            group, chars = [], 0
    if group:
        yield group, last


def sync_folders(folders: Iterable[Path]) -> None:
    """Make the names in folders durable."""
    for folder in folders:
        sync_folder(folder)
