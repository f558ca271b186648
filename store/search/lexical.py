"""Full-text ranking: BM25 over the versions that stood at the cut, and nothing after it.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with a term counted
once per text, document frequencies taken among the standing versions that meet the filters, and the average
length from the totals at the cut, over all layers of the view. So a score never depends on an entry after the cut.

Only so many postings are read: those of the rarest terms first. A term left out is looked up in the best texts alone,
whose order it may still change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..rows import Filter
from ..view import Place, View
from .instruments import Named

K1 = 1.2
B = 0.4
POSTINGS_BUDGET = 3_000
LITERAL_SCAN = 20_000

Key = tuple[float, int, int]
"""A version in sorting order: its score with the sign turned, its layer, and its sequence with the sign turned."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query, and the columns' spellings of the instrument that it names; without text, only these."""

    text: str
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lexical:
    """What a query's words find: versions best first, newer first among equals.

    `whole` is what all words of the query weigh together, `held` how much of it each version holds, whatever its
    length, by layer and sequence. `most` is the most that a text could score. `left_out` are the terms whose postings
    were not read, with the weight of each.
    """

    keys: tuple[Key, ...] = ()
    held: Mapping[tuple[int, int], float] = field(default_factory=dict)
    whole: float = 1.0
    left_out: tuple[tuple[Term, float], ...] = field(default=())

    @property
    def most(self) -> float:
        """The most that a text could score: one that holds every word and nothing else."""
        return (K1 + 1) * self.whole


def place_of(key: Key) -> Place:
    """Where a version is."""
    return Place(key[1], -key[2])


def bare_word(word: str) -> str:
    """A word of a query without the signs around it and without an ending in 's."""
    return re.sub(r"['’]s$", "", word.strip(".,;:!?'\"()"))


def terms_of(words: tuple[str, ...], instruments: tuple[Named, ...]) -> tuple[Term, ...]:
    """The terms to look for: a word that names an instrument stands for the memories about it too."""
    named = {instrument.word.split()[0]: instrument for instrument in instruments if instrument.held}
    terms = []
    for word in words:
        instrument = named.get(bare_word(word))
        if instrument is None:
            terms.append(Term(word))
        else:
            terms.append(Term(word if instrument.plain else "", instrument.spellings))
    return tuple(terms)


def rank_terms(view: View, terms: tuple[Term, ...], conditions: Filter) -> Lexical:
    """Versions that hold any of the terms."""
    counted = [
        (view.count_matches(term.text, conditions, most=POSTINGS_BUDGET, symbols=term.symbols), at, term)
        for at, term in enumerate(terms)
    ]
    memories, terms_total = view.totals()
    average = max(1.0, terms_total / max(1, memories))
    scores: dict[tuple[int, int], float] = {}
    held: dict[tuple[int, int], float] = {}
    left_out = []
    used, whole = 0, 0.0
    for count, _, term in sorted(counted, key=lambda each: each[:2]):
        whole += _idf(memories, count)
        if not count:
            continue
        if used and used + count > POSTINGS_BUDGET:
            left_out.append((term, _idf(memories, count)))
            continue
        used += count
        found = view.match(term.text, conditions, limit=POSTINGS_BUDGET, symbols=term.symbols)
        idf = _idf(memories, count if len(found) >= POSTINGS_BUDGET else len(found))
        for layer, sequence, length in found:
            weight = (K1 + 1) / (1 + K1 * (1 - B + B * length / average))
            place = (layer, sequence)
            scores[place] = scores.get(place, 0.0) + idf * weight
            held[place] = held.get(place, 0.0) + idf
    keys = sorted((-round(score, 9), layer, -sequence) for (layer, sequence), score in scores.items())
    return Lexical(tuple(keys), held, whole or 1.0, tuple(left_out))


def also_held(view: View, lexical: Lexical, places: Iterable[Place]) -> dict[Place, float]:
    """What the terms left out weigh in some versions, whose length is taken as the average."""
    asked = tuple(places)
    added: dict[Place, float] = {}
    for term, score in lexical.left_out:
        for place in view.holding(term.text, asked, symbols=term.symbols):
            added[place] = added.get(place, 0.0) + score
    return added


def rank_literal(view: View, literal: str, conditions: Filter) -> list[Place]:
    """For a query without a letter or digit: versions whose text holds it as typed, newest first.

    Only the 20,000 newest versions are looked at.
    """
    return view.containing(literal, conditions, scan=LITERAL_SCAN)


def _idf(memories: int, holding: int) -> float:
    return math.log(1 + (max(memories, holding) - holding + 0.5) / (holding + 0.5))
