"""Why an order, decision or thesis came about: everything around it in the order of the ledger.

The bundle holds what the agent had been shown and had searched before, the thesis as it stood, the decision, the
intent, the outcome and what came of it. It is read from entries, so it says what the ledger can prove.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .entry import Entry
from .errors import NotFound
from .lessons import OUTCOME_EVENTS
from .lifecycle import DECISION, ORDER_ACTION, THESIS
from .order_terms import SUBMIT
from .render import NOTICE, TERMS, Renderer, cut_text
from .rows import EntryFilter, Version
from .view import LIVE, View

EXPLAINED = (ORDER_ACTION, DECISION, THESIS)
MOST_ENTRIES = 200
_TEXT = 1_500
_ACTS = (
    "decision.recorded", "order_action.recorded", "thesis.opened", "thesis.updated", "thesis.closed",
)  # fmt: skip
_SESSION_SHOWINGS = 20
_JUDGEMENTS = 10_000
_NAMED = 10
_SHOWINGS = ("memory.retrieved", "memory.delivered")
GONE = "(redacted)"
"""What stands for a text that was taken away."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The bundle as JSON values, its steps in order of sequence."""

    body: dict[str, Any]

    def lines(self) -> list[str]:
        """The bundle for a person, a line a step."""
        head = self.body["subject"]
        order = f", order {head['order_status']}" if "order_status" in head else ""
        named = [
            f"{name} {' '.join(head[name].split())}" for name in TERMS.get(head["kind"], ()) if name in head
        ]
        terms = f" ({', '.join(named)})" if named else ""
        told = [
            f"{head['kind']} {head['id']} {head['status']}{order} {head.get('symbol') or ''}".rstrip() + terms
        ]
        steps = self.body["steps"]
        told += [
            f"  {step['sequence']:>6}  {step['effective_at']}  {step['agent']}  {_told(step)}"
            for step in steps
        ]
        return told


def _told(step: dict[str, Any]) -> str:
    return f"{step['what']}{_named(step)}{_told_origin(step)}"


def _named(step: dict[str, Any]) -> str:
    """What a showing showed, by id."""
    shown = [item["id"] for item in step.get("shown", ())]
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return f" [{', '.join(shown[:_NAMED])}{more}]" if shown else ""


def _told_origin(step: dict[str, Any]) -> str:
    """Where an imported step comes from."""
    if "imported" not in step:
        return ""
    by = f" by {' '.join(step['source_agent'].split())}" if "source_agent" in step else ""
    at = f" of {step['source_at']}" if "source_at" in step else ""
    return f" (imported{at}{by})"


def explain(view: View, renderer: Renderer, memory_id: str) -> Explanation:
    """Explain an order action, a decision or a thesis; raises NotFound for anything else."""
    subject = view.version(memory_id)
    if subject is None or subject.kind not in EXPLAINED:
        raise NotFound(
            "memory_id names no order, decision or thesis of this ledger.",
            field="memory_id",
            hint="Find decisions and theses with search_memory; orders with list_unreconciled_orders.",
        )
    related = {name for name in _related(view, subject) if not _is_hidden(view, name)}
    found: dict[str, Entry] = {}
    for name in related:
        for entry in view.history(name):
            # A showing tells why something was done only where it came before a deed.
            if entry.event_type not in _SHOWINGS:
                found[entry.event_id] = entry
    for entry in (*_submitted(view, related), *_judged_by(view, found)):
        found[entry.event_id] = entry
    for entry in list(found.values()):
        for before in _seen_before(view, entry):
            found.setdefault(before.event_id, before)
    ordered = [entry for entry in sorted(found.values(), key=_place) if _tells(entry, related)]
    body = {
        "notice": NOTICE,
        "subject": renderer.concise(subject, view.at, _TEXT) | _order_status(view, subject),
        "related": sorted(related - {memory_id}),
        "steps_total": len(ordered),
        "steps": [_step(entry, renderer, own=_is_own(entry, view)) for entry in ordered[-MOST_ENTRIES:]],
    }
    return Explanation(body)


