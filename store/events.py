"""The content of every event type: frozen models, told apart by `type`.

`type` is the entry's `event_type`. Content holds what the columns of the entry do not: it never repeats the
agent, the clock or the subject. Decimal numbers are strings. Fields that are None are left out of the stored
JSON. docs/events.md lists the same for readers and is checked against this module.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from .event_parts import Alike, Candidate, Event, Imported, Position, Selected, Strings
from .import_events import ImportBegun, ImportEnded, ImportKept
from .review_events import (
    Approved,
    Edited,
    PublicationBegun,
    PublicationEnded,
    Redacted,
    Rejected,
    Renewed,
    Repeated,
    Settled,
    SignedOff,
)


class Genesis(Event):
    """First entry of a ledger: binds store id, strategy, run and what a run inherits."""

    type: Literal["genesis"] = "genesis"
    store_id: str
    strategy: str
    run: str | None = None
    mode: Literal["live", "simulated"]
    inherit: Literal["none", "live"] = "none"
    live_store_id: str | None = None
    live_sequence: int | None = None
    live_chain_sha256: str | None = None
    product: str


class SessionStarted(Event):
    """First entry of a session, written with the session's first other entry."""

    type: Literal["session.started"] = "session.started"
    transport: str
    client_name: str | None = None
    client_version: str | None = None
    protocol_version: str | None = None
    token_id: str | None = None


class Recorded(Event):
    """What every recorded memory has; `notices` are the warnings its author was given.

    `alike` are memories it repeats or may contradict, `suspicious` says why a text seems to instruct its reader,
    `masked` which fields held a secret, `retrievals` which searches came before it in its session. `redacted`
    stands where the content was taken away, and says how many terms its text had.
    """

    text: str
    tags: Strings = ()
    tags_given: Strings | None = None
    symbol_given: str | None = None
    review_by: int | None = None
    expires_at: int | None = None
    review_state: Literal["none", "pending", "approved", "host_confirmed"] = "none"
    pending_until: int | None = None
    notices: Strings = ()
    alike: tuple[Alike, ...] | None = None
    suspicious: Strings | None = None
    masked: Strings | None = None
    retrievals: Strings | None = None
    redacted: int | None = None
    imported: Imported | None = None


class MemoryRecorded(Recorded):
    """A note worth keeping."""

    type: Literal["memory.recorded"] = "memory.recorded"
    category: str | None = None
    supersedes: str | None = None


class ProposalRecorded(Recorded):
    """A suggestion that binds nobody."""

    type: Literal["proposal.recorded"] = "proposal.recorded"
    action: str | None = None


class RiskNoteRecorded(Recorded):
    """A danger to keep in view."""

    type: Literal["risk_note.recorded"] = "risk_note.recorded"


class DecisionRecorded(Recorded):
    """What was decided and on what evidence."""

    type: Literal["decision.recorded"] = "decision.recorded"
    action: str
    evidence: Any = None
    thesis_id: str | None = None


class LessonRecorded(Recorded):
    """A lesson as its author proposes it; the outcome is the author's claim."""

    type: Literal["lesson.recorded"] = "lesson.recorded"
    outcome: Any = None


class ThesisOpened(Recorded):
    """A thesis to be held until it is closed."""

    type: Literal["thesis.opened"] = "thesis.opened"
    direction: str | None = None
    horizon: str | None = None
    target: str | None = None
    invalidation: str | None = None


class ThesisUpdated(Event):
    """New wording of an open thesis; a field left out keeps its value."""

    type: Literal["thesis.updated"] = "thesis.updated"
    text: str
    tags: Strings | None = None
    tags_given: Strings | None = None
    symbol: str | None = None
    symbol_given: str | None = None
    direction: str | None = None
    horizon: str | None = None
    target: str | None = None
    invalidation: str | None = None
    review_by: int | None = None
    review_state: Literal["pending"] | None = None
    pending_until: int | None = None
    notices: Strings = ()
    alike: tuple[Alike, ...] | None = None
    suspicious: Strings | None = None
    masked: Strings | None = None
    redacted: int | None = None
    imported: Imported | None = None


class ThesisClosed(Event):
    """End of a thesis with the outcome its author claims."""

    type: Literal["thesis.closed"] = "thesis.closed"
    result: str | None = None
    pnl: str | None = None
    return_pct: str | None = None
    exit_price: str | None = None
    note: str | None = None
    notices: Strings = ()
    masked: Strings | None = None
    redacted: int | None = None
    imported: Imported | None = None


class StatusChanged(Event):
    """A memory's status moved along its lifecycle."""

    type: Literal["memory.status_changed"] = "memory.status_changed"
    status: str
    previous: str
    note: str | None = None
    replaced_by: str | None = None
    masked: Strings | None = None


class Flagged(Event):
    """Someone asks a person to look at a memory; its status stays."""

    type: Literal["memory.flagged"] = "memory.flagged"
    reason: Literal["stale", "wrong", "conflicting", "other"]
    other_id: str | None = None
    note: str | None = None
    masked: Strings | None = None


class Retrieved(Event):
    """One search: what was asked, considered, selected, and the exact text handed over.

    `model` made the vectors of a search by meaning; up to the entry `watermark` every text had them.
    """

    type: Literal["memory.retrieved"] = "memory.retrieved"
    query: str
    mode: Literal["recent", "terms", "literal", "hybrid"]
    filters: dict[str, Any]
    order: Literal["losses_first"] | None = None
    as_of: int | None = None
    cut: int
    inherited_cut: int | None = None
    model: str | None = None
    watermark: int | None = None
    inherited_watermark: int | None = None
    total: int
    candidates: tuple[Candidate, ...]
    selected: tuple[Selected, ...]
    rendered: str
    imported: Imported | None = None


