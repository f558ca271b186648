"""The Merkle tree of RFC 6962, section 2.1: roots, audit paths and their check; pure, no file is read here.

A leaf is the `leaf_sha256` of an entry, SHA-256(0x00 || canonical columns). An inner node is
SHA-256(0x01 || left || right), the root of no leaves SHA-256(""). The entry of sequence s has index s - 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()

Complete = Callable[[int, int], bytes]
"""Gives the hash of a complete subtree: `(level, index)` covers 1 << level leaves, from index << level on."""


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(size: int) -> int:
    """The number of leaves on the left of the top of a tree of `size` > 1: the largest power of two below it."""
    return 1 << ((size - 1).bit_length() - 1)


class Frontier:
    """A tree that grows leaf by leaf and holds only the hashes that its root needs, about log2 of its size."""

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        """Begin empty, or with the complete subtrees of a tree of `size`, the largest first."""
        if size.bit_count() != len(peaks):
            raise ValueError("a tree has one peak for each bit of its size")
        self.size = size
        self._peaks = list(peaks)

    def add(self, leaf: bytes) -> None:
        """Append a leaf."""
        self._peaks.append(leaf)
        self.size += 1
        for _ in range(_trailing_zeros(self.size)):
            right = self._peaks.pop()
            self._peaks[-1] = node_hash(self._peaks[-1], right)

    def root(self) -> bytes:
        """The root over the leaves so far."""
        if not self._peaks:
            return EMPTY_ROOT
        *rest, root = self._peaks
        for peak in reversed(rest):
            root = node_hash(peak, root)
        return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over some leaves."""
    frontier = Frontier()
    for leaf in leaves:
        frontier.add(leaf)
    return frontier.root()


def peaks_of(size: int) -> list[tuple[int, int]]:
    """Level and index of the complete subtrees that make up a tree of `size`, the largest first."""
    found, start = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            found.append((level, start >> level))
            start += 1 << level
    return found


def root_at(size: int, complete: Complete) -> bytes:
    """The root of the first `size` leaves, from complete subtrees."""
    return _range(0, size, complete) if size else EMPTY_ROOT


def audit_path(index: int, size: int, complete: Complete) -> list[bytes]:
    """The path from leaf `index` to the root of `size` leaves, the leaf's sibling first (RFC 6962, 2.1.1).

    Raises ValueError when there is no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    path, start = [], 0
    while size > 1:
        left = split(size)
        if index < left:
            path.append(_range(start + left, start + size, complete))
            size = left
        else:
            path.append(_range(start, start + left, complete))
            start, index, size = start + left, index - left, size - left
    return path[::-1]


def root_by_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root that a path leads to from a leaf (RFC 9162, 2.1.3.2), to be compared with one that is known.

    Raises ValueError when the path is not as long as that of leaf `index` in a tree of `size`.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    place, last, root = index, size - 1, leaf
    for sibling in path:
        if not last:
            raise ValueError("the path is too long")
        if place & 1 or place == last:
            root = node_hash(sibling, root)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise ValueError("the path is too short")
    return root


def _range(start: int, stop: int, complete: Complete) -> bytes:
    """The hash over the leaves from `start` to before `stop`."""
    size = stop - start
    if size & (size - 1) == 0 and start % size == 0:
        level = size.bit_length() - 1
        return complete(level, start >> level)
    left = split(size)
    return node_hash(_range(start, start + left, complete), _range(start + left, stop, complete))


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1
