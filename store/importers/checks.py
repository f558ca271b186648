"""What every entry of an export has to be before any of it is stored, beyond its hashes.

Ids are kept in a table of SQLite's own temporary file, so memory stays flat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import apsw

from ..clock import LAST_INSTANT
from ..entry import SCHEMA_VERSION, Entry, is_blank
from ..errors import StoreDamaged
from ..events import (
    AnyEvent,
    LessonJudged,
    OrderOutcome,
    Recorded,
    Retrieved,
    SessionStarted,
    StatusChanged,
    ThesisClosed,
    ThesisUpdated,
    read_event,
)
from ..lifecycle import KINDS
from ..names import name_fault
from ..rows import Redaction

SUBJECTS = frozenset("call import ledger memory order positions publication retrieval session state".split())
SALT_BYTES = 16
HASH_BYTES = 32
_CHANGES = (LessonJudged, OrderOutcome, StatusChanged, ThesisClosed, ThesisUpdated)


class Checks:
    """Looks at the entries of one export in their order."""

    def __init__(self, redacted: Mapping[int, Redaction] | None = None) -> None:
        """`redacted` is what stays of the entries whose content was taken away, by sequence."""
        self._redacted = redacted or {}
        self._seen = apsw.Connection("")
        self._seen.execute(
            "BEGIN; CREATE TABLE seen (what TEXT, id TEXT, PRIMARY KEY (what, id)) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Let the table of ids go."""
        self._seen.close()

    def check(self, entry: Entry) -> AnyEvent:
        """The event of the next entry; raises StoreDamaged that names its line when a ledger cannot hold it."""
        if not is_blank(entry) and len(entry.content_salt) < SALT_BYTES:
            raise _refused(entry, f"content_salt has fewer than {SALT_BYTES} bytes")
        entry = self._with_what_stays(entry)
        _check_columns(entry)
        event = _event(entry)
        if isinstance(event, Recorded) and entry.kind is None:
            raise _refused(entry, "kind is missing")
        for field, *parts in _unique(entry, event):
            if not self._first(field, json.dumps(parts)):
                raise _refused(entry, f"its {field} stands in an entry before it too")
        if isinstance(event, _CHANGES) and not self._known("memory", json.dumps([entry.subject_id])):
            raise _refused(entry, "it changes a memory that no entry before it recorded")
        return event

    def _with_what_stays(self, entry: Entry) -> Entry:
        kept = self._redacted.get(entry.sequence)
        if is_blank(entry) and kept is not None:
            return replace(entry, content=kept.kept)
        if is_blank(entry):
            raise _refused(entry, "its content was taken away, and no redaction after it covers it")
        if kept is not None:
            raise _refused(entry, "it was redacted, and its content is back")
        return entry

    def _first(self, what: str | None, name: str) -> bool:
        self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (what, name))
        return self._seen.changes() == 1

    def _known(self, what: str, name: str) -> bool:
        found = self._seen.execute("SELECT 1 FROM seen WHERE what = ? AND id = ?", (what, name))
        return found.fetchone() is not None


def _unique(entry: Entry, event: AnyEvent) -> Iterator[tuple[str | None, ...]]:
    """What no other entry may have: what it is called, then the values."""
    yield "event_id", entry.event_id
    if entry.idempotency_key is not None and entry.tool is not None:
        yield "idempotency_key", entry.agent, entry.tool, entry.idempotency_key
    if isinstance(event, Recorded):
        yield "memory", entry.subject_id
    elif isinstance(event, Retrieved):
        yield "retrieval", entry.subject_id
    elif isinstance(event, SessionStarted):
        yield "session", entry.subject_id, entry.agent


def _check_columns(entry: Entry) -> None:
    for field in ("event_id", "strategy", "run_id", "agent"):
        value = getattr(entry, field)
        fault = None if value is None else name_fault(value)
        if fault is not None:
            raise _refused(entry, f"{field} {fault}")
    for field in ("effective_at", "recorded_at"):
        if abs(getattr(entry, field)) > LAST_INSTANT:
            raise _refused(entry, f"{field} lies outside the years 1684 to 2255")
    if entry.subject_type not in SUBJECTS:
        raise _refused(entry, "subject_type is not known here")
    if entry.kind is not None and entry.kind not in KINDS:
        raise _refused(entry, "kind is not known here")
    if entry.arguments_sha256 is not None and len(entry.arguments_sha256) != HASH_BYTES:
        raise _refused(entry, f"arguments_sha256 has not {HASH_BYTES} bytes")
    if entry.schema_version != SCHEMA_VERSION:
        raise _refused(entry, f"schema_version is not {SCHEMA_VERSION}, the one known here")


def _event(entry: Entry) -> AnyEvent:
    try:
        content = dict(json.loads(entry.content).items())
        # A half of a character can be escaped in JSON and cannot be stored.
        json.dumps(content, ensure_ascii=False).encode()
        event = read_event(entry.event_type, content)
    except (AttributeError, ValueError, RecursionError):
        raise _refused(entry, "its content is not that of its type") from None
    if any(isinstance(value, int) and abs(value) > LAST_INSTANT for value in content.values()):
        raise _refused(entry, "its content holds a number that is too large")
    return event


def _refused(entry: Entry, why: str) -> StoreDamaged:
    return StoreDamaged(
        f"Line {entry.sequence + 1}: Entry {entry.sequence} cannot stand in a ledger: {why}.",
        hint="Take the export again from its ledger; nothing was imported.",
    )
