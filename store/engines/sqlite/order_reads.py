"""Reads for orders: open actions, positions, warnings, and what an agent had been shown before it acted."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ...entry import COLUMNS, Entry
from ...lifecycle import ORDER_ACTION
from ...rows import Caution, Holdings, Version
from .counting import OPEN_THESES, Condition, StandingReads
from .reading import STANDING, VERSION

_ENTRY = ", ".join(COLUMNS)
_HOLDINGS = ", ".join(field.name for field in fields(Holdings))
_CAUTION = ", ".join(f"w.{field.name}" for field in fields(Caution))
_LINKS = ("decision_id", "thesis_id", "previous_action_id", "submit_action_id")
_UNKNOWN = Condition(f"v.kind = '{ORDER_ACTION}' AND v.status IN ('intent', 'unknown')")
_WORKING = Condition(
    f"v.kind = '{ORDER_ACTION}' AND json_extract(v.details, '$.order.status') IN ('open', 'partially_filled')"
)
_DATE = "*[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"


class OrderReads(StandingReads):
    """The order side of a snapshot."""

    def holdings(self, cut: int) -> Holdings | None:
        latest = (
            f"SELECT {_HOLDINGS} FROM memory_holdings WHERE sequence <= ? {{}} ORDER BY sequence DESC LIMIT 1"
        )
        row = self._one(latest.format("AND standing = 'observed'"), (cut,)) or self._one(
            latest.format(""), (cut,)
        )
        return None if row is None else Holdings(*row)

    def unreconciled(self, symbols: tuple[str, ...] | None, cut: int, *, limit: int) -> list[Version]:
        return self._oldest(_UNKNOWN, symbols, cut, limit)

    def count_unreconciled(self, symbols: tuple[str, ...] | None, cut: int) -> int:
        return self._count(_UNKNOWN, symbols, cut)

    def open_orders(self, symbols: tuple[str, ...] | None, cut: int, *, limit: int) -> list[Version]:
        return self._oldest(_WORKING, symbols, cut, limit)

    def count_open_orders(self, symbols: tuple[str, ...] | None, cut: int) -> int:
        return self._count(_WORKING, symbols, cut)

    def changes_of(self, submits: tuple[str, ...], cut: int) -> list[Version]:
        return self._versions(
            f"SELECT {VERSION} FROM memory_versions v WHERE v.kind = '{ORDER_ACTION}' AND v.status = 'acknowledged'"
            f" AND {STANDING} AND json_extract(v.details, '$.operation') = 'modify'"
            f" AND json_extract(v.details, '$.submit_action_id') IN ({', '.join('?' * len(submits))})"
            " ORDER BY v.sequence_from",
            (cut, cut, *submits),
        )

    def _oldest(
        self, condition: Condition, symbols: tuple[str, ...] | None, cut: int, limit: int
    ) -> list[Version]:
        where, bindings = self._touching(condition, symbols, cut)
        return self._versions(
            f"SELECT {VERSION} FROM memory_versions v WHERE {where} ORDER BY v.created_at, v.ordinal LIMIT ?",
            (*bindings, limit),
        )

    def _count(self, condition: Condition, symbols: tuple[str, ...] | None, cut: int) -> int:
        where, bindings = self._touching(condition, symbols, cut)
        row = self._one(f"SELECT count(*) FROM memory_versions v WHERE {where}", bindings)
        return int(row[0]) if row else 0

    def _which(self, condition: Condition, cut: int) -> tuple[str, tuple[Any, ...]]:
        """Versions that meet a condition and stand at the cut, in SQL on `v`."""
        standing = self.standing(condition, cut)
        if standing is None:
            return f"{condition.where} AND {STANDING}", (*condition.bindings, cut, cut)
        return "v.sequence_from IN (SELECT value FROM json_each(?))", (json.dumps(standing.all),)

    def _touching(
        self, condition: Condition, symbols: tuple[str, ...] | None, cut: int
    ) -> tuple[str, tuple[Any, ...]]:
        """Order actions that stand so at the cut and touch one of the symbols (None: any)."""
        where, bindings = self._which(condition, cut)
        if symbols is None:
            return where, bindings
        marks = ", ".join("?" * len(symbols))
        touching = f"v.memory_id IN (SELECT action_id FROM memory_intents WHERE symbol IN ({marks}))"
        return f"{touching} AND {where}", (*symbols, *bindings)

    def theses_to_observe(self, symbols: tuple[str, ...], cut: int, at: int, *, limit: int) -> list[Version]:
        where, bindings = self._which(OPEN_THESES, cut)
        return self._versions(
            f"SELECT {VERSION} FROM memory_versions v WHERE {where}"
            " AND (v.expires_at IS NULL OR v.expires_at > ?) AND (+v.symbol IN (SELECT value FROM json_each(?))"
            " OR json_extract(v.details, '$.invalidation') GLOB ?) ORDER BY v.sequence_from DESC LIMIT ?",
            (*bindings, at, json.dumps(symbols), _DATE, limit),
        )

    def observed(self, theses: tuple[str, ...], after: int, cut: int) -> list[tuple[str, str]]:
        return self._rows(
            "SELECT e.subject_id, e.content FROM json_each(?) t CROSS JOIN memory_events e"
            " ON e.subject_id = t.value AND e.sequence > ? AND e.sequence <= ?"
            " WHERE e.event_type = 'thesis.outcome_observed' ORDER BY e.sequence",
            (json.dumps(theses), after, cut),
        )

    def cautions(self, cut: int, *, limit: int) -> list[Caution]:
        rows = self._connection.execute(
            f"SELECT {_CAUTION} FROM memory_warnings w JOIN memory_versions v ON v.memory_id = w.subject_id"
            f" WHERE w.code = 'thesis_invalidation_reached' AND w.sequence <= ? AND {STANDING}"
            " AND v.status = 'open' AND v.sequence_from < w.sequence ORDER BY w.sequence DESC LIMIT ?",
            (cut, cut, cut, limit),
        )
        return [Caution(*row) for row in rows]

    def submit_of(self, client_order_id: str, cut: int) -> str | None:
        row = self._one(
            "SELECT memory_id FROM memory_versions WHERE kind = 'order_action'"
            " AND json_extract(details, '$.client_order_id') = ? AND json_extract(details, '$.operation') = 'submit'"
            " AND version = 1 AND sequence_from <= ? ORDER BY sequence_from LIMIT 1",
            (client_order_id, cut),
        )
        return None if row is None else str(row[0])

    def decision_in_call(self, agent: str, model_call_id: str) -> str | None:
        row = self._one(
            "SELECT subject_id FROM memory_events WHERE model_call_id = ? AND agent = ?"
            " AND event_type = 'decision.recorded' ORDER BY sequence DESC LIMIT 1",
            (model_call_id, agent),
        )
        return None if row is None else str(row[0])

    def last_intent(self, agent: str, symbols: tuple[str, ...] | None, cut: int) -> int:
        touching = "" if symbols is None else f" AND symbol IN ({', '.join('?' * len(symbols))})"
        row = self._one(
            f"SELECT max(sequence) FROM memory_intents WHERE agent = ? AND sequence <= ?{touching}",
            (agent, cut, *(symbols or ())),
        )
        return int(row[0] or 0) if row else 0

    def shown(
        self, agent: str, model_call_id: str | None, session_id: str | None, after: int
    ) -> dict[str, int]:
        narrowed = ""
        bound: tuple[str, ...] = ()
        if model_call_id is not None:
            narrowed, bound = " AND model_call_id = ?", (model_call_id,)
        elif session_id is not None:
            narrowed, bound = " AND session_id = ?", (session_id,)
        rows = self._connection.execute(
            f"SELECT sequence, selected FROM memory_retrievals WHERE agent = ? AND sequence > ?{narrowed}"
            f" UNION ALL SELECT sequence, shown FROM memory_deliveries WHERE agent = ? AND sequence > ?{narrowed}"
            " ORDER BY 1 DESC",
            (agent, after, *bound, agent, after, *bound),
        )
        found: dict[str, int] = {}
        for sequence, shown in rows:
            for item in json.loads(shown):
                found.setdefault(item["id"], sequence)
        return found

    def showings(self, agent: str, session_id: str, before: int, *, limit: int) -> list[Entry]:
        acted = self._one(
            "SELECT max(sequence_from) FROM memory_versions WHERE agent = ? AND sequence_from < ? AND version = 1"
            " AND kind IN ('order_action', 'decision')",
            (agent, before),
        )
        rows = self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE sequence IN ("
            " SELECT sequence FROM memory_retrievals"
            "  WHERE agent = ?1 AND session_id = ?2 AND sequence > ?3 AND sequence < ?4"
            " UNION ALL SELECT sequence FROM memory_deliveries"
            "  WHERE agent = ?1 AND session_id = ?2 AND sequence > ?3 AND sequence < ?4"
            ") ORDER BY sequence DESC LIMIT ?5",
            (agent, session_id, int(acted[0] or 0) if acted else 0, before, limit),
        )
        return [self._entry(row) for row in rows]

    def acting_on(self, memory_id: str, cut: int) -> list[str]:
        named = " OR ".join(f"json_extract(details, '$.{name}') = ?1" for name in _LINKS)
        rows = self._connection.execute(
            "SELECT DISTINCT memory_id FROM memory_versions WHERE kind IN ('order_action', 'decision')"
            f" AND sequence_from <= ?2 AND ({named})",
            (memory_id, cut),
        )
        return [str(name) for (name,) in rows]

    def around(self, agent: str, model_call_id: str, cut: int) -> list[Entry]:
        rows = self._connection.execute(
            f"SELECT {_ENTRY} FROM memory_events WHERE model_call_id = ? AND agent = ? AND sequence <= ?"
            " ORDER BY sequence",
            (model_call_id, agent, cut),
        )
        return [self._entry(row) for row in rows]
