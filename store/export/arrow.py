"""pyarrow schemas and batches of the exported tables.

Times are timestamp[us, UTC], decimals decimal128(38, 18): exact, or null with the digits kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from .schemas import NUMBER_DIGITS, NUMBER_SCALE, SCHEMAS, Column, Type

_LABEL = pa.dictionary(pa.int32(), pa.string())
_SELECTED = pa.struct([("id", pa.string()), ("version", pa.int64()), ("source", pa.string())])
_CANDIDATE = pa.struct(
    [
        *_SELECTED,
        ("lexical_rank", pa.int64()),
        ("lexical_score", pa.string()),
        ("vector_rank", pa.int64()),
        ("vector_score", pa.string()),
        ("score", pa.string()),
    ]
)
_ONE: Final = Decimal(1)
_QUANTUM: Final = Decimal(1).scaleb(-NUMBER_SCALE)

ARROW: Final[Mapping[Type, pa.DataType]] = MappingProxyType(
    {
        "integer": pa.int64(),
        "text": pa.string(),
        "label": _LABEL,
        "json": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
        "bytes": pa.binary(),
        "number": pa.decimal128(NUMBER_DIGITS, NUMBER_SCALE),
        "digits": pa.string(),
        "texts": pa.list_(pa.string()),
        "candidates": pa.list_(_CANDIDATE),
        "selected": pa.list_(_SELECTED),
    }
)


def arrow_schema(table: str) -> pa.Schema:
    """The fixed schema of an exported table."""
    return pa.schema([pa.field(each.name, ARROW[each.type], each.optional) for each in SCHEMAS[table]])


def fitting(text: str | None) -> Decimal | None:
    """The number that digits say, exactly; None where decimal(38, 18) cannot hold it whole."""
    if text is None:
        return None
    try:
        with localcontext(prec=200):
            number = Decimal(text)
            exact = number.quantize(_QUANTUM)
    except ArithmeticError:
        return None
    if exact != number or exact.adjusted() >= NUMBER_DIGITS - NUMBER_SCALE:
        return None
    return exact


def _plain(values: Sequence[Any]) -> Sequence[Any]:
    return values


def _numbers(values: Sequence[Any]) -> Sequence[Any]:
    return [fitting(value) for value in values]


_READ: Final[Mapping[str, Callable[[Sequence[Any]], Sequence[Any]]]] = MappingProxyType({"number": _numbers})


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    return pa.array(_READ.get(column.type, _plain)(values), type=ARROW[column.type])


def batch_of(table: str, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a table, as `tables` gives them, as one batch of its schema."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [_array(column, values) for column, values in zip(SCHEMAS[table], columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
