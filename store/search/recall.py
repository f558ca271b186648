"""One search over one view: from a question to ranked versions and the record of what was considered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ..event_parts import Candidate, Selected
from ..events import Retrieved
from ..ids import MEMORY_ID
from ..lifecycle import HIDDEN
from ..limits import CANDIDATES_KEPT
from ..rows import Filter, Version
from ..terms import query_terms
from ..view import View
from .evidence import Evidence, gather
from .fusion import Fused, Fusion, fuse, is_answered, setting_of
from .lexical import rank_literal
from .meaning import Lack, Meaning
from .trust import Ranking, is_failure, outcomes_of, trust_of

Order = Literal["relevance", "losses_first"]

WEIGHED: Final = 64
"""Of the hits, so many of the best are weighed by their standing and age too; the others follow them."""

_NAMED_SCORE: Final = 100.0
"""More than any evidence gives."""

LOSSES_AMONG: Final = 500
"""Among so many of the best hits, or of the newest memories, failures are put first."""

STRANGER_FLOOR: Final = 0.8
"""The least score of a memory about no instrument, for a query about one of which memory holds nothing: that of the
median right hit."""

ABSENT_NAMED: Final = 5
REJECTED_KEPT: Final = 10
"""Candidates that are kept in the record of a search which nothing answered."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched: free text and conditions, from an offset on. An empty query lists the newest."""

    query: str
    conditions: Filter
    limit: int
    offset: int = 0
    order: Order = "relevance"
    meaning: Meaning = field(default_factory=Meaning)
    ranking: Ranking = field(default_factory=Ranking)


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory found, with its rank (from 1); a listing has no score.

    `score` is the evidence's score times `trust`.
    """

    version: Version
    rank: int
    score: float | None = None
    trust: float = 1.0
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found in a view: the page of hits, and the best candidates with their scores."""

    mode: Literal["recent", "literal", "terms", "hybrid"]
    cut: int
    inherited_cut: int | None
    total: int
    hits: tuple[Hit, ...]
    candidates: tuple[Candidate, ...]
    model: str | None = None
    watermarks: tuple[int, ...] = ()
    lack: Lack | None = None
    nothing_on: tuple[str, ...] = ()
    """Instruments that the query names and of which the memory holds nothing, as typed."""
    outcomes: tuple[int, int] = (0, 0)
    """How many of the best hits, on the page or not, tell of a success, and how many of a failure."""

    def record(self, question: Question, as_of: int | None, handed_over: int, rendered: str) -> Retrieved:
        """The event that records this search; the first `handed_over` hits were handed over."""
        return Retrieved(
            query=question.query,
            mode=self.mode,
            filters=question.conditions.as_content(),
            order=None if question.order == "relevance" else question.order,
            as_of=as_of,
            cut=self.cut,
            inherited_cut=self.inherited_cut,
            model=self.model,
            watermark=self.watermarks[0] if self.watermarks else None,
            inherited_watermark=self.watermarks[1] if len(self.watermarks) > 1 else None,
            total=self.total,
            candidates=self.candidates,
            selected=tuple(selected(hit.version) for hit in self.hits[:handed_over]),
            rendered=rendered,
        )


def recall(view: View, question: Question) -> Found:
    """Search what the view sees, with expiry judged at the view's instant."""
    query = question.query.strip()
    if not query:
        return _newest(view, question)
    if not query_terms(query):
        return _literal(view, question)
    gathered = gather(view, query, question.conditions, question.meaning)
    fusion = fuse(gathered, setting_of(question.meaning.model))
    return _found(view, question, *_answering(view, question, fusion))


def _answering(view: View, question: Question, fusion: Fusion) -> tuple[Fusion, float | None]:
    """The candidates that may answer and the least score of a hit; None where nothing does.

    Of an instrument that the query names its memories always do, and of one that memory holds nothing of no other's.
    """
    held = [symbol for each in fusion.gathered.instruments if each.held for symbol in each.spellings]
    absent = any(not each.held and each.sure for each in fusion.gathered.instruments)
    meant, narrowed = question.meaning.vector is not None, question.conditions.symbol is not None
    if absent and not held and not narrowed:
        return _about(view, fusion, (None,)), STRANGER_FLOOR if meant else 0.0
    if not meant:
        return fusion, 0.0
    if is_answered(question.query.strip(), fusion, narrowed=narrowed):
        return fusion, fusion.setting.hit_floor
    return (_about(view, fusion, held), 0.0) if held else (fusion, None)


