"""Screens what a caller asks to be written, before anything is: secrets refused or masked, instructions pointed out.

Every field of every command stands in one of two tables below; a test holds them against the commands.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

from ..commands import Command, IntendOrder, RecordOutcome, ReportPositions
from ..errors import SecretRefused
from ..limits import REASON_CHARS, REASON_LEAST_CHARS, SHORT_TEXT_CHARS
from ..policy import Secrets
from ..rows import Filter
from ..search.recall import Question
from .evidence import Masked, screen_json
from .instructions import instructs, texts_in
from .secrets import mask

FREE_TEXT: Final = frozenset(
    """
    text category tags symbol horizon target invalidation result note reason public_reason error_type scope
    evidence outcome legs snapshot positions
    """.split()
)
"""Fields that hold words or JSON of the caller's own."""

LEFT_ALONE: Final = frozenset(
    """
    action direction status resolution verdict operation side order_type time_in_force certainty
    quantity limit_price stop_price filled_quantity average_price pnl return_pct exit_price
    review_by expires_at expected_version shown
    supersedes memory_id other_id thesis_id lesson_id decision_id action_id previous_action_id retrieval_id
    outcome_ids flag_id client_order_id broker_order_id
    """.split()
)
"""Ids, listed words, numbers and times: each is checked for what it has to be, which no secret is but by chance."""

_NEVER_BLOCKED = (IntendOrder, RecordOutcome, ReportPositions)
_BOUNDS: Final = {"reason": (REASON_LEAST_CHARS, REASON_CHARS), "error_type": (1, SHORT_TEXT_CHARS)}


@dataclass(frozen=True, slots=True)
class Screened:
    """A command as it may be written; `masked` are paths of fields, `suspicious` why its text seems to instruct."""

    command: Command
    masked: tuple[str, ...] = ()
    suspicious: tuple[str, ...] = ()


def screen(command: Command, policy: Secrets, key: str | None = None) -> Screened:
    """The command with its secrets masked; with `refuse` the first raises SecretRefused, naming its field alone.

    A secret in the idempotency `key` is refused under both: masked it would be another key. An order, its outcome and
    reported positions are never refused: there `refuse` masks.
    """
    given = {
        field.name: value
        for field in fields(command)
        if field.name in FREE_TEXT and (value := getattr(command, field.name)) is not None
    }
    suspicious = instructs("\n".join(text for value in given.values() for text in texts_in(value)))
    if policy == "keep":
        return Screened(command, (), suspicious)
    if key is not None and not isinstance(command, _NEVER_BLOCKED) and (secrets := mask(key)[1]):
        raise _refusal((("idempotency_key", secrets[0]),))
    changed: dict[str, Any] = {}
    found: list[tuple[str, str]] = []
    for name, value in given.items():
        screened, masked = screen_json(value, name)
        if masked:
            changed[name] = screened
            found += masked
    if found and policy == "refuse" and not isinstance(command, _NEVER_BLOCKED):
        raise _refusal(tuple(found))
    if isinstance(command, _NEVER_BLOCKED):
        changed |= {
            name: _fitted(name, given[name], value) for name, value in changed.items() if name in _BOUNDS
        }
    whole = replace(command, **changed) if changed else command
    return Screened(whole, tuple(dict.fromkeys(path for path, _ in found)), suspicious)


def screen_search(question: Question, typed: Filter, policy: Secrets) -> Question:
    """A question as it may be recorded: its words and conditions masked, unless the policy keeps secrets.

    What counts is how a condition was `typed`: in the small or capital letters of what it meant a secret hides.
    """
    if policy == "keep":
        return question
    changed: dict[str, Any] = {}
    for name in ("symbol", "agent"):
        masked, found = mask(getattr(typed, name) or "")
        if found:
            changed[name] = masked
    tags = [mask(tag) for tag in typed.tags]
    if any(found for _, found in tags):
        changed["tags"] = tuple(masked for masked, _ in tags)
    conditions = replace(question.conditions, **changed)
    return replace(question, query=mask(question.query)[0], conditions=conditions)


def _fitted(name: str, given: Any, masked: Any) -> Any:
    """A masked text within the bounds that it was in before: an order must not fail because something was masked."""
    if not isinstance(given, str) or not isinstance(masked, str):
        return masked
    least, most = _BOUNDS[name]
    if len(given) <= most:
        masked = masked[:most]
    return masked.ljust(least, ".") if len(given.strip()) >= least else masked


def _refusal(found: Masked) -> SecretRefused:
    path, what = found[0]
    return SecretRefused(
        f"{path} seems to hold {what}; nothing was stored.",
        field=path,
        hint='Leave it out and say it without; or the operator may set [screening] secrets = "mask".',
    )
