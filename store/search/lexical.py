"""Full-text ranking: BM25 over the versions that stood at the cut, and nothing after it.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with a term counted
once per text, document frequencies taken among the standing versions that meet the filters, and the average
length from the totals at the cut. So a score never depends on an entry after the cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..engines.base import Snapshot
from ..ids import MEMORY_ID
from ..rows import Filter, Posting

K1 = 1.2
B = 0.4
POSTINGS_BUDGET = 12_000
LITERAL_SCAN = 20_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A version and its score; higher is better."""

    sequence_from: int
    score: float


def rank_terms(
    snapshot: Snapshot, terms: tuple[str, ...], conditions: Filter, cut: int, at: int
) -> list[Scored]:
    """Versions that hold any of the terms, best first, newer first among equals.

    The rarest terms come first; once the postings budget is used up, the commonest are left out.
    """
    postings = [
        found for term in terms if (found := snapshot.match(term, conditions, cut, at, limit=POSTINGS_BUDGET))
    ]
    memories, terms_total = snapshot.totals(cut)
    average = max(1.0, terms_total / max(1, memories))
    scores: dict[int, float] = {}
    used = 0
    for found in sorted(postings, key=len):
        if used and used + len(found) > POSTINGS_BUDGET:
            break
        used += len(found)
        idf = math.log(1 + (max(memories, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
        for posting in found:
            scores[posting.sequence_from] = scores.get(posting.sequence_from, 0.0) + idf * _weight(
                posting, average
            )
    ranked = sorted((-round(score, 9), -sequence) for sequence, score in scores.items())
    return [Scored(-sequence, scores[-sequence]) for _, sequence in ranked]


def rank_literal(snapshot: Snapshot, literal: str, conditions: Filter, cut: int, at: int) -> list[Scored]:
    """For a query without a letter or digit: versions whose text holds it as typed, newest first.

    Only the 20,000 newest versions are looked at.
    """
    found = snapshot.containing(literal, conditions, cut, at, scan=LITERAL_SCAN)
    return [Scored(sequence, 1.0) for sequence in found]


def named_ids(terms: tuple[str, ...]) -> tuple[str, ...]:
    """The memory ids that a query names."""
    return tuple(found for term in terms for found in MEMORY_ID.findall(term))


def _weight(posting: Posting, average: float) -> float:
    return (K1 + 1) / (1 + K1 * (1 - B + B * posting.terms / average))
