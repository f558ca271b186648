"""How the trader sends an order: into the journal, then to the broker, then what the broker said; and how it reads
from memory, an evening later, what became of it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from .book import Direction, Order, Position
from .broker import Broker, BrokerTimeout, OrderRejected, Ticket
from .market import MarketView
from .strategy import Asking, Reply, ToolCall, Turn, as_json, ask

Purpose = Literal["entry", "exit", "reduce", "alarm"]


@dataclass(frozen=True, slots=True)
class Wish:
    """An order to be sent at the close of the view's day: what it trades, what for and why."""

    view: MarketView
    purpose: Purpose
    symbol: str
    direction: Direction
    shares: int
    reason: str
    public_reason: str | None = None
    evidence: Mapping[str, Any] | None = None
    thesis_id: str | None = None
    decision_id: str | None = None

    @property
    def name(self) -> str:
        """The order's own id, the same however often it is sent."""
        return f"{self.symbol}-{self.view.day}-{self.purpose}"

    @property
    def buys(self) -> bool:
        """Whether it buys: a long trade's entry, a short one's end."""
        return (self.direction == "long") == (self.purpose == "entry")

    @property
    def side(self) -> str:
        """The side as the journal calls it."""
        if self.direction == "long":
            return "buy" if self.buys else "sell"
        return "buy_to_cover" if self.buys else "sell_short"


@dataclass(frozen=True, slots=True)
class Settled:
    """A position after memory told of its order, and the entry in which a harness observed the fill, if one did."""

    position: Position
    event_id: str | None = None


def journal(wish: Wish) -> Asking:
    """Write an order down before the broker hears of it; the reply is the journal's reference with its warnings."""
    bar = wish.view.today(wish.symbol)
    given = {
        "public_reason": wish.public_reason,
        "evidence": None if wish.evidence is None else as_json(wish.evidence),
        "thesis_id": wish.thesis_id,
        "decision_id": wish.decision_id,
    }
    return (
        yield from ask(
            "record_order_intent",
            operation="submit",
            symbol=wish.symbol,
            side=wish.side,
            quantity=str(wish.shares),
            order_type="market",
            time_in_force="opg",
            client_order_id=wish.name,
            reason=wish.reason,
            snapshot=as_json({"day": wish.view.day, "open": bar.open, "close": bar.close}),
            **{name: value for name, value in given.items() if value is not None},
        )
    )


def send(broker: Broker, wish: Wish, action_id: str) -> Generator[ToolCall, Reply, tuple[Order | None, str]]:
    """Call the broker and record what it said; the order that waits now, None when it was refused, and the answer.

    Without an answer nothing is known: that is recorded as unknown, the order counts as waiting, and nothing is
    sent again.
    """
    ticket = Ticket(wish.name, action_id, wish.symbol, "buy" if wish.buys else "sell", wish.shares)
    order = Order(ticket.side, wish.shares, action_id)
    try:
        told = broker.submit(ticket)
    except BrokerTimeout:
        yield from record(action_id, "unknown", error_type="timeout")
        return order, "the broker did not answer"
    except OrderRejected as refusal:
        yield from record(action_id, "rejected", error_type=str(refusal))
        return None, f"the broker rejected it: {refusal}"
    yield from record(action_id, "acknowledged", broker_order_id=told)
    return order, "the broker took it"


def record(action_id: str, certainty: str, **known: str) -> Turn:
    """Record an outcome; the key makes it one outcome however often it is sent."""
    key = f"{action_id}-{certainty}"
    yield from ask(
        "record_order_outcome", action_id=action_id, certainty=certainty, idempotency_key=key, **known
    )


def settle(view: MarketView, position: Position) -> Generator[ToolCall, Reply, Settled]:
    """Read in memory what became of the order that waits: filled, refused, or still waiting."""
    if position.order is None:
        return Settled(position)
    told = yield from ask("get_memory", memory_id=position.order.action_id)
    action = told["memory"]
    order = action["details"].get("order", {})
    if order.get("status") == "filled":
        filled = position.filled(view.day, Decimal(order["average_price"]))
        return Settled(filled, _observed_fill(told["history"]))
    if action["status"] in {"rejected", "not_sent"}:
        remark = f"order {position.order.action_id} {action['status']}"
        return Settled(replace(position, order=None).remarked(view.day, remark))
    return Settled(position)


def _observed_fill(history: list[Reply]) -> str | None:
    """The entry of an observed fill: what an agent claims proves nothing."""
    for entry in history:
        content = entry["content"]
        if entry["event"] == "order.outcome" and content["certainty"] == "filled":
            return str(entry["event_id"]) if content["standing"] == "observed" else None
    return None
