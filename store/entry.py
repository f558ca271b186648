"""A ledger entry: the columns of `memory_events`, and how they are hashed.

The same names are used in SQL, in exports and here. Times are microseconds since the epoch, UTC; hashes and
salts are raw bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .canonical import leaf_hash

SCHEMA_VERSION = 1
"""Version of the meaning of an entry's columns and content, carried by every entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the ledger, exactly as it is stored."""

    sequence: int
    event_id: str
    event_type: str
    subject_type: str
    subject_id: str
    kind: str | None
    symbol: str | None
    effective_at: int
    recorded_at: int
    strategy: str
    run_id: str | None
    agent: str
    profile: str
    session_id: str | None
    model_call_id: str | None
    retrieval_id: str | None
    tool: str | None
    arguments_sha256: bytes | None
    idempotency_key: str | None
    content: str
    content_salt: bytes
    content_sha256: bytes
    leaf_sha256: bytes
    chain_sha256: bytes
    schema_version: int


COLUMNS = tuple(field.name for field in fields(Entry))
UNHASHED = frozenset({"content", "content_salt", "leaf_sha256", "chain_sha256"})
"""Columns outside the leaf: content_sha256 covers content and salt, the other two are what is computed."""


HASHED = tuple(name for name in COLUMNS if name not in UNHASHED)


def is_blank(entry: Entry) -> bool:
    """Whether the entry's content and salt are not there: they were taken away."""
    return not entry.content and not entry.content_salt


def leaf_of(entry: Entry) -> bytes:
    """The leaf hash of an entry, whatever its own leaf and chain columns hold."""
    return leaf_hash({name: getattr(entry, name) for name in HASHED})
