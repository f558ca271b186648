"""The full-text index against the versions it was made from, term by term.

An index without content cannot be read back. So a second one is made beside it from the versions, by the rules of
docs/ledger.md written down again, and the two are compared: which term stands where in which version. Merged into one
segment, two indexes of the same terms are the same bytes; where they are not, the terms themselves are compared. Both
are read in the same order, so that the comparison needs no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import apsw

from .terms import facet, index_text, same_mark

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_LABELLING = ("action", "category", "direction")
_REPEATABLE = ("memory", "proposal", "risk_note", "lesson", "thesis")
_NAMED = tuple(f'"{name}"' for name in _LABELLING)
_MOST_REMEMBERED = 4_096
_TOGETHER = 500

_MADE = f"USING fts5 (body, labels, facets, content = '', contentless_delete = 1, tokenize = '{_TOKENIZER}')"
_PENDING = 4 * 2**20
"""Bytes of the second index that are kept in memory before they become a segment."""
Version = tuple[Any, ...]

UNREADABLE = "the full-text index or the versions in it cannot be read"

# FTS5 keeps an index as pages in a table of data: the record of its structure, and segments with their pages.
_STRUCTURE = 10
_PAGES = 2**37
_KNOWS_DELETIONS = b"\xff\x00\x00\x01"


@dataclass(frozen=True, slots=True)
class Segment:
    """What an index consists of once it is merged: the segment's number, its first and its last page."""

    number: int
    first: int
    last: int


