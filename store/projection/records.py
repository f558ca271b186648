"""The rows of what agents record: memories and what becomes of them, searches, showings, reports, sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..canonical import canonical
from ..entry import Entry
from ..event_parts import Imported
from ..events import (
    Delivered,
    Flagged,
    LessonJudged,
    OrderIntended,
    OrderOutcome,
    PositionsReported,
    Recorded,
    Retrieved,
    SessionStarted,
    StatusChanged,
    ThesisClosed,
    ThesisUpdated,
    Warned,
)
from ..lifecycle import ORDER_STATUSES, first_status
from ..rows import Caution, Delivery, Flag, Holdings, Intent, Retrieval, Row, Session, Version
from ..terms import count_terms, index_text
from .base import Before, existing, following, rows_of

_NOT_DETAILS: Final = {
    "type",
    "text",
    "tags",
    "tags_given",
    "symbol_given",
    "review_by",
    "expires_at",
    "review_state",
    "notices",
    "redacted",
}


_OF_WORDING: Final = ("suspicious", "masked", "alike", "proposed")
_THESIS_TERMS: Final = ("direction", "horizon", "target", "invalidation")
_VOUCHED: Final = ("approved", "host_confirmed")


@rows_of.register
def _(event: Recorded, entry: Entry, before: Before) -> list[Row]:
    return _recorded(event, entry, before)


def _recorded(event: Recorded, entry: Entry, before: Before) -> list[Row]:
    details = event.model_dump(mode="json", exclude_none=True, exclude=_NOT_DETAILS)
    if entry.retrieval_id is not None:
        details["retrieval_id"] = entry.retrieval_id
    kind = entry.kind or ""
    terms = count_terms(index_text(event.text)) if event.redacted is None else event.redacted
    return [
        Version(
            sequence_from=entry.sequence,
            memory_id=entry.subject_id,
            version=1,
            ordinal=before.memories + 1,
            terms_total=before.terms_total + terms,
            kind=kind,
            status=first_status(kind),
            review_state=event.review_state,
            symbol=entry.symbol,
            text=event.text,
            tags=event.tags,
            details=details,
            agent=entry.agent,
            profile=entry.profile,
            changed_by=entry.agent,
            created_at=entry.effective_at,
            effective_at=entry.effective_at,
            stale_at=event.review_by,
            expires_at=event.expires_at,
            terms=terms,
        )
    ]


@rows_of.register
def _(event: OrderIntended, entry: Entry, before: Before) -> list[Row]:
    rows = _recorded(event, entry, before)
    touches = [Intent(entry.sequence, entry.subject_id, entry.agent, symbol) for symbol in event.touches]
    return [*rows, *touches]


@rows_of.register
def _(event: OrderOutcome, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    told = event.model_dump(
        mode="json", exclude_none=True, include={"broker_order_id", "filled_quantity", "average_price"}
    )
    order = _corrected(old.details, event) | told
    if event.order_status is not None:
        order |= {"status": event.order_status, "standing": event.standing}
    outcome = event.model_dump(mode="json", exclude_none=True, exclude={"type", "notices", "previous"})
    details = {name: value for name, value in old.details.items() if name != "order"} | {"outcome": outcome}
    if order:
        details["order"] = order
    status = old.status if event.certainty in ORDER_STATUSES else event.certainty
    return [following(old, entry, status=status, details=details)]


def _corrected(details: dict[str, Any], event: OrderOutcome) -> dict[str, Any]:
    """The order as it stood, without what was only claimed of it when an observation says otherwise."""
    order = dict(details.get("order", {}))
    if event.certainty not in (*ORDER_STATUSES, "acknowledged"):
        return {}
    claimed = order.get("standing") == "claim"
    if event.standing == "observed" and claimed and event.certainty in ORDER_STATUSES:
        order = {
            name: value for name, value in order.items() if name not in ("filled_quantity", "average_price")
        }
    return order


@rows_of.register
def _(event: PositionsReported, entry: Entry, before: Before) -> list[Row]:
    positions = canonical([row.model_dump(exclude_none=True) for row in event.positions]).decode()
    return [
        Holdings(
            sequence=entry.sequence,
            event_id=entry.event_id,
            agent=entry.agent,
            standing=event.standing,
            effective_at=entry.effective_at,
            positions=positions,
        )
    ]


@rows_of.register
def _(event: Warned, entry: Entry, before: Before) -> list[Row]:
    return [
        Caution(
            sequence=entry.sequence,
            code=event.code,
            subject_id=entry.subject_id,
            symbol=entry.symbol,
            agent=entry.agent,
            effective_at=entry.effective_at,
            message=event.message,
        )
    ]


@rows_of.register
def _(event: LessonJudged, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    used = [*old.details.get("outcome_ids", ()), *event.outcome_ids]
    tally = {"supports": event.supports, "contradicts": event.contradicts}
    return [
        following(
            old, entry, status=event.status, details=old.details | {"tally": tally, "outcome_ids": used}
        )
    ]


@rows_of.register
def _(event: ThesisUpdated, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    if event.review_state == "pending" and old.review_state != "pending":
        # What was let in stands until somebody has approved the new wording.
        told = event.model_dump(mode="json", exclude_none=True, exclude={"type", "notices", "imported"})
        proposed = told | {"by": entry.agent, "at": entry.effective_at}
        return [following(old, entry, details=old.details | {"proposed": proposed})]
    unheld = "none" if old.review_state in _VOUCHED else old.review_state
    state = event.review_state or unheld
    named = _imported(old, event.imported)
    return [reworded(following(old, entry, review_state=state, details=old.details | named), event)]


@rows_of.register
def _(event: ThesisClosed, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    outcome = event.model_dump(mode="json", exclude_none=True, exclude={"type", "notices", "imported"})
    closed = {"outcome": outcome, "closed_at": entry.effective_at, "closed_by": entry.agent}
    details = old.details | closed | _imported(old, event.imported)
    return [following(old, entry, status="closed", details=details)]


@rows_of.register
def _(event: StatusChanged, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    named = {"resolution_note": event.note, "superseded_by": event.replaced_by}
    details = old.details | {name: value for name, value in named.items() if value is not None}
    return [following(old, entry, status=event.status, details=details)]


@rows_of.register
def _(event: Flagged, entry: Entry, before: Before) -> list[Row]:
    return [
        Flag(
            sequence=entry.sequence,
            memory_id=entry.subject_id,
            reason=event.reason,
            other_id=event.other_id,
            note=event.note,
            agent=entry.agent,
            effective_at=entry.effective_at,
        )
    ]


@rows_of.register
def _(event: Retrieved, entry: Entry, before: Before) -> list[Row]:
    return [
        Retrieval(
            retrieval_id=entry.subject_id,
            sequence=entry.sequence,
            agent=entry.agent,
            session_id=entry.session_id,
            model_call_id=entry.model_call_id,
            effective_at=entry.effective_at,
            query=event.query,
            mode=event.mode,
            filters=canonical(event.filters).decode(),
            cut=event.cut,
            total=event.total,
            candidates=canonical([item.model_dump(exclude_none=True) for item in event.candidates]).decode(),
            selected=canonical([item.model_dump(exclude_none=True) for item in event.selected]).decode(),
        )
    ]


@rows_of.register
def _(event: Delivered, entry: Entry, before: Before) -> list[Row]:
    return [
        Delivery(
            sequence=entry.sequence,
            agent=entry.agent,
            session_id=entry.session_id,
            model_call_id=entry.model_call_id,
            surface=event.surface,
            subject_id=entry.subject_id,
            as_of=event.as_of,
            shown=shown_text(event),
        )
    ]


@rows_of.register
def _(event: SessionStarted, entry: Entry, before: Before) -> list[Row]:
    return [Session(session_id=entry.subject_id, sequence=entry.sequence, agent=entry.agent)]


def reworded(version: Version, event: ThesisUpdated) -> Version:
    """The version in an update's words: what is not named stays, and what was said of the old words goes."""
    named = event.model_dump(
        mode="json",
        exclude_none=True,
        include={*_THESIS_TERMS, "suspicious", "masked", "pending_until", "alike"},
    )
    kept = {name: value for name, value in version.details.items() if name not in _OF_WORDING}
    return replace(
        version,
        text=event.text,
        terms=count_terms(index_text(event.text)) if event.redacted is None else event.redacted,
        tags=version.tags if event.tags is None else event.tags,
        symbol=version.symbol if event.symbol is None else event.symbol,
        stale_at=version.stale_at if event.review_by is None else event.review_by,
        details=kept | named,
    )


def proposed_version(version: Version) -> Version:
    """The version as it would stand in the new wording that waits for a person."""
    proposed = version.details["proposed"]
    wording = {name: value for name, value in proposed.items() if name not in ("by", "at")}
    told = reworded(version, ThesisUpdated.model_validate(wording))
    return replace(told, review_state="pending", changed_by=proposed["by"])


def _imported(old: Version, block: Imported | None) -> dict[str, Any]:
    """Where the version comes from; metadata that the source dropped with a change is kept from what stood before."""
    if block is None:
        return {}
    told = block.model_dump(mode="json", exclude_none=True)
    before = old.details.get("imported", {}).get("metadata")
    if isinstance(before, dict) and isinstance(told.get("metadata", {}), dict):
        told["metadata"] = before | told.get("metadata", {})
    return {"imported": told}


def shown_text(event: Delivered) -> str:
    """What a delivery showed, in one comparable text."""
    return canonical([item.model_dump(exclude_none=True) for item in event.shown]).decode()
