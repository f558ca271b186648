"""How a file of vectors is laid out: a page that says what it is, then each column whole, one after the other.

    page 0                         what the file is, and two marks of how far it is filled: the newer whole one counts
    column by column, `capacity` rows each, every column beginning on a page:
        sequence    the entry that made the version; rows stand in this order, a long text having several
        ended       the entry that ended the version, or FOREVER
        effective, expires                       microseconds since the epoch, UTC; expires is FOREVER for never
        symbol, agent, tags                      64-bit digests of names; tags is one bit a tag
        kind, status, pending                    small numbers
        source                                   the head of the entry's content hash, to tell a foreign row
        length                                   the length of the row's codes
        codes       the vector in signed bytes
        sketch      the vector's signs, one bit each, word by word

Rows beyond the mark may hold anything. Everything is little-endian. The file is a cache: whatever does not fit this
page makes it anew.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from ..lifecycle import ALL_STATUSES, KINDS

PAGE: Final = 4_096
FOREVER: Final = 2**63 - 1
FIRST_CAPACITY: Final = 1_024

COLUMNS: Final = (
    ("sequence", "<i8"),
    ("ended", "<i8"),
    ("effective", "<i8"),
    ("expires", "<i8"),
    ("symbol", "<u8"),
    ("agent", "<u8"),
    ("tags", "<u8"),
    ("source", "<u8"),
    ("kind", "<u1"),
    ("status", "<u1"),
    ("pending", "<u1"),
    ("length", "<f4"),
)
_SIZES: Final = {"<i8": 8, "<u8": 8, "<u1": 1, "<f4": 4}

KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(sorted(KINDS))}
STATUS_NUMBERS: Final = {status: number for number, status in enumerate(sorted(ALL_STATUSES))}

_MAGIC: Final = b"DeskbookVectors\0"
_HEAD: Final = struct.Struct("<16s32s32sIQ")
_MARK: Final = struct.Struct("<QQQQ")
_MARKS_AT: Final = (1_024, 2_048)
_MOST: Final = 2**53
"""No ledger comes so far: a mark that says so is none."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a file of vectors is: whose, of which model, in what form, and for how many rows it has room."""

    ledger: bytes
    """Digest of the ledger's store id."""

    form: bytes
    """Digest of the model's name and of this layout."""

    dimensions: int
    capacity: int

    @classmethod
    def of(cls, store_id: str, model: str, dimensions: int, capacity: int) -> Head:
        """The head of a file for a ledger and a model."""
        vocabulary = [*COLUMNS, *sorted(KIND_NUMBERS.items()), *sorted(STATUS_NUMBERS.items())]
        form = hashlib.sha256(repr((2, model, vocabulary)).encode()).digest()
        return cls(hashlib.sha256(store_id.encode()).digest(), form, dimensions, capacity)

    @property
    def words(self) -> int:
        """Words of 64 signs that a sketch has."""
        return -(-self.dimensions // 64)

    def packed(self) -> bytes:
        """The first bytes of the file."""
        body = _HEAD.pack(_MAGIC, self.ledger, self.form, self.dimensions, self.capacity)
        return body + zlib.crc32(body).to_bytes(4, "little")

    def offsets(self) -> dict[str, int]:
        """Where each column begins; `end` is the length of the file."""
        sizes = [(name, _SIZES[kind]) for name, kind in COLUMNS]
        sizes += [("codes", self.dimensions), ("sketch", 8 * self.words)]
        found, at = {}, PAGE
        for name, size in sizes:
            found[name] = at
            at += -(-size * self.capacity // PAGE) * PAGE
        return found | {"end": at}


def read_head(page: bytes) -> Head | None:
    """What a first page says; None when it is no file of vectors."""
    body, check = page[: _HEAD.size], page[_HEAD.size : _HEAD.size + 4]
    if len(check) < 4 or zlib.crc32(body) != int.from_bytes(check, "little"):
        return None
    magic, ledger, form, dimensions, capacity = _HEAD.unpack(body)
    return Head(ledger, form, dimensions, capacity) if magic == _MAGIC else None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file is filled: its rows, and the last entry up to which every text has one."""

    turn: int = 0
    rows: int = 0
    watermark: int = 0
    chain: int = 0
    """The head of that entry's chain hash: a ledger that was put back and written on has another there."""

    def packed(self) -> bytes:
        """The mark's bytes."""
        body = _MARK.pack(self.turn, self.rows, self.watermark, self.chain)
        return body + zlib.crc32(body).to_bytes(4, "little")

    @property
    def at(self) -> int:
        """Where in the page it is written: each turn over the older of the two."""
        return _MARKS_AT[self.turn % 2]


def read_mark(page: bytes) -> Mark | None:
    """The newer whole mark of a first page; None when neither is whole."""
    found = []
    for at in _MARKS_AT:
        body, check = page[at : at + _MARK.size], page[at + _MARK.size : at + _MARK.size + 4]
        if len(check) == 4 and zlib.crc32(body) == int.from_bytes(check, "little"):
            found.append(Mark(*_MARK.unpack(body)))
    newest = max(found, key=lambda mark: mark.turn, default=None)
    return None if newest is None or max(newest.turn, newest.rows, newest.watermark) >= _MOST else newest


def digest(name: str) -> int:
    """A name's 64-bit digest."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def tag_bits(tags: tuple[str, ...]) -> int:
    """One bit for each tag; two tags may share one, so what it finds is looked at again."""
    bits = 0
    for tag in tags:
        bits |= 1 << (digest(tag) % 64)
    return bits
