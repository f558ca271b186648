"""Full-text ranking: BM25 over the versions that stood at the cut, and nothing after it.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with a term counted
once per text, document frequencies taken among the standing versions that meet the filters, and the average
length from the totals at the cut, over all layers of the view. So a score never depends on an entry after the cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ids import MEMORY_ID
from ..rows import Filter
from ..view import Held, Place, View

K1 = 1.2
B = 0.4
POSTINGS_BUDGET = 12_000
LITERAL_SCAN = 20_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A version and its score; higher is better."""

    place: Place
    score: float


def rank_terms(view: View, terms: tuple[str, ...], conditions: Filter) -> list[Scored]:
    """Versions that hold any of the terms, best first, newer first among equals.

    The rarest terms come first; once the postings budget is used up, the commonest are left out.
    """
    counted = [(view.count_matches(term, conditions, most=POSTINGS_BUDGET), term) for term in terms]
    memories, terms_total = view.totals()
    average = max(1.0, terms_total / max(1, memories))
    scores: dict[Place, float] = {}
    used = 0
    for count, term in sorted((count, term) for count, term in counted if count):
        if used and used + count > POSTINGS_BUDGET:
            break
        used += count
        found = view.match(term, conditions, limit=POSTINGS_BUDGET)
        idf = math.log(1 + (max(memories, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
        for posting in found:
            place = posting.place
            scores[place] = scores.get(place, 0.0) + idf * _weight(posting, average)
    ranked = sorted(
        (-round(score, 9), place.layer, -place.sequence_from, place) for place, score in scores.items()
    )
    return [Scored(place, scores[place]) for *_, place in ranked]


def rank_literal(view: View, literal: str, conditions: Filter) -> list[Scored]:
    """For a query without a letter or digit: versions whose text holds it as typed, newest first.

    Only the 20,000 newest versions are looked at.
    """
    return [Scored(place, 1.0) for place in view.containing(literal, conditions, scan=LITERAL_SCAN)]


def named_ids(terms: tuple[str, ...]) -> tuple[str, ...]:
    """The memory ids that a query names."""
    return tuple(found for term in terms for found in MEMORY_ID.findall(term))


def _weight(posting: Held, average: float) -> float:
    return (K1 + 1) / (1 + K1 * (1 - B + B * posting.terms / average))
