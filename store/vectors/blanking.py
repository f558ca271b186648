"""Takes the vectors of texts away that are gone: in place, since others have the file mapped and read on in it.

A row that is blank points one way like all others of its kind and is never found. Rows beyond the mark are blank too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from .layout import COLUMNS, PAGE, Head, read_head, read_mark

LEFT_OVER: Final = 256
"""So many rows beyond the mark may hold what a killed batch left there."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a version is kept under now, and whether it still has a text."""

    tags: int
    pending: bool
    blank: bool


def blank_rows(path: Path, ledger: bytes, versions: Mapping[int, Facts]) -> None:
    """Write the rows of versions anew in one file of vectors; a file that is none, or of another ledger, goes.

    The caller holds the lock of the folder. Raises OSError for what the disk does.
    """
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        page = os.pread(handle, PAGE, 0)
        head, mark = read_head(page), read_mark(page)
        whole = head is not None and os.fstat(handle).st_size == head.offsets()["end"]
        if head is None or mark is None or not whole or head.ledger != ledger or mark.rows > head.capacity:
            path.unlink()
            return
        held: Any = np.frombuffer(os.pread(handle, mark.rows * 8, head.offsets()["sequence"]), dtype="<i8")
        for sequence, facts in versions.items():
            first, last = np.searchsorted(held, [sequence, sequence + 1], "left")
            for row in range(int(first), int(last)):
                _write(handle, head, row, facts)
        for row in range(mark.rows, min(mark.rows + LEFT_OVER, head.capacity)):
            _write(handle, head, row, Facts(0, pending=True, blank=True))
        os.fdatasync(handle)
    finally:
        os.close(handle)


def _write(handle: int, head: Head, row: int, facts: Facts) -> None:
    places, kinds = head.offsets(), dict(COLUMNS)

    def put(name: str, value: Any) -> None:
        packed = np.array([value], dtype=kinds[name]).tobytes()
        os.pwrite(handle, packed, places[name] + row * len(packed))

    put("tags", facts.tags)
    put("pending", int(facts.pending or facts.blank))
    if not facts.blank:
        return
    put("length", 1.0)
    os.pwrite(handle, b"\x01" + bytes(head.dimensions - 1), places["codes"] + row * head.dimensions)
    for word in range(head.words):
        bits = b"\x01" + bytes(7) if word == 0 else bytes(8)
        os.pwrite(handle, bits, places["sketch"] + 8 * (word * head.capacity + row))
