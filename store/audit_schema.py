"""What stands in the file beside its rows: the tables, indexes, views and triggers, against those of its schema.

The file's own word for its schema is not believed: what only a later schema has must not be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import apsw

from .engines.sqlite import schema

# What each schema brought that the one before it did not have (docs/ledger.md; the fixtures are real ones).
_BROUGHT: dict[int, frozenset[str]] = {
    2: frozenset(
        "memory_flags memory_clock memory_versions_agent memory_versions_due memory_versions_first".split()
    ),
    3: frozenset(
        "memory_events_call memory_intents memory_intents_agent memory_holdings memory_retrievals_agent"
        " memory_versions_client_order memory_warnings".split()
    ),
    4: frozenset(
        "memory_events_rare memory_settlements memory_redactions memory_versions_pending memory_flags_memory"
        " memory_flags_other".split()
    ),
}


# What an earlier schema had otherwise: until schema 4 no update passed the guard at all.
_UNTIL_4 = {
    "memory_events_no_update": "CREATE TRIGGER memory_events_no_update BEFORE UPDATE ON memory_events"
    "\n    BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: no update'); END"
}


@dataclass(frozen=True, slots=True)
class _Thing:
    """A row of sqlite_schema."""

    kind: str
    table: str
    sql: str | None

    @property
    def guards(self) -> bool:
        """Whether it is the ledger table or stands on it; all else of Deskbook's a rebuild makes anew."""
        return self.table == "memory_events"


def schema_faults(connection: apsw.Connection) -> Iterator[tuple[str, bool]]:
    """What is missing, changed, foreign or of another schema, and whether a rebuild mends it.

    The projections of an older schema are made anew by the next start, so only what it cannot have is told of
    them. Raises ValueError or TypeError for a file whose list of tables is damaged.
    """
    with closing(apsw.Connection(":memory:")) as fresh:
        schema.create(fresh)
        expected = _things(fresh)
    present = _things(connection)
    version = connection.pragma("user_version")
    if version != schema.CURRENT and version not in schema.STEPS:
        yield f"the file says schema {version}, which no ledger has", False
        return
    if version < 4:
        expected |= {name: replace(expected[name], sql=sql) for name, sql in _UNTIL_4.items()}
    later = frozenset[str]().union(*(names for since, names in _BROUGHT.items() if since > version))
    if early := sorted(later & present.keys()):
        yield f"the file says schema {version} but holds {', '.join(early)} of a later schema", False
    for name, thing in sorted(expected.items()):
        if name not in later and (thing.guards or version == schema.CURRENT):
            yield from _fault(name, thing, present.get(name))
    tables = {thing.table for thing in expected.values() if not thing.guards}
    for name in sorted(present.keys() - expected.keys()):
        thing = present[name]
        # What stands on a projection goes with it when a rebuild drops it.
        yield f"the {thing.kind} {name} is none of Deskbook's", thing.table in tables


def _fault(name: str, expected: _Thing, present: _Thing | None) -> Iterator[tuple[str, bool]]:
    purpose = " that keeps the ledger append-only" if expected.guards else ""
    if present is None:
        yield f"the {expected.kind} {name}{purpose} is missing", not expected.guards
    elif present != expected:
        # A rebuild drops by kind and name, so it cannot drop what took a projection's name.
        same = (present.kind, present.table) == (expected.kind, expected.table)
        yield f"the {expected.kind} {name}{purpose} was changed", same and not expected.guards


def _is_statistics(name: str, kind: str) -> bool:
    return kind == "table" and name in ("sqlite_stat1", "sqlite_stat4", "sqlite_sequence")


def _things(connection: apsw.Connection) -> dict[str, _Thing]:
    """All but SQLite's own indexes and statistics; the tables of the full-text index count by name only."""
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")
    return {
        str(name): _Thing(kind, table, None if name.startswith("memory_text_") else sql)
        for name, kind, table, sql in rows
        if not (name.startswith("sqlite_autoindex_") and kind == "index") and not _is_statistics(name, kind)
    }
