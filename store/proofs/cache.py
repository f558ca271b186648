"""The tree's complete subtrees in a file beside the ledger, so that a root or a path costs about log2 n reads.

Only a cache: it can be deleted at any time, and nothing is believed because it stands here. Every row carries
a checksum over the store's id, its own place, its hash and the chain hash of its last leaf, as the ledger has
it now. So a row that is damaged, of another ledger, or of entries that were replaced since does not count; the
rows are then written anew. Who forges rows with their checksums makes a root that differs from the signed one,
which is compared before any proof is given away.

Subtrees of 16 leaves and more are kept, in the order in which they are completed (as Go's sumdb numbers stored
hashes), so the file only ever grows at its end and two processes that write it write the same bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol, Self, TypeVar

from ..errors import StoreDamaged
from .tree import HASH_BYTES, audit_path, node_hash, peaks_of, root_at, root_of

FILE = "tree.cache"
LEVEL = 4
BLOCK = 1 << LEVEL
CHECK_BYTES = 8
ROW_BYTES = HASH_BYTES + CHECK_BYTES
_MAGIC = b"deskbook tree 1\n"
HEADER_BYTES = len(_MAGIC) + HASH_BYTES
_WRITTEN_AT_ONCE = 256 * 1024

T = TypeVar("T")


class Links(Protocol):
    """What a tree is made from: the leaves of a ledger and its chain."""

    @property
    def store_id(self) -> str:
        """The ledger's store id."""
        ...

    def links(self, start: int, stop: int) -> Iterable[tuple[bytes, bytes]]:
        """Leaf and chain hash, as stored, of the leaves from index `start` to before `stop`."""
        ...


class Stale(Exception):
    """A row is not that of the ledger as it is now."""


class TreeCache:
    """Roots and audit paths of a ledger's tree, at any size it has had; close it when done."""

    def __init__(self, path: Path | None, source: Links) -> None:
        """Use the file at `path`, made if it is missing; without one, or where none can be written, use memory."""
        self._source = source
        self._store = hashlib.sha256(source.store_id.encode()).digest()
        self._header = _MAGIC + self._store
        self._file = _unnamed() if path is None else _opened(path)
        self._in_file = path is not None
        self.rows_read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def root(self, size: int) -> bytes:
        """The root of the first `size` leaves."""
        return self._tried(size, lambda: root_at(size, self.complete))

    def path(self, index: int, size: int) -> list[bytes]:
        """The audit path of leaf `index` in the tree of `size` leaves, the leaf's sibling first."""
        return self._tried(size, lambda: audit_path(index, size, self.complete))

    def peaks(self, size: int) -> list[bytes]:
        """The complete subtrees that make up the tree of `size` leaves, the largest first."""
        return self._tried(size, lambda: [self.complete(*place) for place in peaks_of(size)])

    def forget(self) -> None:
        """Drop every row: the next use reads all leaves again."""
        os.ftruncate(self._file.fileno(), 0)

    def complete(self, level: int, index: int) -> bytes:
        """The hash of a complete subtree; raises Stale when its row is not there or does not fit the ledger."""
        if level < LEVEL:
            return root_of([leaf for leaf, _ in self._links(index << level, index + 1 << level)])
        position = _position(level - LEVEL, index)
        row = os.pread(self._file.fileno(), ROW_BYTES, HEADER_BYTES + position * ROW_BYTES)
        self.rows_read += 1
        last = (index + 1 << level) - 1
        (_, chain), *_ = self._links(last, last + 1)
        if row != self._row(position, row[:HASH_BYTES], chain):
            raise Stale
        return row[:HASH_BYTES]

    def _tried(self, size: int, work: Callable[[], T]) -> T:
        """The work's result from the rows that are there, else from rows written anew, else from memory alone."""
        for attempt in range(3):
            try:
                if attempt == 1:
                    self.forget()
                elif attempt == 2:
                    self._leave_file()
                self._grow(size // BLOCK)
                return work()
            except (Stale, OSError):
                continue
        raise StoreDamaged(
            "The ledger's entries do not stay the same while they are read.",
            hint="Run `deskbook verify` to see what is wrong.",
        )

    def _leave_file(self) -> None:
        if self._in_file:
            self._file.close()
            self._file = _unnamed()
            self._in_file = False

    def _grow(self, blocks: int) -> None:
        """Add the rows of the blocks that are complete and not there yet."""
        handle = self._file.fileno()
        if os.pread(handle, HEADER_BYTES, 0) == self._header and _blocks(os.fstat(handle).st_size) >= blocks:
            return
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            if os.pread(handle, HEADER_BYTES, 0) != self._header:
                os.ftruncate(handle, 0)
                _write(handle, self._header, 0)
            have = _blocks(os.fstat(handle).st_size)
            peaks = [self.complete(level + LEVEL, index) for level, index in peaks_of(have)]
            at, unwritten = HEADER_BYTES + _rows(have) * ROW_BYTES, bytearray()
            for row in self._rows_of(have, blocks, peaks):
                unwritten += row
                if len(unwritten) >= _WRITTEN_AT_ONCE:
                    at += _write(handle, unwritten, at)
                    unwritten.clear()
            _write(handle, unwritten, at)
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)

    def _rows_of(self, have: int, blocks: int, peaks: list[bytes]) -> Iterator[bytes]:
        """The rows from block `have` to before block `blocks`, in the file's order."""
        position, leaves = _rows(have), []
        for index, (leaf, chain) in enumerate(self._links(have * BLOCK, blocks * BLOCK), have * BLOCK + 1):
            leaves.append(leaf)
            if index % BLOCK:
                continue
            node, block, leaves = root_of(leaves), index // BLOCK - 1, []
            while True:
                yield self._row(position, node, chain)
                position += 1
                if not block & 1:
                    break
                node, block = node_hash(peaks.pop(), node), block >> 1
            peaks.append(node)

    def _links(self, start: int, stop: int) -> Iterator[tuple[bytes, bytes]]:
        """Leaves and chain hashes; raises Stale when the ledger has fewer."""
        count = 0
        for link in self._source.links(start, stop):
            yield link
            count += 1
        if count != stop - start:
            raise Stale

    def _row(self, position: int, node: bytes, chain: bytes) -> bytes:
        bound = self._store + position.to_bytes(8, "big") + node + chain
        return node + hashlib.sha256(bound).digest()[:CHECK_BYTES]


def cache_path(ledger: Path) -> Path:
    """Where the cache of a ledger's tree lies."""
    return ledger.with_name(FILE)


def _opened(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        return os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
    return _unnamed()


def _unnamed() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


def _rows(blocks: int) -> int:
    """How many subtrees so many blocks complete."""
    return 2 * blocks - blocks.bit_count()


def _position(height: int, index: int) -> int:
    """The row of the subtree `index` of so many levels above a block."""
    return _rows((index + 1 << height) - 1) + height


def _blocks(size: int) -> int:
    """How many blocks all of whose rows a file of `size` bytes holds."""
    rows = max(0, size - HEADER_BYTES) // ROW_BYTES
    blocks = rows // 2
    while _rows(blocks + 1) <= rows:
        blocks += 1
    return blocks


def _write(handle: int, raw: bytes | bytearray, at: int) -> int:
    """Write all of it at a place in the file; gives its length."""
    done = 0
    while done < len(raw):
        done += os.pwrite(handle, raw[done:], at + done)
    return len(raw)
