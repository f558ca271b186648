"""A small simulated broker: it acknowledges, rejects a few orders, and sometimes does not answer in time.

Pure: it reads no clock and no network, and what it makes of an order follows from its seed and the order's name
alone. Market orders wait for the next open and are filled there, whole and without costs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from .book import Side
from .market import MarketView

# One of a hundred tried: within two months it brings an order without an answer that arrived, and a rejection.
SEED = "broker-22"
REJECTED_OF_1000, TIMED_OUT_OF_1000 = 25, 70
LOST_OF_2 = 2  # every second order without an answer never reached the broker
SIGN: Mapping[Side, int] = MappingProxyType({"buy": 1, "sell": -1})


class BrokerTimeout(Exception):
    """No answer came in time: the order may be at the broker, or not."""


class OrderRejected(Exception):
    """The broker refused the order; the text says why."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """An order as it is sent: the client's own id, and the journal's action that it carries out."""

    client_order_id: str
    action_id: str
    symbol: str
    side: Side
    shares: int


@dataclass(frozen=True, slots=True)
class BrokerOrder:
    """An order that reached the broker; `filled_on` and `price` (dollars) are None while it waits."""

    broker_order_id: str
    ticket: Ticket
    filled_on: date | None = None
    price: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """Shares held, negative when short, and what one cost on average, in dollars."""

    shares: int
    average_cost: Decimal


class Broker:
    """Takes orders after the close and fills them at the next open."""

    def __init__(self, seed: str = SEED) -> None:
        self._seed = seed
        self._orders: dict[str, BrokerOrder] = {}
        self._holdings: dict[str, Holding] = {}

    def submit(self, ticket: Ticket) -> str:
        """Take an order and return the broker's id for it; an id that is known returns its first answer.

        Raises OrderRejected when it is refused, and BrokerTimeout when no answer comes: then the order may wait
        here all the same, which only `find` tells.
        """
        known = self._orders.get(ticket.client_order_id)
        if known is not None:
            return known.broker_order_id
        chance = self._chance("answer", ticket)
        if chance < REJECTED_OF_1000:
            raise OrderRejected("no shares to borrow" if ticket.side == "sell" else "over the day's limit")
        timed_out = chance < REJECTED_OF_1000 + TIMED_OUT_OF_1000
        if timed_out and not self._chance("way", ticket) % LOST_OF_2:
            raise BrokerTimeout
        order = BrokerOrder(f"B-{len(self._orders) + 1:05}", ticket)
        self._orders[ticket.client_order_id] = order
        if timed_out:
            raise BrokerTimeout
        return order.broker_order_id

    def open_market(self, view: MarketView) -> None:
        """Fill every waiting order at the open of the view's day."""
        for name, order in self._orders.items():
            if order.filled_on is None:
                price = view.today(order.ticket.symbol).open
                self._orders[name] = replace(order, filled_on=view.day, price=price)
                self._book(order.ticket, price)

    def find(self, client_order_id: str) -> BrokerOrder | None:
        """The order of that name as it stands, None when it never arrived."""
        return self._orders.get(client_order_id)

    def fills(self, day: date) -> Sequence[BrokerOrder]:
        """The orders filled on a day."""
        return [order for order in self._orders.values() if order.filled_on == day]

    def holdings(self) -> Mapping[str, Holding]:
        """What is held, by symbol in alphabetical order; nothing that is flat."""
        return dict(sorted(self._holdings.items()))

    def _book(self, ticket: Ticket, price: Decimal) -> None:
        """Average cost: more of the same side is averaged in, a reduction keeps it, a turn starts anew."""
        before = self._holdings.pop(ticket.symbol, Holding(0, price))
        change = SIGN[ticket.side] * ticket.shares
        after = before.shares + change
        if not after:
            return
        cost = before.average_cost
        if before.shares * change > 0:
            cost = (before.shares * cost + change * price) / after
        elif before.shares * after <= 0:
            cost = price
        self._holdings[ticket.symbol] = Holding(after, cost)

    def _chance(self, what: str, ticket: Ticket) -> int:
        """A number from 0 to 999 that the seed and the order's name alone decide."""
        told = hashlib.sha256(f"{self._seed}/{what}/{ticket.client_order_id}".encode()).digest()
        return int.from_bytes(told[:8]) % 1000
