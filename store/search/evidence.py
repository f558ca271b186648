"""What speaks for each memory that may answer a query: its words, its meaning, and the instrument it is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..rows import Filter
from ..terms import query_terms
from ..view import Alike, Place, View
from .instruments import Named, named_instruments
from .lexical import Lexical, rank_terms, terms_of
from .meaning import Meaning

NEAR: Final = 100
"""Versions that are taken from the vectors."""

NEAR_ON_INSTRUMENT: Final = 50
"""Versions taken besides of each instrument that the query names."""

COMPARED: Final = 200
"""Of the versions that words found, so many of the best are compared in meaning too."""


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
    """All evidence for one query, and the instruments that it names."""

    evidence: tuple[Evidence, ...]
    instruments: tuple[Named, ...]


def gather(view: View, query: str, conditions: Filter, meaning: Meaning) -> Gathered:
    """Look for a query in both channels; what words found comes first, then what only meaning found."""
    instruments = named_instruments(view, query)
    lexical = rank_terms(view, terms_of(query_terms(query), instruments), conditions)
    found = {
        scored.place: Evidence(scored.place, rank, scored.score, scored.score / lexical.most)
        for rank, scored in enumerate(lexical.ranked, start=1)
    }
    if meaning.vector is not None:
        _add_meaning(found, view, conditions, meaning, instruments, lexical)
    return Gathered(tuple(found.values()), instruments)


def _add_meaning(
    found: dict[Place, Evidence],
    view: View,
    conditions: Filter,
    meaning: Meaning,
    instruments: tuple[Named, ...],
    lexical: Lexical,
) -> None:
    near = _near(view, conditions, meaning, instruments)
    for rank, alike in enumerate(near, start=1):
        known = found.get(alike.place, Evidence(alike.place))
        found[alike.place] = replace(known, vector_rank=rank, cosine=alike.cosine)
    rest = [scored.place for scored in lexical.ranked[:COMPARED] if found[scored.place].cosine is None]
    for place, cosine in view.cosines(meaning.vector, rest).items():
        found[place] = replace(found[place], cosine=cosine)


def _near(view: View, conditions: Filter, meaning: Meaning, instruments: tuple[Named, ...]) -> list[Alike]:
    """The versions nearest in meaning, those about a named instrument in greater number."""
    near = dict.fromkeys(view.alike(meaning.vector, conditions, limit=NEAR))
    if conditions.symbol is None:
        for instrument in instruments:
            if instrument.held:
                on = replace(conditions, symbol=instrument.spellings[0])
                near |= dict.fromkeys(view.alike(meaning.vector, on, limit=NEAR_ON_INSTRUMENT))
    return sorted(near, key=lambda alike: (-alike.cosine, alike.place.layer, -alike.place.sequence_from))