class ExpectedText:
    """The second index, which grows as the versions are read; it is temporary, so the connection may be a reader."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[Any, ...], tuple[str, str]] = {}
        self._waiting: list[Version] = []
        self._readable = True
        connection.execute(f"CREATE VIRTUAL TABLE temp.expected_text {_MADE}")
        for option, value in (("automerge", 0), ("hashsize", _PENDING)):
            connection.execute(
                "INSERT INTO temp.expected_text (expected_text, rank) VALUES (?, ?)", (option, value)
            )

    def add(self, version: Version) -> None:
        """Add a version, its columns in the order of VERSION_COLUMNS."""
        self._waiting.append(version)
        if len(self._waiting) >= _TOGETHER:
            self._write()

    def fault(self, elsewhere: apsw.Connection, copied: Segment | None) -> str | None:
        """The first thing in which the full-text index differs from the versions, None when it does not.

        A copy of it was made on another connection, or could not be.
        """
        connection = self._connection
        self._write()
        if not self._readable:
            return UNREADABLE
        if copied is not None and self._has_bytes_of(elsewhere, copied):
            return None
        for name, table in (("main", "memory_text"), ("temp", "expected_text")):
            connection.execute(
                f"CREATE VIRTUAL TABLE temp.{table}_terms USING fts5vocab ({name}, {table}, instance)"
            )
        for found, expected in zip_longest(
            _terms(connection, "memory_text"), _terms(connection, "expected_text")
        ):
            if found != expected:
                _, sequence, *_ = min(each for each in (found, expected) if each is not None)
                return f"the full-text index does not hold the version of sequence {sequence} as it is"
        return None

    def _write(self) -> None:
        try:
            self._connection.executemany(
                "INSERT INTO temp.expected_text (rowid, body, labels, facets) VALUES (?, ?, ?, ?)",
                map(self._indexed, self._waiting),
            )
        except (ValueError, TypeError, AttributeError):  # a column that was changed is not what it must be
            self._readable = False
        self._waiting.clear()

    def _has_bytes_of(self, elsewhere: apsw.Connection, copied: Segment) -> bool:
        """Whether both are the same pages, which then hold the same terms; when they are not, they still may."""
        made = _merged(self._connection, "expected_text")
        return (
            made is not None
            and (made.first, made.last) == (copied.first, copied.last)
            and all(
                page == other
                for page, other in zip_longest(
                    _pages(self._connection, "expected_text", made), _pages(elsewhere, "copied_text", copied)
                )
            )
        )

    def _indexed(self, version: Version) -> Version:
        # By their places in VERSION_COLUMNS.
        text, tags, details, agent = version[9:13]
        kind, status, _, symbol = version[5:9]
        labelling: tuple[str, ...] = ()
        if details != "{}" and any(name in details for name in _NAMED):
            labelling = _labelling(details)
        key = (tags, labelling, symbol, kind, status, agent)
        texts = self._known.get(key)
        if texts is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            texts = self._known[key] = _labels_and_facets(*key)
        labels, facets = texts
        if kind in _REPEATABLE and text:
            facets = f"{same_mark(agent, kind, symbol, text)} {facets}"
        return version[0], text if text.isascii() else index_text(text), labels, facets


def copy_index(connection: apsw.Connection) -> Segment | None:
    """Copy the full-text index and merge the copy, which is temporary; None when it is not one segment then."""
    connection.execute(f"CREATE VIRTUAL TABLE temp.copied_text {_MADE}")
    for part in ("data", "idx", "docsize"):
        connection.execute(f"DELETE FROM temp.copied_text_{part}")
        connection.execute(f"INSERT INTO temp.copied_text_{part} SELECT * FROM main.memory_text_{part}")
    return _merged(connection, "copied_text")


def _pages(connection: apsw.Connection, table: str, segment: Segment) -> Iterator[tuple[int, bytes]]:
    """Everything in the table of data but the records of averages and structure."""
    return iter(
        connection.execute(
            f"SELECT id - ?, block FROM temp.{table}_data WHERE id > ? ORDER BY id",
            (segment.number * _PAGES, _STRUCTURE),
        )
    )


def _merged(connection: apsw.Connection, table: str) -> Segment | None:
    """Merge an index into one segment; None when it is not only one then."""
    # A lone segment would be left as it is, however it was cut into pages: so there is one more, of no version.
    connection.execute(f"INSERT INTO temp.{table} (rowid, body, labels, facets) VALUES (0, 'x', '', '')")
    connection.execute(f"INSERT INTO temp.{table} ({table}) VALUES ('optimize')")
    structure = connection.execute(f"SELECT block FROM temp.{table}_data WHERE id = ?", (_STRUCTURE,)).get
    return _lone_segment(structure)


def _lone_segment(structure: bytes) -> Segment | None:
    """The one segment that FTS5's record of its structure names.

    After 4 bytes that change with every change of options and 4 of the kind of record there are numbers: of levels,
    of segments and of pages written; then for each level of merges and of segments; and for each segment its id,
    first and last page, first and last deletion, pages of deletions, entries deleted and entries.
    """
    if structure[4:8] != _KNOWS_DELETIONS:
        return None
    levels, segments, _, *rest = _numbers(structure[8:])
    if segments != 1 or len(rest) != 2 * levels + 8:
        return None
    for level in range(levels):
        if rest[2 * level + 1] == 1:
            number, first, last, _, _, tombs, deleted, _ = rest[2 * level + 2 : 2 * level + 10]
            return None if tombs or deleted else Segment(number, first, last)
    return None


def _numbers(packed: bytes) -> Iterator[int]:
    """The numbers of SQLite's own packing, 7 bits a byte and the greatest first; none of these fills nine bytes."""
    number = 0
    for byte in packed:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0


def _labelling(details_json: str) -> tuple[str, ...]:
    details = json.loads(details_json)
    return tuple(str(details[name]) for name in _LABELLING if name in details)


def _labels_and_facets(
    tags_json: str, labelling: tuple[str, ...], symbol: str | None, kind: str, status: str, agent: str
) -> tuple[str, str]:
    tags = json.loads(tags_json)
    labels = [symbol] if symbol else []
    labels += [*tags, *labelling]
    facets = [facet("kind", kind), facet("status", status), facet("agent", agent)]
    facets += [facet("symbol", symbol)] if symbol else []
    facets += [facet("tag", tag) for tag in tags]
    return index_text(" ".join(labels)), " ".join(facets)


def _terms(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Every term in its place but those of the row that is no version."""
    where = "WHERE doc <> 0" if table == "expected_text" else ""
    return iter(connection.execute(f'SELECT term, doc, col, "offset" FROM temp.{table}_terms {where}'))
