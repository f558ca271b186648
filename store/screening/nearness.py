"""Chooses which standing memories a new one is worth comparing with: taking a text apart costs more than a look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from .contradictions import Claim
from .wording import COMPARED_CHARS

LEAST_SHARED: Final = 2
SHARE: Final = 0.2
"""Of the words of the shorter one, so many at least are shared."""

_WORD = re.compile(r"[a-z]{3,}")
_STEM = 5
_COMMON = frozenset(
    "the and for with that this from will was were are has have had its but not our than then into over".split()
)
_STANCES = frozenset("long short buy sell bulli beari".split())


def nearest(new: Claim, standing: Sequence[Claim], most: int) -> list[int]:
    """The places of those that share most words with a new claim, or take a stance as it does, the nearest first."""
    mine = _words(new.text[:COMPARED_CHARS])
    scored = []
    for place, claim in enumerate(standing):
        others = _words(claim.text[:COMPARED_CHARS])
        shared = len(mine & others)
        enough = max(LEAST_SHARED, SHARE * min(len(mine), len(others)))
        if shared >= enough or _takes_sides(new, mine, claim, others):
            scored.append((-shared, place))
    return [place for _, place in sorted(scored)[:most]]


def _takes_sides(new: Claim, mine: frozenset[str], old: Claim, others: frozenset[str]) -> bool:
    """Whether both are theses with terms, or both say which side they are on."""
    if new.direction or new.target or new.horizon:
        return bool(old.direction or old.target or old.horizon or not _STANCES.isdisjoint(others))
    return not _STANCES.isdisjoint(mine) and bool(old.direction or not _STANCES.isdisjoint(others))


@lru_cache(maxsize=4_096)
def _words(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.lower()) if word not in _COMMON)
