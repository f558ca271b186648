"""One search over one snapshot: from a question to ranked versions and the record of what was considered."""

from __future__ import annotations

from dataclasses import dataclass

from ..event_parts import Candidate, Selected
from ..events import Retrieved
from ..limits import CANDIDATES_KEPT
from ..rows import Filter, Version
from ..terms import query_terms
from ..view import Place, View
from .lexical import Scored, named_ids, rank_literal, rank_terms


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched: free text and conditions, from an offset on. An empty query lists the newest."""

    query: str
    conditions: Filter
    limit: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory found, with its rank (from 1) and score; a listing has no score."""

    version: Version
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found in a view: the page of hits, and the best candidates with their scores."""

    mode: str
    cut: int
    inherited_cut: int | None
    total: int
    hits: tuple[Hit, ...]
    candidates: tuple[Candidate, ...]

    def record(self, question: Question, as_of: int | None, handed_over: int, rendered: str) -> Retrieved:
        """The event that records this search; the first `handed_over` hits were handed over."""
        return Retrieved(
            query=question.query,
            mode=self.mode,
            filters=question.conditions.as_content(),
            as_of=as_of,
            cut=self.cut,
            inherited_cut=self.inherited_cut,
            total=self.total,
            candidates=self.candidates,
            selected=tuple(selected(hit.version) for hit in self.hits[:handed_over]),
            rendered=rendered,
        )


def recall(view: View, question: Question) -> Found:
    """Search what the view sees, with expiry judged at the view's instant."""
    if not question.query.strip():
        return _newest(view, question)
    terms = query_terms(question.query)
    if terms:
        mode = "terms"
        ranked = _ids_first(view, terms, question.conditions, rank_terms(view, terms, question.conditions))
    else:
        mode = "literal"
        ranked = rank_literal(view, question.query.strip(), question.conditions)
    best = ranked[: max(CANDIDATES_KEPT, question.offset + question.limit)]
    hits = tuple(
        Hit(_standing(view, scored), rank, scored.score) for rank, scored in enumerate(best, start=1)
    )
    page = hits[question.offset : question.offset + question.limit]
    return Found(mode, view.cut, view.inherited_cut, len(ranked), page, _candidates(hits[:CANDIDATES_KEPT]))


def _newest(view: View, question: Question) -> Found:
    total = view.count_versions(question.conditions)
    versions = view.versions(question.conditions, limit=question.offset + question.limit)
    hits = tuple(Hit(version, rank, None) for rank, version in enumerate(versions, start=1))
    page = hits[question.offset :]
    return Found("recent", view.cut, view.inherited_cut, total, page, _candidates(page))


def _ids_first(view: View, terms: tuple[str, ...], conditions: Filter, ranked: list[Scored]) -> list[Scored]:
    """Put the memories that the query names by id before all others, when they meet the conditions."""
    named = [place for name in named_ids(terms) if (place := view.place(name)) is not None]
    first = [place for place in named if _meets(_standing_at(view, place), conditions, view)]
    top = 1 + (ranked[0].score if ranked else 0.0)
    return [Scored(place, top) for place in first] + [hit for hit in ranked if hit.place not in first]


def selected(version: Version) -> Selected:
    """The record that a version was shown."""
    return Selected(id=version.memory_id, version=version.version, source=version.source)


def _meets(version: Version, conditions: Filter, view: View) -> bool:
    return (
        conditions.kind in (None, version.kind)
        and conditions.status in (None, version.status)
        and _on_line(version, conditions.symbol, view)
        and conditions.agent in (None, version.agent)
        and set(conditions.tags) <= set(version.tags)
        and (conditions.since is None or version.effective_at >= conditions.since)
        and (conditions.until is None or version.effective_at <= conditions.until)
        and (version.expires_at is None or version.expires_at > view.at)
        and version.review_state in ("none", "approved")
    )


def _on_line(version: Version, symbol: str | None, view: View) -> bool:
    if symbol is None:
        return True
    named = version.symbol and view.instrument(version.symbol, version.effective_at)
    return named == view.instrument(symbol)


def _standing(view: View, scored: Scored) -> Version:
    return _standing_at(view, scored.place)


def _standing_at(view: View, place: Place) -> Version:
    version = view.version_at(place)
    if version is None:
        raise LookupError(f"the full-text index names {place.sequence_from}, which is no version")
    return version


def _candidates(hits: tuple[Hit, ...]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            id=hit.version.memory_id,
            version=hit.version.version,
            source=hit.version.source,
            lexical_rank=hit.rank,
            lexical_score=None if hit.score is None else f"{hit.score:.4f}",
        )
        for hit in hits
    )
