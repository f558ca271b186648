"""What both agents share: the form of a turn, the chart setups, and the words for them. Pure, without I/O.

A turn is a generator: it yields `ToolCall`s and is sent each call's reply, so that the same rules run against
a real server, and against plain dictionaries in a test.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from .book import Direction
from .market import MarketView, average, highest, lowest, true_range, volatility

CHANNEL_DAYS = 20
TREND_DAYS = 50
SLOPE_DAYS = 5
WARM_UP_DAYS = 60
CALM, ELEVATED = 0.30, 0.50


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as an agent asks for it."""

    tool: str
    arguments: Mapping[str, Any]


Reply: TypeAlias = Mapping[str, Any]
Turn: TypeAlias = Generator[ToolCall, Reply, None]
Asking: TypeAlias = Generator[ToolCall, Reply, Reply]


def ask(tool: str, **arguments: Any) -> Asking:
    """Make one call inside a turn and return its reply: `reply = yield from ask(...)`."""
    return (yield ToolCall(tool, arguments))


def as_json(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Write evidence or rows as JSON text; decimals and days become strings."""
    return json.dumps(value, default=str)


def dated(hit: Reply) -> str:
    """The day (YYYY-MM-DD) on which a found memory took effect."""
    return str(hit["effective_at"])[:10]


def this_evening(view: MarketView, memory: Reply) -> bool:
    """Whether a memory took effect since the work on the view's day began."""
    return datetime.fromisoformat(memory["effective_at"]) >= view.began


def first_sentence(text: str) -> str:
    """A text up to its first full stop that a space follows."""
    return text.split(". ", 1)[0].removesuffix(".")


def volatility_band(annual: float) -> str:
    """Name a 20-day volatility: calm under 30% a year, elevated under 50%, else stormy."""
    return "calm" if annual < CALM else "elevated" if annual < ELEVATED else "stormy"


@dataclass(frozen=True, slots=True)
class Setup:
    """A reason to trade that showed on the chart today: a close outside the 20-day range, with the trend."""

    symbol: str
    direction: Direction
    name: str
    band: str
    reason: str
    evidence: Mapping[str, Any]


def find_setup(view: MarketView, symbol: str) -> Setup | None:
    """The symbol's setup if it appeared today: yesterday's close was still inside its own range."""
    direction = _outside(view, symbol)
    if direction is None or _outside(view.yesterday(), symbol) == direction:
        return None
    bars = view.bars[symbol]
    close, trend, slope = bars[-1].close, average(bars, TREND_DAYS), average(bars[:-SLOPE_DAYS], TREND_DAYS)
    annual, swing = volatility(bars, CHANNEL_DAYS), true_range(bars, CHANNEL_DAYS)
    up = direction == "long"
    level = highest(bars, CHANNEL_DAYS) if up else lowest(bars, CHANNEL_DAYS)
    band = volatility_band(annual)
    reason = (
        f"{view.day}: close {close} {'above the 20-day high' if up else 'below the 20-day low'} {level}, "
        f"50-day average {trend} {'rising' if up else 'falling'} (was {slope} {SLOPE_DAYS} days before), "
        f"20-day volatility {annual:.0%} a year, average true range {swing}."
    )
    evidence = {
        "day": view.day,
        "close": close,
        "range_level": level,
        "average_50d": trend,
        "average_50d_5_days_before": slope,
        "volatility_20d": round(annual, 4),
        "true_range_20d": swing,
        "volume": bars[-1].volume,
    }
    return Setup(symbol, direction, "breakout" if up else "breakdown", band, reason, evidence)


def _outside(view: MarketView, symbol: str) -> Direction | None:
    bars = view.bars[symbol]
    close = bars[-1].close
    trend, slope = average(bars, TREND_DAYS), average(bars[:-SLOPE_DAYS], TREND_DAYS)
    if close > highest(bars, CHANNEL_DAYS) and trend > slope:
        return "long"
    if close < lowest(bars, CHANNEL_DAYS) and trend < slope:
        return "short"
    return None
