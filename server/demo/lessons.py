"""Lessons as text: what a finished trade taught, and the pattern in several, written and read back here.

Memory returns text, so whatever an agent wants to act on later must stand in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from .book import Outcome, Position
from .strategy import Reply, dated

SORE_DAYS = 120  # calendar days for which a loss keeps the same trade from being made again

_EXPERIENCE = re.compile(
    r"(Won|Lost) (\d+\.\d\d)% on a (long|short) (\w+) in (\S+), (\w+) volatility\."
    r"(?: In at \S+ on \S+, out at \S+ on (\d{4}-\d{2}-\d{2}))?"
)
_PATTERN = re.compile(r"Pattern: (long|short) (\w+)s in (\w+) volatility lost ")


@dataclass(frozen=True, slots=True)
class Experience:
    """One finished trade as its lesson tells it; `return_pct` is in percent of the entry's cost.

    `day` is the trading day on which it ended.
    """

    memory_id: str
    lost: bool
    return_pct: float
    direction: str
    setup: str
    symbol: str
    band: str
    day: date

    @property
    def conditions(self) -> tuple[str, str, str]:
        """What makes two trades alike, whatever the symbol: direction, setup, volatility."""
        return self.direction, self.setup, self.band


def lesson_text(position: Position, done: Outcome, day: date, days_held: int, why: str) -> str:
    """What a trade that was finished on `day` teaches; `read_experience` reads it back."""
    entry = position.fills[0]
    if done.result == "loss":
        verb, advice = "Lost", f"Leave this trade alone in {position.symbol} for {SORE_DAYS} days."
    else:
        verb, advice = "Won", "The plan held; trade it again when it shows."
    return (
        f"{verb} {abs(done.return_pct)}% on a {position.direction} {position.setup} in {position.symbol}, "
        f"{position.band} volatility. In at {entry.price} on {entry.day}, out at {done.exit_price} on {day} "
        f"after {days_held} trading days ({done.pnl:+} dollars): {why}. {advice}"
    )


def read_experience(lesson: Reply) -> Experience | None:
    """Read a trader's lesson; None for any other text."""
    found = _EXPERIENCE.match(lesson["text"])
    if found is None:
        return None
    lost = found[1] == "Lost"
    change = float(found[2]) * (-1 if lost else 1)
    day = date.fromisoformat(found[7] or dated(lesson))
    return Experience(lesson["id"], lost, change, found[3], found[4], found[5], found[6], day)


def told_on(lesson: Reply) -> str:
    """The trading day (YYYY-MM-DD) that a lesson is of: a trade's last one, else the day it was written."""
    experience = read_experience(lesson)
    return dated(lesson) if experience is None else str(experience.day)


def foretells_loss(lesson: Reply, conditions: tuple[str, str, str]) -> bool | None:
    """What a lesson that stands says of the next trade under these conditions: a loss, a win, or nothing (None)."""
    if lesson["status"] == "retired":
        return None
    if speaks_against(lesson, conditions):
        return True
    experience = read_experience(lesson)
    return experience.lost if experience is not None and experience.conditions == conditions else None


def pattern_text(conditions: tuple[str, str, str], trades: Sequence[Experience]) -> str:
    """What several trades under the same conditions say together; `speaks_against` reads it back."""
    direction, setup, band = conditions
    losses, result = sum(trade.lost for trade in trades), sum(trade.return_pct for trade in trades)
    return (
        f"Pattern: {direction} {setup}s in {band} volatility lost {losses} of {len(trades)} times, "
        f"{result:+.2f}% in sum. Trade half size at most."
    )


def speaks_against(lesson: Reply, conditions: tuple[str, str, str]) -> bool:
    """Whether a lesson is a pattern against trades under these conditions."""
    found = _PATTERN.match(lesson["text"])
    return found is not None and found.groups() == conditions
