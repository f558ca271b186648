"""One key, one result: how a repeated write is told from a different one under the same key."""

from __future__ import annotations

from dataclasses import replace

from .commands import Command
from .entry import Entry
from .errors import IdempotencyConflict
from .ledger import Draft, arguments_hash


def keyed(draft: Draft, command: Command, key: str | None) -> Draft:
    """The draft with its command's arguments and key, which its entry will carry."""
    return replace(draft, arguments=command.arguments(), idempotency_key=key)


def check_same(first: Entry, command: Command) -> None:
    """Raise IdempotencyConflict unless the entry a key was first used for came of the same arguments.

    Nobody can tell once its content was taken away: what the arguments were hashed with went with it.
    """
    if not first.content_salt:
        raise IdempotencyConflict(
            f"The idempotency_key was used at sequence {first.sequence}, whose content was taken away since.",
            field="idempotency_key",
            hint="Use a new key if the call is meant anew.",
        )
    if arguments_hash(first.content_salt, command.arguments()) != first.arguments_sha256:
        raise IdempotencyConflict(
            f"The idempotency_key was used at sequence {first.sequence} with other arguments.",
            field="idempotency_key",
            hint="Use a new key for a new call.",
        )
