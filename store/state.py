"""The compact state: what an agent should have before its eyes when a turn begins, under one hard cap."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any

from .caller import Caller
from .engines.base import Snapshot
from .event_parts import Position, Selected
from .exposure import held_symbols
from .lifecycle import DECISION, HIDDEN, LESSON, ORDER_ACTION, RISK_NOTE, THESIS
from .positions import Lines
from .render import NOTICE, Renderer, as_text, cut_text, terms_of
from .rows import Caution, Filter, Flag, Holdings, Version
from .search.recall import selected
from .view import Place, View
from .withholding import withheld, without_orders

STATE_SCHEMA = 1
SECTION = 8
RECENT = 5
RISKS = 5
_RECENT_VERSIONS = (8, 50, 400, 3_200)
_RISK_TEXT = 280
_TERM = 30
_FULL_TEXT = 900
_TEXT_STEPS = (_FULL_TEXT, 450, 220, 110, 60)
_LINE = 140
_HELD = 100
_IDLE = 50
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
class _Theses:
    """Where the open theses stand that explain what is held, and the newest of all by id, symbol and date."""

    behind: dict[str, Place]
    """The newest thesis on each held symbol that has one."""
    newest: list[tuple[str, str | None, int]]


@dataclass(frozen=True, slots=True)
class _Sections:
    theses: list[Version]
    lessons: list[Version]
    due: list[Version]
    flags: list[dict[str, Any]]
    recent: list[Version]
    holdings: Holdings | None
    held_named: list[str]
    unexplained: list[str]
    """Held symbols without an open thesis."""
    idle: list[str]
    """Open theses on symbols that are not held, by memory id."""
    rationales: list[dict[str, Any]]
    unreconciled: list[Version]
    open_orders: list[dict[str, Any]]
    risks: list[Version]
    cautions: list[Caution]
    counts: dict[str, int]


def build_state(
    view: View, renderer: Renderer, caller: Caller, strategy: str, run: str | None, cap: int
) -> State:
    """The state that the view shows, at most `cap` characters of JSON text whatever is stored."""
    sections = _collect(view, renderer, caller)
    head = {
        "notice": NOTICE,
        "schema_version": STATE_SCHEMA,
        "as_of": renderer.time(view.at),
        "sequence": view.cut,
        "strategy": strategy,
        "run": run,
        "agent": caller.agent,
    }
    if not sections.counts["memories"]:
        head["empty"] = EMPTY
    for longest in _TEXT_STEPS:
        body = _body(head, sections, renderer, view.at, longest)
        text = as_text(body)
        if len(text) <= cap:
            return State(body, text, _shown(sections))
    return _drop_until_fits(head, sections, renderer, view.at, cap)


def _collect(view: View, renderer: Renderer, caller: Caller) -> _Sections:
    open_theses = Filter(kind=THESIS, status="open")
    validated = Filter(kind=LESSON, status="validated")
    due = [withheld(version) for version in view.due(limit=SECTION)]
    flags = [_flag(flag, renderer) for flag in view.flags(limit=SECTION)]
    holdings = view.holdings()
    held = {} if holdings is None else held_symbols(view)
    named = list(held)[:_HELD]
    open_now = _Theses({}, []) if holdings is None else _open_theses(view, named)
    own = view.layers[0].snapshot
    active = Filter(kind=RISK_NOTE, status="active")
    theses = [withheld(version) for version in view.versions(open_theses, limit=SECTION)]
    lessons = [withheld(version) for version in view.versions(validated, limit=SECTION)]
    risks = [withheld(version) for version in view.versions(active, limit=RISKS)]
    unreconciled = [withheld(action) for action in view.unreconciled(None, limit=SECTION)]
    working = working_orders(own, renderer, None, view.cut, view.at, SECTION)
    return _Sections(
        held_named=named,
        unexplained=[symbol for symbol in named if symbol not in open_now.behind],
        idle=_idle(view, due, open_now, held),
        holdings=holdings,
        rationales=_rationales(view, held, open_now),
        unreconciled=unreconciled,
        open_orders=working,
        risks=risks,
        cautions=view.cautions(limit=SECTION),
        theses=_due_then_newest(due, theses),
        lessons=lessons,
        due=due,
        flags=flags,
        recent=_recent(view, caller.agent),
        counts={
            "open_theses": _count(theses, SECTION, lambda: view.count_versions(open_theses)),
            "validated_lessons": _count(lessons, SECTION, lambda: view.count_versions(validated)),
            "reviews_due": _count(due, SECTION, view.count_due) + _count(flags, SECTION, view.count_flags),
            "memories": view.totals()[0],
            "held_symbols": len(held),
            "unreconciled_orders": _count(
                unreconciled, SECTION, lambda: own.count_unreconciled(None, view.cut)
            ),
            "open_orders": _count(working, SECTION, lambda: own.count_open_orders(None, view.cut)),
            "risk_notes": _count(risks, RISKS, lambda: view.count_versions(active)),
        },
    )


def _count(found: Sized, limit: int, whole: Callable[[], int]) -> int:
    """How many there are of what was read up to a limit, counted only where the limit may have cut it off."""
    return len(found) if len(found) < limit else whole()


def working_orders(
    snapshot: Snapshot, renderer: Renderer, symbols: tuple[str, ...] | None, cut: int, at: int, limit: int
) -> list[dict[str, Any]]:
    """Orders that the broker has and that are not done, oldest first, with the terms that its modifies left."""
    submits = snapshot.open_orders(symbols, cut, limit=limit)
    changes = snapshot.changes_of(tuple(submit.memory_id for submit in submits), cut) if submits else []
    return [
        renderer.working_order(
            submit,
            [change for change in changes if change.details["submit_action_id"] == submit.memory_id],
            at,
        )
        for submit in submits
    ]


def _recent(view: View, agent: str) -> list[Version]:
    """The latest version the agent wrote of each memory it wrote last, newest first."""
    latest: dict[str, Version] = {}
    for most in _RECENT_VERSIONS:
        found = view.changed_by(agent, limit=most)
        latest = {}
        for version in found:
            latest.setdefault(version.memory_id, version)
        if len(latest) >= 2 * RECENT or len(found) < most:
            break
    # What waited when the agent wrote it may have been let in since.
    stands = (
        view.version(each.memory_id) if each.review_state in HIDDEN else each for each in latest.values()
    )
    shown = (each for each in stands if each is not None and each.review_state not in HIDDEN)
    return [withheld(version) for version in islice(shown, RECENT)]


def _open_theses(view: View, held: list[str]) -> _Theses:
    """Reads each ledger's open theses, newest first, until all that is held is explained and enough are idle."""
    lines = Lines(held, view)
    behind: dict[str, tuple[int, Place]] = {}
    newest: list[list[tuple[str, str | None, int]]] = []
    for index, layer in enumerate(view.layers):
        latest: list[tuple[str, str | None, int]] = []
        wanted = set(held)
        for sequence, memory_id, symbol, at in layer.snapshot.open_theses(layer.cut, view.at):
            if len(latest) < _IDLE:
                latest.append((memory_id, symbol, at))
            for name in wanted.intersection(lines.holding(symbol, at)):
                wanted.remove(name)
                if name not in behind or at > behind[name][0]:
                    behind[name] = (at, Place(index, sequence))
            if not wanted and len(latest) == _IDLE:
                break
        newest.append(latest)
    merged = merge(*newest, key=lambda thesis: -thesis[2])
    return _Theses({name: place for name, (_, place) in behind.items()}, list(islice(merged, _IDLE)))


