"""Earned lessons: judged by observed outcomes only, each counted once.

The rule: every observed outcome named with `supports` or `contradicts` counts one for its side. A lesson is
validated while it has more supports than contradictions, else contradicted. A claim, however often repeated,
counts nothing: an agent cannot validate a lesson alone.
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
from .lifecycle import LESSON
from .limits import NOTE_CHARS
from .planning import Plan, about, existing, one_of, plan, refuse_inherited
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
    outcomes = [_outcome(transaction, name, index, used, view) for index, name in enumerate(_names(command))]
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