def _is_hidden(view: View, name: str) -> bool:
    """Whether a memory is there that the reader may not see."""
    return view.version(name) is None and any(
        layer.snapshot.version(name, layer.cut) is not None for layer in view.layers
    )


def _order_status(view: View, subject: Version) -> dict[str, str]:
    """How the order stands that a modify or cancel is about."""
    submit = view.version(str(subject.details.get("submit_action_id", "")))
    status = submit.details.get("order", {}).get("status") if submit is not None else None
    return {"order_status": status} if status else {}


def _place(entry: Entry) -> tuple[bool, int]:
    """What a run inherits came before all that is its own."""
    return entry.run_id is not None, entry.sequence


def _related(view: View, subject: Version) -> set[str]:
    """The memories that belong to one story: the decision, its thesis, the actions that carry it out."""
    found = {subject.memory_id}
    for name in ("decision_id", "thesis_id", "previous_action_id", "submit_action_id"):
        if subject.details.get(name):
            found.add(str(subject.details[name]))
    own = view.layers[0].snapshot
    decisions = {subject.memory_id, *found} if subject.kind != THESIS else {subject.memory_id}
    for name in decisions:
        version = view.version(name)
        if version is not None and version.kind == DECISION and version.details.get("thesis_id"):
            found.add(str(version.details["thesis_id"]))
    found |= set(own.acting_on(subject.memory_id, view.cut))
    for name in list(found):
        version = view.version(name)
        if version is not None and version.kind == ORDER_ACTION:
            found |= {str(version.details["decision_id"]), *own.acting_on(name, view.cut)}
        elif version is not None and version.kind == DECISION and subject.kind == THESIS:
            found |= set(own.acting_on(name, view.cut))
    return found


def _submitted(view: View, related: set[str]) -> list[Entry]:
    """The orders that the story's submits opened, which are named by the caller's or the broker's id."""
    named: set[str] = set()
    for name in related:
        version = view.version(name)
        if version is not None and version.kind == ORDER_ACTION:
            order = version.details.get("order", {})
            named |= {str(version.details.get("client_order_id", "")), str(order.get("broker_order_id", ""))}
    return [
        entry
        for name in named
        for entry in view.history(name)
        if entry.event_type == "order.submitted" and json.loads(entry.content)["action_id"] in related
    ]


def _judged_by(view: View, found: dict[str, Entry]) -> list[Entry]:
    """The judgements of lessons that rest on the story's outcomes."""
    outcomes = {name for name, entry in found.items() if entry.event_type in OUTCOME_EVENTS}
    if not outcomes:
        return []
    judged = EntryFilter(event_type="lesson.judged", until_sequence=view.cut, limit=_JUDGEMENTS)
    return [
        entry
        for entry in view.layers[0].snapshot.entries(judged)
        if not outcomes.isdisjoint(json.loads(entry.content)["outcome_ids"])
    ]


def _seen_before(view: View, entry: Entry) -> list[Entry]:
    """What the agent was shown before it wrote an entry.

    In the same model call or, for an act without one, in its session since it acted last; and the search it names.
    """
    found: list[Entry] = []
    layer = next((layer for layer in view.layers if (layer.source is None) == _is_own(entry, view)), None)
    if layer is None:
        return found
    snapshot = layer.snapshot
    if entry.model_call_id is not None:
        around = snapshot.around(entry.agent, entry.model_call_id, entry.sequence)
        found += [before for before in around if before.event_type in _SHOWINGS]
    elif entry.event_type in _ACTS and entry.session_id is not None:
        found += snapshot.showings(entry.agent, entry.session_id, entry.sequence, limit=_SESSION_SHOWINGS)
    if entry.retrieval_id is not None:
        found += snapshot.history(entry.retrieval_id, entry.sequence)
    return found


def _is_own(entry: Entry, view: View) -> bool:
    """Whether an entry stands in the call's own ledger, not in the one it inherits."""
    return len(view.layers) == 1 or entry.run_id is not None


