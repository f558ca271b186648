from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.demo.book import Fill, Order, Position, outcome, read_position

MONDAY = date(2008, 9, 15)

cents = st.decimals(min_value="0.01", max_value="9999.99", places=2)
sides: st.SearchStrategy[Literal["buy", "sell"]] = st.sampled_from(["buy", "sell"])
words = st.from_regex(r"[a-z]{1,12}", fullmatch=True)
sentences = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=60)
days = st.dates(date(2007, 9, 4), date(2009, 12, 31))
actions = st.from_regex(r"act_[0-9a-z]{13}", fullmatch=True)
positions = st.builds(
    Position,
    symbol=st.from_regex(r"[A-Z./=-]{1,8}", fullmatch=True),
    direction=st.sampled_from(["long", "short"]),
    setup=words,
    band=words,
    reason=sentences,
    stop=cents,
    target=cents,
    horizon=st.integers(1, 400),
    order=st.none() | st.builds(Order, sides, st.integers(1, 10_000), actions),
    fills=st.lists(st.builds(Fill, days, sides, st.integers(1, 10_000), cents, actions), max_size=4).map(
        tuple
    ),
    remarks=st.lists(sentences, max_size=3).map(tuple),
)


@given(positions)
def test_a_position_is_read_back_from_its_text_exactly(position: Position) -> None:
    assert read_position(position.text()) == position


@pytest.mark.parametrize("text", ["", "Long AAPL", "Buy milk.\nToday.\nOr not.\nFine.", "a\nb\nc\nd\ne"])
def test_any_other_text_is_no_position(text: str) -> None:
    with pytest.raises(ValueError, match="not a position"):
        read_position(text)


def short_position() -> Position:
    return Position(
        symbol="AAPL",
        direction="short",
        setup="breakdown",
        band="stormy",
        reason="It falls.",
        stop=Decimal("175.44"),
        target=Decimal("128.04"),
        horizon=40,
        order=Order("sell", 31, "act_1"),
    )


def test_filling_the_order_moves_it_to_the_fills() -> None:
    filled = short_position().filled(MONDAY, Decimal("161.51"))
    assert filled.order is None
    assert filled.shares == 31
    assert filled.entry == Fill(MONDAY, "sell", 31, Decimal("161.51"), "act_1")
    assert filled.gain(Decimal("151.51")) == Decimal(10)
    with pytest.raises(ValueError, match="no order waits"):
        filled.filled(MONDAY, Decimal(1))


def test_only_the_last_three_remarks_stay_in_the_text() -> None:
    position = short_position()
    for number in range(5):
        position = position.remarked(MONDAY, f"remark {number}")
    assert position.remarks == tuple(f"2008-09-15 remark {number}" for number in (2, 3, 4))


def test_a_short_trade_left_in_two_parts_has_the_mean_exit_price() -> None:
    fills = [
        Fill(MONDAY, "sell", 100, Decimal("50.00"), "act_1"),
        Fill(MONDAY + timedelta(days=3), "buy", 40, Decimal("45.00"), "act_1"),
        Fill(MONDAY + timedelta(days=9), "buy", 60, Decimal("40.00"), "act_1"),
    ]
    done = outcome("short", fills)
    assert (done.result, done.pnl, done.return_pct) == ("win", Decimal("800.00"), Decimal("16.00"))
    assert done.exit_price == Decimal("42.0000")


def test_a_long_trade_sold_under_its_cost_is_a_loss() -> None:
    fills = [
        Fill(MONDAY, "buy", 31, Decimal("193.59"), "act_1"),
        Fill(MONDAY + timedelta(days=29), "sell", 31, Decimal("180.14"), "act_1"),
    ]
    done = outcome("long", fills)
    assert (done.result, done.pnl, done.return_pct) == ("loss", Decimal("-416.95"), Decimal("-6.95"))


def test_an_unfinished_trade_has_no_outcome() -> None:
    with pytest.raises(ValueError, match="not finished"):
        outcome("long", [Fill(MONDAY, "buy", 10, Decimal(5), "act_1")])
    with pytest.raises(ValueError, match="not finished"):
        outcome("long", [])
