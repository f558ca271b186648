"""What an entry's columns must be, and how a leaf is hashed.

Written down a second time on purpose, from docs/ledger.md and with none of the code that writes entries.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

COLUMNS = (
    "sequence event_id event_type subject_type subject_id kind symbol effective_at recorded_at strategy run_id"
    " agent profile session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key content"
    " content_salt content_sha256 leaf_sha256 chain_sha256 schema_version"
).split()
_NUMBERS = {"sequence", "effective_at", "recorded_at", "schema_version"}
_BYTES = {"arguments_sha256", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"}
_MAY_BE_ABSENT = {
    "kind",
    "symbol",
    "run_id",
    "session_id",
    "model_call_id",
    "retrieval_id",
    "tool",
    "arguments_sha256",
    "idempotency_key",
}
_OUTSIDE_LEAF = {"content", "content_salt", "leaf_sha256", "chain_sha256"}


def fits(name: str, value: Any) -> bool:
    """Whether a value is of its column's type, which SQLite does not check again when it reads."""
    if value is None:
        return name in _MAY_BE_ABSENT
    return isinstance(value, int if name in _NUMBERS else bytes if name in _BYTES else str)


def leaf_of(columns: dict[str, Any]) -> bytes:
    """The leaf hash of an entry's columns (docs/ledger.md)."""
    covered = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in columns.items()
        if name not in _OUTSIDE_LEAF
    }
    # With ASCII keys and only text, integers and null as values this is RFC 8785.
    text = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(b"\x00" + text.encode()).digest()
