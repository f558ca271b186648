"""Two channels into one order, and the floor below which nothing is relevant.

A text's score is its cosine to the query plus a weight times the share of the query's telling words that it holds
(its BM25 beside that of a text with every word). This kept more of the right order than reciprocal rank fusion on
every set it was tried on (docs/benchmarks.md), since it keeps how much better the first is than the second.

No single limit on a score tells a query that nothing answers from one that something does: a far paraphrase scores no
better than a chance likeness. So a whole query is judged first, by its best text. One in a language other than
English is judged by its words, because the bundled model finds texts of one language alike whatever they say. And a
query that names instruments of which the memory holds nothing is answered with nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from types import MappingProxyType
from typing import Final

from ..embedding.bundled import MODEL
from ..view import Place
from .evidence import Evidence, Gathered
from .lexical import Key, place_of


@dataclass(frozen=True, slots=True)
class Setting:
    """The weights and floors that fit one embedding model; a floor of None lets everything pass."""

    words: float = 2.0
    """What the share of the query's words counts beside the cosine."""

    query_floor: float | None = None
    """The least best cosine of a query, with `query_words` times the best text's share of words added."""

    query_words: float = 0.09
    strong_words: float = 0.77
    """A share of words that lets a query pass whatever the model makes of it."""

    narrowed_words: float = 0.33
    """A share of words that lets a query pass which is about an instrument of the memory, or whose best text by words
    has no vector yet.
    """

    foreign_words: float = 0.23
    foreign_cosine: float = 0.6
    """A query in another language passes with this share of words or this cosine."""

    hit_floor: float = 0.0
    """The least score of a hit."""


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({MODEL: Setting(query_floor=0.37, hit_floor=0.28)})
"""Found on the halves of the sets that were not held out; see docs/benchmarks.md. Other models have no floor."""

_DIGITS: Final = 6
_FOREIGN_LETTERS: Final = re.compile(r"[^\W\d_\u0000-\u024f]")
_FOREIGN_WORDS: Final = frozenset(
    """
    der und wir haben ist nicht ein eine einen einem warum wie wer mit auf für von zu zum zur dem den sich wird bei
    le la les une des du et est pas pour que qui dans sur au aux nous avons pourquoi quelle quel
    el los las una por para con como del se qué cuál da dos em os um uma não ao il lo gli di che per perché sono
    """.split()
)


@dataclass(frozen=True, slots=True)
class Fused:
    """One candidate with its score."""

    evidence: Evidence
    score: float

    @property
    def place(self) -> Place:
        """Where the version is."""
        return self.evidence.place


def setting_of(model: str | None) -> Setting:
    """The setting for a model."""
    return SETTINGS.get(model or "", Setting())


@dataclass(frozen=True, slots=True)
class Fusion:
    """All candidates of a query: those with evidence, best first, and the rest that words alone found."""

    compared: tuple[Fused, ...]
    gathered: Gathered
    setting: Setting

    def first(self, most: int, *, floor: float = 0.0) -> list[Fused]:
        """The best candidates with at least a score, at most `most`; among equals the own layer's, then the newer."""
        above = (each for each in self.compared if each.score >= floor)
        return list(islice(merge(above, self._rest(floor), key=_order), most))

    def count(self, *, floor: float = 0.0) -> int:
        """How many candidates have at least a score."""
        compared = sum(each.score >= floor for each in self.compared)
        return compared + bisect_right(self.gathered.rest, -floor, key=lambda each: -self._score(each[1]))

    def _rest(self, floor: float) -> Iterator[Fused]:
        for rank, key in self.gathered.rest:
            score = self._score(key)
            if score < floor:
                return
            evidence = Evidence(place_of(key), rank, -key[0], -key[0] / self.gathered.most)
            yield Fused(evidence, score)

    def _score(self, key: Key) -> float:
        return round(self.setting.words * -key[0] / self.gathered.most, _DIGITS)


def fuse(gathered: Gathered, setting: Setting) -> Fusion:
    """Give every candidate its score."""
    scored = [
        Fused(each, round((each.cosine or 0.0) + setting.words * each.coverage, _DIGITS))
        for each in gathered.evidence
    ]
    return Fusion(tuple(sorted(scored, key=_order)), gathered, setting)


def is_answered(query: str, fusion: Fusion, *, narrowed: bool) -> bool:
    """Whether the best candidates answer the query.

    `narrowed` says that all of them are about the instrument that was asked for.
    """
    fused, setting = fusion.compared, fusion.setting
    if not fused or setting.query_floor is None:
        return bool(fused)
    cosine = max(each.evidence.cosine or 0.0 for each in fused)
    words = max(each.evidence.share for each in fused)
    fresh = max((each.evidence.share for each in fused if each.evidence.cosine is None), default=0.0)
    if not is_english(query):
        return words >= setting.foreign_words or cosine >= setting.foreign_cosine
    about_one = narrowed or any(instrument.held for instrument in fusion.gathered.instruments)
    if (words if about_one else fresh) >= setting.narrowed_words or words >= setting.strong_words:
        return True
    return cosine + setting.query_words * fused[0].evidence.share >= setting.query_floor


def is_english(query: str) -> bool:
    """Whether a query may be English: no letters of another script, and no common word of another language."""
    if _FOREIGN_LETTERS.search(query):
        return False
    return not any(word in _FOREIGN_WORDS for word in re.findall(r"\w+", query.lower()))


def _order(fused: Fused) -> tuple[float, int, int]:
    return (-fused.score, fused.place.layer, -fused.place.sequence_from)
