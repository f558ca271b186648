"""What each command does: the entries it leads to, given what stands.

Every handler runs inside the transaction that will hold its entries, so what it reads cannot change before
they are written. The first draft is the one the caller is answered about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import singledispatch

from .caller import Caller
from .commands import (
    ACTIONS,
    DIRECTIONS,
    CloseThesis,
    Command,
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
    AlreadyClosed,
    IllegalTransition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    VersionConflict,
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
from .inputs import as_given, decimal_text, identifier, json_value, required_text, short_text, tag_list
from .ledger import Draft
from .lifecycle import DECISION, LESSON, MEMORY, PROPOSAL, RESOLUTIONS, RISK_NOTE, THESIS, check_step
from .limits import NOTE_CHARS, SHORT_TEXT_CHARS
from .rows import Filter, Version
from .symbols import normalise_symbol

_SHOWN = 5
_TICKER = re.compile(r"[A-Z0-9][A-Z0-9./=^:_-]{0,20}")


@dataclass(frozen=True, slots=True)
class Moment:
    """Where the ledger stands while a command is planned: its last sequence and the call's effective time."""

    cut: int
    at: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The drafts to append, or the entry that already says the same."""

    drafts: tuple[Draft, ...] = ()
    standing: Entry | None = None


@singledispatch
def plan(command: Command, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    """The entries a command leads to.

    Raises the InvalidInput, NotFound, Conflict or PermissionDenied that fits.
    """
    raise TypeError(f"no handler for {type(command).__name__}")


@plan.register
def _(command: Remember, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    if command.expires_at is not None and command.expires_at <= moment.at:
        raise InvalidInput("expires_at lies in the past.", field="expires_at", hint="Give a later time.")
    old = _superseded(command, transaction, caller, moment)
    event = MemoryRecorded(
        text=required_text(command.text),
        category=short_text(command.category, field="category", longest=SHORT_TEXT_CHARS),
        supersedes=old.memory_id if old else None,
        review_by=command.review_by,
        expires_at=command.expires_at,
        **_common(command.tags, command.symbol),
    )
    draft = _new(MEMORY, event, command.symbol)
    if old is None:
        return Plan((draft,))
    change = StatusChanged(status="superseded", previous=old.status, replaced_by=draft.subject_id)
    return Plan((draft, _about(old, change)))


@plan.register
def _(command: Propose, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    event = ProposalRecorded(
        text=required_text(command.text),
        action=_one_of(command.action, ACTIONS, field="action"),
        **_common(command.tags, command.symbol),
    )
    return Plan((_new(PROPOSAL, event, command.symbol),))


@plan.register
def _(command: NoteRisk, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    event = RiskNoteRecorded(text=required_text(command.text), **_common(command.tags, command.symbol))
    return Plan((_new(RISK_NOTE, event, command.symbol),))


@plan.register
def _(command: Decide, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    action = _one_of(command.action, ACTIONS, field="action")
    if action is None:
        raise InvalidInput("action is missing.", field="action", hint=f"One of {', '.join(ACTIONS)}.")
    thesis = None if command.thesis_id is None else _thesis(transaction, command.thesis_id, moment)
    retrieval_id = None if command.retrieval_id is None else _search(transaction, command.retrieval_id)
    event = DecisionRecorded(
        text=required_text(command.text),
        action=action,
        evidence=json_value(command.evidence, field="evidence"),
        thesis_id=thesis.memory_id if thesis else None,
        **_common(command.tags, command.symbol),
    )
    return Plan((_new(DECISION, event, command.symbol, retrieval_id=retrieval_id),))


@plan.register
def _(command: ProposeLesson, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    event = LessonRecorded(
        text=required_text(command.text),
        outcome=json_value(command.outcome, field="outcome"),
        **_common(command.tags, command.symbol),
    )
    return Plan((_new(LESSON, event, command.symbol),))


@plan.register
def _(command: OpenThesis, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    symbol = normalise_symbol(command.symbol)
    notices: tuple[str, ...] = ()
    if symbol is not None:
        standing = transaction.versions(
            Filter(kind=THESIS, status="open", symbol=symbol),
            moment.cut,
            moment.at,
            limit=_SHOWN,
            before=None,
        )
        notices = tuple(
            f"{symbol} already has the open thesis {other.memory_id}"
            f" ({other.details.get('direction', 'no direction')}, by {other.agent})."
            for other in standing
        )
    event = ThesisOpened(
        text=required_text(command.text),
        review_by=command.review_by,
        notices=notices,
        **_thesis_terms(command),
        **_common(command.tags, command.symbol),
    )
    return Plan((_new(THESIS, event, command.symbol),))


@plan.register
def _(command: UpdateThesis, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    thesis = _thesis(transaction, command.thesis_id, moment)
    _refuse_closed(thesis)
    _check_version(thesis, command.expected_version)
    tags = None if command.tags is None else tag_list(command.tags)
    symbol = normalise_symbol(command.symbol)
    event = ThesisUpdated(
        text=required_text(command.text),
        tags=tags,
        tags_given=None if tags is None or command.tags is None else as_given(command.tags, tags),
        symbol=symbol,
        symbol_given=command.symbol if command.symbol != symbol else None,
        review_by=command.review_by,
        **_thesis_terms(command),
    )
    return Plan((_about(thesis, event, symbol=symbol or thesis.symbol),))


@plan.register
def _(command: CloseThesis, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    thesis = _thesis(transaction, command.thesis_id, moment)
    outcome = {
        "result": short_text(command.result, field="result", longest=SHORT_TEXT_CHARS),
        "pnl": decimal_text(command.pnl, field="pnl"),
        "return_pct": decimal_text(command.return_pct, field="return_pct"),
        "exit_price": decimal_text(command.exit_price, field="exit_price"),
        "note": short_text(command.note, field="note", longest=NOTE_CHARS),
    }
    said = {name: value for name, value in outcome.items() if value is not None}
    if thesis.status == "closed" and thesis.details["outcome"] == said:
        return Plan(standing=transaction.entry(thesis.sequence_from))
    _refuse_closed(thesis)
    _check_version(thesis, command.expected_version)
    notices = () if said else ("The thesis was closed without an outcome, so no lesson can rest on it.",)
    return Plan((_about(thesis, ThesisClosed(notices=notices, **said)),))


@plan.register
def _(command: ResolveMemory, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    if caller.resolves_any:
        memory = _existing(transaction, command.memory_id, moment, field="memory_id")
    else:
        memory = _own(transaction, caller, command.memory_id, moment, field="memory_id")
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
    _check_version(memory, command.expected_version)
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    return Plan((_about(memory, StatusChanged(status=command.status, previous=memory.status, note=note)),))


@plan.register
def _(command: FlagMemory, transaction: Transaction, caller: Caller, moment: Moment) -> Plan:
    memory = _existing(transaction, command.memory_id, moment, field="memory_id")
    other = None
    if command.other_id is not None:
        other = _existing(transaction, command.other_id, moment, field="other_id")
        if other.memory_id == memory.memory_id:
            raise InvalidInput(
                "other_id names the same memory.", field="other_id", hint="Name the memory it conflicts with."
            )
    event = Flagged(
        reason=command.reason,
        other_id=other.memory_id if other else None,
        note=short_text(command.note, field="note", longest=NOTE_CHARS),
    )
    return Plan((_about(memory, event),))


def _common(tags: tuple[str, ...], symbol: str | None) -> dict[str, object]:
    normal = tag_list(tags)
    return {
        "tags": normal,
        "tags_given": as_given(tags, normal),
        "symbol_given": symbol if symbol != normalise_symbol(symbol) else None,
    }


def _thesis_terms(command: OpenThesis | UpdateThesis) -> dict[str, str | None]:
    return {
        "direction": _one_of(command.direction, DIRECTIONS, field="direction"),
        "horizon": short_text(command.horizon, field="horizon", longest=SHORT_TEXT_CHARS),
        "target": short_text(command.target, field="target", longest=SHORT_TEXT_CHARS),
        "invalidation": short_text(command.invalidation, field="invalidation", longest=SHORT_TEXT_CHARS),
    }


def _new(kind: str, event: Recorded, symbol: str | None, retrieval_id: str | None = None) -> Draft:
    return Draft(event, "memory", new_id(PREFIXES[kind]), kind, normalise_symbol(symbol), retrieval_id)


def _about(
    memory: Version,
    event: StatusChanged | Flagged | ThesisUpdated | ThesisClosed,
    *,
    symbol: str | None = None,
) -> Draft:
    return Draft(event, "memory", memory.memory_id, memory.kind, symbol or memory.symbol)


def _one_of(value: str | None, allowed: tuple[str, ...], *, field: str) -> str | None:
    if value is None or not value.strip():
        return None
    plain = value.strip().lower()
    if plain not in allowed:
        raise InvalidInput(
            f"{field} is not a known value.", field=field, hint=f"One of {', '.join(allowed)}."
        )
    return plain


def _existing(transaction: Transaction, memory_id: str, moment: Moment, *, field: str) -> Version:
    found = transaction.version(identifier(memory_id, field=field), moment.cut)
    if found is None:
        raise NotFound(
            f"{field} names no memory of this ledger.", field=field, hint="Find the id with search_memory."
        )
    return found


def _own(transaction: Transaction, caller: Caller, memory_id: str, moment: Moment, *, field: str) -> Version:
    found = _existing(transaction, memory_id, moment, field=field)
    if found.agent != caller.agent:
        raise PermissionDenied(
            f"{found.memory_id} was written by {found.agent}; only its author may end it.",
            field=field,
            hint="Use flag_memory to ask a person to look at it.",
        )
    return found


def _superseded(
    command: Remember, transaction: Transaction, caller: Caller, moment: Moment
) -> Version | None:
    """The caller's own note that a new one replaces."""
    if command.supersedes is None:
        return None
    old = _own(transaction, caller, command.supersedes, moment, field="supersedes")
    if old.kind != MEMORY:
        raise IllegalTransition(
            f"{old.memory_id} is a {old.kind}; only a note can be superseded by a note.",
            field="supersedes",
            hint="Use resolve_memory or flag_memory for other kinds.",
        )
    check_step(MEMORY, old.status, "superseded", field="supersedes")
    return old


