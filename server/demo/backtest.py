"""Act one: two agents live through the days of a run, and memory alone explains one of their trades."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from .answer import Explanation, explain_a_trade
from .carry import gather
from .checks import check_order, check_run
from .desk import DemoClock, open_desk
from .market import PriceHistory
from .place import RESEARCHER, TRADER, DemoPlace
from .researcher import researcher_turn
from .screen import showing_days, state_lines, tell
from .strategy import ToolCall
from .trader import trader_turn


@dataclass(frozen=True, slots=True)
class Backtest:
    """What act one left: its number of tool calls, the trade it explained, and what it taught as calls."""

    calls: int
    explanation: Explanation
    taught: tuple[ToolCall, ...]


async def backtest(place: DemoPlace, prices: PriceHistory, days: range, screen: Console) -> Backtest:
    """Live through the days (indices of `prices`), explain one trade, and check the run; DemoFailed if it fails."""
    clock = DemoClock()
    calls = await live_through(place, prices, days, clock, screen)
    # Servers started anew: what they say comes from the ledger, for nothing else is left.
    async with open_desk(place, TRADER, clock) as trader, open_desk(place, RESEARCHER, clock) as researcher:
        explanation = await explain_a_trade(trader)
        state = await trader.call("get_memory_state", {}, f"{place.name}/state")
        taught = await researcher.play(gather(explanation.topic, place.name), f"{place.name}/taught")
        calls += trader.calls + researcher.calls
    tell(screen, ["", *explanation.lines])
    await check_order(place, screen, explanation)
    tell(screen, ["", "What the trader starts its next turn with (get_memory_state)", *state_lines(state)])
    await check_run(place, screen)
    return Backtest(calls, explanation, taught)


async def live_through(
    place: DemoPlace, prices: PriceHistory, days: range, clock: DemoClock, screen: Console
) -> int:
    """Let both agents live through the days, the researcher first each evening; the number of tool calls."""
    async with open_desk(place, RESEARCHER, clock) as researcher, open_desk(place, TRADER, clock) as trader:
        with showing_days(screen, len(days)) as step:
            for index in days:
                view = prices.view(index)
                clock.begin(view.day)
                await researcher.play(researcher_turn(view), f"{place.name}/{view.day}/{RESEARCHER}")
                await trader.play(trader_turn(view), f"{place.name}/{view.day}/{TRADER}")
                step(view, researcher.calls + trader.calls)
        return researcher.calls + trader.calls
