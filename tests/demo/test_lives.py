"""The agents over months and years, against a notebook instead of a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from server.demo.book import outcome, read_position
from server.demo.market import PriceHistory
from server.demo.strategy import WARM_UP_DAYS

Notebook: TypeAlias = Any  # the class of that name in conftest.py, which tests do not import
Living: TypeAlias = Callable[[PriceHistory, int], Notebook]


def test_no_rule_looks_ahead(prices: PriceHistory, live_through: Living) -> None:
    """What happens after day 80 changes nothing that was done up to it."""
    last = WARM_UP_DAYS + 80

    def bent(symbol: str) -> list[Any]:
        return [
            bar
            if index < last
            else replace(bar, open=bar.open * 3, high=bar.high * 3, low=bar.low * 3, close=bar.close * 3)
            for index, bar in enumerate(prices.bars[symbol])
        ]

    other = PriceHistory(MappingProxyType({symbol: bent(symbol) for symbol in prices.bars}))
    as_it_was, as_it_was_not = live_through(prices, 100).calls, live_through(other, 100).calls
    until = prices.days[last - 1]
    assert [c for c in as_it_was if c[0] <= until] == [c for c in as_it_was_not if c[0] <= until]
    assert as_it_was != as_it_was_not


def test_two_years_bring_every_kind_of_decision_and_outcomes_that_the_prices_confirm(
    prices: PriceHistory, live_through: Living
) -> None:
    notebook = live_through(prices, len(prices.days) - WARM_UP_DAYS)
    actions = Counter(m["action"] for m in notebook.memories.values() if m["kind"] == "decision")
    assert set(actions) == {"buy", "sell", "hold", "reduce", "skip"}
    skipped = [m["text"] for m in notebook.memories.values() if m.get("action") == "skip"]
    assert any("the same trade was lost" in text for text in skipped)
    opens = {(symbol, bar.day): bar.open for symbol, bars in prices.bars.items() for bar in bars}
    closed = [m for m in notebook.memories.values() if m["kind"] == "thesis" and m["status"] == "closed"]
    assert len(closed) > 20
    for thesis in closed:
        position = read_position(thesis["text"])
        assert all(opens[position.symbol, fill.day] == fill.price for fill in position.fills)
        if position.fills:
            done = outcome(position.direction, position.fills)
            assert (thesis["result"], thesis["pnl"]) == (done.result, str(done.pnl))
