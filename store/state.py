"""The compact state: what an agent should have before its eyes when a turn begins, under one hard cap."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

from .caller import Caller
from .engines.base import Snapshot
from .events import Selected
from .lifecycle import LESSON, THESIS
from .render import NOTICE, Renderer, as_text, cut_text
from .rows import Filter, Version

STATE_SCHEMA = 1
SECTION = 8
RECENT = 5
_FULL_TEXT = 900
_TEXT_STEPS = (_FULL_TEXT, 450, 220, 110, 60)
_LINE = 140
_TAGS_SHOWN = 8

EMPTY = "Memory is empty: nothing has been recorded yet. Do not invent earlier trades, theses or lessons."
POLICY = (
    "Search memory by symbol before acting on it; name the retrieval_id and thesis_id in the decision. "
    "Lessons marked proposed are claims, not proven. Memory is no risk control: hard limits stay in code."
)
NO_POSITIONS = "no positions reported"


@dataclass(frozen=True, slots=True)
class State:
    """The rendered state and which memories it showed."""

    body: dict[str, Any]
    text: str
    shown: tuple[Selected, ...]


@dataclass(frozen=True, slots=True)
class _Sections:
    theses: list[Version]
    lessons: list[Version]
    due: list[Version]
    flags: list[dict[str, Any]]
    recent: list[Version]
    counts: dict[str, int]


def build_state(
    snapshot: Snapshot,
    renderer: Renderer,
    caller: Caller,
    strategy: str,
    run: str | None,
    cut: int,
    at: int,
    cap: int,
) -> State:
    """The state as it stood at `cut`, at most `cap` characters of JSON text whatever is stored."""
    sections = _collect(snapshot, renderer, caller, cut, at)
    head = {
        "notice": NOTICE,
        "schema_version": STATE_SCHEMA,
        "as_of": renderer.time(at),
        "sequence": cut,
        "strategy": strategy,
        "run": run,
        "agent": caller.agent,
    }
    if snapshot.totals(cut)[0] == 0:
        head["empty"] = EMPTY
    for longest in _TEXT_STEPS:
        body = head | _render(sections, renderer, at, longest)
        text = as_text(body)
        if len(text) <= cap:
            return State(body, text, _shown(sections))
    return _drop_until_fits(head, sections, renderer, at, cap)


def _collect(snapshot: Snapshot, renderer: Renderer, caller: Caller, cut: int, at: int) -> _Sections:
    open_theses = Filter(kind=THESIS, status="open")
    validated = Filter(kind=LESSON, status="validated")
    due = snapshot.due(cut, at, limit=SECTION)
    flags = [
        {
            "memory_id": flag.memory_id,
            "reason": flag.reason,
            "other_id": flag.other_id,
            "by": flag.agent,
            "flagged_at": renderer.time(flag.effective_at),
            "note": cut_text(flag.note or "", _LINE),
        }
        for flag in snapshot.flags(cut, limit=SECTION)
    ]
    return _Sections(
        theses=_due_then_newest(
            due, snapshot.versions(open_theses, cut, at, limit=SECTION, before=None), THESIS
        ),
        lessons=snapshot.versions(validated, cut, at, limit=SECTION, before=None),
        due=due,
        flags=flags,
        recent=snapshot.changed_by(caller.agent, cut, limit=RECENT),
        counts={
            "open_theses": snapshot.count_versions(open_theses, cut, at),
            "validated_lessons": snapshot.count_versions(validated, cut, at),
            "reviews_due": snapshot.count_due(cut, at) + snapshot.count_flags(cut),
            "memories": snapshot.totals(cut)[0],
        },
    )


def _due_then_newest(due: list[Version], newest: list[Version], kind: str) -> list[Version]:
    first = [version for version in due if version.kind == kind]
    known = {version.memory_id for version in first}
    return (first + [version for version in newest if version.memory_id not in known])[:SECTION]


def _render(sections: _Sections, renderer: Renderer, at: int, longest: int) -> dict[str, Any]:
    reviews = [_due_item(version, renderer, at) for version in sections.due] + sections.flags
    return {
        "held_symbols": [],
        "current_position_rationales": [],
        "positions_reason": NO_POSITIONS,
        "open_theses": [_item(version, renderer, at, longest) for version in sections.theses],
        "validated_lessons": [_item(version, renderer, at, longest) for version in sections.lessons],
        "reviews_due": reviews[:SECTION],
        "recent": [_line(version, renderer) for version in sections.recent],
        "retrieval_policy": POLICY,
        "counts": sections.counts,
        "omitted": {
            "open_theses": max(0, sections.counts["open_theses"] - len(sections.theses)),
            "validated_lessons": max(0, sections.counts["validated_lessons"] - len(sections.lessons)),
            "reviews_due": max(0, sections.counts["reviews_due"] - len(reviews[:SECTION])),
        },
    }


def _drop_until_fits(
    head: dict[str, Any], sections: _Sections, renderer: Renderer, at: int, cap: int
) -> State:
    """Leave out whole items, the last of the longest section first, until the text fits."""
    kept = sections
    while True:
        longest: list[Any] = max((kept.recent, kept.flags, kept.due, kept.lessons, kept.theses), key=_length)
        if not longest:
            raise ValueError(f"not even an empty state fits into {cap} characters")
        longest.pop()
        body = head | _render(kept, renderer, at, _TEXT_STEPS[-1])
        text = as_text(body)
        if len(text) <= cap:
            return State(body, text, _shown(kept))


def _length(section: Sized) -> int:
    return len(section)


def _item(version: Version, renderer: Renderer, at: int, longest: int) -> dict[str, Any]:
    shown = renderer.concise(version, at, longest)
    shown["version"] = version.version
    if version.tags:
        shown["tags"] = list(version.tags[:_TAGS_SHOWN])
    terms = {
        name: cut_text(str(version.details[name]), _LINE)
        for name in ("direction", "horizon", "target", "invalidation")
        if name in version.details
    }
    return shown | terms


def _due_item(version: Version, renderer: Renderer, at: int) -> dict[str, Any]:
    return {
        "memory_id": version.memory_id,
        "kind": version.kind,
        "symbol": version.symbol,
        "reason": "review date passed",
        "review_by": renderer.time(version.stale_at if version.stale_at is not None else at),
    }


def _line(version: Version, renderer: Renderer) -> str:
    named = f"{version.kind} {version.memory_id} {version.status}"
    symbol = f" {version.symbol}" if version.symbol else ""
    text = " ".join(version.text.split())
    return (
        f"{renderer.time(version.effective_at)} {named} v{version.version}{symbol}: {cut_text(text, _LINE)}"
    )


def _shown(sections: _Sections) -> tuple[Selected, ...]:
    """The memories whose text the state shows."""
    texts = (*sections.theses, *sections.lessons, *sections.recent)
    shown = dict.fromkeys((version.memory_id, version.version) for version in texts)
    return tuple(Selected(id=memory_id, version=version) for memory_id, version in shown)
