"""Full-text ranking: BM25 over the versions that stood at the cut, and nothing after it.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with a term counted
once per text, document frequencies taken among the standing versions that meet the filters, and the average
length from the totals at the cut, over all layers of the view. So a score never depends on an entry after the cut.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..rows import Filter
from ..view import Held, Place, View
from .instruments import Named

K1 = 1.2
B = 0.4
POSTINGS_BUDGET = 12_000
LITERAL_SCAN = 20_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A version and its score; higher is better."""

    place: Place
    score: float


@dataclass(frozen=True, slots=True)
class Lexical:
    """What a query's words find: versions best first, newer first among equals; `most` is what a text that holds
    every word at the least length would score.
    """

    ranked: tuple[Scored, ...] = ()
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query, and the columns' spellings of the instrument that it names; without text, only these."""

    text: str
    symbols: tuple[str, ...] = ()


def terms_of(words: tuple[str, ...], instruments: tuple[Named, ...]) -> tuple[Term, ...]:
    """The terms to look for: a word that names an instrument stands for the memories about it too."""
    named = {instrument.word.split()[0]: instrument for instrument in instruments if instrument.held}
    terms = []
    for word in words:
        bare = re.sub(r"['’]s$", "", word.strip(".,;:!?'\"()"))
        instrument = named.get(bare)
        if instrument is None:
            terms.append(Term(word))
        else:
            terms.append(Term(word if instrument.plain else "", instrument.spellings))
    return tuple(terms)


def rank_terms(view: View, terms: tuple[Term, ...], conditions: Filter) -> Lexical:
    """Versions that hold any of the terms.

    The rarest terms come first; once the postings budget is used up, the commonest are left out.
    """
    counted = [
        (view.count_matches(term.text, conditions, most=POSTINGS_BUDGET, symbols=term.symbols), at, term)
        for at, term in enumerate(terms)
    ]
    memories, terms_total = view.totals()
    average = max(1.0, terms_total / max(1, memories))
    scores: dict[Place, float] = {}
    used, most = 0, 0.0
    for count, _, term in sorted(counted, key=lambda each: each[:2]):
        most += (K1 + 1) * _idf(memories, count)
        if not count or (used and used + count > POSTINGS_BUDGET):
            continue
        used += count
        found = view.match(term.text, conditions, limit=POSTINGS_BUDGET, symbols=term.symbols)
        idf = _idf(memories, len(found))
        for posting in found:
            place = posting.place
            scores[place] = scores.get(place, 0.0) + idf * _weight(posting, average)
    ranked = sorted(
        (-round(score, 9), place.layer, -place.sequence_from, place) for place, score in scores.items()
    )
    return Lexical(tuple(Scored(place, scores[place]) for *_, place in ranked), most or 1.0)


def rank_literal(view: View, literal: str, conditions: Filter) -> list[Scored]:
    """For a query without a letter or digit: versions whose text holds it as typed, newest first.

    Only the 20,000 newest versions are looked at.
    """
    return [Scored(place, 1.0) for place in view.containing(literal, conditions, scan=LITERAL_SCAN)]


def _idf(memories: int, holding: int) -> float:
    return math.log(1 + (max(memories, holding) - holding + 0.5) / (holding + 0.5))


def _weight(posting: Held, average: float) -> float:
    return (K1 + 1) / (1 + K1 * (1 - B + B * posting.terms / average))
