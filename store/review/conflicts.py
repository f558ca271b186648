"""Flags and their answers: a conflict stays open until a person, or the policy that a person configured, settles it.

The one that loses is ended where its kind can end by others' word; a thesis, a decision and an order stay as they
are, with the answer beside them.
"""

from __future__ import annotations

from typing import Final

from ..caller import Caller
from ..engines.base import Transaction
from ..entry import Entry
from ..errors import AlreadyDecided, InvalidInput, NotFound
from ..events import StatusChanged
from ..inputs import identifier, short_text
from ..ledger import Draft
from ..lifecycle import ENDED, HIDDEN, LESSON, MEMORY, PROPOSAL, RISK_NOTE
from ..limits import NOTE_CHARS
from ..planning import Plan, about, plan
from ..review_commands import RESOLUTIONS, Settle
from ..review_events import Resolution, Settled
from ..rows import Flag, Version
from ..view import View
from .decisions import ending, refuse_others
from .items import FLAGGED

OF_CONFLICTS: Final = ("newer_wins", "older_wins", "both_hold", "not_a_conflict")
LOST: Final = {MEMORY: "superseded", LESSON: "retired", RISK_NOTE: "resolved", PROPOSAL: "withdrawn"}
_BY_REVIEWERS: Final = frozenset({"edited_by", "renewed_by", "signed_off_by"})
_IN_USE: Final = frozenset({"active", "proposed", "validated", "contradicted"})


@plan.register
def _(command: Settle, transaction: Transaction, caller: Caller, view: View) -> Plan:
    refuse_others(caller)
    flag = _flag_named(command.flag_id, transaction, view)
    memory = view.version(flag.memory_id)
    if memory is None:
        raise NotFound("flag_id is on a memory that is not here.", field="flag_id")
    scope = short_text(command.scope, field="scope", longest=NOTE_CHARS)
    _check_fits(flag, command.resolution, scope)
    note = short_text(command.note, field="note", longest=NOTE_CHARS)
    other = None if flag.other_id is None else view.version(flag.other_id)
    event = Settled(
        flag=flag.sequence,
        also=_mirrored(flag.sequence, flag.memory_id, flag.other_id, transaction, view)
        if flag.reason == "conflicting"
        else None,
        resolution=command.resolution,
        scope=scope,
        note=note,
    )
    if flag.reason == "conflicting" and other is not None:
        return Plan(tuple(settled(event, memory, other)))
    if command.resolution == "upheld" and memory.status not in (*ENDED, "closed"):
        return Plan((about(memory, event), ending(memory, note)))
    return Plan((about(memory, event),))


def settled(event: Settled, memory: Version, other: Version) -> list[Draft]:
    """The answer to a conflict of two memories, linked both ways, and the end of the one that lost."""
    if event.resolution == "not_a_conflict":
        return [about(memory, event)]
    event = event.model_copy(update={"contradicts": other.memory_id})
    if event.resolution == "both_hold":
        # Each is shown with its scope, so each has the answer; what a run inherits it cannot change.
        mirrored = event.model_copy(update={"contradicts": memory.memory_id, "also": None})
        return [about(memory, event), *([about(other, mirrored)] if other.source is None else [])]
    newer, older = sorted((memory, other), key=lambda each: (each.created_at, each.ordinal), reverse=True)
    lost, won = (older, newer) if event.resolution == "newer_wins" else (newer, older)
    drafts = [about(memory, event.model_copy(update={"supersedes": lost.memory_id}))]
    status = LOST.get(lost.kind)
    if status is not None and lost.status in _IN_USE and lost.source is None:
        change = StatusChanged(status=status, previous=lost.status, replaced_by=won.memory_id)
        drafts.append(about(lost, change))
    return drafts


def by_policy(
    flagged: Entry, memory: Version, other: Version, transaction: Transaction, view: View
) -> list[Draft]:
    """What the configured policy makes of a new conflict at once; nothing where it leaves that to a person.

    The newer wins only when as much stands behind it: what a person approved or outcomes validated loses to no claim.
    Both must be in use, of one kind and on one instrument, and no person may have settled the two before.
    """
    policy = view.policy.conflicts
    if policy == "ask" or not all(_may_win(each, view) for each in (memory, other)):
        return []
    if (memory.kind, memory.symbol) != (other.kind, other.symbol):
        return []
    if transaction.settled_before(memory.memory_id, other.memory_id, view.cut):
        return []
    newer, older = sorted((memory, other), key=lambda each: (each.created_at, each.ordinal), reverse=True)
    least = 2 if policy == "newest_validated" else _standing(older)
    if _standing(newer) < least or LOST.get(older.kind) is None:
        return []
    event = Settled(
        flag=flagged.sequence, also=_mirrored(flagged.sequence, memory.memory_id, other.memory_id, transaction, view),
        resolution="newer_wins", policy=policy,
    )  # fmt: skip
    return settled(event, memory, other)


def _may_win(version: Version, view: View) -> bool:
    """Whether a memory stands in everybody's sight: in use, let in, not expired, and with no words that instruct."""
    over = version.expires_at is not None and version.expires_at <= view.at
    visible = version.status in _IN_USE and version.review_state not in HIDDEN
    return visible and not over and "suspicious" not in version.details


def _mirrored(
    sequence: int, one: str, other: str | None, transaction: Transaction, view: View
) -> tuple[int, ...] | None:
    """The entries of other open flags than that of an entry that say that the same two contradict each other."""
    found = tuple(
        each.sequence
        for each in transaction.flags_on((one,), view.cut)
        if each.sequence != sequence
        and each.reason == "conflicting"
        and {each.memory_id, each.other_id} == {one, other}
    )
    return found or None


def _standing(version: Version) -> int:
    """How much stands behind a memory: 2 an outcome or a reviewer, 1 a yes in the host, 0 its author alone."""
    by_people = version.review_state == "approved" or not _BY_REVIEWERS.isdisjoint(version.details)
    if version.status == "validated" or by_people:
        return 2
    return 1 if version.review_state == "host_confirmed" else 0


def _flag_named(flag_id: str, transaction: Transaction, view: View) -> Flag:
    entry = transaction.entry_of_event(identifier(flag_id, field="flag_id"))
    found = None
    if entry is not None and entry.event_type == FLAGGED:
        found = transaction.flag_at(entry.sequence, view.cut)
    if found is None:
        raise NotFound(
            "flag_id names no flag of this ledger.",
            field="flag_id",
            hint="`deskbook review conflicts` and `deskbook review due` name the flags.",
        )
    flag, answer = found
    if answer is not None:
        raise AlreadyDecided(f"The flag was answered already: {answer}.", field="flag_id")
    return flag


def _check_fits(flag: Flag, resolution: Resolution, scope: str | None) -> None:
    of_conflict = flag.reason == "conflicting" and flag.other_id is not None
    allowed = OF_CONFLICTS if of_conflict else tuple(each for each in RESOLUTIONS if each not in OF_CONFLICTS)
    if resolution not in allowed:
        raise InvalidInput(
            f"{resolution} is no answer to this flag ({flag.reason}).",
            field="resolution",
            hint=f"One of {', '.join(allowed)}.",
        )
    if resolution == "both_hold" and scope is None:
        raise InvalidInput(
            "both_hold needs scope.",
            field="scope",
            hint="Say for what each of the two holds, such as: the first for intraday, the second for a year.",
        )