def _tells(entry: Entry, related: set[str]) -> bool:
    """Leave out showings of other subjects that say nothing of this story."""
    return entry.event_type != "memory.delivered" or entry.subject_id in {"state", *related}


def _step(entry: Entry, renderer: Renderer, *, own: bool) -> dict[str, Any]:
    content = json.loads(entry.content)
    step: dict[str, Any] = {
        "sequence": entry.sequence,
        "event": entry.event_type,
        "subject": entry.subject_id,
        "agent": entry.agent,
        "effective_at": renderer.time(entry.effective_at),
        "what": cut_text(_what(entry, content), _TEXT),
    }
    for name in ("retrieval_id", "model_call_id"):
        value = getattr(entry, name)
        if value is not None:
            step[name] = value
    if not own:
        step["source"] = LIVE
    step |= _origin(content.get("imported"), renderer)
    shown = content.get("selected", content.get("shown"))
    if shown is not None:
        step["shown"] = [{"id": item["id"], "version": item["version"]} for item in shown]
    if "evidence" in content:
        step["evidence"] = content["evidence"]
    return step


def _origin(block: dict[str, Any] | None, renderer: Renderer) -> dict[str, Any]:
    """Of an imported entry: that it is one, its time in the source and who wrote it there."""
    if block is None:
        return {}
    told: dict[str, Any] = {"imported": True}
    if "source_at" in block:
        told["source_at"] = renderer.time(block["source_at"])
    if "agent" in block:
        told["source_agent"] = block["agent"]
    return told


def _what(entry: Entry, content: dict[str, Any]) -> str:
    """One entry in words."""
    symbol = f" {entry.symbol}" if entry.symbol else ""
    if entry.event_type == "memory.retrieved":
        listed = "the newest" if content["mode"] == "recent" else GONE
        asked = " ".join(content["query"].split()) or listed
        return f'searched for "{asked}": {content["total"]} found, {len(content["selected"])} handed over'
    if entry.event_type == "memory.delivered":
        return f"was shown {'the state' if content['surface'] == 'state' else entry.subject_id}"
    if entry.event_type == "order_action.recorded":
        terms = [content.get(name) for name in ("side", "quantity", "order_type", "limit_price")]
        named = "".join(f" {term}" for term in terms if term is not None)
        return (
            f"intended to {content['operation']}{symbol}{named}{_order_named(content)}:"
            f" {' '.join(content['text'].split()) or GONE}"
        )
    if entry.event_type == "order.submitted":
        return f"the broker has the order{symbol} {entry.subject_id}"
    if entry.event_type == "order.outcome":
        told = [
            f"{name} {content[name]}"
            for name in ("filled_quantity", "average_price", "error_type")
            if name in content
        ]
        return (
            f"outcome {content['certainty']} ({content['standing']}){', ' if told else ''}{', '.join(told)}"
        )
    if entry.event_type == "thesis.outcome_observed":
        told = [
            f"{name} {content[name]}"
            for name in ("quantity", "last_price", "unrealised_return_pct")
            if name in content
        ]
        return f"observed{symbol} on {content['day']} ({content['standing']}): {', '.join(told)}"
    if entry.event_type == "thesis.closed":
        told = [
            f"{name} {content[name]}"
            for name in ("result", "pnl", "return_pct", "exit_price", "note")
            if name in content
        ]
        return f"closed the thesis: {', '.join(told) or 'no outcome'}"
    said = content.get("text") or content.get("message") or content.get("note") or content.get("status") or ""
    if not said and (content.get("text") == "" or content.get("message") == ""):
        said = f"{content.get('action', '')} {GONE}"
    return f"{entry.event_type}{symbol}: {' '.join(str(said).split())}"


def _order_named(content: dict[str, Any]) -> str:
    """The order that a modify or cancel is about, by its submit and the caller's own id."""
    if content["operation"] == SUBMIT:
        return ""
    action = content.get("submit_action_id") or content.get("previous_action_id")
    own = content.get("client_order_id")
    named = " ".join([*([action] if action else []), *([f"({own})"] if own else [])])
    return f" of order {named}" if named else ""