def _about(view: View, fusion: Fusion, symbols: Sequence[str | None]) -> Fusion:
    """Those of the compared candidates that are about one of the instruments; None stands for none."""
    standing = view.standing(each.place for each in fusion.compared)
    kept = tuple(
        each
        for each in fusion.compared
        if (version := standing.get(each.place)) is not None and version.symbol in symbols
    )
    return replace(fusion, compared=kept, gathered=replace(fusion.gathered, rest=()))


def _literal(view: View, question: Question) -> Found:
    places = rank_literal(view, question.query.strip(), question.conditions)
    best = places[: max(CANDIDATES_KEPT, question.offset + question.limit)]
    fused = [Fused(Evidence(place, rank, 1.0), 1.0) for rank, place in enumerate(best, start=1)]
    hits = _ranked(_weighed(view, question, _versions(view, fused, question.conditions)))
    return Found(
        mode="literal",
        cut=view.cut,
        inherited_cut=view.inherited_cut,
        total=len(places),
        hits=hits[question.offset : question.offset + question.limit],
        candidates=tuple(map(_candidate, hits[:CANDIDATES_KEPT])),
        outcomes=outcomes_of(hit.version for hit in hits[:WEIGHED]),
    )


def _found(view: View, question: Question, fusion: Fusion, floor: float | None) -> Found:
    """The page of hits; a floor of None lets nothing pass but what the query names by its id."""
    weighed = WEIGHED if question.order == "relevance" else LOSSES_AMONG
    wanted = max(CANDIDATES_KEPT, weighed, question.offset + question.limit)
    answers = [] if floor is None else fusion.first(wanted, floor=floor)
    total = 0 if floor is None else fusion.count(floor=floor)
    named = _named(view, question)
    again = {each.place for each in named}
    rest = [each for each in answers if each.place not in again]
    total += len(named) - (len(answers) - len(rest))
    ordered = named + rest
    found = _versions(view, ordered[:wanted], question.conditions)
    hits = _ranked([*_weighed(view, question, found[:weighed]), *(_hit(*each) for each in found[weighed:])])
    considered = hits[:CANDIDATES_KEPT] or _rejected(view, question.conditions, fusion)
    meant = question.meaning.vector is not None
    return Found(
        mode="hybrid" if meant else "terms",
        cut=view.cut,
        inherited_cut=view.inherited_cut,
        total=total - (len(ordered[:wanted]) - len(hits)),
        hits=hits[question.offset : question.offset + question.limit],
        candidates=tuple(map(_candidate, considered)),
        model=question.meaning.model if meant else None,
        watermarks=tuple(layer.watermark for layer in view.layers) if meant else (),
        lack=question.meaning.lack or _behind(view, question),
        nothing_on=_absent(fusion, any_hits=bool(hits)),
        outcomes=outcomes_of(hit.version for hit in hits[:weighed]),
    )


def _absent(fusion: Fusion, *, any_hits: bool) -> tuple[str, ...]:
    """At most five instruments that memory holds nothing of; a mere word may be one only where nothing is found."""
    named = [each for each in fusion.gathered.instruments if not each.held and (each.sure or not any_hits)]
    return tuple(each.word for each in named[:ABSENT_NAMED])


def _ranked(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))


def _hit(version: Version, fused: Fused, trust: float = 1.0) -> Hit:
    return Hit(
        version, 0, round(fused.score * trust if fused.score > 0 else fused.score, 6), trust, fused.evidence
    )


def _weighed(view: View, question: Question, found: Sequence[tuple[Version, Fused]]) -> list[Hit]:
    """The best answers by score, standing and age, or failures first; what the query names by its id stays first."""
    hits = [
        _hit(
            version, each, 1.0 if each.score == _NAMED_SCORE else trust_of(version, view.at, question.ranking)
        )
        for version, each in found
    ]
    hits.sort(key=lambda hit: -(hit.score or 0.0))
    if question.order == "losses_first":
        hits.sort(key=lambda hit: not is_failure(hit.version))
    return hits


