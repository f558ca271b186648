from __future__ import annotations

import hashlib
import math
from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from itertools import pairwise

import pytest

from server.demo.market import Bar, PriceHistory, drawdown, highest, lowest, true_range, volatility

# New York Stock Exchange, full-day closings on weekdays from September 2007 to December 2009.
CLOSED = {
    "2007-09-03", "2007-11-22", "2007-12-25",
    "2008-01-01", "2008-01-21", "2008-02-18", "2008-03-21", "2008-05-26", "2008-07-04", "2008-09-01",
    "2008-11-27", "2008-12-25",
    "2009-01-01", "2009-01-19", "2009-02-16", "2009-04-10", "2009-05-25", "2009-07-03", "2009-09-07",
    "2009-11-26", "2009-12-25",
}  # fmt: skip


def test_the_shipped_prices_are_the_ones_whose_source_is_stated() -> None:
    digest = hashlib.sha256(files("server.demo").joinpath("prices.csv").read_bytes()).hexdigest()
    assert digest == "119c068e223e13d58f82625916f34d0b851b99040b4d36d4d1728a7f0f3d1bff"


def test_prices_cover_three_symbols_on_every_exchange_day_and_no_other(prices: PriceHistory) -> None:
    first, last = prices.days[0], prices.days[-1]
    assert (first, last, len(prices.days)) == (date(2007, 9, 4), date(2009, 12, 31), 588)
    assert sorted(prices.bars) == ["AAPL", "IBM", "MSFT"]
    calendar = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    expected = [day for day in calendar if day.weekday() < 5 and day.isoformat() not in CLOSED]
    assert list(prices.days) == expected
    for series in prices.bars.values():
        assert [bar.day for bar in series] == expected


def test_every_bar_is_positive_and_its_range_holds_open_and_close(prices: PriceHistory) -> None:
    for series in prices.bars.values():
        for bar in series:
            assert Decimal(0) < bar.low <= min(bar.open, bar.close) <= max(bar.open, bar.close) <= bar.high
            assert bar.volume > 0


def test_no_close_jumps_as_a_split_would(prices: PriceHistory) -> None:
    for series in prices.bars.values():
        for before, bar in pairwise(series):
            assert Decimal("0.75") < bar.close / before.close < Decimal("1.35")


@pytest.mark.parametrize(
    ("symbol", "day", "close"),
    [
        ("AAPL", date(2008, 9, 29), "105.26"),
        ("MSFT", date(2009, 3, 9), "15.15"),
        ("IBM", date(2008, 10, 10), "87.75"),
    ],
)
def test_closes_of_well_known_days_are_right(
    prices: PriceHistory, symbol: str, day: date, close: str
) -> None:
    assert next(bar.close for bar in prices.bars[symbol] if bar.day == day) == Decimal(close)


def test_a_view_ends_with_its_day(prices: PriceHistory) -> None:
    view = prices.view(100)
    for bars in view.bars.values():
        assert len(bars) == 101
        assert bars[-1].day == view.day == prices.days[100]
    assert view.yesterday().day == prices.days[99]
    assert view.days_since("IBM", prices.days[90]) == 10


def test_a_history_with_a_missing_day_is_refused(prices: PriceHistory) -> None:
    with pytest.raises(ValueError, match="every trading day"):
        PriceHistory({"AAPL": prices.bars["AAPL"], "IBM": prices.bars["IBM"][1:]})


def bars_of(*closes: str) -> list[Bar]:
    start = date(2008, 1, 1)
    return [
        Bar(start + timedelta(days=n), Decimal(c), Decimal(c) + 1, Decimal(c) - 1, Decimal(c), 100)
        for n, c in enumerate(closes)
    ]


def test_indicators_agree_with_a_calculation_by_hand() -> None:
    bars = bars_of("100", "110", "99", "104")
    assert highest(bars, 3) == Decimal(111)
    assert lowest(bars, 3) == Decimal(98)
    assert true_range(bars, 3) == Decimal("9.67")  # (11 + 12 + 6) / 3
    assert drawdown(bars, 4) == pytest.approx(6 / 110)
    assert volatility(bars_of("100", "110", "121", "133.1"), 3) == pytest.approx(0.0, abs=1e-9)
    # Returns of +a and -a have the sample deviation a * sqrt(2).
    assert volatility(bars_of("100", "110", "100"), 2) == pytest.approx(math.log(1.1) * math.sqrt(2 * 252))


def test_an_indicator_with_too_few_bars_says_how_many_it_needs() -> None:
    with pytest.raises(ValueError, match="4 bars are needed, 3 are known"):
        volatility(bars_of("1", "2", "3"), 3)
