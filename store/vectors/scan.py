"""The rows nearest to a vector, among those that meet the conditions.

A few rows are compared whole. Among many, the signs of the vectors pick out those that may be near (their Hamming
distance falls as the cosine rises: Charikar, "Similarity estimation techniques from rounding algorithms", 2002), and
only these are compared whole. Products are of whole numbers held in float64, which are exact in any order of
summing, so a similarity is the same on every machine that holds the same codes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np

from ..rows import Filter
from .base import Near, Wanted
from .file import VectorFile, codes_of, signs
from .layout import KIND_NUMBERS, STATUS_NUMBERS, digest, tag_bits

EXACT_ROWS: Final = 4_096
"""Up to so many rows are compared whole."""

RESCORED: Final = 400
"""So many of the rows whose signs agree best are compared whole, and more only where more are asked for."""

_SLAB: Final = 65_536
_QUERY_SCALE: Final = 32_767.0
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Scan:
    """Searches in one file of vectors; see `Vectors`."""

    file: VectorFile
    on_other_size: Callable[[int], None] | None = None
    """Told the numbers that a query has, where they are not as many as the file's vectors have."""

    def nearest(self, query: Any, wanted: Wanted, limit: int) -> list[Near]:
        """The versions nearest to a query, nearest first, newer first among equals; at most `limit`."""
        rows = _reach(self.file, wanted)
        if not rows or not self._comparable(query):
            return []
        meets = _meeting(self.file, wanted, rows)
        count = int(np.count_nonzero(meets))
        if count <= EXACT_ROWS:
            chosen = np.flatnonzero(meets)
        else:
            chosen = _likely(self.file, query, meets, rows, max(RESCORED, limit))
        return _versions(self.file, query, chosen, limit)

    def similarities(self, query: Any, wanted: Wanted, sequences: list[int]) -> dict[int, float]:
        """The cosine of each named version, where it has vectors."""
        held = self.file.column("sequence", _reach(self.file, wanted))
        asked = np.array(sorted(sequences), dtype=np.int64)
        first, last = np.searchsorted(held, asked, "left"), np.searchsorted(held, asked, "right")
        counts = last - first
        if not counts.sum() or not self._comparable(query):
            return {}
        rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return {near.sequence: near.cosine for near in _versions(self.file, query, rows, len(asked))}

    def _comparable(self, query: Any) -> bool:
        """Whether the query's vector is as long as the file's; another model may have taken the name."""
        if len(query) == self.file.head.dimensions:
            return True
        if self.on_other_size is not None:
            self.on_other_size(len(query))
        return False


def _reach(file: VectorFile, wanted: Wanted) -> int:
    """How many rows lie within the cut and the watermark."""
    held = file.column("sequence", file.mark.rows)
    return int(np.searchsorted(held, min(wanted.cut, wanted.watermark), "right"))


def _meeting(file: VectorFile, wanted: Wanted, rows: int) -> Any:
    """For each row whether it may be shown; tags are compared by a bit each, so some more rows may pass."""
    conditions = wanted.conditions

    def column(name: str) -> Any:
        return file.column(name, rows)

    tests = [column("ended") > wanted.cut, column("pending") == 0]
    if not conditions.expired:
        tests.append(column("expires") > wanted.at)
    if conditions.kind is not None:
        tests.append(column("kind") == KIND_NUMBERS.get(conditions.kind, 255))
    if conditions.status is not None:
        tests.append(column("status") == STATUS_NUMBERS.get(conditions.status, 255))
    if conditions.agent is not None:
        tests.append(column("agent") == _number(digest(conditions.agent)))
    if conditions.since is not None:
        tests.append(column("effective") >= conditions.since)
    if conditions.until is not None:
        tests.append(column("effective") <= conditions.until)
    if conditions.tags:
        bits = _number(tag_bits(conditions.tags))
        tests.append((column("tags") & bits) == bits)
    if conditions.symbol is not None:
        tests.append(_on_lines(file, conditions, rows))
    return reduce(lambda found, test: found & test, tests)


def _on_lines(file: VectorFile, conditions: Filter, rows: int) -> Any:
    found = np.zeros(rows, dtype=bool)
    symbols, effective = file.column("symbol", rows), file.column("effective", rows)
    for line in conditions.lines:
        on = symbols == _number(digest(line.symbol))
        if line.from_us is not None:
            on &= effective >= line.from_us
        if line.until_us is not None:
            on &= effective < line.until_us
        found |= on
    return found


def _likely(file: VectorFile, query: Any, meets: Any, rows: int, most: int) -> Any:
    """The rows that meet the conditions and whose signs agree best with the query's, at most `most`."""
    wanted = signs(codes_of(query[None, :])[0])[:, 0]
    far = 64 * len(wanted) + 1
    pool, distances = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint16)
    bound = far
    differing = np.empty(_SLAB, dtype=np.uint64)
    counted = np.empty(_SLAB, dtype=np.uint8)
    for start in range(0, rows, _SLAB):
        size = min(_SLAB, rows - start)
        total = np.zeros(size, dtype=np.uint16)
        for word, bits in enumerate(wanted):
            np.bitwise_xor(file.sketch[word, start : start + size], bits, out=differing[:size])
            np.bitwise_count(differing[:size], out=counted[:size])
            total += counted[:size]
        near = np.flatnonzero((total <= bound) & meets[start : start + size])
        pool = np.concatenate([pool, near + start])
        distances = np.concatenate([distances, total[near]])
        if len(pool) > most:
            # Among rows equally near the newest stay, so what is kept does not depend on the slabs.
            bound = int(np.partition(distances, most - 1)[most - 1])
            under = np.flatnonzero(distances < bound)
            equal = np.flatnonzero(distances == bound)[len(under) - most :]
            kept = np.sort(np.concatenate([under, equal]))
            pool, distances = pool[kept], distances[kept]
    return pool


def _versions(file: VectorFile, query: Any, rows: Any, most: int) -> list[Near]:
    """The best versions, each once, with the cosine of its nearest piece; at most `most`."""
    if not len(rows):
        return []
    largest = float(np.abs(query).max()) or 1.0
    whole = np.rint(query.astype(np.float64) * (_QUERY_SCALE / largest))
    products = file.codes[rows].astype(np.float64) @ whole
    lengths = file.column("length", file.mark.rows)[rows] * float(np.sqrt((whole**2).sum()))
    cosines = np.round(products / lengths, _DIGITS)
    sequences = file.column("sequence", file.mark.rows)[rows]
    order = np.lexsort((-sequences, -cosines))
    best: dict[int, float] = {}
    for sequence, cosine in zip(sequences[order].tolist(), cosines[order].tolist(), strict=True):
        if sequence not in best:
            if len(best) == most:
                break
            best[sequence] = cosine
    return [Near(sequence, cosine) for sequence, cosine in best.items()]


def _number(digest_value: int) -> Any:
    return np.uint64(digest_value)
