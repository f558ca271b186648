"""The simulated broker: deterministic, fills at the next open, keeps a book by average cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.demo.broker import Broker, BrokerOrder, BrokerTimeout, Holding, OrderRejected, Ticket
from server.demo.market import MarketView, PriceHistory

DAY = date(2008, 1, 16)
NAMES = [f"AAPL-{number}" for number in range(400)]


def ticket(name: str = "a", side: Literal["buy", "sell"] = "buy", shares: int = 10) -> Ticket:
    return Ticket(name, f"act_{name}", "AAPL", side, shares)


def answer(broker: Broker, sent: Ticket) -> str:
    """What became of an order as the sender sees it, and whether the broker has it."""
    try:
        broker.submit(sent)
    except BrokerTimeout:
        return "arrived" if broker.find(sent.client_order_id) else "lost"
    except OrderRejected:
        return "rejected"
    return "acknowledged"


def named(wanted: str, seed: str = "s") -> Iterator[str]:
    """Names of orders that the broker of a seed answers so."""
    return (name for name in NAMES if answer(Broker(seed), ticket(name)) == wanted)


def view_of(prices: PriceHistory, day: date) -> MarketView:
    return prices.view(prices.days.index(day))


def filling(prices: PriceHistory, *tickets: tuple[Literal["buy", "sell"], int]) -> Broker:
    """A broker that filled the orders one day after the other."""
    broker, names = Broker("s"), named("acknowledged")
    for number, (side, shares) in enumerate(tickets):
        broker.submit(ticket(next(names), side, shares))
        broker.open_market(prices.view(prices.days.index(DAY) + number))
    return broker


def test_one_seed_gives_every_order_the_same_answer_whatever_came_before() -> None:
    first = {name: answer(Broker("s"), ticket(name)) for name in NAMES}
    crowded = Broker("s")
    assert {name: answer(crowded, ticket(name)) for name in reversed(NAMES)} == first
    assert {name: answer(Broker("t"), ticket(name)) for name in NAMES} != first


def test_most_orders_are_acknowledged_some_time_out_and_few_are_rejected() -> None:
    counts = Counter(answer(Broker("s"), ticket(name)) for name in NAMES)
    assert set(counts) == {"acknowledged", "rejected", "arrived", "lost"}
    assert counts["acknowledged"] > 0.8 * len(NAMES)
    assert 0 < counts["rejected"] < 0.06 * len(NAMES)


def test_an_order_waits_for_the_next_open_and_is_filled_there_once(prices: PriceHistory) -> None:
    broker, view = Broker("s"), view_of(prices, DAY)
    sent = ticket(next(named("acknowledged")))
    name = broker.submit(sent)
    assert broker.find(sent.client_order_id) == BrokerOrder(name, sent)
    assert broker.holdings() == {}
    broker.open_market(view)
    filled = BrokerOrder(name, sent, DAY, view.today("AAPL").open)
    assert list(broker.fills(DAY)) == [filled]
    broker.open_market(prices.view(prices.days.index(DAY) + 1))
    assert broker.find(sent.client_order_id) == filled


def test_an_order_without_an_answer_may_be_filled_all_the_same_or_never_have_arrived(
    prices: PriceHistory,
) -> None:
    broker = Broker("s")
    arrived, lost = ticket(next(named("arrived"))), ticket(next(named("lost")))
    for sent in (arrived, lost):
        with pytest.raises(BrokerTimeout):
            broker.submit(sent)
    broker.open_market(view_of(prices, DAY))
    assert [order.ticket for order in broker.fills(DAY)] == [arrived]
    assert broker.find(lost.client_order_id) is None


def test_the_same_order_sent_again_is_the_same_order() -> None:
    broker, sent = Broker("s"), ticket(next(named("acknowledged")))
    assert broker.submit(sent) == broker.submit(sent)
    other = ticket(next(name for name in named("arrived")))
    with pytest.raises(BrokerTimeout):
        broker.submit(other)
    found = broker.find(other.client_order_id)
    assert found is not None
    assert broker.submit(other) == found.broker_order_id


def test_a_rejected_order_is_not_kept() -> None:
    broker, sent = Broker("s"), ticket(next(named("rejected")), "sell")
    with pytest.raises(OrderRejected, match="borrow"):
        broker.submit(sent)
    assert broker.find(sent.client_order_id) is None


def test_more_is_averaged_in_less_keeps_the_cost_and_a_turn_starts_anew(prices: PriceHistory) -> None:
    opens = [prices.view(prices.days.index(DAY) + number).today("AAPL").open for number in range(3)]
    averaged = (opens[0] * 10 + opens[1] * 30) / 40
    assert filling(prices, ("buy", 10), ("buy", 30)).holdings() == {"AAPL": Holding(40, averaged)}
    assert filling(prices, ("sell", 10), ("buy", 4)).holdings() == {"AAPL": Holding(-6, opens[0])}
    assert filling(prices, ("sell", 10), ("buy", 30)).holdings() == {"AAPL": Holding(20, opens[1])}
    assert filling(prices, ("buy", 10), ("sell", 10)).holdings() == {}


@given(st.lists(st.tuples(st.sampled_from(["buy", "sell"]), st.integers(1, 500)), max_size=12))
def test_the_book_is_the_sum_of_its_fills(
    prices: PriceHistory, orders: list[tuple[Literal["buy", "sell"], int]]
) -> None:
    total = sum(shares if side == "buy" else -shares for side, shares in orders)
    held = filling(prices, *orders).holdings()
    assert sum(holding.shares for holding in held.values()) == total
    assert all(holding.shares and holding.average_cost > Decimal(0) for holding in held.values())
