"""What a reviewer decides about one memory: each decision is bound to the wording that was shown.

No agent identity reaches these: a caller without `reviewer` is refused, and only the commands of a person set that.
"""

from __future__ import annotations

import re

from ..caller import Caller
from ..clock import DAY, format_instant, later
from ..engines.base import Transaction
from ..errors import (
    AlreadyDecided,
    IllegalTransition,
    InvalidInput,
    Lapsed,
    PermissionDenied,
    VersionConflict,
)
from ..events import StatusChanged, ThesisClosed
from ..inputs import as_given, required_text, short_text, tag_list
from ..ledger import Draft
from ..lifecycle import DECISION, ENDED, LESSON, MEMORY, ORDER_ACTION, RESOLUTIONS, THESIS, check_step
from ..limits import NOTE_CHARS
from ..planning import Plan, about, existing, plan, refuse_inherited
from ..review_commands import SHOWN_LEAST, Approve, Reject, Renew, Retire, Revise, SignOff
from ..review_events import Approved, Edited, Rejected, Renewed, SignedOff
from ..rows import Version
from ..view import View
from .items import shown_hash

RENEWED_FOR = 90 * DAY
"""How long a renewed memory holds whose kind has no age of its own in the config."""


@plan.register
def _(command: Approve, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _named(view, caller, command.memory_id)
    _refuse_decided(memory, view)
    _check_shown(memory, transaction, command.shown)
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    before = [*_edit(memory, transaction, view, command), *_supersede(memory, view)]
    event = Approved(shown_sha256=shown_hash(transaction, memory), note=note)
    return Plan((about(memory, event),), before=tuple(before))


@plan.register
def _(command: Reject, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _named(view, caller, command.memory_id)
    _refuse_decided(memory, view)
    _check_shown(memory, transaction, command.shown)
    reason = required_text(command.reason, field="reason", longest=NOTE_CHARS)
    return Plan((about(memory, Rejected(shown_sha256=shown_hash(transaction, memory), reason=reason)),))


@plan.register
def _(command: Revise, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _shown(view, caller, transaction, command.memory_id, command.shown)
    _refuse_ended(memory, "revised")
    _refuse_redacted(memory)
    if "proposed" in memory.details:
        raise IllegalTransition(
            f"A new wording of {memory.memory_id} waits already.",
            field="memory_id",
            hint=f"Decide on that first: `deskbook review show {memory.memory_id}`.",
        )
    if memory.kind in (DECISION, ORDER_ACTION):
        raise IllegalTransition(
            f"A {memory.kind} tells what was done and is not revised.",
            field="memory_id",
            hint="Write a note that names it, or redact it.",
        )
    return Plan(tuple(_edit(memory, transaction, view, command)))


@plan.register
def _(command: SignOff, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _shown(view, caller, transaction, command.memory_id, command.shown)
    if memory.kind != LESSON:
        raise IllegalTransition(
            f"{memory.memory_id} is a {memory.kind}; only a lesson is signed off.",
            field="memory_id",
            hint="What waits is approved with `deskbook review approve`.",
        )
    _refuse_redacted(memory)
    if memory.status == "validated":
        raise AlreadyDecided(f"{memory.memory_id} is validated already.", field="memory_id")
    if memory.review_state in ("pending", "rejected"):
        raise IllegalTransition(
            f"{memory.memory_id} is {memory.review_state}, so it cannot be signed off.",
            field="memory_id",
            hint="Approve it first.",
        )
    check_step(LESSON, memory.status, "validated", field="memory_id")
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    event = SignedOff(shown_sha256=shown_hash(transaction, memory), previous=memory.status, note=note)
    return Plan((about(memory, event),))


@plan.register
def _(command: Renew, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _shown(view, caller, transaction, command.memory_id, command.shown)
    _refuse_ended(memory, "renewed")
    review_by = command.review_by
    if review_by is None:
        review_by = later(view.at, view.policy.review_after.get(memory.kind, RENEWED_FOR))
    for name, given in (("review_by", review_by), ("expires_at", command.expires_at)):
        if given is not None and given <= view.at:
            raise InvalidInput(f"{name} lies in the past.", field=name, hint="Give a later time.")
    expires_at = command.expires_at
    if expires_at is None and memory.expires_at is not None and memory.expires_at <= review_by:
        raise InvalidInput(
            f"{memory.memory_id} expires at {format_instant(memory.expires_at, view.zone)}, before its next review.",
            field="expires_at",
            hint="Give a later expires_at too.",
        )
    event = Renewed(
        shown_sha256=shown_hash(transaction, memory),
        review_by=review_by,
        expires_at=expires_at,
        settles=_answered(memory, transaction, view),
        note=short_text(command.note, field="note", longest=NOTE_CHARS),
    )
    return Plan((about(memory, event),))


@plan.register
def _(command: Retire, transaction: Transaction, caller: Caller, view: View) -> Plan:
    memory = _shown(view, caller, transaction, command.memory_id, command.shown)
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    return Plan((ending(memory, note),))


def ending(memory: Version, note: str | None) -> Draft:
    """The entry that ends a memory of any author; raises IllegalTransition for what cannot end."""
    if memory.kind == THESIS:
        check_step(THESIS, memory.status, "closed", field="memory_id")
        return about(memory, ThesisClosed(note=note))
    wanted = RESOLUTIONS.get(memory.kind)
    if wanted is None:
        raise IllegalTransition(
            f"A {memory.kind} stands for good.", field="memory_id", hint="Write a note that names it."
        )
    check_step(memory.kind, memory.status, wanted, field="memory_id")
    return about(memory, StatusChanged(status=wanted, previous=memory.status, note=note))


def refuse_others(caller: Caller) -> None:
    """Raise PermissionDenied for whoever is not a reviewer at a command of a person."""
    if not caller.reviewer:
        raise PermissionDenied(
            "Only a reviewer decides, with a credential of their own.",
            hint="A person runs `deskbook review`; no tool and no token does.",
        )


def _shown(view: View, caller: Caller, transaction: Transaction, memory_id: str, shown: str) -> Version:
    """The memory as it was shown; raises VersionConflict when it has other words by now."""
    memory = _named(view, caller, memory_id)
    _check_shown(memory, transaction, shown)
    return memory


def _named(view: View, caller: Caller, memory_id: str) -> Version:
    refuse_others(caller)
    memory = existing(view, memory_id, field="memory_id")
    refuse_inherited(memory, field="memory_id")
    return memory


def _check_shown(memory: Version, transaction: Transaction, shown: str) -> None:
    wanted = shown.strip().lower()
    look = f"`deskbook review show {memory.memory_id}`"
    if not re.fullmatch(rf"[0-9a-f]{{{SHOWN_LEAST},64}}", wanted):
        raise InvalidInput(
            "shown is not the hash of what was shown.",
            field="shown",
            hint=f"{look} prints it beside the memory.",
        )
    if not shown_hash(transaction, memory).startswith(wanted):
        raise VersionConflict(
            f"{memory.memory_id} is not what was shown: it was changed at sequence {memory.sequence_from}. "
            "Nothing was decided.",
            field="shown",
            hint=f"Look at it again: {look}.",
        )


def _refuse_redacted(memory: Version) -> None:
    """Nobody vouches for, or rewords, what was taken away; a new wording of it that waits may stand yet."""
    if not memory.details.get("proposed", {}).get("text", memory.text):
        raise AlreadyDecided(
            f"{memory.memory_id}: its content was redacted.",
            field="memory_id",
            hint="`deskbook add` writes a new one.",
        )


def _refuse_decided(memory: Version, view: View) -> None:
    _refuse_redacted(memory)
    proposed = memory.details.get("proposed")
    if memory.review_state != "pending" and proposed is None:
        told = memory.details
        by = ""
        if "reviewed_by" in told:
            by = f" by {told['reviewed_by']} at {format_instant(told['reviewed_at'], view.zone)}"
        what = "needs no review" if memory.review_state == "none" else f"is {memory.review_state} already{by}"
        raise AlreadyDecided(f"{memory.memory_id} {what}.", field="memory_id")
    if memory.status in (*ENDED, "closed"):
        raise AlreadyDecided(f"{memory.memory_id} is {memory.status} by now.", field="memory_id")
    until = (proposed or memory.details).get("pending_until")
    if until is not None and until <= view.at:
        raise Lapsed(
            f"{memory.memory_id} waited until {format_instant(until, view.zone)} and is not to be decided any more.",
            field="memory_id",
            hint="`deskbook add` writes it anew, if it still matters.",
        )


def _refuse_ended(memory: Version, how: str) -> None:
    if memory.status in (*ENDED, "closed") or memory.review_state == "rejected":
        stands = memory.review_state if memory.review_state == "rejected" else memory.status
        raise IllegalTransition(
            f"{memory.memory_id} is {stands}, so it cannot be {how}.",
            field="memory_id",
            hint="`deskbook add` writes a new one.",
        )


def _edit(memory: Version, transaction: Transaction, view: View, command: Approve | Revise) -> list[Draft]:
    if command.text is None:
        return []
    tags = None if command.tags is None else tag_list(command.tags)
    event = Edited(
        shown_sha256=shown_hash(transaction, memory),
        text=required_text(command.text),
        tags=tags,
        tags_given=None if tags is None or command.tags is None else as_given(command.tags, tags),
        settles=_answered(memory, transaction, view),
        note=short_text(command.note, field="note", longest=NOTE_CHARS),
    )
    return [about(memory, event)]


def _supersede(memory: Version, view: View) -> list[Draft]:
    """The end of the note that an approved one replaces: it had to wait for that too."""
    name = memory.details.get("supersedes")
    old = None if name is None else view.version(name)
    if old is None or old.kind != MEMORY or old.status != "active" or old.source is not None:
        return []
    change = StatusChanged(status="superseded", previous=old.status, replaced_by=memory.memory_id)
    return [about(old, change)]


def _answered(memory: Version, transaction: Transaction, view: View) -> tuple[int, ...] | None:
    """The flags on the memory itself that a renewal answers: all but conflicts."""
    flags = transaction.flags_on((memory.memory_id,), view.cut)
    found = tuple(
        flag.sequence for flag in flags if flag.memory_id == memory.memory_id and flag.reason != "conflicting"
    )
    return found or None
