"""Runs the demo: two agents live through real trading days, memory explains one trade, `verify` checks."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import anyio
from rich.console import Console

from store.errors import ConfigError, DeskbookError

from . import DEFAULT_DAYS
from .answer import Explanation, explain_a_trade
from .desk import DemoClock, DemoFailed, command_arguments, open_desk, server_environment
from .market import PriceHistory, load_prices
from .place import RESEARCHER, TRADER, DemoPlace, claim_place, default_root
from .researcher import researcher_turn
from .screen import explore_lines, say, showing_days, state_lines, tell
from .strategy import WARM_UP_DAYS
from .trader import trader_turn

COMMAND_SECONDS = 120


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What a finished demo did and where its ledger is.

    `seconds` is wall-clock time, `calls` counts tool calls of both agents, `thesis_id` names the trade that
    was explained from memory.
    """

    root: Path
    config: Path
    run: str
    days: int
    first_day: date
    last_day: date
    calls: int
    seconds: float
    thesis_id: str


def run_demo(
    root: Path | None = None, days: int = DEFAULT_DAYS, console: Console | None = None
) -> DemoReport:
    """Run the demo in a new run under `root` (default: `place.default_root()`) and return what it did.

    Raises ConfigError for a wrong root or number of days, and DemoFailed when a call, the explanation or
    `verify` failed. The ledger stays behind in any case.
    """
    screen, prices, started = console or Console(), load_prices(), time.monotonic()
    longest = len(prices.days) - WARM_UP_DAYS
    if not 1 <= days <= longest:
        raise ConfigError(f"The demo has prices for 1 to {longest} days, not {days}.", field="days")
    place = claim_place(root or default_root())
    say(
        screen, f"Two rule-based agents, {RESEARCHER} and {TRADER}, trade {', '.join(sorted(prices.bars))} on"
    )
    say(
        screen,
        "real daily prices under a simulated clock. Each has a Deskbook server of its own, over stdio,",
    )
    say(
        screen, "and one ledger between them. Neither keeps anything from one evening to the next but memory."
    )
    say(screen, f"store   {place.root}\nconfig  {place.config}\nrun     {place.run}\n")
    try:
        calls, explanation = anyio.run(_demo, place, prices, days, screen)
    except BaseExceptionGroup as group:
        raise _only_failure(group) from group
    seconds = time.monotonic() - started
    say(screen, f"\nDone in {seconds:.1f} s. The store stays in {place.root}; look into it with:", "bold")
    for line in explore_lines(place, explanation):
        say(screen, f"  {line}")
    span = prices.days[WARM_UP_DAYS : WARM_UP_DAYS + days]
    return DemoReport(
        root=place.root,
        config=place.config,
        run=place.run,
        days=days,
        first_day=span[0],
        last_day=span[-1],
        calls=calls,
        seconds=seconds,
        thesis_id=explanation.thesis_id,
    )


async def _demo(
    place: DemoPlace, prices: PriceHistory, days: int, screen: Console
) -> tuple[int, Explanation]:
    clock = DemoClock()
    calls = await _live(place, prices, days, clock, screen)
    # A server started anew: what it says comes from the ledger, for nothing else is left.
    async with open_desk(place, TRADER, clock) as desk:
        explanation = await explain_a_trade(desk)
        state = await desk.call("get_memory_state", {}, f"{place.run}/state")
    tell(screen, ["", *explanation.lines])
    await _check_order(place, screen, explanation)
    tell(screen, ["", "What the trader starts its next turn with (get_memory_state)", *state_lines(state)])
    tell(screen, ["", "deskbook verify"])
    for line in await _command(place, "verify"):
        say(screen, f"  {line}")
    return calls, explanation


async def _live(place: DemoPlace, prices: PriceHistory, days: int, clock: DemoClock, screen: Console) -> int:
    """Let both agents live through the days, the researcher first each evening; the number of tool calls."""
    async with open_desk(place, RESEARCHER, clock) as researcher, open_desk(place, TRADER, clock) as trader:
        with showing_days(screen, days) as step:
            for index in range(WARM_UP_DAYS, WARM_UP_DAYS + days):
                view = prices.view(index)
                clock.begin(view.day)
                await researcher.play(researcher_turn(view), f"{place.run}/{view.day}/{RESEARCHER}")
                await trader.play(trader_turn(view), f"{place.run}/{view.day}/{TRADER}")
                step(view, researcher.calls + trader.calls)
        return researcher.calls + trader.calls


async def _check_order(place: DemoPlace, screen: Console, explained: Explanation) -> None:
    """Hold what memory said about the search against the ledger: the search must stand before the decision."""
    search, decision = [
        json.loads((await _command(place, "show", name, "--json"))[0])
        for name in (explained.retrieval_id, explained.decision_id)
    ]
    query, handed = search["content"]["query"], len(search["content"]["selected"])
    asked = f'{search["agent"]} searches for "{query}" and is handed {handed} memories'
    decided = f"{decision['agent']} decides, naming that search"
    lines = [
        f"  entry {entry['sequence']}, {entry['effective_at']}: {what}"
        for entry, what in ((search, asked), (decision, decided))
    ]
    tell(screen, ["And the ledger's own record (deskbook show)", *lines])
    named = decision["retrieval_id"] == explained.retrieval_id
    if not named or search["sequence"] >= decision["sequence"]:
        raise DemoFailed(f"Decision {explained.decision_id} does not rest on a search recorded before it.")


async def _command(place: DemoPlace, *words: str) -> list[str]:
    """Run a deskbook command on the ledger, as a person would; its lines. DemoFailed unless it exits with 0."""
    with anyio.fail_after(COMMAND_SECONDS):
        done = await anyio.run_process(
            [sys.executable, *command_arguments(place, *words)],
            check=False,
            env=server_environment(),
            cwd=place.root,
        )
    said = (done.stdout or done.stderr).decode("utf-8", "replace").splitlines()
    if done.returncode != 0:
        raise DemoFailed("\n  ".join([f"deskbook {' '.join(words)} exited with {done.returncode}:", *said]))
    return said


def _only_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The demo's own error out of the task groups it passed through, else the group itself."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, DeskbookError) else group
