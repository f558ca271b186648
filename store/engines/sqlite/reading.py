"""What all reads share: the connection, and how a row of versions becomes a value."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import apsw

from ...entry import Entry
from ...rows import Version

VERSION_FIELDS = tuple(field.name for field in fields(Version) if field.name != "source")
VERSION = ", ".join(f"v.{name}" for name in VERSION_FIELDS)
STANDING = "v.sequence_from <= ? AND (v.sequence_to IS NULL OR v.sequence_to > ?)"


class Reading:
    """A connection inside one transaction, which the engine holds open."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def _one(self, sql: str, bindings: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._connection.execute(sql, bindings).fetchone()
        return found

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        """The entry of a row; where its content was taken away, with what stays of it."""
        entry = Entry(*row)
        if entry.content:
            return entry
        kept = self._one("SELECT kept FROM memory_redactions WHERE sequence = ?", (entry.sequence,))
        return entry if kept is None else replace(entry, content=kept[0])

    def _versions(self, sql: str, bindings: tuple[Any, ...]) -> list[Version]:
        return [to_version(row) for row in self._connection.execute(sql, bindings)]


def to_version(row: tuple[Any, ...]) -> Version:
    """A version from its columns in the order of VERSION_FIELDS."""
    named = dict(zip(VERSION_FIELDS, row, strict=True))
    named["tags"] = tuple(json.loads(named["tags"]))
    named["details"] = json.loads(named["details"])
    return Version(**named)
