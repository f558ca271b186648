"""What a caller may ask to be written, as plain frozen values; `memories` says what each one does.

Texts are as typed. Times are microseconds since the epoch, UTC. Decimal numbers are strings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

FlagReason = Literal["stale", "wrong", "conflicting", "other"]
ACTIONS = ("buy", "sell", "hold", "reduce", "add", "skip", "other")
DIRECTIONS = ("long", "short", "neutral")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Base of all commands."""

    def arguments(self) -> dict[str, Any]:
        """The arguments that were given, for comparing a repeat; tuples become lists."""
        named = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, (value, default) in named.items()
            if value != default
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember(Command):
    """Keep a note; `supersedes` names an older note of the same agent that it replaces."""

    text: str
    category: str | None = None
    tags: tuple[str, ...] = ()
    symbol: str | None = None
    supersedes: str | None = None
    review_by: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose(Command):
    """Suggest something; it binds nobody."""

    text: str
    symbol: str | None = None
    action: str | None = None
    tags: tuple[str, ...] = ()
    review_by: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRisk(Command):
    """Point out a danger."""

    text: str
    symbol: str | None = None
    tags: tuple[str, ...] = ()
    review_by: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide(Command):
    """Record a decision with its evidence (any JSON object or list)."""

    text: str
    action: str
    symbol: str | None = None
    evidence: Any = None
    tags: tuple[str, ...] = ()
    thesis_id: str | None = None
    retrieval_id: str | None = None
    review_by: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeLesson(Command):
    """Propose a lesson; its outcome (any JSON object or list) is a claim."""

    text: str
    symbol: str | None = None
    tags: tuple[str, ...] = ()
    outcome: Any = None
    review_by: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenThesis(Command):
    """Open a thesis."""

    text: str
    symbol: str | None = None
    direction: str | None = None
    horizon: str | None = None
    target: str | None = None
    invalidation: str | None = None
    review_by: int | None = None
    expires_at: int | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateThesis(Command):
    """Replace an open thesis' text; what is None keeps its value."""

    thesis_id: str
    text: str
    symbol: str | None = None
    direction: str | None = None
    horizon: str | None = None
    target: str | None = None
    invalidation: str | None = None
    review_by: int | None = None
    tags: tuple[str, ...] | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseThesis(Command):
    """Close a thesis with the outcome its author claims."""

    thesis_id: str
    result: str | None = None
    pnl: str | None = None
    return_pct: str | None = None
    exit_price: str | None = None
    note: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveMemory(Command):
    """End one's own memory: withdraw a proposal, resolve a risk note, retire a note or lesson."""

    memory_id: str
    status: str
    note: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagMemory(Command):
    """Ask a person to look at a memory."""

    memory_id: str
    reason: FlagReason
    other_id: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendOrder(Command):
    """Journal an order action before the broker is called.

    Quantities and prices are decimal strings. `legs` is a list of objects with symbol, side and quantity.
    """

    operation: str
    reason: str
    symbol: str | None = None
    side: str | None = None
    quantity: str | None = None
    order_type: str | None = None
    limit_price: str | None = None
    stop_price: str | None = None
    time_in_force: str | None = None
    legs: Any = None
    client_order_id: str | None = None
    thesis_id: str | None = None
    decision_id: str | None = None
    previous_action_id: str | None = None
    public_reason: str | None = None
    evidence: Any = None
    snapshot: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOutcome(Command):
    """Record what became of an order action, or of the order its submit opened."""

    action_id: str
    certainty: str
    broker_order_id: str | None = None
    filled_quantity: str | None = None
    average_price: str | None = None
    error_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPositions(Command):
    """Report all that is held now: a list of objects with symbol and quantity, and prices where known."""

    positions: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateLesson(Command):
    """Judge a lesson by observed outcomes, named by the event ids of their entries."""

    lesson_id: str
    verdict: str
    outcome_ids: tuple[str, ...]
    note: str | None = None
