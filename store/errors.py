"""Every error Deskbook raises, in one tree.

DeskbookError
├── InvalidInput            a named argument is missing, malformed or too large
│   └── SecretRefused       an argument seems to hold a secret
├── ConfigError             the configuration or the command line is wrong
├── PermissionDenied        the identity may not do this
├── TooManyCalls            the agent calls more often than it may
│   └── Crowded             the agent has too many calls waiting
├── TooManyPending          the agent has as many memories waiting for a person as it may
├── ClockError              the call's time or run is missing, forbidden or runs backwards
├── NotFound                an id names nothing in this ledger
├── Conflict                the call is well formed, but the ledger's state forbids it
│   ├── VersionConflict     expected_version is not the current version
│   ├── IllegalTransition   the lifecycle does not lead from this status to that one
│   ├── AlreadyClosed       a closed thesis cannot change
│   ├── AlreadyDecided      a person, or somebody before, has decided that already
│   ├── Lapsed              it waited for a person too long
│   ├── Inherited           a run cannot change what it inherits from the live ledger
│   └── IdempotencyConflict the key was used before with other arguments
├── EmbeddingFailed         no vectors can be made; search goes on by words
├── StoreError              the ledger's file cannot serve
│   ├── StoreBusy           another writer held the ledger for too long
│   ├── StoreFull           no space is left
│   ├── StoreReadOnly       the file or its directory cannot be written
│   ├── StoreVanished       the file was removed or replaced under the running server
│   ├── StoreDamaged        the file's content contradicts itself
│   ├── ForeignFile         the file is not a Deskbook ledger, or another one
│   ├── SchemaTooNew        a newer Deskbook wrote the file
│   ├── StoreClosed         the ledger was closed while the call waited
│   └── OutcomeUnknown      the commit neither succeeded nor failed in time
└── NotRecorded             a search could not be recorded, so it is not answered
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

Stored = Literal["no", "yes", "unknown"]


class DeskbookError(Exception):
    """Base of every error this project raises on purpose.

    `message` says what is wrong, `hint` the next valid step, `field` the argument at fault, `stored`
    whether the call left anything in the ledger. None of them may hold secrets, foreign ids or places on this
    machine: `where` is the file or folder at fault, for the operator and never for a client.
    """

    code: ClassVar[str] = "error"
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        stored: Stored = "no",
        where: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint
        self.where = where
        self.stored: Stored = stored


class InvalidInput(DeskbookError):
    """An argument is missing, malformed or too large; `field` names it."""

    code = "invalid_input"


class SecretRefused(InvalidInput):
    """An argument seems to hold a secret, which is not stored; the message never holds it."""

    code = "secret_refused"


class ConfigError(DeskbookError):
    """The configuration file, environment or command line is wrong; nothing was started."""

    code = "config_error"


class PermissionDenied(DeskbookError):
    """The calling identity's profile does not allow the action."""

    code = "permission_denied"


class TooManyCalls(DeskbookError):
    """The agent calls more often than the desk allows; nothing was done."""

    code = "rate_limited"
    retryable = True


class Crowded(TooManyCalls):
    """The agent has as many calls waiting as it may; nothing was begun."""

    code = "too_many_waiting"


class TooManyPending(DeskbookError):
    """The agent has as many memories waiting for a person as it may; nothing was stored."""

    code = "too_many_pending"


class ClockError(DeskbookError):
    """The simulated time or run of a call is missing, not allowed here, or lies before the last entry."""

    code = "clock_error"


class NotFound(DeskbookError):
    """An id names nothing in this ledger (as of the time asked for)."""

    code = "not_found"


class Conflict(DeskbookError):
    """The call is well formed but contradicts what the ledger holds."""

    code = "conflict"


class VersionConflict(Conflict):
    """`expected_version` is not the memory's current version."""

    code = "version_conflict"


class IllegalTransition(Conflict):
    """The lifecycle table has no step from the current status to the one asked for."""

    code = "illegal_transition"


class AlreadyClosed(Conflict):
    """The thesis is closed and takes no further change."""

    code = "already_closed"


class AlreadyDecided(Conflict):
    """What is to be decided has been, or is not open to a decision any more."""

    code = "already_decided"


class Lapsed(Conflict):
    """What is to be decided waited longer than it may."""

    code = "lapsed"


class Inherited(Conflict):
    """The memory belongs to the live ledger, which a run reads and never changes."""

    code = "inherited"


class IdempotencyConflict(Conflict):
    """The idempotency key was used before with other arguments."""

    code = "idempotency_conflict"


class EmbeddingFailed(DeskbookError):
    """The model that turns text into vectors is missing, unreachable or answers wrongly; search goes on by words."""

    code = "embedding_failed"
    retryable = True


class StoreError(DeskbookError):
    """The ledger's file cannot serve the call."""

    code = "store_error"


class StoreBusy(StoreError):
    """Another writer held the ledger past the call's deadline; nothing was stored."""

    code = "store_busy"
    retryable = True


class StoreFull(StoreError):
    """The disk or quota is full; nothing was stored."""

    code = "store_full"
    retryable = True


class StoreReadOnly(StoreError):
    """The ledger or its directory cannot be written; nothing was stored."""

    code = "store_read_only"


class StoreVanished(StoreError):
    """The ledger's file was removed or replaced while it was open; it is never silently made anew."""

    code = "store_vanished"


class StoreDamaged(StoreError):
    """The ledger's file contradicts itself; writes are refused until it is restored."""

    code = "store_damaged"


class ForeignFile(StoreError):
    """The file at the ledger's path is no Deskbook ledger, or belongs to another strategy or run."""

    code = "foreign_file"


class SchemaTooNew(StoreError):
    """The ledger was written by a newer Deskbook and is left untouched."""

    code = "schema_too_new"


class StoreClosed(StoreError):
    """The ledger was closed before the call's turn came; nothing was stored."""

    code = "store_closed"
    retryable = True


class OutcomeUnknown(StoreError):
    """The commit was under way when the deadline passed; the same idempotency key tells what became of it."""

    code = "outcome_unknown"
    retryable = True

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, field=field, hint=hint, stored="unknown")


class NotRecorded(DeskbookError):
    """The search could not be recorded, so it is not answered."""

    code = "not_recorded"
    retryable = True

    @classmethod
    def because_of(cls, fault: DeskbookError) -> NotRecorded:
        """As worth repeating as the store's own fault is."""
        message = f"The search could not be recorded, so it is not answered: {fault.message}"
        refusal = cls(message, hint=fault.hint, stored=fault.stored)
        refusal.retryable = fault.retryable
        return refusal
