"""What speaks for each memory that may answer a query: its words, and its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from ..rows import Filter
from ..terms import query_terms
from ..view import Alike, Place, View
from .instruments import Named, named_instruments
from .lexical import Key, Lexical, also_held, place_of, rank_terms, terms_of
from .meaning import Meaning

NEAR: Final = 100
"""Versions that are taken from the vectors."""

NEAR_ON_INSTRUMENT: Final = 50
"""Versions taken besides of each instrument that the query names."""

COMPARED: Final = 200
"""Of the versions that words found, so many of the best are compared in meaning too."""

PROBED: Final = 40
"""Of the best of each channel, so many are asked for the words whose postings were not read."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one version: its rank in each channel (from 1), and how well it fits.

    `coverage` is the share of the query's telling words that the text holds, about 0 to 1; `cosine` is None where the
    text was not compared.
    """

    place: Place
    lexical_rank: int | None = None
    lexical_score: float = 0.0
    coverage: float = 0.0
    vector_rank: int | None = None
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence for one query, and the instruments that it names.

    `rest` are the versions that words found beyond those compared, best first, and `most` what a text with every word
    would score.
    """

    evidence: tuple[Evidence, ...]
    rest: tuple[Key, ...]
    most: float
    instruments: tuple[Named, ...]


def gather(view: View, query: str, conditions: Filter, meaning: Meaning) -> Gathered:
    """Look for a query in both channels."""
    instruments = named_instruments(view, query)
    lexical = rank_terms(view, terms_of(query_terms(query), instruments), conditions)
    found = {
        place_of(key): Evidence(place_of(key), rank, -key[0], -key[0] / lexical.most)
        for rank, key in enumerate(lexical.keys[:COMPARED], start=1)
    }
    near: list[Alike] = []
    if meaning.vector is not None:
        near = _near(view, conditions, meaning, instruments)
        _add_meaning(found, view, meaning, near)
    _add_words(found, view, lexical, [*list(found)[:PROBED], *(alike.place for alike in near[:PROBED])])
    rest = tuple(key for key in lexical.keys[COMPARED:] if place_of(key) not in found)
    return Gathered(tuple(found.values()), rest, lexical.most, instruments)


def _add_meaning(found: dict[Place, Evidence], view: View, meaning: Meaning, near: list[Alike]) -> None:
    for rank, alike in enumerate(near, start=1):
        known = found.get(alike.place) or Evidence(alike.place)
        found[alike.place] = replace(known, vector_rank=rank, cosine=alike.cosine)
    rest = [place for place, one in found.items() if one.cosine is None]
    for place, cosine in view.cosines(meaning.vector, rest).items():
        found[place] = replace(found[place], cosine=cosine)


def _add_words(found: dict[Place, Evidence], view: View, lexical: Lexical, places: Iterable[Place]) -> None:
    for place, score in also_held(view, lexical, dict.fromkeys(places)).items():
        known = found[place]
        found[place] = replace(
            known,
            lexical_score=known.lexical_score + score,
            coverage=known.coverage + score / lexical.most,
        )


def _near(view: View, conditions: Filter, meaning: Meaning, instruments: tuple[Named, ...]) -> list[Alike]:
    """The versions nearest in meaning, those about a named instrument in greater number."""
    near = dict.fromkeys(view.alike(meaning.vector, conditions, limit=NEAR))
    if conditions.symbol is None:
        for instrument in instruments:
            if instrument.held:
                on = replace(conditions, symbol=instrument.spellings[0])
                near |= dict.fromkeys(view.alike(meaning.vector, on, limit=NEAR_ON_INSTRUMENT))
    return sorted(near, key=lambda alike: (-alike.cosine, alike.place.layer, -alike.place.sequence_from))
