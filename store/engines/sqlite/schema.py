"""Tables of a ledger file, its identity, and the steps from older schemas.

The ledger table never changes; its guard against updates did when redaction came. Everything else is a projection, so
a step may drop it and ask for a rebuild.
The schema version is SQLite's user_version; the file is known by its application_id ("Dskb").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw

APPLICATION_ID: Final = 0x44736B62
CURRENT: Final = 4

_LEDGER = """
CREATE TABLE memory_events (
    sequence INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    kind TEXT,
    symbol TEXT,
    effective_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    strategy TEXT NOT NULL,
    run_id TEXT,
    agent TEXT NOT NULL,
    profile TEXT NOT NULL,
    session_id TEXT,
    model_call_id TEXT,
    retrieval_id TEXT,
    tool TEXT,
    arguments_sha256 BLOB,
    idempotency_key TEXT,
    content TEXT NOT NULL,
    content_salt BLOB NOT NULL,
    content_sha256 BLOB NOT NULL,
    leaf_sha256 BLOB NOT NULL,
    chain_sha256 BLOB NOT NULL,
    schema_version INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_events_subject ON memory_events (subject_id, sequence);
CREATE INDEX memory_events_call ON memory_events (model_call_id, sequence) WHERE model_call_id IS NOT NULL;
CREATE UNIQUE INDEX memory_events_idempotency ON memory_events (agent, tool, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE TRIGGER memory_events_no_delete BEFORE DELETE ON memory_events
    BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: no delete'); END;
CREATE TRIGGER memory_events_no_gap BEFORE INSERT ON memory_events
    WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM memory_events)
    BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: the next sequence is due'); END;
CREATE TRIGGER memory_events_no_replace BEFORE INSERT ON memory_events
    WHEN EXISTS (SELECT 1 FROM memory_events WHERE event_id = NEW.event_id)
      OR EXISTS (SELECT 1 FROM memory_events WHERE agent = NEW.agent AND tool = NEW.tool
                 AND idempotency_key = NEW.idempotency_key)
    BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: no replace'); END;
"""

# A redaction may take content and salt away of what it names, and nothing else; every other update is refused.
# The newest is asked first: a redaction of much consists of many entries, each followed by the blanks it allows.
_REDACTION = """
CREATE INDEX memory_events_rare ON memory_events (event_type, sequence)
    WHERE event_type IN ('memory.redacted', 'publication.begun', 'publication.ended');
CREATE TRIGGER memory_events_no_update BEFORE UPDATE ON memory_events
    WHEN NOT (
        NEW.content = '' AND NEW.content_salt = x''
        AND NEW.sequence IS OLD.sequence AND NEW.event_id IS OLD.event_id AND NEW.event_type IS OLD.event_type
        AND NEW.subject_type IS OLD.subject_type AND NEW.subject_id IS OLD.subject_id AND NEW.kind IS OLD.kind
        AND NEW.symbol IS OLD.symbol AND NEW.effective_at IS OLD.effective_at
        AND NEW.recorded_at IS OLD.recorded_at AND NEW.strategy IS OLD.strategy AND NEW.run_id IS OLD.run_id
        AND NEW.agent IS OLD.agent AND NEW.profile IS OLD.profile AND NEW.session_id IS OLD.session_id
        AND NEW.model_call_id IS OLD.model_call_id AND NEW.retrieval_id IS OLD.retrieval_id
        AND NEW.tool IS OLD.tool AND NEW.arguments_sha256 IS OLD.arguments_sha256
        AND NEW.idempotency_key IS OLD.idempotency_key AND NEW.content_sha256 IS OLD.content_sha256
        AND NEW.leaf_sha256 IS OLD.leaf_sha256 AND NEW.chain_sha256 IS OLD.chain_sha256
        AND NEW.schema_version IS OLD.schema_version
        AND (
            SELECT 1 FROM memory_events r CROSS JOIN json_each(r.content, '$.covered') c
            WHERE r.event_type IN ('memory.redacted', 'publication.begun', 'publication.ended')
              AND r.event_type = 'memory.redacted' AND r.sequence > OLD.sequence
              AND json_extract(c.value, '$.sequence') = OLD.sequence
            ORDER BY r.sequence DESC LIMIT 1
        ) IS NOT NULL
    )
    BEGIN SELECT RAISE(ABORT, 'memory_events is append-only: no update'); END;
"""

_PROJECTIONS = """
CREATE TABLE memory_versions (
    sequence_from INTEGER PRIMARY KEY,
    sequence_to INTEGER,
    memory_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    terms_total INTEGER NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    review_state TEXT NOT NULL,
    symbol TEXT,
    text TEXT NOT NULL,
    tags TEXT NOT NULL,
    details TEXT NOT NULL,
    agent TEXT NOT NULL,
    profile TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    effective_at INTEGER NOT NULL,
    stale_at INTEGER,
    expires_at INTEGER,
    terms INTEGER NOT NULL,
    UNIQUE (memory_id, version)
) STRICT;
CREATE VIEW memory_index AS SELECT * FROM memory_versions WHERE sequence_to IS NULL;
CREATE VIRTUAL TABLE memory_text USING fts5 (
    body, labels, facets, content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO memory_text (memory_text, rank) VALUES ('automerge', 4);
CREATE TABLE memory_retrievals (
    retrieval_id TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    session_id TEXT,
    model_call_id TEXT,
    effective_at INTEGER NOT NULL,
    query TEXT NOT NULL,
    mode TEXT NOT NULL,
    filters TEXT NOT NULL,
    cut INTEGER NOT NULL,
    total INTEGER NOT NULL,
    candidates TEXT NOT NULL,
    selected TEXT NOT NULL
) STRICT;
CREATE TABLE memory_deliveries (
    sequence INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    session_id TEXT,
    model_call_id TEXT,
    surface TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    as_of INTEGER,
    shown TEXT NOT NULL
) STRICT;
CREATE TABLE memory_sessions (
    session_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (session_id, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_flags (
    sequence INTEGER PRIMARY KEY,
    memory_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    other_id TEXT,
    note TEXT,
    agent TEXT NOT NULL,
    effective_at INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_intents (
    sequence INTEGER NOT NULL,
    action_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    symbol TEXT NOT NULL,
    PRIMARY KEY (symbol, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_holdings (
    sequence INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    standing TEXT NOT NULL,
    effective_at INTEGER NOT NULL,
    positions TEXT NOT NULL
) STRICT;
CREATE TABLE memory_warnings (
    sequence INTEGER PRIMARY KEY,
    code TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    symbol TEXT,
    agent TEXT NOT NULL,
    effective_at INTEGER NOT NULL,
    message TEXT NOT NULL
) STRICT;
CREATE TABLE memory_settlements (
    flag_sequence INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    resolution TEXT NOT NULL,
    PRIMARY KEY (flag_sequence, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_redactions (
    sequence INTEGER PRIMARY KEY,
    redacted_by INTEGER NOT NULL,
    kept TEXT NOT NULL
) STRICT;
CREATE TABLE memory_clock (
    effective_at INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL
) STRICT;
"""

_INDEXES = """
CREATE INDEX memory_versions_first ON memory_versions (sequence_from) WHERE version = 1;
CREATE INDEX memory_versions_kind ON memory_versions (kind, status, sequence_from);
CREATE INDEX memory_versions_symbol ON memory_versions (symbol, sequence_from) WHERE symbol IS NOT NULL;
CREATE INDEX memory_versions_agent ON memory_versions (changed_by, sequence_from);
CREATE INDEX memory_versions_due ON memory_versions (stale_at) WHERE stale_at IS NOT NULL;
CREATE INDEX memory_versions_pending ON memory_versions (agent, sequence_from) WHERE review_state = 'pending';
CREATE INDEX memory_flags_memory ON memory_flags (memory_id);
CREATE INDEX memory_flags_other ON memory_flags (other_id) WHERE other_id IS NOT NULL;
CREATE INDEX memory_deliveries_last
    ON memory_deliveries (agent, session_id, model_call_id, subject_id, sequence);
CREATE INDEX memory_intents_agent ON memory_intents (agent, sequence);
CREATE INDEX memory_retrievals_agent ON memory_retrievals (agent, sequence);
CREATE INDEX memory_versions_client_order
    ON memory_versions (json_extract(details, '$.client_order_id'), sequence_from) WHERE kind = 'order_action';
"""

_DROP_PROJECTIONS = """
DROP VIEW IF EXISTS memory_index;
DROP TABLE IF EXISTS memory_text;
DROP TABLE IF EXISTS memory_versions;
DROP TABLE IF EXISTS memory_retrievals;
DROP TABLE IF EXISTS memory_deliveries;
DROP TABLE IF EXISTS memory_sessions;
DROP TABLE IF EXISTS memory_flags;
DROP TABLE IF EXISTS memory_clock;
DROP TABLE IF EXISTS memory_intents;
DROP TABLE IF EXISTS memory_holdings;
DROP TABLE IF EXISTS memory_warnings;
DROP TABLE IF EXISTS memory_settlements;
DROP TABLE IF EXISTS memory_redactions;
"""


def create(connection: apsw.Connection) -> None:
    """Make all tables of the current schema; the caller holds a transaction on an empty file."""
    connection.execute(_LEDGER)
    connection.execute(_REDACTION)
    connection.execute(_PROJECTIONS)
    connection.execute(_INDEXES)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {CURRENT}")


def reset_projections(connection: apsw.Connection) -> None:
    """Drop every projection and make it anew, empty; the caller holds a transaction."""
    drop_to_tables(connection)
    make_indexes(connection)


def drop_to_tables(connection: apsw.Connection) -> None:
    """As `reset_projections`, but without the indexes, which are made faster once the tables are filled."""
    connection.execute(_DROP_PROJECTIONS)
    connection.execute(_PROJECTIONS)


def make_indexes(connection: apsw.Connection) -> None:
    """What `drop_to_tables` left out."""
    connection.execute(_INDEXES)


def _from_1(connection: apsw.Connection) -> None:
    """Schema 2 brought the clock and flag projections and totals in versions."""
    reset_projections(connection)


def _from_2(connection: apsw.Connection) -> None:
    """Schema 3 brought orders, positions and warnings, and an index on the ledger by model call."""
    connection.execute(
        "CREATE INDEX memory_events_call ON memory_events (model_call_id, sequence) WHERE model_call_id IS NOT NULL"
    )
    reset_projections(connection)


def _from_3(connection: apsw.Connection) -> None:
    """Schema 4 brought redaction, and settled flags."""
    connection.execute("DROP TRIGGER memory_events_no_update")
    connection.execute(_REDACTION)
    reset_projections(connection)


STEPS: Final[dict[int, Callable[[apsw.Connection], None]]] = {1: _from_1, 2: _from_2, 3: _from_3}
"""Step from each older schema to the next; all end with a rebuild of the projections."""
