"""What speaks for each memory that may answer a query: its words, and its meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..rows import Filter
from ..terms import query_terms
from ..view import Alike, Place, View
from .instruments import Named, named_instruments
from .lexical import Key, also_held, place_of, rank_terms, terms_of
from .meaning import Meaning

NEAR: Final = 100
"""Versions that are taken from the vectors."""

NEAR_ON_INSTRUMENT: Final = 50
"""Versions taken besides of each instrument that the query names."""

COMPARED: Final = 200
"""Of the versions that words found, so many of the best are compared in meaning too."""

PROBED: Final = 24
"""Of the best of each channel, so many are asked for the words whose postings were not read."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one version: its rank in each channel (from 1), and how well it fits.

    `coverage` is its score by words beside the most that any text could have, `share` the share of the query's
    telling words that it holds, whatever its length (0 to 1); `cosine` is None where the text was not compared.
    """

    place: Place
    lexical_rank: int | None = None
    lexical_score: float = 0.0
    coverage: float = 0.0
    vector_rank: int | None = None
    cosine: float | None = None
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence for one query, and the instruments that it names.

    `rest` are the versions that words found beyond those compared, best first, each with its rank, and `most` the
    most that a text could score.
    """

    evidence: tuple[Evidence, ...]
    rest: tuple[tuple[int, Key], ...]
    most: float
    instruments: tuple[Named, ...]


def gather(view: View, query: str, conditions: Filter, meaning: Meaning) -> Gathered:
    """Look for a query in both channels."""
    instruments = named_instruments(view, query)
    lexical = rank_terms(view, terms_of(query_terms(query), instruments), conditions)
    compared = [place_of(key) for key in lexical.keys[:COMPARED]]
    near: list[Alike] = []
    cosines: dict[Place, float] = {}
    if meaning.vector is not None:
        near = _near(view, conditions, meaning, instruments)
        cosines = {alike.place: alike.cosine for alike in near}
        cosines |= view.cosines(meaning.vector, [place for place in compared if place not in cosines])
    probed = dict.fromkeys([*compared[:PROBED], *(alike.place for alike in near[:PROBED])])
    also = also_held(view, lexical, probed)
    vector_ranks = {alike.place: rank for rank, alike in enumerate(near, start=1)}
    ranked = list(enumerate(lexical.keys, start=1))
    kept = ranked[:COMPARED] + [each for each in ranked[COMPARED:] if place_of(each[1]) in vector_ranks]
    by_words = {place_of(key): (rank, -key[0]) for rank, key in kept}
    evidence = []
    for place in by_words | vector_ranks:
        rank, score = by_words.get(place, (None, 0.0))
        more = also.get(place, 0.0)
        evidence.append(
            Evidence(
                place,
                rank,
                score + more,
                (score + more) / lexical.most,
                vector_ranks.get(place),
                cosines.get(place),
                (lexical.held.get(place, 0.0) + more) / lexical.whole,
            )
        )
    rest = tuple(each for each in ranked[COMPARED:] if place_of(each[1]) not in vector_ranks)
    return Gathered(tuple(evidence), rest, lexical.most, instruments)


def _near(view: View, conditions: Filter, meaning: Meaning, instruments: tuple[Named, ...]) -> list[Alike]:
    """The versions nearest in meaning, those about a named instrument in greater number."""
    near = dict.fromkeys(view.alike(meaning.vector, conditions, limit=NEAR))
    if conditions.symbol is None:
        for instrument in instruments:
            if instrument.held:
                on = replace(conditions, symbol=instrument.spellings[0])
                near |= dict.fromkeys(view.alike(meaning.vector, on, limit=NEAR_ON_INSTRUMENT))
    return sorted(near, key=lambda alike: (-alike.cosine, alike.place.layer, -alike.place.sequence_from))
