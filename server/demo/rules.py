"""What the trader makes of a setup, and when a trade is over: its judgement, apart from any call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal

from .book import Position
from .lessons import SORE_DAYS, read_experience, speaks_against, told_on
from .market import MarketView, to_cents, true_range
from .strategy import CHANNEL_DAYS, Reply, Setup, first_sentence

RISK_DOLLARS = Decimal(1000)
LARGEST_TRADE_DOLLARS = Decimal(30000)
STOP_RANGES, TARGET_RANGES, TRAIL_RANGES = Decimal(2), Decimal(4), Decimal("2.5")
HORIZON_DAYS = 40
SMALLEST_STOP_MOVE = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What memory makes of a setup: the share of full size (0 is a skip), why, and which memories say so."""

    size: Decimal
    because: tuple[str, ...]
    cited: tuple[str, ...]


def weigh(setup: Setup, day: date, notes: Iterable[Reply], lessons: Iterable[Reply]) -> Verdict:
    """Hold a setup against active risk notes and found lessons; one that outcomes contradict counts nothing.

    Skip it when the same trade (symbol, direction, setup, volatility) was lost within 120 days; halve it for
    an active risk note on the symbol, and once more for a pattern against its conditions.
    """
    conditions = (setup.direction, setup.name, setup.band)
    size, because, cited = Decimal(1), list[str](), list[str]()
    for lesson in lessons:
        if lesson["status"] == "contradicted":
            continue
        past, age = read_experience(lesson), (day - date.fromisoformat(told_on(lesson))).days
        same = past is not None and past.lost and (past.symbol, past.conditions) == (setup.symbol, conditions)
        if same and age <= SORE_DAYS:
            reason = f"the same trade was lost {age} days ago: {first_sentence(lesson['text'])}"
            return Verdict(Decimal(0), (reason,), (lesson["id"],))
        if speaks_against(lesson, conditions):
            size /= 2
            because.append(first_sentence(lesson["text"]))
            cited.append(lesson["id"])
    warnings = [note for note in notes if note["symbol"] == setup.symbol]
    if warnings:
        size /= 2
        because += [first_sentence(note["text"]) for note in warnings]
        cited += [note["id"] for note in warnings]
    return Verdict(size, tuple(because), tuple(cited))


def plan(view: MarketView, setup: Setup, size: Decimal) -> tuple[Position, int] | None:
    """The trade, and how many shares put 1,000 dollars at risk to its stop, two average ranges away.

    None when that is not one share.
    """
    bars = view.bars[setup.symbol]
    close, swing = bars[-1].close, true_range(bars, CHANNEL_DAYS)
    sign = 1 if setup.direction == "long" else -1
    budget = min(RISK_DOLLARS / (STOP_RANGES * swing), LARGEST_TRADE_DOLLARS / close)
    shares = int((budget * size).to_integral_value(ROUND_FLOOR))
    if shares < 1:
        return None
    position = Position(
        symbol=setup.symbol,
        direction=setup.direction,
        setup=setup.name,
        band=setup.band,
        reason=setup.reason,
        stop=to_cents(close - sign * STOP_RANGES * swing),
        target=to_cents(close + sign * TARGET_RANGES * swing),
        horizon=HORIZON_DAYS,
    )
    return position, shares


def reason_to_leave(view: MarketView, position: Position) -> str | None:
    """Why the trade is over at today's close, or None: target reached, stop broken, or out of time."""
    close, long = view.today(position.symbol).close, position.direction == "long"
    if (close <= position.stop) if long else (close >= position.stop):
        return f"close {close} broke the stop {position.stop}"
    if (close >= position.target) if long else (close <= position.target):
        return f"close {close} reached the target {position.target}"
    entry = position.entry
    if entry is not None and view.days_since(position.symbol, entry.day) >= position.horizon:
        return f"{position.horizon} trading days are over at {close}"
    return None


def trailed_stop(view: MarketView, position: Position) -> Decimal:
    """The stop after today's close: once the trade is ahead, two and a half ranges behind, and never back."""
    bars = view.bars[position.symbol]
    close, swing = bars[-1].close, true_range(bars, CHANNEL_DAYS)
    if position.gain(close) < STOP_RANGES * swing:
        return position.stop
    if position.direction == "long":
        behind, better = to_cents(close - TRAIL_RANGES * swing), max
    else:
        behind, better = to_cents(close + TRAIL_RANGES * swing), min
    moved = better(position.stop, behind)
    return moved if abs(moved - position.stop) >= SMALLEST_STOP_MOVE * close else position.stop
