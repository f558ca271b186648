"""Reads of what waits for a person: pending memories, flags, conflicts; and of what a new memory is held against."""

from __future__ import annotations

import json
from dataclasses import fields

from ...lifecycle import ENDED, REPEATABLE
from ...rows import Flag, Said, Version
from .counting import SHOWN
from .reading import STANDING, VERSION, Reading, to_version

FLAG = ", ".join(f"f.{field.name}" for field in fields(Flag))
_ENDED = ", ".join(f"'{status}'" for status in ENDED)
_COMPARED = ", ".join(f"'{kind}'" for kind in REPEATABLE)
_IN_USE = f"{SHOWN} AND v.status NOT IN ({_ENDED})"
_OPEN = (
    "NOT EXISTS (SELECT 1 FROM memory_settlements s WHERE s.flag_sequence = f.sequence AND s.sequence <= ?)"
)
_FLAGGED = (
    "FROM memory_flags f CROSS JOIN memory_versions v ON v.memory_id = f.memory_id"
    f" WHERE f.sequence <= ? AND {STANDING} AND {_IN_USE} AND {_OPEN}"
)
_STANDS = STANDING.replace("?", "?1")
_WAITING = (
    f"FROM memory_versions v WHERE v.review_state = 'pending' AND {_STANDS} AND v.text <> ''"
    " AND (v.details ->> '$.pending_until' IS NULL OR v.details ->> '$.pending_until' > ?2)"
    " AND v.status NOT IN ('superseded', 'retired', 'withdrawn', 'resolved', 'closed')"
)
_PROPOSED = (
    f"FROM memory_versions v WHERE v.kind = 'thesis' AND v.status = 'open' AND {_STANDS}"
    " AND v.details ->> '$.proposed.pending_until' > ?2 AND v.details ->> '$.proposed.text' <> ''"
)
"""New wordings of theses that were let in before; few theses are open at a time."""

_SAID = (
    "SELECT v.memory_id, v.kind, v.symbol, v.text, v.details ->> '$.direction', v.details ->> '$.target',"
    " v.details ->> '$.horizon' FROM memory_versions v"
    f" WHERE {STANDING} AND {_IN_USE} AND v.status <> 'closed' AND (v.expires_at IS NULL OR v.expires_at > ?)"
    f" AND v.kind IN ({_COMPARED})"
)


