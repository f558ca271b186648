"""The rows of every exported table, streamed from one snapshot in order of the sequence they began with.

A row belongs to the entry that it began with: an event, search or report to its own, a memory or order action to its
first. It never leaves that place, so a range of sequences always holds the same rows; only what they say may change.
Times are microseconds UTC, numbers text as written, lists Python lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ..engines.base import Snapshot
from ..lifecycle import ORDER_ACTION
from ..rows import ORDER_COLUMNS, REPORT_COLUMNS
from .schemas import EVENTS, ORDERS, POSITIONS, RETRIEVALS, SCHEMAS, STATE

Values = tuple[Any, ...]
Rows = Iterator[tuple[int, Values]]
"""The sequence that each row began with, and its values in the order of the schema."""


@dataclass(frozen=True, slots=True)
class Table:
    """One exported table.

    `rows(snapshot, after, until, cut)` gives those that began after a sequence and up to another, as they stood at
    the cut; `changed(snapshot, after, until)` where older rows began that the entries in between changed. A new
    segment takes `largest` rows, put into the file `group` by `group`, which bounds what is held in memory.
    """

    name: str
    rows: Callable[[Snapshot, int, int, int], Rows]
    changed: Callable[[Snapshot, int, int], list[int]]
    largest: int
    group: int = 4_096


def _events(snapshot: Snapshot, after: int, until: int, cut: int) -> Rows:
    for row in snapshot.entry_rows(after, min(until, cut)):
        yield row[0], row


_CANDIDATES, _SELECTED = (
    [column.name for column in SCHEMAS[RETRIEVALS]].index(name) for name in ("candidates", "selected")
)


def _retrievals(snapshot: Snapshot, after: int, until: int, cut: int) -> Rows:
    for row in snapshot.retrieval_rows(after, min(until, cut)):
        told = list(row)
        for place in (_CANDIDATES, _SELECTED):
            told[place] = json.loads(told[place])
        yield row[1], tuple(told)


_TAGS: Final = [column.name for column in SCHEMAS[STATE]].index("tags")


def _state(snapshot: Snapshot, after: int, until: int, cut: int) -> Rows:
    for born, *values in snapshot.index_rows(after, until, cut):
        values[_TAGS] = json.loads(values[_TAGS])
        yield born, tuple(values)


def _positions(snapshot: Snapshot, after: int, until: int, cut: int) -> Rows:
    for row in snapshot.report_rows(after, min(until, cut)):
        report = dict(zip(REPORT_COLUMNS, row, strict=True))
        for held in json.loads(report["positions"]):
            yield report["sequence"], _in_order(POSITIONS, report | held)


def _orders(snapshot: Snapshot, after: int, until: int, cut: int) -> Rows:
    for row in snapshot.order_rows(after, until, cut):
        action = dict(zip(ORDER_COLUMNS, row, strict=True))
        yield action["sequence"], _in_order(ORDERS, _order(action))


def _order(action: dict[str, Any]) -> dict[str, Any]:
    """An order action and what became of it; what an order holds beside it is kept with its submit."""
    details = json.loads(action.pop("details"))
    order, outcome = details.get("order", {}), details.get("outcome", {})
    told = {name: value for name, value in details.items() if name not in ("order", "outcome")}
    for name in ("legs", "evidence", "snapshot"):
        if name in told:
            told[name] = json.dumps(told[name], ensure_ascii=False, separators=(",", ":"))
    return (
        told
        | action
        | {"reason": action["text"], "touches": told.get("touches", [])}
        | {name: outcome.get(name) for name in ("certainty", "error_type")}
        | {name: order.get(name) for name in ("broker_order_id", "filled_quantity", "average_price")}
        | {
            "outcome_standing": outcome.get("standing"),
            "order_status": order.get("status"),
            "order_standing": order.get("standing"),
        }
        | ({"broker_order_id": outcome["broker_order_id"]} if "broker_order_id" in outcome else {})
    )


def _in_order(table: str, named: Mapping[str, Any]) -> Values:
    """The values of a row by the names of the schema; a number stands in both of its columns."""
    return tuple(
        named.get(column.name.removesuffix("_text") if column.type == "digits" else column.name)
        for column in SCHEMAS[table]
    )


def _never(_snapshot: Snapshot, _after: int, _until: int) -> list[int]:
    """Of an append-only table: no row changes once it is there."""
    return []


LARGEST_APPENDED: Final = 65_536
LARGEST_CHANGING: Final = 4_096

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        EVENTS: Table(EVENTS, _events, _never, LARGEST_APPENDED, 8_192),
        RETRIEVALS: Table(RETRIEVALS, _retrievals, _never, LARGEST_APPENDED, 1_024),
        STATE: Table(
            STATE,
            _state,
            lambda snapshot, after, until: snapshot.changed_births(None, after, until),
            LARGEST_CHANGING,
        ),
        POSITIONS: Table(POSITIONS, _positions, _never, LARGEST_APPENDED),
        ORDERS: Table(
            ORDERS,
            _orders,
            lambda snapshot, after, until: snapshot.changed_births(ORDER_ACTION, after, until),
            LARGEST_CHANGING,
        ),
    }
)