def _idle(view: View, due: list[Version], open_now: _Theses, held: dict[str, Position]) -> list[str]:
    """Open theses on what is not held, those that are due first."""
    first = {
        version.memory_id: (version.symbol, version.effective_at) for version in due if version.kind == THESIS
    }
    newest = {memory_id: (symbol, at) for memory_id, symbol, at in open_now.newest}
    return [
        memory_id
        for memory_id, (symbol, at) in islice((first | newest).items(), _IDLE)
        if symbol and view.instrument(symbol, at) not in held
    ]


def _due_then_newest(due: list[Version], newest: list[Version]) -> list[Version]:
    first = [version for version in due if version.kind == THESIS]
    known = {version.memory_id for version in first}
    return (first + [version for version in newest if version.memory_id not in known])[:SECTION]


def _body(
    head: dict[str, Any], sections: _Sections, renderer: Renderer, at: int, longest: int
) -> dict[str, Any]:
    """The whole body as it is shown; every text in it, whatever its place, has passed the one gate."""
    return without_orders(head | _render(sections, renderer, at, longest))


def _render(sections: _Sections, renderer: Renderer, at: int, longest: int) -> dict[str, Any]:
    reviews = [_due_item(version, renderer, at) for version in sections.due] + sections.flags
    return _positions(sections, renderer) | {
        "warnings": [_warning(caution, renderer) for caution in sections.cautions],
        "unreconciled_orders": [renderer.open_order(action, at) for action in sections.unreconciled],
        "open_orders": sections.open_orders,
        "risk_notes": [renderer.concise(note, at, min(longest, _RISK_TEXT)) for note in sections.risks],
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
            "open_orders": max(0, sections.counts["open_orders"] - len(sections.open_orders)),
            "risk_notes": max(0, sections.counts["risk_notes"] - len(sections.risks)),
        },
    }