class ReviewReads(Reading):
    """Reads of the review queue."""

    def flags(self, cut: int, *, limit: int) -> list[Flag]:
        rows = self._connection.execute(
            f"SELECT {FLAG} {_FLAGGED} ORDER BY f.sequence DESC LIMIT ?", (cut, cut, cut, cut, limit)
        )
        return [Flag(*row) for row in rows]

    def count_flags(self, cut: int) -> int:
        row = self._one(f"SELECT count(*) {_FLAGGED}", (cut, cut, cut, cut))
        return int(row[0]) if row else 0

    def flag_at(self, sequence: int, cut: int) -> tuple[Flag, str | None] | None:
        row = self._one(
            f"SELECT {FLAG}, (SELECT s.resolution FROM memory_settlements s"
            "  WHERE s.flag_sequence = f.sequence AND s.sequence <= ?)"
            " FROM memory_flags f WHERE f.sequence = ? AND f.sequence <= ?",
            (cut, sequence, cut),
        )
        return None if row is None else (Flag(*row[:-1]), row[-1])

    def flags_on(self, memory_ids: tuple[str, ...], cut: int) -> list[Flag]:
        if not memory_ids:
            return []
        named = json.dumps(memory_ids)
        rows = self._connection.execute(
            f"SELECT {FLAG} FROM memory_flags f WHERE f.sequence <= ?2 AND f.sequence IN ("
            "  SELECT sequence FROM memory_flags WHERE memory_id IN (SELECT value FROM json_each(?1))"
            "  UNION SELECT sequence FROM memory_flags WHERE other_id IN (SELECT value FROM json_each(?1)))"
            f" AND {_OPEN.replace('?', '?2')} ORDER BY f.sequence",
            (named, cut),
        )
        return [Flag(*row) for row in rows]

    def settled_before(self, one: str, other: str, cut: int) -> bool:
        found = self._one(
            "SELECT 1 FROM memory_flags f JOIN memory_settlements s ON s.flag_sequence = f.sequence"
            " WHERE f.reason = 'conflicting' AND s.sequence <= ?3"
            " AND ((f.memory_id = ?1 AND f.other_id = ?2) OR (f.memory_id = ?2 AND f.other_id = ?1)) LIMIT 1",
            (one, other, cut),
        )
        return found is not None

    def pending(self, agent: str | None, cut: int, at: int, *, limit: int) -> list[Version]:
        rows = self._connection.execute(
            f"SELECT {VERSION} {_WAITING} AND (?3 IS NULL OR v.agent = ?3) UNION ALL"
            f" SELECT {VERSION} {_PROPOSED} AND (?3 IS NULL OR v.details ->> '$.proposed.by' = ?3)"
            " ORDER BY 1 LIMIT ?4",
            (cut, at, agent, limit),
        )
        return [to_version(row) for row in rows]

    def count_pending(self, agent: str | None, cut: int, at: int) -> int:
        row = self._one(
            f"SELECT (SELECT count(*) {_WAITING} AND (?3 IS NULL OR v.agent = ?3))"
            f" + (SELECT count(*) {_PROPOSED} AND (?3 IS NULL OR v.details ->> '$.proposed.by' = ?3))",
            (cut, at, agent),
        )
        return int(row[0]) if row else 0

    def same(self, mark: str, cut: int) -> list[Version]:
        rows = self._connection.execute(
            f"SELECT {VERSION} FROM memory_text t CROSS JOIN memory_versions v ON v.sequence_from = t.rowid"
            f" WHERE memory_text MATCH ? AND t.rowid <= ? AND {STANDING} ORDER BY t.rowid DESC",
            (f'facets : "{mark}"', cut, cut, cut),
        )
        return [to_version(row) for row in rows]

    def said_on(self, symbol: str, cut: int, at: int, *, limit: int) -> list[Said]:
        rows = self._connection.execute(
            f"{_SAID} AND v.symbol = ? ORDER BY v.sequence_from DESC LIMIT ?", (cut, cut, at, symbol, limit)
        )
        return [Said(*row) for row in rows]

    def said_at(self, sequences: list[int], cut: int, at: int) -> list[Said]:
        rows = self._connection.execute(
            f"{_SAID} AND v.sequence_from IN (SELECT value FROM json_each(?)) ORDER BY v.sequence_from DESC",
            (cut, cut, at, json.dumps(sequences)),
        )
        return [Said(*row) for row in rows]

    def count_repeats(self, memory_id: str, cut: int) -> int:
        row = self._one(
            "SELECT count(*) FROM memory_events WHERE subject_id = ? AND event_type = 'memory.repeated'"
            " AND sequence <= ?",
            (memory_id, cut),
        )
        return int(row[0]) if row else 0

    def searches_before(
        self, agent: str, model_call_id: str | None, session_id: str | None, cut: int, *, limit: int
    ) -> list[tuple[str, int]]:
        named = [("model_call_id = ?", model_call_id), ("session_id = ?", session_id)]
        clauses = [(clause, value) for clause, value in named if value is not None]
        where = "".join(f" AND {clause}" for clause, _ in clauses)
        rows = self._connection.execute(
            "SELECT retrieval_id, sequence FROM memory_retrievals"
            f" WHERE agent = ? AND sequence <= ?{where} ORDER BY sequence DESC LIMIT ?",
            (agent, cut, *(value for _, value in clauses), limit),
        )
        return list(rows)

    def last_decision(self, agent: str, after: int) -> int:
        row = self._one(
            "SELECT max(sequence_from) FROM memory_versions WHERE kind = 'decision' AND status = 'recorded'"
            " AND sequence_from > ? AND agent = ?",
            (after, agent),
        )
        return int(row[0] or 0) if row else 0
