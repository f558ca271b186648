"""Why an order is sent, in words: dated evidence, sizing, what memory says, risks, what would prove it wrong.

Every number in these texts was computed from prices up to the day, or read from memory before the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from .book import Position
from .broker import Holding
from .lessons import told_on
from .market import MarketView, to_cents
from .rules import STOP_RANGES, Verdict
from .strategy import Reply, Setup, first_sentence

LESSONS_TOLD = 2
RISKS = (
    "Risks: it is filled at the next open, which may lie far from this close, and the stop is watched at the close "
    "only, so that a gap can jump over it."
)


def entry_reason(
    view: MarketView,
    setup: Setup,
    position: Position,
    shares: int,
    verdict: Verdict,
    lessons: Sequence[Reply],
) -> str:
    """Why a trade is opened."""
    close = view.today(setup.symbol).close
    at_risk = to_cents(abs(close - position.stop) * shares)
    side = "under" if position.direction == "long" else "over"
    weighed = f"Weighed against it: {'; '.join(verdict.because)}." if verdict.because else ""
    parts = [
        f"{verb(position).capitalize()} {shares} {setup.symbol} at the next open: {setup.name} in {setup.band}",
        f"volatility. Evidence: {setup.reason} Sizing: {verdict.size:.0%} of full size, {to_cents(close * shares)}",
        f"dollars at the close, {at_risk} of them at risk to the stop {position.stop}, {STOP_RANGES} average true",
        f"ranges away. {_remembered(lessons)} {weighed}",
        RISKS,
        f"It is wrong at a close {side} {position.stop}; the target is {position.target}, and after",
        f"{position.horizon} trading days the trade is over in any case.",
    ]
    return " ".join(" ".join(parts).split())


def change_reason(
    view: MarketView, position: Position, shares: int, why: str, lessons: Sequence[Reply]
) -> str:
    """Why a trade is left, or made smaller."""
    bar, entry = view.today(position.symbol), position.fills[0]
    held = view.days_since(position.symbol, entry.day)
    left = position.shares - shares
    parts = [
        f"{verb(position, leaving=True).capitalize()} {shares} of {position.shares} {position.symbol} at the next",
        f"open: {why}. Evidence: {view.day} open {bar.open}, high {bar.high}, low {bar.low}, close {bar.close};",
        f"{position.direction} since {entry.day} at {entry.price}, {held} trading days,",
        f"{position.gain(bar.close):+} dollars a share by now; stop {position.stop}, target {position.target}.",
        f"It was opened because of: {position.reason}",
        f"Sizing: {left} shares stay." if left else "Sizing: all of it, the plan knows no other way out.",
        _remembered(lessons),
        RISKS,
        "It is wrong if the price turns back at once; what that costs is not known before.",
    ]
    return " ".join(" ".join(parts).split())


def alarm_reason(view: MarketView, symbol: str, holding: Holding, fall: Decimal) -> str:
    """Why a position is closed by the rule that asks no memory."""
    bar, shares = view.today(symbol), abs(holding.shares)
    side = "long" if holding.shares > 0 else "short"
    lost = to_cents(abs(bar.close - bar.open) * shares)
    return (
        f"Alarm: the broker holds {shares} {symbol} {side} at {holding.average_cost}, and {view.day} went {fall:.1%} "
        f"against it, from {bar.open} at the open to {bar.close} at the close: {lost} dollars in a day. By rule such "
        "a position is closed at the next open, all of it, whatever it was opened for: this order is written down "
        "before memory is read, and without a search. Risks: the next open may lie far from this close, on either "
        "side. It is wrong if the day's move was a mistake of the market and turns back; the rule pays that price, "
        "not having to judge."
    )


def public_reason(position: Position, purpose: str) -> str:
    """What may be said of an order in public: no size, no account, no identifier."""
    return f"{purpose.capitalize()}: {position.direction} {position.setup} in {position.band} volatility."


def verb(position: Position, *, leaving: bool = False) -> str:
    """What is done, in words."""
    if position.direction == "long":
        return "sell" if leaving else "buy"
    return "buy back" if leaving else "sell short"


def _remembered(lessons: Sequence[Reply]) -> str:
    """What memory was found to hold, the nearest lessons by name."""
    if not lessons:
        return "Memory holds no lesson on it."
    nearest = "; ".join(
        f"{told_on(hit)} ({hit['status']}, {hit['id']}) {first_sentence(hit['text'])}"
        for hit in lessons[:LESSONS_TOLD]
    )
    return f"Memory gave {len(lessons)} lessons, the nearest: {nearest}."
