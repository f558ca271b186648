"""Whatever a ledger holds, and whenever passes were made of it, the exports hold the same."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import duckdb
from hypothesis import given
from hypothesis import strategies as st

from store import Book, Caller, Filter, SearchRequest
from store.commands import (
    CloseThesis,
    Decide,
    IntendOrder,
    OpenThesis,
    RecordOutcome,
    Remember,
    ReportPositions,
    UpdateThesis,
)
from store.errors import DeskbookError
from store.export import exporter
from store.export.checking import check_exports
from store.export.schemas import SCHEMAS
from store.export.tables import TABLES
from store.paths import ledger_path

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(str.strip)
SYMBOLS = st.sampled_from(["AAPL", "MSFT", "BRK.B", "BTC/USD"])
NUMBERS = st.decimals("-1e25", "1e25", places=20, allow_nan=False).map(lambda number: format(number, "f"))
PRICES = st.decimals("0.0000000001", "1e12", allow_nan=False, places=10).map(
    lambda number: format(number, "f")
)
JSON = st.none() | st.dictionaries(TEXTS, TEXTS | st.integers(-(2**50), 2**50) | st.booleans(), max_size=3)
REASONS = TEXTS.map(lambda text: (text + " and why, in more words than that. ") * 10)
WHO = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool", model_call_id="call-1")

TAGS = st.lists(st.sampled_from(["a", "b c", "目标"]), max_size=3).map(tuple)
HELD = st.fixed_dictionaries(
    {"symbol": SYMBOLS, "quantity": NUMBERS}, optional={"last_price": PRICES, "market_value": NUMBERS}
)
STEPS = st.one_of(
    st.builds(Remember, text=TEXTS, symbol=SYMBOLS | st.none(), tags=TAGS),
    st.builds(Decide, text=TEXTS, action=st.just("buy"), symbol=SYMBOLS, evidence=JSON),
    st.builds(OpenThesis, text=TEXTS, symbol=SYMBOLS),
    st.builds(
        IntendOrder,
        operation=st.just("submit"),
        reason=REASONS,
        symbol=SYMBOLS,
        side=st.just("buy"),
        quantity=PRICES,
        order_type=st.just("limit"),
        limit_price=PRICES,
        evidence=JSON,
    ),
    st.builds(
        ReportPositions, positions=st.lists(HELD, max_size=3, unique_by=lambda row: str(row["symbol"]))
    ),
    st.sampled_from(["search", "state", "reword", "close", "acknowledge", "unknown", "fill", "pass"]),
)


class Story:
    """One ledger that steps are taken in; a step that the ledger refuses is none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.book = Book.open(root, "default", durability="normal")
        self.path = ledger_path(root, "default", None)
        self.ids: dict[type, str] = {}

    def take(self, step: Any) -> None:
        try:
            if not isinstance(step, str):
                self.ids[type(step)] = self.book.execute(WHO, step).id
            elif step == "pass":
                exporter.bring_up_to_date(self.root, self.path, self.book.snapshot)
            elif step == "search":
                self.book.search(WHO, SearchRequest(query="and why", conditions=Filter(symbol="AAPL")))
            elif step == "state":
                self.book.state(WHO)
            elif (command := self._later(step)) is not None:
                self.book.execute(WHO, command)
        except DeskbookError:
            return

    def _later(self, step: str) -> Any:
        thesis, order = self.ids.get(OpenThesis), self.ids.get(IntendOrder)
        if step in ("reword", "close") and thesis is not None:
            return (
                UpdateThesis(thesis_id=thesis, text="Longer.")
                if step == "reword"
                else CloseThesis(thesis_id=thesis, result="win", pnl="1.5")
            )
        if order is None or step in ("reword", "close"):
            return None
        certainty = {"acknowledge": "acknowledged", "unknown": "unknown", "fill": "partially_filled"}[step]
        filled = {"filled_quantity": "0.0000000001", "average_price": "3.25"} if step == "fill" else {}
        return RecordOutcome(action_id=order, certainty=certainty, **filled)


@given(steps=st.lists(STEPS, max_size=40), grows_to=st.integers(1, 12))
def test_the_exports_are_what_sql_says(steps: list[Any], grows_to: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        story = Story(Path(place))
        try:
            tables = {name: replace(table, largest=grows_to + 3) for name, table in TABLES.items()}
            with mock.patch.multiple(exporter, GROWS_TO=grows_to, TABLES=tables):
                for step in [*steps, "pass"]:
                    story.take(step)
            assert check_exports(story.path) == []
            _assert_same_by_duckdb(story.path)
        finally:
            story.book.close()


def _assert_same_by_duckdb(ledger: Path) -> None:
    """What DuckDB reads by a glob is, value by value, what SQL reads of the ledger."""
    connection = apsw.Connection(str(ledger))
    with duckdb.connect() as reader:
        for table, view, order in (
            ("memory_events", "memory_events", "sequence"),
            ("memory_state", "memory_index", "ordinal"),
        ):
            columns = [
                f"epoch_us({column.name})" if column.type == "time" else column.name
                for column in SCHEMAS[table]
                if column.type != "texts"
            ]
            names = [column.name for column in SCHEMAS[table] if column.type != "texts"]
            glob = ledger.parent / "exports" / table / "*.parquet"
            read = reader.execute(f"SELECT {', '.join(columns)} FROM '{glob}' ORDER BY {order}").fetchall()
            stored = list(connection.execute(f"SELECT {', '.join(names)} FROM {view} ORDER BY {order}"))
            assert read == stored, table
    connection.close()
