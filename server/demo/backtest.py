"""Act one: three agents live through the days of a run, and memory alone explains one of the trades."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from .answer import Explanation, explain_a_trade
from .broker import Broker
from .carry import gather
from .checks import check_run, tell_story
from .course import Course
from .crew import check_book, open_crew
from .desk import DemoClock, DemoFailed, open_desk
from .market import PriceHistory
from .place import RESEARCHER, TRADER, DemoPlace
from .screen import showing_days, state_lines, tell
from .strategy import ToolCall


@dataclass(frozen=True, slots=True)
class Backtest:
    """What act one left: its number of tool calls, the trade it explained, and what it taught as calls."""

    calls: int
    explanation: Explanation
    taught: tuple[ToolCall, ...]


async def backtest(place: DemoPlace, prices: PriceHistory, days: range, screen: Console) -> Backtest:
    """Live through the days (indices of `prices`), explain one trade, and check the run; DemoFailed if it fails."""
    clock, broker, course = DemoClock(), Broker(), Course()
    calls = await live_through(place, prices, days, clock, screen, broker, course)
    # Servers started anew: what they say comes from the ledger, for nothing else is left.
    async with open_desk(place, TRADER, clock) as trader, open_desk(place, RESEARCHER, clock) as researcher:
        explanation = await explain_a_trade(trader)
        if explanation is None:
            raise DemoFailed(
                "Memory holds no closed trade to explain.", hint="Let the demo run for 40 days or more."
            )
        state = await trader.call("get_memory_state", {}, f"{place.name}/state")
        taught = await researcher.play(gather(explanation.topic, place.name), f"{place.name}/taught")
        calls += trader.calls + researcher.calls
    tell(screen, ["", *course.lines(), *explanation.lines])
    await tell_story(place, explanation.thesis_id, screen)
    tell(screen, ["", "What the trader starts its next turn with (get_memory_state)", *state_lines(state)])
    tell(screen, [check_book(state, broker)])
    await check_run(place, screen)
    return Backtest(calls, explanation, taught)


async def live_through(
    place: DemoPlace,
    prices: PriceHistory,
    days: range,
    clock: DemoClock,
    screen: Console,
    broker: Broker,
    course: Course,
) -> int:
    """Let all three agents live through the days, the harness first each evening; the number of tool calls."""
    async with open_crew(place, clock, broker, course) as crew:
        with showing_days(screen, len(days)) as step:
            for index in days:
                view = prices.view(index)
                clock.begin(view.day)
                await crew.live(view)
                step(view, crew.calls)
        return crew.calls
