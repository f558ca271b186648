"""What a reviewer is shown: a memory with the hash that a decision is bound to, or a flag with what it is about."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.base import Snapshot
from ..errors import NotFound
from ..inputs import identifier
from ..projection import proposed_version
from ..rows import EntryFilter, Flag, Version
from ..terms import same_mark
from ..view import View

FLAGGED = "memory.flagged"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory as it stands at `at` (microseconds, UTC), with the flags on it; a decision names `shown_sha256`."""

    version: Version
    shown_sha256: str
    at: int
    flags: tuple[Flag, ...] = ()
    stands: str | None = None
    """The text that stands now, where `version` is a new wording that waits."""
    rejected: tuple[Version, ...] = ()
    """Where it waits: what its author said before in the same words and was rejected, newest first."""


@dataclass(frozen=True, slots=True)
class FlagItem:
    """An unanswered flag: the event id that names it, the memory it is on and the one it names."""

    flag: Flag
    event_id: str
    memory: ReviewItem
    other: ReviewItem | None


def shown_hash(snapshot: Snapshot, version: Version) -> str:
    """The content hash, in hex, of the entry that gave a memory the version."""
    entry = snapshot.entry(version.sequence_from)
    return "" if entry is None else entry.content_sha256.hex()


def item_of(view: View, memory_id: str) -> ReviewItem:
    """Any memory of the ledger, whatever its review state; raises NotFound."""
    version = view.version(identifier(memory_id, field="memory_id"))
    if version is None:
        raise NotFound(
            "memory_id names no memory of this ledger.",
            field="memory_id",
            hint="`deskbook review list` names what waits.",
        )
    return _item(view, version)


def waiting(view: View, agent: str | None, limit: int) -> tuple[int, list[ReviewItem]]:
    """How many memories wait and have not waited too long, and the oldest of them."""
    own = view.layers[0].snapshot
    found = own.pending(agent, view.cut, view.at, limit=limit)
    return own.count_pending(agent, view.cut, view.at), [_item(view, version) for version in found]


def due(view: View, limit: int) -> tuple[int, list[ReviewItem]]:
    """How many open theses and lessons are past their review date, and those that are so longest."""
    return view.count_due(), [_item(view, version) for version in view.due(limit=limit)]


def open_flags(view: View, reason: str | None, limit: int) -> tuple[int, list[FlagItem]]:
    """How many flags stand unanswered, of one reason or of any, and the newest of them."""
    own = view.layers[0].snapshot
    every = own.flags(view.cut, limit=-1)
    flags = [flag for flag in every if reason in (None, flag.reason)]
    return len(flags), [found for flag in flags[:limit] if (found := _flag_item(view, flag)) is not None]


def _flag_item(view: View, flag: Flag) -> FlagItem | None:
    own = view.layers[0].snapshot
    memory = view.version(flag.memory_id)
    other = None if flag.other_id is None else view.version(flag.other_id)
    raised = next(iter(own.entries(EntryFilter(after=flag.sequence - 1, until_sequence=flag.sequence))), None)
    if memory is None or raised is None:
        return None
    return FlagItem(flag, raised.event_id, _item(view, memory), None if other is None else _item(view, other))


def _item(view: View, version: Version) -> ReviewItem:
    layer = next(layer for layer in view.layers if layer.source == version.source)
    flags = tuple(view.layers[0].snapshot.flags_on((version.memory_id,), view.cut))
    shown = shown_hash(layer.snapshot, version)
    proposed = version.details.get("proposed")
    if proposed is None:
        return ReviewItem(version, shown, view.at, flags, rejected=_rejected_before(view, version))
    return ReviewItem(proposed_version(version), shown, view.at, flags, stands=version.text)


def _rejected_before(view: View, version: Version) -> tuple[Version, ...]:
    if version.review_state != "pending":
        return ()
    mark = same_mark(*_said(version))
    return tuple(
        other
        for other in view.layers[0].snapshot.same(mark, view.cut)
        if other.review_state == "rejected" and _said(other) == _said(version)
    )


def _said(version: Version) -> tuple[str, str, str | None, str]:
    return (version.agent, version.kind, version.symbol, version.text)
