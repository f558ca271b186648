"""The full-text index against the versions it was made from, term by term.

An index without content cannot be read back. So a second one is made beside it from the versions, by the rules of
docs/ledger.md written down again, and the terms of the two are compared: which term stands where in which version.
Both are read in the same order, so the comparison itself needs no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import apsw

from .terms import facet, index_text

_TOKENIZER = "porter unicode61 remove_diacritics 2"
_LABELLING = ("action", "category", "direction")


def text_fault(connection: apsw.Connection) -> str | None:
    """The first thing in which the full-text index differs from the versions, None when it does not.

    The connection may be one that only reads: the second index is temporary.
    """
    connection.execute(
        "CREATE VIRTUAL TABLE temp.expected_text USING fts5"
        f" (body, labels, facets, content = '', tokenize = '{_TOKENIZER}')"
    )
    connection.executemany(
        "INSERT INTO temp.expected_text (rowid, body, labels, facets) VALUES (?, ?, ?, ?)",
        _expected(connection),
    )
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


def _expected(connection: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    rows = connection.execute(
        "SELECT sequence_from, text, tags, details, symbol, kind, status, agent FROM main.memory_versions"
    )
    for row in rows:
        sequence, text, tags_json, details_json, symbol, kind, status, agent = row
        tags, details = json.loads(str(tags_json)), json.loads(str(details_json))
        labels = [symbol] if symbol else []
        labels += [*tags, *(str(details[name]) for name in _LABELLING if name in details)]
        facets = [facet("kind", kind), facet("status", status), facet("agent", agent)]
        facets += [facet("symbol", symbol)] if symbol else []
        facets += [facet("tag", tag) for tag in tags]
        yield sequence, index_text(str(text)), index_text(" ".join(labels)), " ".join(facets)


def _terms(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    return iter(connection.execute(f'SELECT term, doc, col, "offset" FROM temp.{table}_terms'))
