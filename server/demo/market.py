"""Daily prices, the part of them an agent may see, and the indicators that its rules read.

Prices are `Decimal` US dollars; volatility and returns are floats, for they are estimates. A `MarketView`
holds no bar after its day, so no rule can look ahead.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType

TRADING_DAYS_A_YEAR = 252
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Bar:
    """One symbol's trading day; prices in US dollars, volume in shares."""

    day: date
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: int


@dataclass(frozen=True, slots=True)
class MarketView:
    """What is known after the close of `day`: each symbol's bars up to that day, oldest first.

    `began` says where the day's work starts on the clock that memory goes by: the day itself in a simulation, a
    moment ago when real days pass in seconds.
    """

    day: date
    bars: Mapping[str, Sequence[Bar]]
    began: datetime

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in alphabetical order."""
        return tuple(sorted(self.bars))

    def today(self, symbol: str) -> Bar:
        """The bar of the current day."""
        return self.bars[symbol][-1]

    def yesterday(self) -> MarketView:
        """The view one trading day earlier; the first day has none and raises IndexError."""
        day = self.bars[self.symbols[0]][-2].day
        bars = MappingProxyType({name: bars[:-1] for name, bars in self.bars.items()})
        return MarketView(day, bars, midnight(day))

    def days_since(self, symbol: str, day: date) -> int:
        """How many trading days ago `day` was, 0 on the day itself."""
        return sum(1 for bar in self.bars[symbol] if bar.day > day)


class PriceHistory:
    """All days of all symbols; `view` is the only way to them for an agent."""

    def __init__(self, bars: Mapping[str, Sequence[Bar]]) -> None:
        calendars = {tuple(bar.day for bar in series) for series in bars.values()}
        if len(calendars) != 1:
            raise ValueError("every symbol needs a bar on every trading day")
        self._bars = MappingProxyType({name: tuple(series) for name, series in bars.items()})
        self.days: tuple[date, ...] = calendars.pop()

    @property
    def bars(self) -> Mapping[str, Sequence[Bar]]:
        """Every bar, for whoever checks the agents afterwards."""
        return self._bars

    def view(self, index: int) -> MarketView:
        """What is known after the close of the trading day `index` (0 is the first)."""
        bars = MappingProxyType({name: series[: index + 1] for name, series in self._bars.items()})
        return MarketView(self.days[index], bars, midnight(self.days[index]))


def load_prices() -> PriceHistory:
    """Read the prices that ship with the package (see the package's docstring for their source)."""
    bars: dict[str, list[Bar]] = {}
    text = files(__package__).joinpath("prices.csv").read_text(encoding="ascii")
    for row in csv.DictReader(text.splitlines()):
        bars.setdefault(row["symbol"], []).append(
            Bar(
                date.fromisoformat(row["date"]),
                Decimal(row["open"]),
                Decimal(row["high"]),
                Decimal(row["low"]),
                Decimal(row["close"]),
                int(row["volume"]),
            )
        )
    return PriceHistory(bars)


def midnight(day: date) -> datetime:
    """The start of a day, UTC."""
    return datetime.combine(day, time(tzinfo=UTC))


def to_cents(value: Decimal) -> Decimal:
    """Round half to even to whole cents, for levels that an agent sets itself."""
    return value.quantize(_CENT)


def average(bars: Sequence[Bar], days: int) -> Decimal:
    """The mean close of the last `days` bars."""
    _need(bars, days)
    return to_cents(sum((bar.close for bar in bars[-days:]), Decimal(0)) / days)


def true_range(bars: Sequence[Bar], days: int) -> Decimal:
    """Wilder's average true range over the last `days` bars, as a simple mean, in dollars."""
    _need(bars, days + 1)
    total = Decimal(0)
    for before, bar in zip(bars[-days - 1 : -1], bars[-days:], strict=True):
        total += max(bar.high - bar.low, abs(bar.high - before.close), abs(bar.low - before.close))
    return to_cents(total / days)


def volatility(bars: Sequence[Bar], days: int) -> float:
    """Sample deviation of the last `days` daily log returns of the close, annualised; 0.25 is 25% a year."""
    _need(bars, days + 1)
    closes = [float(bar.close) for bar in bars[-days - 1 :]]
    returns = [math.log(b / a) for a, b in pairwise(closes)]
    mean = sum(returns) / days
    return math.sqrt(sum((r - mean) ** 2 for r in returns) / (days - 1) * TRADING_DAYS_A_YEAR)


def highest(bars: Sequence[Bar], days: int) -> Decimal:
    """The highest high of the `days` bars before the last one."""
    _need(bars, days + 1)
    return max(bar.high for bar in bars[-days - 1 : -1])


def lowest(bars: Sequence[Bar], days: int) -> Decimal:
    """The lowest low of the `days` bars before the last one."""
    _need(bars, days + 1)
    return min(bar.low for bar in bars[-days - 1 : -1])


def drawdown(bars: Sequence[Bar], days: int) -> float:
    """How far the last close is under the highest close of the last `days` bars; 0.2 is 20% under it."""
    _need(bars, days)
    peak = max(bar.close for bar in bars[-days:])
    return float((peak - bars[-1].close) / peak)


def total_return(bars: Sequence[Bar], days: int) -> float:
    """The change of the close over the last `days` bars; -0.1 is a fall of 10%."""
    _need(bars, days + 1)
    return float(bars[-1].close / bars[-days - 1].close) - 1.0


def _need(bars: Sequence[Bar], count: int) -> None:
    if len(bars) < count:
        raise ValueError(f"{count} bars are needed, {len(bars)} are known")
