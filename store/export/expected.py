"""What the exported tables have to say, read from the ledger's own tables by plain statements: for `checking` alone.

Each gives the sequence that a row began with and its values by name, numbers as text, JSON lists decoded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import apsw

Expected = Iterator[tuple[int, dict[str, Any]]]

_NUMBERS_OF_POSITION = ("quantity", "average_cost", "last_price", "market_value")
_NUMBERS_OF_ORDER = ("quantity", "limit_price", "stop_price", "filled_quantity", "average_price")
_TEXTS_OF_ORDER = (
    *("operation", "side", "order_type", "time_in_force", "client_order_id", "thesis_id", "decision_id"),
    *("retrieval_id", "previous_action_id", "submit_action_id", "reason_sha256", "public_reason"),
    *("revision", "deployment"),
)
_FIRSTS = (
    "SELECT sequence_from, memory_id FROM memory_versions WHERE version = 1 AND sequence_from <= :cut"
    " AND (:kind IS NULL OR kind = :kind) ORDER BY sequence_from"
)
_STANDING = (
    "SELECT * FROM memory_versions WHERE memory_id = :id"
    " AND sequence_from <= :cut AND (sequence_to IS NULL OR sequence_to > :cut)"
)


def _named(connection: apsw.Connection, sql: str, cut: int) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(sql, {"cut": cut})
    for row in cursor:
        yield dict(zip((column[0] for column in cursor.description), row, strict=True))


def _events(connection: apsw.Connection, cut: int) -> Expected:
    for row in _named(
        connection, "SELECT * FROM memory_events WHERE sequence <= :cut ORDER BY sequence", cut
    ):
        yield row["sequence"], row


def _retrievals(connection: apsw.Connection, cut: int) -> Expected:
    sql = "SELECT * FROM memory_retrievals WHERE sequence <= :cut ORDER BY sequence"
    for row in _named(connection, sql, cut):
        yield (
            row["sequence"],
            row | {name: json.loads(row[name]) for name in ("candidates", "selected")},
        )


def _births(connection: apsw.Connection, kind: str | None, cut: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every memory as it stood, with the sequence it began with, in that order."""
    for born, memory_id in connection.execute(_FIRSTS, {"kind": kind, "cut": cut}):
        cursor = connection.execute(_STANDING, {"id": memory_id, "cut": cut})
        for row in cursor:
            yield born, dict(zip((column[0] for column in cursor.description), row, strict=True))


def _state(connection: apsw.Connection, cut: int) -> Expected:
    for born, row in _births(connection, None, cut):
        yield born, row | {"tags": json.loads(row["tags"]), "sequence_to": None}


def _positions(connection: apsw.Connection, cut: int) -> Expected:
    sql = (
        "SELECT e.sequence, event_id, effective_at, recorded_at, agent, coalesce(kept, content) AS content"
        " FROM memory_events e LEFT JOIN memory_redactions r ON r.sequence = e.sequence AND e.content = ''"
        " WHERE event_type = 'positions.reported' AND e.sequence <= :cut ORDER BY e.sequence"
    )
    for row in _named(connection, sql, cut):
        content = json.loads(row.pop("content"))
        for held in content["positions"]:
            numbers = {name: held.get(name) for name in _NUMBERS_OF_POSITION}
            yield (
                row["sequence"],
                row
                | {"standing": content["standing"], "symbol": held["symbol"]}
                | {"asset_type": held.get("asset_type"), **numbers, **_texts(numbers)},
            )


def _orders(connection: apsw.Connection, cut: int) -> Expected:
    for born, row in _births(connection, "order_action", cut):
        details = json.loads(row["details"])
        order, outcome = details.get("order", {}), details.get("outcome", {})
        first, last = (_entry(connection, sequence) for sequence in (born, row["sequence_from"]))
        answered = row["version"] > 1
        numbers = {
            name: (order if name in ("filled_quantity", "average_price") else details).get(name)
            for name in _NUMBERS_OF_ORDER
        }
        yield (
            born,
            {name: first[name] for name in ("sequence", "event_id", "session_id", "model_call_id")}
            | {name: first[name] for name in ("effective_at", "recorded_at")}
            | {name: row[name] for name in ("version", "status", "symbol", "agent", "profile")}
            | {"action_id": row["memory_id"], "reason": row["text"], "touches": details.get("touches", [])}
            | {name: details.get(name) for name in _TEXTS_OF_ORDER}
            | {name: _json(details.get(name)) for name in ("legs", "evidence", "snapshot")}
            | {"certainty": outcome.get("certainty"), "error_type": outcome.get("error_type")}
            | {"broker_order_id": outcome.get("broker_order_id", order.get("broker_order_id"))}
            | {"outcome_standing": outcome.get("standing"), "order_status": order.get("status")}
            | {"order_standing": order.get("standing")}
            | {"outcome_sequence": last["sequence"] if answered else None}
            | {"outcome_at": last["effective_at"] if answered else None}
            | {"outcome_recorded_at": last["recorded_at"] if answered else None}
            | {"outcome_by": last["agent"] if answered else None, **numbers, **_texts(numbers)},
        )


def _entry(connection: apsw.Connection, sequence: int) -> dict[str, Any]:
    (entry,) = _named(connection, "SELECT * FROM memory_events WHERE sequence = :cut", sequence)
    return entry


def _texts(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}_text": value for name, value in numbers.items()}


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


EXPECTED: Final[Mapping[str, Callable[[apsw.Connection, int], Expected]]] = MappingProxyType(
    {
        "memory_events": _events,
        "memory_retrievals": _retrievals,
        "memory_state": _state,
        "positions": _positions,
        "orders": _orders,
    }
)
"""The rows of every table up to a sequence, as they stood there."""
