"""Ledgers with something of everything, their exports, and questions to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from store.commands import (
    CloseThesis,
    Decide,
    IntendOrder,
    NoteRisk,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    Remember,
    ReportPositions,
    UpdateThesis,
)
from store.export.exporter import Done, bring_up_to_date
from store.export.schemas import SCHEMAS
from store.export.segments import Work

if TYPE_CHECKING:
    from conftest import Seat

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 120.0
REASON = "The order follows the thesis, is sized at two percent of the book, and ends below 180. " * 4


class Exports:
    """The exports beside a seat's ledger."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.folder = seat.path.parent / "exports"
        self.root = next(place for place in seat.path.parents if (place / "default").exists())

    def bring(self, **work: Any) -> Done:
        """Make a pass."""
        return bring_up_to_date(self.root, self.seat.path, self.seat.book.snapshot, Work(**work))

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "manifest.json").read_text()))

    def files(self, table: str) -> list[Path]:
        """The table's files by the manifest."""
        return [self.folder / file["path"] for file in self.manifest["tables"][table]["files"]]

    def glob(self, table: str) -> str:
        return str(self.folder / table / "*.parquet")

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """What a plain glob finds."""
        return ask(f"SELECT {columns} FROM read_parquet('{self.glob(table)}')")

    def rows_described(self, table: str) -> list[tuple[str, str]]:
        """Column names and types as DuckDB sees them."""
        return [
            (name, kind)
            for name, kind, *_ in ask(f"DESCRIBE SELECT * FROM read_parquet('{self.glob(table)}')")
        ]

    @staticmethod
    def ask(sql: str) -> list[tuple[Any, ...]]:
        return ask(sql)

    def rows_named(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """What a reader finds who reads the files that the manifest names."""
        names = ", ".join(f"'{path}'" for path in self.files(table))
        return ask(f"SELECT {columns} FROM read_parquet([{names}])")


def ask(sql: str) -> list[tuple[Any, ...]]:
    """The rows of an answer of DuckDB, times in UTC."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return list(connection.execute(sql).fetchall())


@pytest.fixture
def exports_of() -> Callable[[Seat], Exports]:
    return Exports


@pytest.fixture
def exports(seat: Seat) -> Exports:
    """The exports of the test's live ledger."""
    return Exports(seat)


def trade(
    seat: Seat, symbol: str = "AAPL", *, call: str | None = None, price: str = "187.30"
) -> dict[str, str]:
    """A thesis, a search that finds it, a decision, an order with its fill, and a report; gives the ids."""
    thesis = seat.do(
        OpenThesis(text=f"Long {symbol} into earnings.", symbol=symbol, direction="long"), call=call
    )
    found = seat.find("earnings", symbol=symbol, who=seat.caller(call=call))
    decision = seat.do(
        Decide(
            text=f"Buy {symbol}: the thesis holds.",
            symbol=symbol,
            action="buy",
            evidence={"close": price},
            thesis_id=thesis.id,
            retrieval_id=found["retrieval_id"],
        ),
        call=call,
    )
    order = seat.do(
        IntendOrder(
            operation="submit",
            reason=REASON,
            symbol=symbol,
            side="buy",
            quantity="10.5",
            order_type="limit",
            limit_price=price,
            client_order_id=f"own-{symbol}-{seat.clock.us}",
            thesis_id=thesis.id,
            decision_id=decision.id,
            evidence={"close": price},
        ),
        call=call,
    )
    seat.do(RecordOutcome(action_id=order.id, certainty="acknowledged", broker_order_id="B-1"))
    seat.do(
        RecordOutcome(action_id=order.id, certainty="filled", filled_quantity="10.5", average_price=price),
        agent="desk",
    )
    seat.do(ReportPositions(positions=[{"symbol": symbol, "quantity": "10.5", "last_price": price}]))
    return {
        "thesis": thesis.id,
        "decision": decision.id,
        "order": order.id,
        "retrieval": found["retrieval_id"],
    }


def everything(seat: Seat) -> dict[str, str]:
    """Something of every kind, and of every status that a column may show."""
    ids = trade(seat, call="call-1")
    seat.do(
        Remember(text='Nestlé 目标价 95\nsecond line, with "quotes"', symbol="NESN", tags=("swiss", "food"))
    )
    seat.do(NoteRisk(text="Earnings on Thursday.", symbol="AAPL"))
    seat.do(UpdateThesis(thesis_id=ids["thesis"], text="Longer still.", invalidation="a close below 180"))
    seat.do(
        IntendOrder(operation="cancel", reason=REASON, previous_action_id=ids["order"]),
    )
    unsure = seat.do(
        IntendOrder(operation="submit", reason=REASON, symbol="MSFT", side="sell", quantity="1"),
    )
    seat.do(RecordOutcome(action_id=unsure.id, certainty="unknown", error_type="timeout"))
    seat.do(CloseThesis(thesis_id=ids["thesis"], result="win", pnl="12.50"))
    seat.do(ProposeLesson(text="Size before the print.", symbol="AAPL", outcome={"pnl": "12.50"}))
    seat.state()
    return ids


@pytest.fixture
def traded() -> Callable[..., dict[str, str]]:
    return trade


@pytest.fixture
def filled_with() -> Callable[[Seat], dict[str, str]]:
    return everything


@pytest.fixture
def asked() -> Callable[[str], list[tuple[Any, ...]]]:
    return ask


@pytest.fixture
def tables() -> tuple[str, ...]:
    return tuple(SCHEMAS)
