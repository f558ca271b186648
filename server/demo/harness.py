"""The harness: what the broker really did, observed each evening before the agents work.

It finds out about orders without an answer, records fills, and reports what is held. It keeps nothing itself.
"""

from __future__ import annotations

from decimal import Decimal

from .broker import Broker, BrokerOrder
from .market import MarketView
from .orders import record
from .strategy import Reply, Turn, as_json, ask

_COST = Decimal("0.0001")


def harness_turn(view: MarketView, broker: Broker) -> Turn:
    """One evening's work after the close of `view.day`."""
    listed = yield from ask("list_unreconciled_orders", limit=50)
    for action in listed["orders"]:
        yield from _reconcile(view, broker, action)
    filled = broker.fills(view.day)
    for order in filled:
        yield from _record_fill(order)
    if filled or broker.holdings():
        yield from _report(view, broker)


def _reconcile(view: MarketView, broker: Broker, action: Reply) -> Turn:
    """Ask the broker about an order whose outcome is not known; one that it never saw was not sent."""
    order = broker.find(action["client_order_id"])
    if order is None:
        yield from record(action["action_id"], "not_sent", error_type="never arrived")
        return
    yield from record(action["action_id"], "acknowledged", broker_order_id=order.broker_order_id)
    if order.filled_on is not None and order.filled_on < view.day:
        yield from _record_fill(order)


def _record_fill(order: BrokerOrder) -> Turn:
    yield from record(
        order.ticket.action_id,
        "filled",
        broker_order_id=order.broker_order_id,
        filled_quantity=str(order.ticket.shares),
        average_price=str(order.price),
    )


def _report(view: MarketView, broker: Broker) -> Turn:
    """Report everything held; what is missing in it is flat."""
    rows = [
        {
            "symbol": symbol,
            "quantity": str(holding.shares),
            "average_cost": holding.average_cost.quantize(_COST),
            "last_price": view.today(symbol).close,
            "market_value": view.today(symbol).close * holding.shares,
            "asset_type": "stock",
        }
        for symbol, holding in broker.holdings().items()
    ]
    yield from ask("report_positions", positions=as_json(rows))
