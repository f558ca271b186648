"""Earned lessons: judged by observed outcomes only, each counted once.

The rule: every observed outcome named with `supports` or `contradicts` counts one for its side, if it came after
the lesson and, where the lesson has a symbol, is on that instrument. A lesson is validated while it has more
supports than contradictions, else contradicted. A claim, however often repeated, counts nothing: an agent cannot
validate a lesson alone, nor with what it knew when it wrote it.
"""

from __future__ import annotations

import json
from typing import Any

from .caller import Caller
from .commands import ValidateLesson
from .engines.base import Transaction
from .entry import Entry
from .errors import IllegalTransition, InvalidInput, NotFound, PermissionDenied
from .events import LessonJudged
from .inputs import identifier, short_text
from .lifecycle import LESSON, ORDER_ACTION
from .limits import NOTE_CHARS
from .planning import Plan, about, existing, one_of, plan, refuse_inherited
from .rows import Version
from .view import View

VERDICTS = ("supports", "contradicts")
MOST_OUTCOMES = 50
OUTCOME_EVENTS = ("order.outcome", "thesis.outcome_observed")
_TERMINAL = frozenset({"filled", "partially_filled", "cancelled"})


@plan.register
def _(command: ValidateLesson, transaction: Transaction, caller: Caller, view: View) -> Plan:
    lesson = existing(view, command.lesson_id, field="lesson_id")
    refuse_inherited(lesson, field="lesson_id")
    if lesson.kind != LESSON:
        raise NotFound(
            f"lesson_id names a {lesson.kind}, not a lesson.",
            field="lesson_id",
            hint="Find lessons with search_memory.",
        )
    if lesson.status == "retired":
        raise IllegalTransition(
            "A retired lesson is judged no more.", field="lesson_id", hint="Propose a new one."
        )
    verdict = one_of(command.verdict, VERDICTS, field="verdict")
    if verdict is None:
        raise InvalidInput("verdict is missing.", field="verdict", hint="supports or contradicts.")
    used = set(lesson.details.get("outcome_ids", ()))
    since = transaction.history(lesson.memory_id, view.cut)[0].sequence
    outcomes = []
    for index, name in enumerate(_names(command)):
        entry = _outcome(transaction, name, index, used, view)
        _check_fits(entry, f"outcome_ids[{index}]", lesson, since, view)
        outcomes.append(entry)
    tally = {name: lesson.details.get("tally", {}).get(name, 0) for name in VERDICTS}
    tally[verdict] += len(outcomes)
    status = "validated" if tally["supports"] > tally["contradicts"] else "contradicted"
    event = LessonJudged(
        verdict=verdict,
        outcome_ids=tuple(entry.event_id for entry in outcomes),
        note=short_text(command.note, field="note", longest=NOTE_CHARS),
        previous=lesson.status,
        status=status,
        **tally,
    )
    return Plan((about(lesson, event),))


def _names(command: ValidateLesson) -> tuple[str, ...]:
    if not 1 <= len(command.outcome_ids) <= MOST_OUTCOMES:
        raise InvalidInput(
            f"outcome_ids must name 1 to {MOST_OUTCOMES} observed outcomes.",
            field="outcome_ids",
            hint="Use the event_id of order outcomes or thesis observations that a harness reported. Without any,"
            " flag_memory asks a person to sign off.",
        )
    if len(set(command.outcome_ids)) != len(command.outcome_ids):
        raise InvalidInput(
            "outcome_ids names one twice.", field="outcome_ids", hint="Each outcome counts once."
        )
    return command.outcome_ids


def _outcome(transaction: Transaction, name: str, index: int, used: set[str], view: View) -> Entry:
    field = f"outcome_ids[{index}]"
    entry = transaction.entry_of_event(identifier(name, field=field))
    if entry is None or entry.sequence > view.cut or entry.event_type not in OUTCOME_EVENTS:
        raise NotFound(
            f"{field} names no outcome of this ledger.",
            field=field,
            hint="Use the event_id of an outcome's entry.",
        )
    content: dict[str, Any] = json.loads(entry.content)
    if content.get("standing") != "observed":
        raise PermissionDenied(
            f"{field} is a claim of {entry.agent}, not an observed outcome.",
            field=field,
            hint="Only what a harness observed counts; flag_memory asks a person to sign off.",
        )
    if entry.event_type == "order.outcome" and content.get("certainty") not in _TERMINAL:
        raise InvalidInput(
            f"{field} says what the broker answered, not how it ended.",
            field=field,
            hint="Name a fill, a cancellation or a thesis observation.",
        )
    if entry.event_id in used:
        raise InvalidInput(
            f"{field} has been counted for this lesson.", field=field, hint="Name a new outcome."
        )
    return entry


def _check_fits(entry: Entry, field: str, lesson: Version, since: int, view: View) -> None:
    """Refuse an outcome that the lesson could have been written from, or that is on another instrument."""
    if entry.sequence < since:
        raise InvalidInput(
            f"{field} was recorded at sequence {entry.sequence}, before the lesson at {since}.",
            field=field,
            hint="A lesson is tested by what comes after it: name a later outcome.",
        )
    if lesson.symbol is None:
        return
    wanted = view.instrument(lesson.symbol, lesson.created_at)
    if wanted not in {view.instrument(symbol, entry.effective_at) for symbol in _symbols(entry, view)}:
        raise InvalidInput(
            f"{field} is not on the instrument of the lesson.",
            field=field,
            hint="Name an outcome on the lesson's symbol; a lesson without a symbol takes any later outcome.",
        )


def _symbols(entry: Entry, view: View) -> tuple[str, ...]:
    """What an outcome is on: everything that its order touches, else the entry's own symbol."""
    subject = view.version(entry.subject_id)
    if subject is not None and subject.kind == ORDER_ACTION:
        return tuple(subject.details.get("touches", ()))
    return () if entry.symbol is None else (entry.symbol,)
