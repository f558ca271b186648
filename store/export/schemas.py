"""The columns of every exported table, as data: one fixed schema, whatever is stored.

A column keeps its name and type from the first row on, also while all its values are null. Names are those of the
ledger. Nothing here needs pyarrow; `arrow` makes its schemas of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from ..entry import COLUMNS

Type = Literal[
    "integer", "text", "label", "json", "time", "bytes", "number", "digits", "texts", "candidates", "selected"
]
"""What a column holds.

`label` is text of few values, kept as a dictionary; `json` JSON as text; `time` an instant, microseconds UTC;
`number` an exact decimal(38, 18), null where the digits do not fit it; `digits` the number as it was written;
`texts`, `candidates` and `selected` are lists.
"""

NUMBER_DIGITS: Final = 38
NUMBER_SCALE: Final = 18
EVENTS: Final = "memory_events"
RETRIEVALS: Final = "memory_retrievals"
STATE: Final = "memory_state"
POSITIONS: Final = "positions"
ORDERS: Final = "orders"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, type, and whether a row may lack it."""

    name: str
    type: Type
    optional: bool = False

    @property
    def written(self) -> str:
        """The column in one word, as the manifest keeps it."""
        return self.type + ("?" if self.optional else "")


Schema = tuple[Column, ...]

_NAMED: Final[Mapping[Type, str]] = MappingProxyType(
    {
        "integer": "sequence sequence_from sequence_to outcome_sequence schema_version version cut total ordinal"
        " terms_total terms",
        "time": "effective_at recorded_at created_at stale_at expires_at outcome_at outcome_recorded_at",
        "bytes": "arguments_sha256 content_salt content_sha256 leaf_sha256 chain_sha256",
        "label": "event_type subject_type kind symbol strategy run_id agent profile tool mode status review_state"
        " changed_by standing operation side order_type time_in_force certainty asset_type order_status"
        " order_standing outcome_standing outcome_by",
        "json": "content filters details legs evidence snapshot",
        "texts": "tags touches",
        "candidates": "candidates",
        "selected": "selected",
    }
)
_TYPES: Final[Mapping[str, Type]] = MappingProxyType(
    {name: kind for kind, names in _NAMED.items() for name in names.split()}
)
"""The type of a column by its name, which means the same in every table; all others are text."""


def _schema(words: str) -> Schema:
    """Columns from their names, in order; `?` marks one that a row may lack, `*` a number kept twice."""
    return tuple(_columns(words))


def _columns(words: str) -> Iterator[Column]:
    for word in words.split():
        name = word.rstrip("?*")
        optional = word.endswith("?")
        if "*" in word:
            yield Column(name, "number", optional=True)  # null where the digits do not fit
            yield Column(f"{name}_text", "digits", optional)
        else:
            yield Column(name, _TYPES.get(name, "text"), optional)


_EVENT_OPTIONAL: Final = frozenset(
    "kind symbol run_id session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key".split()
)

SCHEMAS: Final[Mapping[str, Schema]] = MappingProxyType(
    {
        EVENTS: _schema(" ".join(f"{name}?" if name in _EVENT_OPTIONAL else name for name in COLUMNS)),
        RETRIEVALS: _schema(
            "retrieval_id sequence agent session_id? model_call_id? effective_at query mode filters cut total"
            " candidates selected"
        ),
        STATE: _schema(
            "sequence_from sequence_to? memory_id version ordinal terms_total kind status review_state symbol?"
            " text tags details agent profile changed_by created_at effective_at stale_at? expires_at? terms"
        ),
        POSITIONS: _schema(
            "sequence event_id effective_at recorded_at agent standing symbol asset_type? quantity*"
            " average_cost*? last_price*? market_value*?"
        ),
        ORDERS: _schema(
            "sequence event_id action_id version operation status symbol? touches side? order_type?"
            " time_in_force? quantity*? limit_price*? stop_price*? legs? client_order_id? broker_order_id?"
            " thesis_id? decision_id? retrieval_id? previous_action_id? submit_action_id? agent profile"
            " session_id? model_call_id? effective_at recorded_at reason reason_sha256? public_reason?"
            " evidence? snapshot? revision? deployment? certainty? error_type? outcome_standing?"
            " outcome_sequence? outcome_at? outcome_recorded_at? outcome_by? order_status? order_standing?"
            " filled_quantity*? average_price*?"
        ),
    }
)
"""Every table, in the order in which they are written."""


def written_schema(table: str) -> list[dict[str, str]]:
    """A table's columns as JSON values, for the manifest."""
    return [{"name": column.name, "type": column.written} for column in SCHEMAS[table]]