def _behind(view: View, question: Question) -> Lack | None:
    """Whether texts that may be looked into have no vectors yet."""
    if question.meaning.vector is None:
        return None
    return "behind" if any(layer.watermark < layer.cut for layer in view.layers) else None


def _rejected(view: View, conditions: Filter, fusion: Fusion) -> tuple[Hit, ...]:
    """The best candidates of a search that nothing answered, for its record."""
    found = _versions(view, fusion.first(REJECTED_KEPT), conditions)
    return tuple(_hit(version, each) for version, each in found)


def _newest(view: View, question: Question) -> Found:
    total = view.count_versions(question.conditions)
    end = question.offset + question.limit
    if question.order == "losses_first":
        versions = view.versions(question.conditions, limit=max(LOSSES_AMONG, end))
        first = sorted(versions[:LOSSES_AMONG], key=lambda version: not is_failure(version))
        versions = [*first, *versions[LOSSES_AMONG:]][:end]
    else:
        versions = view.versions(question.conditions, limit=end)
    hits = tuple(Hit(version, rank) for rank, version in enumerate(versions, start=1))
    page = hits[question.offset :]
    candidates = tuple(map(_candidate, page))
    outcomes = outcomes_of(versions)
    return Found("recent", view.cut, view.inherited_cut, total, page, candidates, outcomes=outcomes)


def _named(view: View, question: Question) -> list[Fused]:
    """The memories that the query names by id, which stand before all others when they meet the conditions."""
    found = [place for name in _ids_named(view, question.query) if (place := view.place(name)) is not None]
    named = [Fused(Evidence(place), _NAMED_SCORE) for place in dict.fromkeys(found)]
    return [each for _, each in _versions(view, named, question.conditions)]


def _ids_named(view: View, query: str) -> Iterator[str]:
    """Ids of memories in a query, and the orders whose client order id is one of its words."""
    for word in query.split():
        yield from MEMORY_ID.findall(word)
        bare = word.strip(".,;:!?'\"()")
        action = view.submit_of(bare) if any(map(str.isdigit, bare)) else None
        if action is not None:
            yield action


def selected(version: Version) -> Selected:
    """The record that a version was shown."""
    return Selected(id=version.memory_id, version=version.version, source=version.source)


def _versions(view: View, answers: Sequence[Fused], conditions: Filter) -> list[tuple[Version, Fused]]:
    """The candidates with their versions, without those that no longer stand: the vectors may lag behind.

    What words found was looked up in the same moment of the ledger, and meets the conditions.
    """
    standing = view.standing(each.place for each in answers)
    return [
        (standing[each.place], each)
        for each in answers
        if each.place in standing
        and (each.evidence.lexical_rank is not None or _meets(standing[each.place], conditions, view))
    ]


def _meets(version: Version, conditions: Filter, view: View) -> bool:
    return (
        conditions.kind in (None, version.kind)
        and conditions.status in (None, version.status)
        and _on_line(version, conditions.symbol, view)
        and conditions.agent in (None, version.agent)
        and set(conditions.tags) <= set(version.tags)
        and (conditions.since is None or version.effective_at >= conditions.since)
        and (conditions.until is None or version.effective_at <= conditions.until)
        and (conditions.expired or version.expires_at is None or version.expires_at > view.at)
        and version.review_state not in HIDDEN
    )


def _on_line(version: Version, symbol: str | None, view: View) -> bool:
    if symbol is None:
        return True
    named = version.symbol and view.instrument(version.symbol, version.effective_at)
    return named == view.instrument(symbol)


def _candidate(hit: Hit) -> Candidate:
    version, evidence = hit.version, hit.evidence
    if evidence is None:  # of a listing, whose order is that of the entries
        return Candidate(
            id=version.memory_id, version=version.version, source=version.source, lexical_rank=hit.rank
        )
    return Candidate(
        id=version.memory_id,
        version=version.version,
        source=version.source,
        lexical_rank=evidence.lexical_rank,
        lexical_score=None if evidence.lexical_rank is None else _digits(evidence.lexical_score),
        vector_rank=evidence.vector_rank,
        vector_score=_digits(evidence.cosine),
        score=_digits(hit.score),
    )


def _digits(score: float | None) -> str | None:
    return None if score is None else f"{score:.4f}"