def _search(transaction: Transaction, retrieval_id: str) -> str:
    """The id of a recorded search."""
    found = transaction.retrieval(identifier(retrieval_id, field="retrieval_id"))
    if found is None:
        raise NotFound(
            "retrieval_id names no search of this ledger.",
            field="retrieval_id",
            hint="Use the retrieval_id that search_memory returned, or leave it out.",
        )
    return found.retrieval_id


def _thesis(transaction: Transaction, thesis_id: str, moment: Moment) -> Version:
    found = transaction.version(identifier(thesis_id, field="thesis_id"), moment.cut)
    if found is not None and found.kind == THESIS:
        return found
    standing = transaction.versions(
        Filter(kind=THESIS, status="open"), moment.cut, moment.at, limit=_SHOWN, before=None
    )
    named = ", ".join(f"{thesis.memory_id} ({_ticker(thesis)})" for thesis in standing)
    what = (
        f"thesis_id names a {found.kind}, not a thesis."
        if found
        else "thesis_id names no thesis of this ledger."
    )
    raise NotFound(
        what,
        field="thesis_id",
        hint=f"Open theses: {named}." if named else "No thesis is open; open_thesis makes one.",
    )


def _ticker(thesis: Version) -> str:
    """The symbol where it looks like one: an error is the server's word and carries no sentence of an agent's."""
    if thesis.symbol is None:
        return "no symbol"
    return thesis.symbol if _TICKER.fullmatch(thesis.symbol) else "another symbol"


def _refuse_closed(thesis: Version) -> None:
    if thesis.status == "closed":
        raise AlreadyClosed(
            f"{thesis.memory_id} was closed by {thesis.details['closed_by']}"
            f" at sequence {thesis.sequence_from}.",
            field="thesis_id",
            hint="Open a new one with open_thesis and name this one; a post-mortem fits remember_lesson.",
        )


def _check_version(memory: Version, expected: int | None) -> None:
    if expected is not None and expected != memory.version:
        raise VersionConflict(
            f"{memory.memory_id} is at version {memory.version}, not {expected}.",
            field="expected_version",
            hint="Read it with get_memory, then send the change again with the current version.",
        )
