"""One search over one snapshot: from a question to ranked versions and the record of what was considered."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.base import Snapshot
from ..events import Candidate, Retrieved, Selected
from ..limits import CANDIDATES_KEPT
from ..rows import Filter, Version
from ..terms import query_terms
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
    """What a search found at a cut: the page of hits, and the best candidates with their scores."""

    mode: str
    cut: int
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
            total=self.total,
            candidates=self.candidates,
            selected=tuple(
                Selected(id=hit.version.memory_id, version=hit.version.version)
                for hit in self.hits[:handed_over]
            ),
            rendered=rendered,
        )


def recall(snapshot: Snapshot, question: Question, cut: int, at: int) -> Found:
    """Search the ledger as it stood at `cut`, with expiry judged at the instant `at`."""
    if not question.query.strip():
        return _newest(snapshot, question, cut, at)
    terms = query_terms(question.query)
    if terms:
        mode = "terms"
        ranked = _ids_first(
            snapshot,
            terms,
            question.conditions,
            cut,
            at,
            rank_terms(snapshot, terms, question.conditions, cut, at),
        )
    else:
        mode = "literal"
        ranked = rank_literal(snapshot, question.query.strip(), question.conditions, cut, at)
    best = ranked[: max(CANDIDATES_KEPT, question.offset + question.limit)]
    versions = [_standing(snapshot, scored) for scored in best]
    hits = tuple(
        Hit(version, rank, scored.score)
        for rank, (scored, version) in enumerate(zip(best, versions, strict=True), start=1)
    )
    page = hits[question.offset : question.offset + question.limit]
    return Found(mode, cut, len(ranked), page, _candidates(hits[:CANDIDATES_KEPT]))


def _newest(snapshot: Snapshot, question: Question, cut: int, at: int) -> Found:
    total = snapshot.count_versions(question.conditions, cut, at)
    versions = snapshot.versions(
        question.conditions, cut, at, limit=question.offset + question.limit, before=None
    )
    hits = tuple(Hit(version, rank, None) for rank, version in enumerate(versions, start=1))
    return Found("recent", cut, total, hits[question.offset :], _candidates(hits[question.offset :]))


def _ids_first(
    snapshot: Snapshot, terms: tuple[str, ...], conditions: Filter, cut: int, at: int, ranked: list[Scored]
) -> list[Scored]:
    """Put the memories that the query names by id before all others, when they meet the conditions."""
    named = [version for name in named_ids(terms) if (version := snapshot.version(name, cut)) is not None]
    first = [version.sequence_from for version in named if _meets(version, conditions, at)]
    top = 1 + (ranked[0].score if ranked else 0.0)
    return [Scored(sequence, top) for sequence in first] + [
        hit for hit in ranked if hit.sequence_from not in first
    ]


def _meets(version: Version, conditions: Filter, at: int) -> bool:
    return (
        conditions.kind in (None, version.kind)
        and conditions.status in (None, version.status)
        and conditions.symbol in (None, version.symbol)
        and conditions.agent in (None, version.agent)
        and set(conditions.tags) <= set(version.tags)
        and (conditions.since is None or version.effective_at >= conditions.since)
        and (conditions.until is None or version.effective_at <= conditions.until)
        and (version.expires_at is None or version.expires_at > at)
        and version.review_state in ("none", "approved")
    )


def _standing(snapshot: Snapshot, scored: Scored) -> Version:
    version = snapshot.version_at(scored.sequence_from)
    if version is None:
        raise LookupError(f"the full-text index names {scored.sequence_from}, which is no version")
    return version


def _candidates(hits: tuple[Hit, ...]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            id=hit.version.memory_id,
            version=hit.version.version,
            lexical_rank=hit.rank,
            lexical_score=None if hit.score is None else f"{hit.score:.4f}",
        )
        for hit in hits
    )
