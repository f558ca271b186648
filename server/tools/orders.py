"""The order journal: intents before the broker is called, outcomes after, and what is still unknown."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from store import Book, Caller, Reply
from store.commands import IntendOrder, RecordOutcome
from store.errors import InvalidInput
from store.symbols import normalise_symbol

from ..arguments import (
    Arguments,
    Integer,
    Json,
    OptionalId,
    OptionalText,
    Text,
    Word,
    WriteArguments,
    instant_of,
    json_of,
)
from ..sections import LimitSettings
from .fields import Symbol
from .reading import AsOf
from .spec import reading, writing

Decimal = Annotated[OptionalText, Field(description="Decimal.")]
_LISTED = 50


class IntentArguments(WriteArguments):
    """Arguments of record_order_intent."""

    operation: Annotated[Literal["submit", "modify", "cancel"], Word, Field(description="What is intended.")]
    reason: Annotated[
        Text,
        Field(
            description="600 to 2,500 characters: dated evidence, sizing, risks, invalidation. Kept private."
        ),
    ]
    symbol: Symbol = None
    side: Annotated[
        OptionalText, Field(description="buy, sell, sell_short, buy_to_cover, buy_to_open ...")
    ] = None
    quantity: Decimal = None
    order_type: Annotated[
        OptionalText, Field(description="market, limit, stop, stop_limit, trailing_stop.")
    ] = None
    limit_price: Decimal = None
    stop_price: Decimal = None
    time_in_force: Annotated[OptionalText, Field(description="day, gtc, ioc, fok ...")] = None
    legs: Annotated[Json, Field(description="Multi-leg: JSON list of {symbol, side, quantity}.")] = None
    client_order_id: Annotated[OptionalText, Field(description="Your order id.")] = None
    thesis_id: Annotated[OptionalId, Field(description="Thesis it follows.")] = None
    decision_id: Annotated[OptionalId, Field(description="Decision it carries out.")] = None
    previous_action_id: Annotated[OptionalId, Field(description="Action it modifies or cancels.")] = None
    public_reason: Annotated[OptionalText, Field(description="At most 280 bytes, no account data.")] = None
    evidence: Annotated[Json, Field(description="JSON object text.")] = None
    snapshot: Annotated[Json, Field(description="Market or portfolio, JSON object text.")] = None


class OutcomeArguments(WriteArguments):
    """Arguments of record_order_outcome."""

    action_id: Annotated[str, Field(description="From record_order_intent.")]
    certainty: Annotated[
        Literal["acknowledged", "rejected", "unknown", "not_sent", "partially_filled", "filled", "cancelled"],
        Word,
        Field(description="A timeout is unknown; an acknowledgement is no fill."),
    ]
    broker_order_id: Annotated[OptionalText, Field(description="The broker's id.")] = None
    filled_quantity: Annotated[OptionalText, Field(description="Filled so far, decimal.")] = None
    average_price: Decimal = None
    error_type: Annotated[OptionalText, Field(description="e.g. timeout.")] = None


class UnreconciledArguments(Arguments):
    """Arguments of list_unreconciled_orders."""

    symbol: Symbol = None
    as_of: AsOf = None
    limit: Annotated[Integer, Field(description="1 to 50, default 20.")] = None


def _intent(given: IntentArguments) -> IntendOrder:
    return IntendOrder(
        operation=given.operation,
        reason=given.reason,
        symbol=given.symbol,
        side=given.side,
        quantity=given.quantity,
        order_type=given.order_type,
        limit_price=given.limit_price,
        stop_price=given.stop_price,
        time_in_force=given.time_in_force,
        legs=json_of(given.legs, field="legs"),
        client_order_id=given.client_order_id,
        thesis_id=given.thesis_id,
        decision_id=given.decision_id,
        previous_action_id=given.previous_action_id,
        public_reason=given.public_reason,
        evidence=json_of(given.evidence, field="evidence"),
        snapshot=json_of(given.snapshot, field="snapshot"),
    )


def _unreconciled(book: Book, caller: Caller, given: UnreconciledArguments, limits: LimitSettings) -> Reply:
    limit = 20 if given.limit is None else given.limit
    if not 1 <= limit <= _LISTED:
        raise InvalidInput(
            f"limit must lie between 1 and {_LISTED}.", field="limit", hint="Name a symbol to see its orders."
        )
    as_of = instant_of(given.as_of, field="as_of")
    symbol = normalise_symbol(given.symbol)
    return book.unreconciled(caller, symbol, limit, as_of, reply_chars=limits.reply_chars)


TOOLS = (
    writing(
        "record_order_intent",
        "Record an order intent",
        "Journal every submit, modify and cancel before the broker is called. Give as reason a decision summary, "
        "not hidden reasoning. Heed the warnings it returns.",
        IntentArguments,
        _intent,
    ),
    writing(
        "record_order_outcome",
        "Record an order outcome",
        "Record what became of an order action. A failed write leaves the order standing: record again with the "
        "same idempotency_key.",
        OutcomeArguments,
        lambda given: RecordOutcome(
            action_id=given.action_id,
            certainty=given.certainty,
            broker_order_id=given.broker_order_id,
            filled_quantity=given.filled_quantity,
            average_price=given.average_price,
            error_type=given.error_type,
        ),
        if_it_fails="Only the record failed; the order itself stands. Do not send it again: record this outcome "
        "again with the same idempotency_key.",
    ),
    reading(
        "list_unreconciled_orders",
        "List unreconciled orders",
        "Order actions whose outcome is not known, and open_orders still working at the broker, with age.",
        UnreconciledArguments,
        _unreconciled,
    ),
)
