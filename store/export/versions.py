"""A new version of a Parquet file that whoever has just opened the old one can go on reading.

DuckDB opens a file by name once for its footer and once more for its rows, so a file replaced in between would be
read by the footer of another one. A Parquet footer names its pages by their place in the file, and nothing asks them
to begin at its start: so the new version keeps the pages of the one that it replaces where they were, and puts its
own behind them or, once there is room for them, before them. Old footer and new file then give the old rows, exactly.
The pages before last are given up, which keeps a file at a few times its rows' size.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC: Final = b"PAR1"
_ROOM: Final = 2
"""The new pages go before the old ones once the room there is so many times their size."""

_BLOCK: Final = 2**20


@dataclass(frozen=True, slots=True)
class Pages:
    """Where the pages of a file that is to be replaced lie: in its bytes from `start` to `end`."""

    path: Path
    start: int
    end: int

    @property
    def room_before(self) -> bool:
        """Whether pages like these fit before them."""
        return self.start - len(_MAGIC) >= _ROOM * (self.end - self.start)


def pages_of(path: Path) -> Pages | None:
    """The pages of a Parquet file; None where there are none, or no such file."""
    try:
        told = pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        return None
    spans = []
    for group in range(told.num_row_groups):
        if not told.row_group(group).num_rows:
            continue
        for column in range(told.num_columns):
            chunk = told.row_group(group).column(column)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            first = min(first, chunk.data_page_offset)
            spans.append((first, first + chunk.total_compressed_size))
    if not spans:
        return None
    return Pages(path, min(first for first, _ in spans), max(last for _, last in spans))


def begin_behind(write: Callable[[bytes], Any], old: Pages) -> None:
    """Put the old pages where they were into a file of which only the magic is written; new ones go behind them."""
    _blank(write, old.start - len(_MAGIC))
    _copy(write, old)


def put_before(file: IO[bytes], old: Pages) -> bool:
    """Put the old pages where they were into a whole new file, between its pages and its footer.

    Gives False, and leaves the file as it is, when its own pages already reach there.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(size - 8)
    footer_bytes = int.from_bytes(file.read(4), "little") + 8
    own_end = size - footer_bytes
    if own_end > old.start:
        return False
    file.seek(own_end)
    footer = file.read(footer_bytes)
    file.seek(own_end)
    _blank(file.write, old.start - own_end)
    _copy(file.write, old)
    file.write(footer)
    return True


def _blank(write: Callable[[bytes], Any], count: int) -> None:
    while count > 0:
        write(bytes(min(count, _BLOCK)))
        count -= _BLOCK


def _copy(write: Callable[[bytes], Any], old: Pages) -> None:
    left = old.end - old.start
    with old.path.open("rb") as source:
        source.seek(old.start)
        while left > 0:
            block = source.read(min(left, _BLOCK))
            if not block:
                raise OSError(f"{old.path} became shorter while it was read")
            write(block)
            left -= len(block)
