"""What a caller is told of its write: the memory as it stands after it and, for an order, the compact reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .engines.base import Snapshot
from .entry import Entry
from .errors import StoreDamaged
from .events import AnyEvent, ClockAdvanced, OrderIntended, PositionsReported, Recorded, ThesisUpdated
from .ledger import event_of
from .render import cut_text
from .replies import Written
from .review.items import FLAGGED
from .review_events import Repeated, Settled
from .rows import Version

REASON_PREVIEW = 800


def written(snapshot: Snapshot, entry: Entry) -> Written:
    """The answer to the call that wrote an entry, the same whenever it is asked for."""
    event = event_of(entry)
    if isinstance(event, PositionsReported):
        held = [row.symbol for row in event.positions]
        return _plain(entry, "positions", "reported", {"held": held, "left_out": list(event.left_out)})
    if isinstance(event, ClockAdvanced):
        return _plain(entry, "clock", "advanced", {})
    version = snapshot.version(entry.subject_id, entry.sequence)
    if version is None:
        raise StoreDamaged(f"Entry {entry.sequence} left no version.", hint="Run `deskbook rebuild`.")
    return Written(
        id=version.memory_id,
        kind=version.kind,
        status=version.status,
        version=version.version,
        sequence=entry.sequence,
        event_id=entry.event_id,
        effective_at=entry.effective_at,
        warnings=(*getattr(event, "notices", ()), *_settled(snapshot, entry)),
        extra=_standing(version, event)
        | (_reference(entry, event) if isinstance(event, OrderIntended) else _order(version.details)),
    )


def _settled(snapshot: Snapshot, entry: Entry) -> Iterator[str]:
    """What the configured policy made of a flag at once, in the entry behind it."""
    following = snapshot.entry(entry.sequence + 1) if entry.event_type == FLAGGED else None
    if following is None or following.event_type != "review.settled":
        return
    event = event_of(following)
    if isinstance(event, Settled) and event.flag == entry.sequence and event.policy is not None:
        yield f"By the desk's policy ({event.policy}) the newer holds: {event.supersedes} was ended."


def _standing(version: Version, event: AnyEvent) -> dict[str, Any]:
    """Whether a person must agree or has, what the memory resembles, and how often it was said again."""
    told: dict[str, Any] = {}
    if version.review_state != "none":
        told["review_state"] = version.review_state
    if version.review_state == "pending" and "pending_until" in version.details:
        told["pending_until"] = version.details["pending_until"]
    if isinstance(event, ThesisUpdated) and event.review_state == "pending":
        told |= {"review_state": "pending", "pending_until": event.pending_until}
    if isinstance(event, Recorded) and event.alike:
        told["similar"] = [alike.model_dump() for alike in event.alike]
    if isinstance(event, Repeated):
        told["repeat"] = event.count
    return told


def _plain(entry: Entry, name: str, status: str, extra: dict[str, Any]) -> Written:
    return Written(name, name, status, 1, entry.sequence, entry.event_id, entry.effective_at, extra=extra)


def _order(details: dict[str, Any]) -> dict[str, Any]:
    """How the order stands; whose word that is stands with the memory."""
    if "order" not in details:
        return {}
    return {"order": {name: value for name, value in details["order"].items() if name != "standing"}}


def _reference(entry: Entry, event: OrderIntended) -> dict[str, Any]:
    """The compact reference of an order action; a run shows no machine's clock, so recorded_at is live only."""
    return {
        "decision_id": event.decision_id,
        "action_id": entry.subject_id,
        "previous_action_id": event.previous_action_id,
        "operation": event.operation,
        "agent": entry.agent,
        "run": entry.run_id,
        "model_call_id": entry.model_call_id,
        "revision": event.revision,
        "deployment": event.deployment,
        "recorded_at": None if entry.run_id is not None else entry.recorded_at,
        "reason_preview": cut_text(event.text, REASON_PREVIEW),
        "reason_sha256": event.reason_sha256,
    }
