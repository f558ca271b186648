"""The rows of what people decide: approved, rejected, edited, signed off, renewed, settled, redacted.

A decision makes no words younger: but for an edit, a memory keeps the time of its wording.
"""

from __future__ import annotations

from typing import Any

from ..canonical import canonical
from ..entry import Entry
from ..review_events import Approved, Edited, Redacted, Rejected, Renewed, Settled, SignedOff
from ..rows import Redaction, Row, Settlement, Version
from ..terms import count_terms, index_text
from .base import Before, existing, following, rows_of
from .records import proposed_version


@rows_of.register
def _(event: Approved, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    if "proposed" in old.details:
        old = proposed_version(old)
    return [_decided(old, entry, review_state="approved", details=_reviewed(old, entry, note=event.note))]


@rows_of.register
def _(event: Rejected, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    # A rejected update leaves the wording that was let in before.
    state = old.review_state if "proposed" in old.details else "rejected"
    return [_decided(old, entry, review_state=state, details=_reviewed(old, entry, reason=event.reason))]


@rows_of.register
def _(event: Edited, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    if "proposed" in old.details:
        words = event.model_dump(
            mode="json", exclude_none=True, include={"text", "tags", "suspicious", "redacted"}
        )
        proposed = {
            name: value for name, value in old.details["proposed"].items() if name != "suspicious"
        } | words
        return [following(old, entry, details=old.details | {"proposed": proposed})]
    details = {name: value for name, value in old.details.items() if name not in ("suspicious", "alike")}
    if event.suspicious is not None:
        details["suspicious"] = list(event.suspicious)
    details |= {"edited_by": entry.agent, "edited_at": entry.effective_at}
    edited = following(
        old,
        entry,
        text=event.text,
        terms=count_terms(index_text(event.text)) if event.redacted is None else event.redacted,
        tags=old.tags if event.tags is None else event.tags,
        details=details,
    )
    return [edited, *(Settlement(flag, entry.sequence, "revised") for flag in event.settles or ())]


@rows_of.register
def _(event: SignedOff, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    signed: dict[str, Any] = {"signed_off_by": entry.agent, "signed_off_at": entry.effective_at}
    return [_decided(old, entry, status="validated", details=old.details | signed)]


@rows_of.register
def _(event: Renewed, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    renewed = _decided(
        old,
        entry,
        stale_at=event.review_by,
        expires_at=old.expires_at if event.expires_at is None else event.expires_at,
        details=old.details | {"renewed_by": entry.agent, "renewed_at": entry.effective_at},
    )
    return [renewed, *(Settlement(flag, entry.sequence, "renewed") for flag in event.settles or ())]


@rows_of.register
def _(event: Settled, entry: Entry, before: Before) -> list[Row]:
    old = existing(entry, before)
    told: dict[str, Any] = event.model_dump(
        mode="json", exclude_none=True, include={"resolution", "contradicts", "supersedes", "scope", "policy"}
    )
    told["by"] = entry.agent
    settled = _decided(old, entry, details=old.details | {"settled": told})
    flags = (event.flag, *(event.also or ()))
    return [settled, *(Settlement(flag, entry.sequence, event.resolution) for flag in flags)]


@rows_of.register
def _(event: Redacted, entry: Entry, before: Before) -> list[Row]:
    return [
        Redaction(covered.sequence, entry.sequence, canonical(covered.kept).decode())
        for covered in event.covered
    ]


def _decided(old: Version, entry: Entry, **changes: object) -> Version:
    return following(old, entry, effective_at=old.effective_at, **changes)


def _reviewed(old: Version, entry: Entry, **more: str | None) -> dict[str, Any]:
    told = {f"review_{name}": value for name, value in more.items() if value is not None}
    waited = {name: value for name, value in old.details.items() if name not in ("pending_until", "proposed")}
    return waited | {"reviewed_by": entry.agent, "reviewed_at": entry.effective_at} | told