class Delivered(Event):
    """One showing of the state or of a single memory."""

    type: Literal["memory.delivered"] = "memory.delivered"
    surface: Literal["state", "memory"]
    as_of: int | None = None
    cut: int
    inherited_cut: int | None = None
    shown: tuple[Selected, ...]


class Denied(Event):
    """A call the identity was not allowed to make; `count` sums repeats."""

    type: Literal["permission.denied"] = "permission.denied"
    tool: str
    count: int = 1


class CallFailed(Event):
    """A changing call that failed, without its arguments; `count` sums repeats."""

    type: Literal["call.failed"] = "call.failed"
    tool: str
    code: str
    field: str | None = None
    count: int = 1


class ClockAnomaly(Event):
    """The machine's clock read earlier than the entry before."""

    type: Literal["clock.anomaly"] = "clock.anomaly"
    previous: int
    observed: int


class ClockAdvanced(Event):
    """A harness moved the run's clock on; the new time is the entry's own."""

    type: Literal["clock.advanced"] = "clock.advanced"
    previous: int


class OrderIntended(Recorded):
    """An order action as it was intended, before the broker was called; `text` is the private reason."""

    type: Literal["order_action.recorded"] = "order_action.recorded"
    operation: Literal["submit", "modify", "cancel"]
    side: str | None = None
    quantity: str | None = None
    order_type: str | None = None
    limit_price: str | None = None
    stop_price: str | None = None
    time_in_force: str | None = None
    legs: tuple[dict[str, Any], ...] | None = None
    touches: Strings = ()
    client_order_id: str | None = None
    thesis_id: str | None = None
    decision_id: str
    previous_action_id: str | None = None
    submit_action_id: str | None = None
    public_reason: str | None = None
    evidence: Any = None
    snapshot: Any = None
    revision: str | None = None
    deployment: str | None = None
    reason_salt: str
    reason_sha256: str


class OrderOutcome(Event):
    """What became of an action, or of the order its submit opened."""

    type: Literal["order.outcome"] = "order.outcome"
    certainty: str
    previous: str
    standing: Literal["observed", "claim"]
    order_status: str | None = None
    broker_order_id: str | None = None
    filled_quantity: str | None = None
    average_price: str | None = None
    error_type: str | None = None
    notices: Strings = ()


class OrderSubmitted(Event):
    """The broker has acknowledged a submit: from here on there is an order."""

    type: Literal["order.submitted"] = "order.submitted"
    action_id: str
    client_order_id: str | None = None
    broker_order_id: str | None = None


class PositionsReported(Event):
    """All that is held at the entry's time, without cash and without what is flat."""

    type: Literal["positions.reported"] = "positions.reported"
    standing: Literal["observed", "claim"]
    positions: tuple[Position, ...]
    left_out: Strings = ()


class ThesisObserved(Event):
    """How a thesis on a held symbol stands, once a strategy day, by the report in the same transaction."""

    type: Literal["thesis.outcome_observed"] = "thesis.outcome_observed"
    day: str
    standing: Literal["observed", "claim"]
    quantity: str
    last_price: str | None = None
    market_value: str | None = None
    unrealised_return_pct: str | None = None


class Warned(Event):
    """Something a person or the agent should know before the next order; nothing was blocked."""

    type: Literal["warning"] = "warning"
    code: Literal[
        "position_order_without_memory_thesis", "duplicate_order_risk", "thesis_invalidation_reached"
    ]
    message: str
    symbol: str | None = None
    action_id: str | None = None
    related: Strings = ()
    retrieved_instead: Strings = ()


class LessonJudged(Event):
    """Observed outcomes were held against a lesson; the tally decides its status."""

    type: Literal["lesson.judged"] = "lesson.judged"
    verdict: Literal["supports", "contradicts"]
    outcome_ids: Strings
    note: str | None = None
    previous: str
    status: str
    supports: int
    contradicts: int


AnyEvent = Annotated[
    Genesis | SessionStarted | MemoryRecorded | ProposalRecorded | RiskNoteRecorded | DecisionRecorded
    | LessonRecorded | ThesisOpened | ThesisUpdated | ThesisClosed | StatusChanged | Flagged | Retrieved
    | Delivered | Denied | CallFailed | ClockAnomaly | ClockAdvanced | OrderIntended | OrderOutcome
    | OrderSubmitted | PositionsReported | ThesisObserved | Warned | LessonJudged | ImportBegun | ImportKept
    | ImportEnded | Repeated | Approved | Rejected | Edited | SignedOff | Renewed | Settled | Redacted
    | PublicationBegun | PublicationEnded,
    Field(discriminator="type"),
]  # fmt: skip


@cache
def _adapter() -> TypeAdapter[AnyEvent]:
    return TypeAdapter(AnyEvent)


def event_types() -> tuple[str, ...]:
    """Every event type, in the order of this module."""
    return tuple(kind.model_fields["type"].default for kind in get_args(get_args(AnyEvent)[0]))


def read_event(event_type: str, content: Any) -> AnyEvent:
    """The typed event of an entry's type and decoded content.

    Raises pydantic.ValidationError when the content is not of that type.
    """
    return _adapter().validate_python({**content, "type": event_type})
