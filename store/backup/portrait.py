"""What a ledger is known by again after it was copied: its head, its counts, and what a set of searches finds."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from ..engines.sqlite import schema
from ..engines.sqlite.connection import connect, reading_access
from ..engines.sqlite.preparation import schema_of
from ..engines.sqlite.snapshot import SqliteSnapshot
from ..errors import NotFound, StoreError
from ..ledger import genesis_of
from ..rows import Filter
from ..search.recall import Question, recall
from ..terms import query_terms
from ..view import Layer, View

SEARCHES = 24
HITS = 10
_WORDS = 3
_TABLES = (
    "memory_events",
    "memory_versions",
    "memory_retrievals",
    "memory_deliveries",
    "memory_sessions",
    "memory_flags",
    "memory_intents",
    "memory_holdings",
    "memory_warnings",
    "memory_settlements",
    "memory_redactions",
    "memory_clock",
)


@dataclass(frozen=True, slots=True)
class Search:
    """One search and what it finds: the memories in order, the first ten of `total`."""

    query: str
    total: int
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Portrait:
    """A ledger at one moment; `chain` is the last chain hash in hex, `counts` rows by table."""

    store_id: str
    strategy: str
    run: str | None
    sequence: int
    chain: str
    counts: dict[str, int]
    searches: tuple[Search, ...]

    def differs_from(self, other: Portrait) -> str | None:
        """The first thing in which two portraits differ, None when they are of the same ledger at the same moment."""
        for what, one, two in (
            ("the store's id", self.store_id, other.store_id),
            ("strategy and run", (self.strategy, self.run), (other.strategy, other.run)),
            ("the number of entries", self.sequence, other.sequence),
            ("the chain", self.chain, other.chain),
            ("the rows of its tables", self.counts, other.counts),
            ("what its searches find", self.searches, other.searches),
        ):
            if one != two:
                return what
        return None


def portray(path: Path, searches: tuple[str, ...] | None = None) -> Portrait:
    """The portrait of the ledger file at `path`, with these searches or some that its own content suggests.

    Raises NotFound for a file without a genesis entry, StoreError for one of an older schema, apsw.Error or
    StoreError for one that cannot be read.
    """
    with closing(connect(path, reading_access(path))) as connection:
        connection.execute("BEGIN")
        _check_schema(connection, path)
        snapshot = SqliteSnapshot(connection)
        genesis, head = genesis_of(snapshot), snapshot.head()
        if genesis is None or head is None:
            raise _not_begun()
        view = View((Layer(snapshot, head.sequence),), head.latest_effective_at)
        counts = {table: _number(connection, f"SELECT count(*) FROM {table}") for table in _TABLES}
        asked = _suggested(connection) if searches is None else searches
        return Portrait(
            store_id=genesis.store_id,
            strategy=genesis.strategy,
            run=genesis.run,
            sequence=head.sequence,
            chain=head.chain_sha256.hex(),
            counts=counts,
            searches=tuple(_searched(view, query) for query in asked),
        )


def _check_schema(connection: apsw.Connection, path: Path) -> None:
    version = schema_of(connection, path)
    if version == 0:
        raise _not_begun()
    if version < schema.CURRENT:
        raise StoreError(
            f"The ledger has schema {version}, and only one of schema {schema.CURRENT} can be backed up.",
            hint="Run `deskbook status` on it once, which brings it up to date, and back it up again.",
        )


def _not_begun() -> NotFound:
    return NotFound("The file holds no ledger that was begun.", hint="Name a ledger, or a ledger's backup.")


def _searched(view: View, query: str) -> Search:
    found = recall(view, Question(query, Filter(), HITS))
    return Search(query, found.total, tuple(hit.version.memory_id for hit in found.hits))


def _suggested(connection: apsw.Connection) -> tuple[str, ...]:
    """Words of memories spread over the whole ledger, so that a part that was lost is missed."""
    step = max(1, _number(connection, "SELECT coalesce(max(ordinal), 0) FROM memory_versions") // SEARCHES)
    texts = connection.execute(
        "SELECT text FROM memory_versions WHERE version = 1 AND ordinal % ? = 0 ORDER BY sequence_from LIMIT ?",
        (step, SEARCHES),
    )
    asked = (" ".join(query_terms(str(text))[:_WORDS]) for (text,) in texts.fetchall())
    return tuple(dict.fromkeys(query for query in asked if query))


def _number(connection: apsw.Connection, statement: str) -> int:
    ((found,),) = connection.execute(statement).fetchall()
    return int(str(found))
