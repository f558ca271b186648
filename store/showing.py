"""What readings answer: a page of hits, or one memory whole, each within the reply's cap."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from .entry import Entry
from .render import NOTICE, Renderer, as_text, quoted
from .replies import Reply, SearchRequest
from .rows import Filter, Flag, Version
from .screening.instructions import reads_as_order
from .search import cursor
from .search.recall import Found, Hit

Conflicts: TypeAlias = dict[str, list[tuple[Flag, Version]]]

HISTORY_SHOWN = 50
SHOWN = "memory.delivered"
_CONCISE_CHARS = 280
_LEAST_CHARS = 40
_CONCISE_BYTES = 380
_CONFLICTS_TOLD = 5
LACKS: Final = MappingProxyType(
    {
        "warming": "by words only: the model is being loaded; search again in a second",
        "resting": "by words only: the model failed and is tried again in some seconds",
        "unavailable": "by words only: there is no model here; deskbook doctor says why",
        "behind": "newer texts by words only: they are being embedded",
    }
)
"""What a reply says where a search did not go by meaning everywhere."""

NOTHING_BY_WORDS = "Nothing was found by words alone. Do not invent a memory."
NOTHING_FOUND = "Nothing relevant is recorded. Do not invent a memory."


def show_hits(
    renderer: Renderer,
    request: SearchRequest,
    place: cursor.Place,
    found: Found,
    retrieval_id: str,
    similar: tuple[str, ...] = (),
    conflicts: Conflicts | None = None,
) -> tuple[Reply, int]:
    """The reply with as many hits as fit, and how many those are; its cursor leads to the next ones."""
    longest = max(200, request.reply_chars // 4)
    shown = partial(_hit, renderer, request, place.at, conflicts or {})
    hits = [shown(hit, longest) for hit in found.hits]
    while True:
        end = place.offset + len(hits)
        more = bool(hits) and end < found.total
        onward = cursor.encode(
            cursor.Place(place.cut, place.at, end, found.watermarks), request.asked, request.conditions
        )
        body: dict[str, Any] = {
            "notice": NOTICE,
            "retrieval_id": retrieval_id,
            "total": found.total,
            "truncated": more,
            "cursor": onward if more else None,
            "hits": hits,
        }
        if any(found.outcomes):
            body["outcomes"] = dict(zip(("wins", "losses"), found.outcomes, strict=True))
        if found.lack is not None:
            body["semantic"] = LACKS[found.lack]
        if not found.total:
            nothing = NOTHING_FOUND if found.lack is None else NOTHING_BY_WORDS
            body["message"] = nothing + _hint(request, found, similar)
        elif found.nothing_on:
            body["message"] = _hint(request, found, ()).strip()
        text = as_text(body)
        if len(text) <= request.reply_chars or longest < _LEAST_CHARS:
            return Reply(body, text), len(hits)
        if len(hits) > 1:
            hits.pop()
        else:
            longest //= 2
            hits = [shown(found.hits[0], longest)]


def _hint(request: SearchRequest, found: Found, similar: tuple[str, ...]) -> str:
    hint = ""
    if found.nothing_on:
        hint = f" Nothing is kept about {' or '.join(found.nothing_on)}."
    if similar:
        hint += f" Nothing is kept under {request.conditions.symbol}; similar: {', '.join(similar)}."
    return hint


def _hit(
    renderer: Renderer, request: SearchRequest, at: int, conflicts: Conflicts, hit: Hit, longest: int
) -> dict[str, Any]:
    if request.detailed:
        shown = renderer.detailed(hit.version, at, longest) | {"provenance": _provenance(hit)}
    else:
        shown = renderer.concise(hit.version, at, _CONCISE_CHARS, _CONCISE_BYTES)
    return shown | _conflicting(renderer, conflicts.get(hit.version.memory_id, []))


def _conflicting(renderer: Renderer, conflicts: list[tuple[Flag, Version]]) -> dict[str, Any]:
    """The memories that somebody said contradict this one, as long as nobody has settled it."""
    if not conflicts:
        return {}
    told = [
        {
            "id": other.memory_id,
            "status": other.status,
            "agent": other.agent,
            "effective_at": renderer.time(other.effective_at),
            "flagged_by": flag.agent,
        }
        for flag, other in conflicts[:_CONFLICTS_TOLD]
    ]
    return {"conflicts_with": told}


def _provenance(hit: Hit) -> dict[str, Any]:
    """Why a hit stands where it does: its rank and score, and those of each channel that found it."""
    told: dict[str, Any] = {"rank": hit.rank, "score": _rounded(hit.score)}
    if hit.trust != 1.0:
        told["trust"] = hit.trust
    evidence = hit.evidence
    if evidence is not None and evidence.lexical_rank is not None:
        told |= {"lexical_rank": evidence.lexical_rank, "lexical_score": _rounded(evidence.lexical_score)}
    if evidence is not None and evidence.cosine is not None:
        told |= {"vector_rank": evidence.vector_rank, "vector_score": _rounded(evidence.cosine)}
    return told


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def show_memory(
    renderer: Renderer,
    version: Version,
    history: list[Entry],
    place: cursor.Place,
    reply_chars: int,
    story: dict[str, Any] | None = None,
    conflicts: list[tuple[Flag, Version]] | None = None,
) -> dict[str, Any]:
    """The body of a reply of at most `reply_chars` characters; its cursor leads to the rest of the text.

    The first page carries the newest history that fits, later pages the text alone.
    """
    # Showings are entries about the memory too, but no part of what became of it: many would crowd that out.
    history = [entry for entry in history if entry.event_type != SHOWN]
    chunk = max(1, reply_chars // 2)
    while True:
        body = _page(renderer, version, history if place.offset == 0 else [], place, chunk)
        body["memory"] |= _conflicting(renderer, conflicts or [])
        if story is not None and place.offset == 0:
            body["explanation"] = story | {"steps": list(story["steps"])}
        _shorten(body, reply_chars)
        if len(as_text(body)) <= reply_chars or chunk <= 64:
            break
        chunk //= 2
    body["truncated"] = (
        body["cursor"] is not None
        or len(body["history"]) < body["history_total"]
        or "details_truncated" in body["memory"]
    )
    return body


def _shorten(body: dict[str, Any], reply_chars: int) -> None:
    """Leave out the oldest entries of history, then the oldest steps of the explanation, until the reply fits."""
    steps = body.get("explanation", {}).get("steps", [])
    while len(as_text(body)) > reply_chars and (body["history"] or steps):
        (body["history"] or steps).pop(0)


def _page(
    renderer: Renderer, version: Version, history: list[Entry], place: cursor.Place, chunk: int
) -> dict[str, Any]:
    end = place.offset + chunk
    memory = renderer.detailed(version, place.at, chunk)
    text = version.text[place.offset : end]
    memory["text"] = quoted(text) if "suspicious" in version.details or reads_as_order(text) else text
    memory.pop("text_truncated", None)
    onward = cursor.encode(cursor.Place(place.cut, place.at, end), version.memory_id, Filter())
    return {
        "notice": NOTICE,
        "memory": memory,
        "truncated": False,
        "cursor": onward if end < len(version.text) else None,
        "history_total": len(history),
        "history": [renderer.history(entry) for entry in history[-HISTORY_SHOWN:]],
    }
