"""Which entries may be blank: those that a later redaction names with their hash, and what it lets stay of them.

Written down a second time on purpose, from docs/ledger.md and with none of the code that takes content away.
"""

from __future__ import annotations

import json
from typing import Any

import apsw

from .audit_columns import READ, Values

_SEQUENCE, _TYPE, _SHA256 = map(READ.index, ("sequence", "event_type", "content_sha256"))
_CONTENT, _SALT = map(READ.index, ("content", "content_salt"))
_ALL = (
    "SELECT sequence, content FROM memory_events"
    " WHERE event_type IN ('memory.redacted', 'publication.begun', 'publication.ended')"
    " AND event_type = 'memory.redacted' ORDER BY sequence"
)
_ONE = "SELECT content FROM memory_events WHERE sequence = ?"

UNCOVERED = "content and content_salt were taken away, and no later redaction covers the entry"
OTHER = "the content was taken away by a redaction that names another entry, by its type or hash"
BACK = "the entry was redacted, and its content is back"


class Withdrawals:
    """What the redactions of a ledger say, looked up by the entries they cover."""

    def __init__(self, connection: apsw.Connection, *, any_at_all: bool) -> None:
        """Read all redactions, of a ledger whose schema knows them."""
        self._connection = connection
        self._by: dict[int, int] = {}
        self._parsed: tuple[int, dict[int, dict[str, Any]]] = (0, {})
        for sequence, content in connection.execute(_ALL) if any_at_all else ():
            for covered in _covered(content):
                if covered < sequence:
                    self._by.setdefault(covered, sequence)

    def fault(self, row: Values) -> str | None:
        """What is wrong with an entry's content being there or not; None for one that is as it must be."""
        by = self._by.get(row[_SEQUENCE])
        if row[_CONTENT] or row[_SALT]:
            return None if by is None else BACK
        if by is None:
            return UNCOVERED
        named = self._named(by).get(row[_SEQUENCE], {})
        same = (named.get("event_type"), named.get("content_sha256")) == (row[_TYPE], row[_SHA256].hex())
        return None if same else OTHER

    def shown(self, row: Values) -> Values:
        """The entry with what stays of its content, where it is blank and may be."""
        if row[_CONTENT] or row[_SEQUENCE] not in self._by:
            return row
        kept = self._named(self._by[row[_SEQUENCE]]).get(row[_SEQUENCE], {}).get("kept")
        return (*row[:_CONTENT], json.dumps(kept, ensure_ascii=False), *row[_CONTENT + 1 :])

    def _named(self, by: int) -> dict[int, dict[str, Any]]:
        """What one redaction covers, by sequence."""
        if self._parsed[0] != by:
            content = self._connection.execute(_ONE, (by,)).get
            self._parsed = by, _covered(content)
        return self._parsed[1]


def _covered(content: Any) -> dict[int, dict[str, Any]]:
    """What a content covers; nothing where it is not that of a redaction, which its own entry's check finds."""
    try:
        named = json.loads(content)["covered"]
        return {each["sequence"]: each for each in named if type(each["sequence"]) is int}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
