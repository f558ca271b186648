"""What each command does: the entries it leads to, given what stands.

Handlers register with `planning.plan`, which says what they may rely on.
"""

from __future__ import annotations

from typing import TypeAlias

from .caller import Caller
from .commands import (
    ACTIONS,
    DIRECTIONS,
    CloseThesis,
    Decide,
    FlagMemory,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from .engines.base import Transaction
from .entry import Entry
from .errors import (
    IllegalTransition,
    InvalidInput,
)
from .events import (
    DecisionRecorded,
    Flagged,
    LessonRecorded,
    MemoryRecorded,
    ProposalRecorded,
    Recorded,
    RiskNoteRecorded,
    StatusChanged,
    ThesisClosed,
    ThesisOpened,
    ThesisUpdated,
)
from .ids import PREFIXES, new_id
from .inputs import as_given, decimal_text, json_value, required_text, short_text, tag_list
from .invalidation import read_invalidation
from .ledger import Draft
from .lifecycle import DECISION, LESSON, MEMORY, PROPOSAL, RESOLUTIONS, RISK_NOTE, THESIS, check_step
from .limits import NOTE_CHARS, SHORT_TEXT_CHARS
from .planning import (
    SHOWN,
    Plan,
    about,
    check_version,
    existing,
    one_of,
    own,
    plan,
    recorded_search,
    refuse_closed,
    refuse_inherited,
    thesis_of,
)
from .positions import strategy_day
from .review.conflicts import by_policy
from .rows import Filter, Version
from .symbols import normalise_symbol
from .view import View

Recording: TypeAlias = Remember | Propose | NoteRisk | Decide | ProposeLesson | OpenThesis


@plan.register
def _(command: Remember, transaction: Transaction, caller: Caller, view: View) -> Plan:
    old = _superseded(command, caller, view)
    event = MemoryRecorded(
        text=required_text(command.text),
        category=short_text(command.category, field="category", longest=SHORT_TEXT_CHARS),
        supersedes=old.memory_id if old else None,
        **_common(command, view),
    )
    draft = _new(MEMORY, event, command.symbol)
    if old is None:
        return Plan((draft,))
    change = StatusChanged(status="superseded", previous=old.status, replaced_by=draft.subject_id)
    return Plan((draft,), before=(about(old, change),))


@plan.register
def _(command: Propose, transaction: Transaction, caller: Caller, view: View) -> Plan:
    event = ProposalRecorded(
        text=required_text(command.text),
        action=one_of(command.action, ACTIONS, field="action"),
        **_common(command, view),
    )
    return Plan((_new(PROPOSAL, event, command.symbol),))


@plan.register
def _(command: NoteRisk, transaction: Transaction, caller: Caller, view: View) -> Plan:
    event = RiskNoteRecorded(text=required_text(command.text), **_common(command, view))
    return Plan((_new(RISK_NOTE, event, command.symbol),))


@plan.register
def _(command: Decide, transaction: Transaction, caller: Caller, view: View) -> Plan:
    action = one_of(command.action, ACTIONS, field="action")
    if action is None:
        raise InvalidInput("action is missing.", field="action", hint=f"One of {', '.join(ACTIONS)}.")
    thesis = None if command.thesis_id is None else thesis_of(view, command.thesis_id)
    retrieval_id = (
        None if command.retrieval_id is None else recorded_search(transaction, command.retrieval_id)
    )
    event = DecisionRecorded(
        text=required_text(command.text),
        action=action,
        evidence=json_value(command.evidence, field="evidence"),
        thesis_id=thesis.memory_id if thesis else None,
        **_common(command, view),
    )
    return Plan((_new(DECISION, event, command.symbol, retrieval_id=retrieval_id),))


@plan.register
def _(command: ProposeLesson, transaction: Transaction, caller: Caller, view: View) -> Plan:
    event = LessonRecorded(
        text=required_text(command.text),
        outcome=json_value(command.outcome, field="outcome"),
        **_common(command, view),
    )
    return Plan((_new(LESSON, event, command.symbol),))


@plan.register
def _(command: OpenThesis, transaction: Transaction, caller: Caller, view: View) -> Plan:
    symbol = normalise_symbol(command.symbol)
    notices: tuple[str, ...] = ()
    if symbol is not None:
        standing = view.versions(Filter(kind=THESIS, status="open", symbol=symbol), limit=SHOWN)
        notices = tuple(
            f"{symbol} already has the open thesis {other.memory_id}"
            f" ({other.details.get('direction', 'no direction')}, by {other.agent})."
            for other in standing
        )
    event = ThesisOpened(
        text=required_text(command.text),
        notices=(*notices, *_unwatched(command, view)),
        **_thesis_terms(command),
        **_common(command, view),
    )
    return Plan((_new(THESIS, event, command.symbol),))


@plan.register
def _(command: UpdateThesis, transaction: Transaction, caller: Caller, view: View) -> Plan:
    thesis = thesis_of(view, command.thesis_id)
    refuse_inherited(thesis, field="thesis_id")
    refuse_closed(thesis)
    check_version(thesis, command.expected_version)
    tags = None if command.tags is None else tag_list(command.tags)
    symbol = normalise_symbol(command.symbol)
    event = ThesisUpdated(
        text=required_text(command.text),
        tags=tags,
        tags_given=None if tags is None or command.tags is None else as_given(command.tags, tags),
        symbol=symbol,
        symbol_given=command.symbol if command.symbol != symbol else None,
        review_by=command.review_by,
        notices=_unwatched(command, view),
        **_thesis_terms(command),
    )
    return Plan((about(thesis, event, symbol=symbol or thesis.symbol),))


@plan.register
def _(command: CloseThesis, transaction: Transaction, caller: Caller, view: View) -> Plan:
    thesis = thesis_of(view, command.thesis_id)
    refuse_inherited(thesis, field="thesis_id")
    outcome = {
        "result": short_text(command.result, field="result", longest=SHORT_TEXT_CHARS),
        "pnl": decimal_text(command.pnl, field="pnl", percent=False),
        "return_pct": decimal_text(command.return_pct, field="return_pct"),
        "exit_price": decimal_text(command.exit_price, field="exit_price", percent=False),
        "note": short_text(command.note, field="note", longest=NOTE_CHARS),
    }
    said = {name: value for name, value in outcome.items() if value is not None}
    if thesis.status == "closed" and thesis.details["outcome"] == said:
        return Plan(standing=transaction.entry(thesis.sequence_from))
    refuse_closed(thesis)
    check_version(thesis, command.expected_version)
    notices = () if said else ("The thesis was closed without an outcome, so no lesson can rest on it.",)
    return Plan((about(thesis, ThesisClosed(notices=notices, **said)),))


@plan.register
def _(command: ResolveMemory, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = own(view, caller, command.memory_id, field="memory_id", any_author=caller.resolves_any)
    allowed = RESOLUTIONS.get(memory.kind)
    if allowed is None or command.status != allowed:
        step = {THESIS: "Use close_thesis.", DECISION: "A decision stands; record a new one."}.get(
            memory.kind
        )
        raise IllegalTransition(
            f"A {memory.kind} cannot become {command.status} here.",
            field="status",
            hint=step or f"A {memory.kind} can become {allowed}.",
        )
    check_step(memory.kind, memory.status, command.status)
    check_version(memory, command.expected_version)
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    return Plan((about(memory, StatusChanged(status=command.status, previous=memory.status, note=note)),))


@plan.register
def _(command: FlagMemory, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = existing(view, command.memory_id, field="memory_id")
    refuse_inherited(memory, field="memory_id")
    other = None
    if command.other_id is not None:
        other = existing(view, command.other_id, field="other_id")
        if other.memory_id == memory.memory_id:
            raise InvalidInput(
                "other_id names the same memory.", field="other_id", hint="Name the memory it conflicts with."
            )
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    said = (caller.agent, memory.memory_id, command.reason, other.memory_id if other else None, note)
    standing = _standing_flag(said, transaction, view)
    if standing is not None:
        return Plan(standing=standing, warnings=("You have said so before, and a person has yet to answer.",))
    event = Flagged(
        reason=command.reason,
        other_id=other.memory_id if other else None,
        note=note,
    )
    if other is None or command.reason != "conflicting":
        return Plan((about(memory, event),))
    return Plan(
        (about(memory, event),), then=lambda flagged: by_policy(flagged, memory, other, transaction, view)
    )


def _standing_flag(said: tuple[str | None, ...], transaction: Transaction, view: View) -> Entry | None:
    """The entry of the open flag that says the same word for word; one whose content was taken away says nothing."""
    for flag in transaction.flags_on((str(said[1]),), view.cut):
        if (flag.agent, flag.memory_id, flag.reason, flag.other_id, flag.note) == said:
            entry = transaction.entry(flag.sequence)
            if entry is not None and entry.content_salt:
                return entry
    return None


def _common(command: Recording, view: View) -> dict[str, object]:
    """What every kind of memory has."""
    if command.expires_at is not None and command.expires_at <= view.at:
        raise InvalidInput("expires_at lies in the past.", field="expires_at", hint="Give a later time.")
    normal = tag_list(command.tags)
    return {
        "tags": normal,
        "tags_given": as_given(command.tags, normal),
        "symbol_given": command.symbol if command.symbol != normalise_symbol(command.symbol) else None,
        "review_by": command.review_by,
        "expires_at": command.expires_at,
    }


def _thesis_terms(command: OpenThesis | UpdateThesis) -> dict[str, str | None]:
    return {
        "direction": one_of(command.direction, DIRECTIONS, field="direction"),
        "horizon": short_text(command.horizon, field="horizon", longest=SHORT_TEXT_CHARS),
        "target": short_text(command.target, field="target", longest=SHORT_TEXT_CHARS),
        "invalidation": short_text(command.invalidation, field="invalidation", longest=SHORT_TEXT_CHARS),
    }


def _unwatched(command: OpenThesis | UpdateThesis, view: View) -> tuple[str, ...]:
    """What of a thesis nobody will be reminded of in time."""
    found = []
    said = command.invalidation is not None and command.invalidation.strip()
    if said and read_invalidation(command.invalidation, strategy_day(view.at, view.zone)) is None:
        found.append("invalidation names no single price or date, so nobody watches it.")
    if command.review_by is not None and command.review_by <= view.at:
        found.append("review_by lies in the past, so the thesis is due for review at once.")
    return tuple(found)


def _new(kind: str, event: Recorded, symbol: str | None, retrieval_id: str | None = None) -> Draft:
    return Draft(event, "memory", new_id(PREFIXES[kind]), kind, normalise_symbol(symbol), retrieval_id)


def _superseded(command: Remember, caller: Caller, view: View) -> Version | None:
    """The caller's own note that a new one replaces."""
    if command.supersedes is None:
        return None
    old = own(view, caller, command.supersedes, field="supersedes")
    if old.kind != MEMORY:
        raise IllegalTransition(
            f"{old.memory_id} is a {old.kind}; only a note can be superseded by a note.",
            field="supersedes",
            hint="Use resolve_memory or flag_memory for other kinds.",
        )
    check_step(MEMORY, old.status, "superseded", field="supersedes")
    return old
