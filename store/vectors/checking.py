"""Proof of the vectors beside a ledger: each of a text that the ledger holds, none missing, none bent.

It shares the page that says how a file is laid out, and nothing else with what writes and searches it: columns are
read by their places, signs and lengths computed anew, texts told apart by the hashes of the ledger's own entries.
Whether a vector is the one that the model gives its text is not asked: that would be to embed all of them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..engines.sqlite.connection import connect, reading_access
from ..lifecycle import HIDDEN
from .layout import (
    COLUMNS,
    FOREVER,
    KIND_NUMBERS,
    PAGE,
    STATUS_NUMBERS,
    Head,
    Mark,
    digest,
    read_head,
    read_mark,
    tag_bits,
)

FOLDER: Final = "vectors"
SUFFIX: Final = ".vectors"
MOST_FINDINGS: Final = 20
_AT_ONCE: Final = 4_096
_FACTS: Final = ("effective", "expires", "symbol", "agent", "tags", "kind", "status", "pending")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: in which file, and what."""

    file: str
    what: str


def check_vectors(ledger: Path) -> list[Finding]:
    """What is wrong with the vectors beside the ledger file, at most 20 findings a file.

    A file of another ledger, and one that is no file of vectors, is never used and therefore not wrong. Raises
    apsw.Error for a ledger that cannot be read.
    """
    found: list[Finding] = []
    for path in sorted((ledger.parent / FOLDER).glob(f"*{SUFFIX}")):
        if path.is_file() and not path.is_symlink():
            found += [Finding(path.name, what) for what in _wrong_with(path, ledger)]
    return found


def _wrong_with(path: Path, ledger: Path) -> list[str]:
    with closing(connect(ledger, reading_access(ledger))) as connection:
        connection.execute("BEGIN")
        # The file after the ledger's moment: whatever it says of entries up to there stands by then.
        with path.open("rb") as file:
            page = file.read(PAGE)
        head, mark = read_head(page), read_mark(page)
        if head is None or mark is None or head.ledger != _store_digest(connection):
            return []
        if path.stat().st_size != head.offsets()["end"] or mark.rows > head.capacity:
            return ["is cut"]
        last = connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        reach = min(mark.watermark, int(last[0] or 0) if last else 0)
        wrong: list[str] = []
        for what in _rows(path, head, mark, connection, reach):
            wrong.append(what)
            if len(wrong) == MOST_FINDINGS:
                break
        return wrong


def _store_digest(connection: Any) -> bytes:
    content = connection.execute("SELECT content FROM memory_events WHERE sequence = 1").fetchone()
    store_id = json.loads(content[0]).get("store_id", "") if content else ""
    return hashlib.sha256(str(store_id).encode()).digest()


def _rows(path: Path, head: Head, mark: Mark, connection: Any, reach: int) -> Iterator[str]:
    """Hold the file's rows against the ledger's texts, both in the order of their entries."""
    texts = connection.execute(
        "SELECT v.sequence_from, v.sequence_to, e.content_sha256, v.effective_at, v.expires_at, v.symbol, v.agent,"
        " v.tags, v.kind, v.status, v.review_state, v.text = '' FROM memory_versions v"
        " JOIN memory_events e ON e.sequence = v.sequence_from"
        " WHERE v.sequence_from <= ? AND v.kind <> 'order_action' ORDER BY v.sequence_from",
        (reach,),
    )
    expected = next(texts, None)
    met = 0
    for sequence, ended, source, facts, bent in _read(path, head, mark.rows):
        if sequence > reach:
            break
        while expected is not None and expected[0] < sequence:
            if expected[0] != met:
                yield f"sequence {expected[0]} has no vector"
            expected = next(texts, None)
        if expected is None or expected[0] != sequence:
            yield f"holds a vector of sequence {sequence}, which made no text that is searched"
            continue
        met = sequence
        if source != int.from_bytes(expected[2][:8], "little"):
            yield f"the vector of sequence {sequence} is of another text"
        until = FOREVER if expected[1] is None else expected[1]
        behind = ended == FOREVER and until > reach
        ahead = until == FOREVER and reach < ended <= mark.watermark  # by an entry after the ledger's moment
        if ended != until and not behind and not ahead:
            yield f"sequence {sequence} ended at {expected[1]}, which its vector does not say"
        if facts != _facts(expected[3:]):
            yield f"the vector of sequence {sequence} is kept under facts that its text does not have"
        if bent:
            yield f"the vector of sequence {sequence} does not agree with its signs or its length"
    while expected is not None:
        if expected[0] != met:
            yield f"sequence {expected[0]} has no vector"
        expected = next(texts, None)


def _facts(columns: tuple[Any, ...]) -> tuple[int, ...]:
    """What a version says of itself, as the file's columns hold it."""
    effective, expires, symbol, agent, tags, kind, status, review, gone = columns
    return (
        effective,
        FOREVER if expires is None else expires,
        0 if symbol is None else digest(symbol),
        digest(agent),
        tag_bits(tuple(json.loads(tags))),
        KIND_NUMBERS[kind],
        STATUS_NUMBERS[status],
        int(review in HIDDEN or gone),
    )


def _read(path: Path, head: Head, rows: int) -> Iterator[tuple[int, int, int, tuple[int, ...], bool]]:
    """Each row's entry, end, source and facts, and whether its vector contradicts itself; thousands at once."""
    places, kinds = head.offsets(), dict(COLUMNS)

    def column(name: str, kind: Any, start: int, count: int, width: int = 1) -> Any:
        size = np.dtype(kind).itemsize * width
        return np.fromfile(path, dtype=kind, count=count * width, offset=places[name] + start * size)

    for start in range(0, rows, _AT_ONCE):
        count = min(_AT_ONCE, rows - start)
        names = ("sequence", "ended", "source", "length")
        sequence, ended, source, length = (column(name, kinds[name], start, count) for name in names)
        codes = column("codes", np.int8, start, count, head.dimensions).reshape(count, head.dimensions)
        bits = np.zeros((count, head.words * 64), dtype=np.uint8)
        bits[:, : head.dimensions] = codes > 0
        weights = np.uint64(1) << np.arange(64, dtype=np.uint64)
        bent = np.sqrt((codes.astype(np.float64) ** 2).sum(axis=1)).astype("<f4") != length
        for word in range(head.words):
            signs = (bits[:, word * 64 : word * 64 + 64] * weights).sum(axis=1, dtype=np.uint64)
            at = places["sketch"] + 8 * word * head.capacity + 8 * start
            bent |= signs != np.fromfile(path, dtype="<u8", count=count, offset=at)
        facts = zip(*(column(name, kinds[name], start, count).tolist() for name in _FACTS), strict=True)
        yield from zip(sequence.tolist(), ended.tolist(), source.tolist(), facts, bent.tolist(), strict=True)
