"""Every table has one schema from the first row on, and every value is the ledger's."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from store.commands import ReportPositions
from store.entry import COLUMNS
from store.event_parts import Candidate, Position, Selected
from store.events import OrderIntended, OrderOutcome
from store.export.arrow import ARROW, arrow_schema, fitting
from store.export.checking import check_exports
from store.export.schemas import SCHEMAS
from store.export.tables import TABLES

if TYPE_CHECKING:
    from conftest import Seat

DUCK = {
    "integer": "BIGINT",
    "text": "VARCHAR",
    "label": "VARCHAR",
    "json": "VARCHAR",
    "time": "TIMESTAMP WITH TIME ZONE",
    "bytes": "BLOB",
    "number": "DECIMAL(38,18)",
    "digits": "VARCHAR",
    "texts": "VARCHAR[]",
    "selected": 'STRUCT(id VARCHAR, "version" BIGINT, "source" VARCHAR)[]',
    "candidates": (
        'STRUCT(id VARCHAR, "version" BIGINT, "source" VARCHAR, lexical_rank BIGINT, lexical_score VARCHAR,'
        " vector_rank BIGINT, vector_score VARCHAR, score VARCHAR)[]"
    ),
}


def test_an_empty_ledger_gives_every_table_with_its_schema(exports: Any, tables: tuple[str, ...]) -> None:
    """P210."""
    exports.bring()
    for table in tables:
        (file,) = exports.files(table)
        assert pq.read_schema(file).equals(arrow_schema(table))
        told = dict(exports.rows_described(table))
        assert told == {column.name: DUCK[column.type] for column in SCHEMAS[table]}
    assert exports.rows("orders") == []


def test_files_from_before_and_after_the_first_outcome_are_read_as_one(
    exports: Any,
    exports_of: Callable[[Any], Any],
    open_seat: Callable[..., Seat],
    filled_with: Any,
    tmp_path: Path,
) -> None:
    """P210: a column without any value in one file and with values in another, by pyarrow's dataset and DuckDB."""
    exports.bring()
    other = open_seat("second", root=tmp_path)
    filled_with(other)
    full = exports_of(other)
    full.root = tmp_path
    full.bring()
    for table in SCHEMAS:
        files = [*exports.files(table), *full.files(table)]
        assert ds.dataset(files).schema.equals(arrow_schema(table))
        assert ds.dataset(files).to_table().num_rows == sum(pq.read_metadata(file).num_rows for file in files)
    both = [str(file) for file in (*exports.files("orders"), *full.files("orders"))]
    assert len(exports.ask(f"SELECT filled_quantity FROM read_parquet({both})")) == 3
    assert pa.concat_tables([pq.read_table(file) for file in both]).num_rows == 3


def test_the_columns_are_those_of_the_ledger(seat: Seat) -> None:
    connection = apsw.Connection(str(seat.path))
    for table, view in (
        ("memory_events", "memory_events"),
        ("memory_retrievals", "memory_retrievals"),
        ("memory_state", "memory_index"),
    ):
        told = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({view})")]
        assert [column.name for column in SCHEMAS[table]] == told
    connection.close()
    assert [column.name for column in SCHEMAS["memory_events"]] == list(COLUMNS)
    assert tuple(TABLES) == tuple(SCHEMAS)


def test_no_field_of_a_search_a_position_or_an_order_is_left_out() -> None:
    for kind, model in (("candidates", Candidate), ("selected", Selected)):
        assert {field.name for field in ARROW[kind].value_type} == model.model_fields.keys()
    assert Position.model_fields.keys() <= {column.name for column in SCHEMAS["positions"]}
    names = {column.name for column in SCHEMAS["orders"]}
    of_memory = {"text", "tags", "tags_given", "symbol_given", "review_by", "expires_at", "review_state"}
    apart = {"type", "notices", "reason_salt", "imported"}
    apart |= {"pending_until", "alike", "suspicious", "masked", "retrievals", "redacted"}
    assert OrderIntended.model_fields.keys() - of_memory - apart <= names
    assert OrderOutcome.model_fields.keys() - {"type", "notices", "previous", "standing"} <= names


def test_everything_in_the_exports_is_what_the_ledger_says(
    exports: Any, seat: Seat, filled_with: Any
) -> None:
    filled_with(seat)
    exports.bring()
    assert check_exports(seat.path) == []
    for table in SCHEMAS:
        assert exports.rows(table) == exports.rows_named(table)
        assert exports.rows(table)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("187.30", Decimal("187.30")),
        ("-0.000000000000000001", Decimal("-0.000000000000000001")),
        ("99999999999999999999.999999999999999999", Decimal("99999999999999999999.999999999999999999")),
        ("0.0000000000000000001", None),
        ("100000000000000000000", None),
        ("1.10000000000000000000000", Decimal("1.1")),
    ],
)
def test_a_number_is_exact_or_left_to_its_digits(
    text: str, number: Decimal | None, exports: Any, seat: Seat
) -> None:
    assert fitting(text) == number
    seat.do(ReportPositions(positions=[{"symbol": "AAPL", "quantity": text, "last_price": text}]))
    exports.bring()
    assert exports.rows("positions", "quantity, quantity_text, last_price") == [(number, text, number)]
    assert check_exports(seat.path) == []
