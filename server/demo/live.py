"""The demo on the wall clock: the same agents, broker and harness on a live ledger, a real trading day a second."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
from rich.console import Console

from . import LIVE_DAYS, LIVE_SKIPPED
from .answer import Explanation, explain_a_trade
from .broker import Broker
from .checks import check_run, tell_story
from .course import Course
from .crew import check_book, open_crew
from .desk import DemoClock, open_desk
from .market import PriceHistory, load_prices
from .place import TRADER, DemoPlace, claim_place, default_root
from .run import only_failure, span_of
from .screen import look_lines, say, showing_days, state_lines, tell

PACE = 1.0
"""Seconds that a trading day takes at least."""


@dataclass(frozen=True, slots=True)
class LiveReport:
    """What a finished demo on the wall clock did; `explained` is the thesis or order it explained, if any."""

    root: Path
    config: Path
    strategy: str
    calls: int
    seconds: float
    explained: str | None


def run_live(
    root: Path | None = None, days: int = LIVE_DAYS, console: Console | None = None, pace: float = PACE
) -> LiveReport:
    """Run the demo on the wall clock in a new strategy under `root` (default: `place.default_root()`).

    Raises ConfigError for a wrong root or number of days, and DemoFailed when a call, the story or `verify` failed.
    The ledger stays behind in any case.
    """
    screen, prices, started = console or Console(), load_prices(), time.monotonic()
    span = span_of(prices, days, LIVE_SKIPPED)
    place = claim_place(root or default_root(), "alone")
    tell(screen, ["Live: the demo's agents on the wall clock"])
    say(
        screen,
        f"Each second brings a real trading day, from {prices.days[span[0]]} on. No call carries a time.",
    )
    say(screen, f"store   {place.root}\nconfig  {place.config}\n")
    try:
        calls, explained = anyio.run(_live, place, prices, span, pace, screen)
    except BaseExceptionGroup as group:
        raise only_failure(group) from group
    seconds = time.monotonic() - started
    say(screen, f"\nDone in {seconds:.1f} s. The store stays in {place.root}; look into it with:", "bold")
    looks = [("status",), ("log",), *([("explain", explained)] if explained else []), ("verify",)]
    for line in look_lines(place, *looks):
        say(screen, f"  {line}")
    return LiveReport(place.root, place.config, place.strategy, calls, seconds, explained)


async def _live(
    place: DemoPlace, prices: PriceHistory, days: range, pace: float, screen: Console
) -> tuple[int, str | None]:
    clock, broker, course = DemoClock(), Broker(), Course()
    async with open_crew(place, clock, broker, course) as crew:
        start = anyio.current_time()
        with showing_days(screen, len(days)) as step:
            for number, index in enumerate(days):
                await anyio.sleep_until(start + number * pace)
                view = replace(prices.view(index), began=datetime.now(UTC))
                await crew.live(view)
                step(view, crew.calls)
        calls = crew.calls
    # A server started anew, as in the backtest: what it says comes from the ledger.
    async with open_desk(place, TRADER, clock) as trader:
        explanation = await explain_a_trade(trader)
        state = await trader.call("get_memory_state", {}, f"{place.name}/state")
        calls += trader.calls
    tell(screen, ["", *course.lines()])
    explained = await _story(place, explanation, course, screen)
    tell(screen, ["", "What the trader starts its next turn with (get_memory_state)", *state_lines(state)])
    tell(screen, [check_book(state, broker)])
    await check_run(place, screen)
    return calls, explained


async def _story(
    place: DemoPlace, explanation: Explanation | None, course: Course, screen: Console
) -> str | None:
    """Explain the closed trade with the most to tell, else the newest entry; None when there was no order yet."""
    if explanation is not None:
        tell(screen, explanation.lines)
        explained = explanation.thesis_id
    else:
        entries = [action for action, name in course.orders.items() if name.endswith("-entry")]
        if not entries:
            return None
        explained = entries[-1]
    await tell_story(place, explained, screen)
    return explained
