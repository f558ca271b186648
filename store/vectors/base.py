"""What a search asks of vectors; nothing here needs numpy, which takes a tenth of a second to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ..rows import Filter


@dataclass(frozen=True, slots=True)
class Near:
    """The entry that made a version, and the cosine of its nearest piece to the query, to six digits."""

    sequence: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which versions count: those that stood at the cut and at an instant, and meet the conditions."""

    conditions: Filter
    cut: int
    at: int
    watermark: int
    """Versions of later entries are not looked at."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch did: versions and pieces embedded, and how far the vectors reach."""

    versions: int
    pieces: int
    watermark: int
    more: bool
    """Whether texts may be left to embed."""

    busy: bool = False
    """Another process holds the lock."""


class Vectors(Protocol):
    """The vectors of one ledger, as far as searches ask for them; `query` is a row of float32."""

    def nearest(self, query: Any, wanted: Wanted, limit: int) -> list[Near]:
        """The versions nearest to a query, nearest first, newer first among equals; at most `limit`."""

    def similarities(self, query: Any, wanted: Wanted, sequences: list[int]) -> dict[int, float]:
        """The cosine of each named version, where it has vectors."""