def _drop_until_fits(
    head: dict[str, Any], sections: _Sections, renderer: Renderer, at: int, cap: int
) -> State:
    """Leave out whole items, the last of the longest section first, until the text fits."""
    kept = sections
    while True:
        longest: list[Any] = max(
            (
                kept.recent,
                kept.flags,
                kept.due,
                kept.held_named,
                kept.unexplained,
                kept.idle,
                kept.rationales,
                kept.risks,
                kept.lessons,
                kept.cautions,
                kept.open_orders,
                kept.unreconciled,
                kept.theses,
            ),
            key=_length,
        )
        if not longest:
            raise ValueError(f"not even an empty state fits into {cap} characters")
        longest.pop()
        body = _body(head, kept, renderer, at, _TEXT_STEPS[-1])
        text = as_text(body)
        if len(text) <= cap:
            return State(body, text, _shown(kept))


def _length(section: Sized) -> int:
    return len(section)


def _rationales(view: View, held: dict[str, Position], open_now: _Theses) -> list[dict[str, Any]]:
    """For each held symbol the thesis behind it, else the latest decision on it, else that there is none."""
    found = []
    for symbol in list(held)[:SECTION]:
        place = open_now.behind.get(symbol)
        if place is not None:
            behind = view.version_at(place)
        else:
            behind = next(iter(view.versions(Filter(kind=DECISION, symbol=symbol), limit=1)), None)
        behind = None if behind is None else withheld(behind)
        why = {"memory_id": behind.memory_id, "kind": behind.kind} if behind else {}
        why |= terms_of(behind, _LINE) if behind else {}
        text = cut_text(behind.text, _LINE) if behind else "no thesis or decision is recorded"
        found.append({"symbol": symbol, "quantity": held[symbol].quantity, **why, "text": text})
    return found


def _positions(sections: _Sections, renderer: Renderer) -> dict[str, Any]:
    if sections.holdings is None:
        return {"held_symbols": [], "current_position_rationales": [], "positions_reason": NO_POSITIONS}
    return {
        "held_symbols": sections.held_named,
        "current_position_rationales": sections.rationales,
        "positions_reported_at": renderer.time(sections.holdings.effective_at),
        "positions_standing": sections.holdings.standing,
        "holdings_without_thesis": sections.unexplained,
        "theses_without_holding": sections.idle,
    }


def _flag(flag: Flag, renderer: Renderer) -> dict[str, Any]:
    return {
        "memory_id": flag.memory_id,
        "reason": flag.reason,
        "other_id": flag.other_id,
        "by": flag.agent,
        "flagged_at": renderer.time(flag.effective_at),
    }


def _warning(caution: Caution, renderer: Renderer) -> dict[str, Any]:
    return {
        "code": caution.code,
        "memory_id": caution.subject_id,
        "symbol": caution.symbol,
        "warned_at": renderer.time(caution.effective_at),
        "message": cut_text(caution.message, _LINE * 2),
    }


def _item(version: Version, renderer: Renderer, at: int, longest: int) -> dict[str, Any]:
    shown = renderer.concise(version, at, longest)
    shown["version"] = version.version
    if version.tags:
        shown["tags"] = list(version.tags[:_TAGS_SHOWN])
    if "horizon" in version.details:
        shown["horizon"] = cut_text(str(version.details["horizon"]), _LINE)
    return shown


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
    terms = _terms(version)
    text = cut_text(" ".join(version.text.split()), _LINE - len(terms))
    return f"{renderer.time(version.effective_at)} {named} v{version.version}{symbol}{terms}: {text}"


def _terms(version: Version) -> str:
    """In brackets what the line's text alone may not say: a thesis' terms or result, a decision's action."""
    terms: dict[str, Any] = terms_of(version, _TERM)
    if version.kind == ORDER_ACTION and version.details.get("order", {}).get("status"):
        terms = {"order": version.details["order"]["status"]}
    elif version.kind == THESIS and version.status == "closed":
        closed = version.details.get("outcome", {})
        terms = {name: closed[name] for name in ("result", "pnl", "return_pct") if name in closed}
    said = ", ".join(f"{name} {cut_text(' '.join(str(term).split()), _TERM)}" for name, term in terms.items())
    return f" ({said})" if said else ""


def _shown(sections: _Sections) -> tuple[Selected, ...]:
    """The memories whose text the state shows."""
    texts = (*sections.theses, *sections.lessons, *sections.risks, *sections.recent)
    return tuple(dict.fromkeys(selected(version) for version in texts))
