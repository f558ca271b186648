"""One file of vectors, mapped to be read and written by its only writer at the time.

Reading never blocks: rows are written first, then the mark that counts them. A file that is too small is copied into
one of twice the room, which takes its place; whoever still maps the old one reads on in it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import COLUMNS, FIRST_CAPACITY, PAGE, Head, Mark, read_head, read_mark

_SLAB = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Row:
    """One row besides its codes; the fields are the columns of the layout."""

    sequence: int
    ended: int
    effective: int
    expires: int
    symbol: int
    agent: int
    tags: int
    source: int
    kind: int
    status: int
    pending: int
    length: float


class VectorFile:
    """A file of vectors, open; a reader's stays right when a writer goes on, until it is replaced."""

    def __init__(self, path: Path, descriptor: int, head: Head) -> None:
        self.path = path
        self.head = head
        self._descriptor = descriptor
        self._places = head.offsets()
        self._map = mmap.mmap(descriptor, self._places["end"], prot=mmap.PROT_READ)
        found = os.fstat(descriptor)
        self._identity = (found.st_dev, found.st_ino)
        self._columns: dict[str, Any] = {
            name: np.frombuffer(self._map, dtype=kind, count=head.capacity, offset=self._places[name])
            for name, kind in COLUMNS
        }
        self.codes: Any = np.frombuffer(
            self._map,
            dtype=np.int8,
            count=head.capacity * head.dimensions,
            offset=self._places["codes"],
        ).reshape(head.capacity, head.dimensions)
        self.sketch: Any = np.frombuffer(
            self._map, dtype="<u8", count=head.capacity * head.words, offset=self._places["sketch"]
        ).reshape(head.words, head.capacity)

    @classmethod
    def open(cls, path: Path, ledger: bytes, form: bytes, *, writes: bool = False) -> VectorFile | None:
        """The file at `path`; None where there is none, or one of another ledger, model or layout, or a cut one."""
        # Without waiting, as a pipe in its place would be waited for.
        flags = (os.O_RDWR if writes else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags)
        except OSError:
            return None
        try:
            head = _head(descriptor, ledger, form)
            if head is not None:
                file = cls(path, descriptor, head)
                if not writes:
                    file.close()
                return file
        except (ValueError, OSError, OverflowError):
            pass
        os.close(descriptor)
        return None

    @classmethod
    def create(cls, path: Path, head: Head, copied: VectorFile | None = None) -> VectorFile:
        """Make the file, in place of whatever is there, with the rows of one that has become too small.

        What a writer left behind that was killed at this is taken away. Raises OSError for what the disk does; then
        nothing has changed.
        """
        for left in path.parent.glob(f".{path.name}.*"):
            left.unlink(missing_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            os.ftruncate(descriptor, head.offsets()["end"])
            mark = Mark(turn=1) if copied is None else replace(copied.mark, turn=copied.mark.turn + 1)
            if copied is not None:
                copied.copy_rows(descriptor, head, mark.rows)
            os.pwrite(descriptor, head.packed(), 0)
            os.fdatasync(descriptor)
            os.pwrite(descriptor, mark.packed(), mark.at)
            Path(temporary).rename(path)
            return cls(path, descriptor, head)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    @property
    def mark(self) -> Mark:
        """How far the file is filled now."""
        found = read_mark(self._map[:PAGE])
        return Mark() if found is None or found.rows > self.head.capacity else found

    def column(self, name: str, rows: int) -> Any:
        """The first `rows` values of a column."""
        return self._columns[name][:rows]

    def is_current(self) -> bool:
        """Whether the path still leads to this file."""
        try:
            found = self.path.lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity and found.st_size == self._places["end"]

    def append(
        self, rows: Sequence[Row], codes: NDArray[np.int8], watermark: int, chain: int = 0
    ) -> VectorFile:
        """Add rows with their codes and say how far they reach; gives the file to go on with, this one or another.

        Raises OSError for what the disk does; the rows are then not counted.
        """
        mark = self.mark
        if mark.rows + len(rows) > self.head.capacity:
            capacity = max(FIRST_CAPACITY, 2 * self.head.capacity)
            while capacity < mark.rows + len(rows):
                capacity *= 2
            grown = self.create(self.path, replace(self.head, capacity=capacity), self)
            self.close()
            try:
                return grown.append(rows, codes, watermark, chain)
            except BaseException:
                grown.close()
                raise
        for name, kind in COLUMNS:
            values = np.array([getattr(row, name) for row in rows], dtype=kind)
            self._put(name, mark.rows, values.tobytes(), values.itemsize)
        self._put("codes", mark.rows, codes.tobytes(), self.head.dimensions)
        for word, bits in enumerate(signs(codes)):
            self._put("sketch", word * self.head.capacity + mark.rows, bits.tobytes(), 8)
        os.fdatasync(self._descriptor)
        after = Mark(mark.turn + 1, mark.rows + len(rows), watermark, chain)
        os.pwrite(self._descriptor, after.packed(), after.at)
        return self

    def end(self, row: int, ended: int) -> None:
        """Note the entry that ended a row's version."""
        self._put("ended", row, ended.to_bytes(8, "little", signed=True), 8)

    def _put(self, column: str, row: int, content: bytes, size: int) -> None:
        at, left = self._places[column] + row * size, memoryview(content)
        while left:
            written = os.pwrite(self._descriptor, left, at)
            at, left = at + written, left[written:]

    def copy_rows(self, target: int, head: Head, rows: int) -> None:
        """Write the first rows into an open file that is laid out as another head says."""
        places = head.offsets()
        sizes = [(name, self._columns[name].itemsize) for name, _ in COLUMNS]
        for name, size in [*sizes, ("codes", head.dimensions)]:
            self._copy(target, self._places[name], places[name], rows * size)
        for word in range(head.words):
            source = self._places["sketch"] + 8 * word * self.head.capacity
            self._copy(target, source, places["sketch"] + 8 * word * head.capacity, rows * 8)

    def _copy(self, target: int, source: int, place: int, length: int) -> None:
        for at in range(0, length, _SLAB):
            content = self._map[source + at : source + min(at + _SLAB, length)]
            if os.pwrite(target, content, place + at) != len(content):
                raise OSError("the copy of the vectors was cut short")

    def close(self) -> None:
        """Let go of the descriptor, unless that was done; what still reads the mapping keeps it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _head(descriptor: int, ledger: bytes, form: bytes) -> Head | None:
    """What an open file is; None where it is not whole, or of another ledger or form."""
    page = os.pread(descriptor, PAGE, 0)
    head = read_head(page)
    mark = read_mark(page)
    if (
        head is None
        or (head.ledger, head.form) != (ledger, form)
        or mark is None
        or mark.rows > head.capacity
    ):
        return None
    return head if os.fstat(descriptor).st_size == head.offsets()["end"] else None


def signs(codes: NDArray[np.int8]) -> Any:
    """The sketch of each row, word by word: words x rows."""
    bits = np.packbits(codes > 0, axis=1, bitorder="little")
    padded = np.zeros((len(codes), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view("<u8").T)


def codes_of(vectors: Any) -> tuple[NDArray[np.int8], list[float]]:
    """Vectors in signed bytes, each scaled to use them all, and the lengths of the codes."""
    most = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.rint(vectors * (127.0 / np.where(most > 0, most, 1))).astype(np.int8)
    lengths = np.sqrt((scaled.astype(np.float64) ** 2).sum(axis=1))
    return scaled, [float(length) or 1.0 for length in lengths]
