"""What a person may ask to be done with memories, as plain frozen values; `review` says what each one does.

`shown` is how the content hash of the wording begins that the person was shown, in hex, at least eight digits: when
the memory has other words by then, nothing is decided. Times are microseconds since the epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass

from .commands import Command
from .review_events import Resolution

RESOLUTIONS = ("newer_wins", "older_wins", "both_hold", "not_a_conflict", "upheld", "dismissed")
SHOWN_LEAST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve(Command):
    """Let a waiting memory into recall; with `text` (and `tags`) in other words than its author's."""

    memory_id: str
    shown: str
    text: str | None = None
    tags: tuple[str, ...] | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(Command):
    """Keep a waiting memory out of recall for good."""

    memory_id: str
    shown: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise(Command):
    """Put a memory that is in use into other words; its flags of being stale or wrong are answered by that."""

    memory_id: str
    shown: str
    text: str
    tags: tuple[str, ...] | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOff(Command):
    """Vouch for a lesson: it is validated without outcomes."""

    memory_id: str
    shown: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew(Command):
    """Say that a memory still holds; the next review is at `review_by`, else as the config has it for its kind."""

    memory_id: str
    shown: str
    review_by: int | None = None
    expires_at: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire(Command):
    """End a memory of anybody: retired, withdrawn, resolved or, a thesis, closed without an outcome."""

    memory_id: str
    shown: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Command):
    """Answer a flag, named by the event id of its entry; `scope` says for what each side of a conflict holds."""

    flag_id: str
    resolution: Resolution
    scope: str | None = None
    note: str | None = None
