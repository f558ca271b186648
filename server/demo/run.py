"""Runs the demo: a backtest that explains one trade from memory, then a second run that inherits live memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import anyio
from rich.console import Console

from store.errors import ConfigError, DeskbookError

from . import DEFAULT_DAYS, REPLAYED_DAYS
from .backtest import Backtest, backtest
from .heir import Inherited, inherit
from .market import PriceHistory, load_prices
from .place import RESEARCHER, TRADER, DemoPlace, claim_place, default_root
from .screen import explore_lines, say, tell
from .strategy import WARM_UP_DAYS


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What a finished demo did and where its ledgers are.

    `config` and `run` are the backtest's, `live` and `heir` name the configs of the live desk and of the second
    run, which is called like its config. `seconds` is wall-clock time, `calls` counts tool calls of all agents,
    `thesis_id` names the trade that was explained from memory, `action_id` its first order.
    """

    root: Path
    config: Path
    run: str
    live: Path
    heir: Path
    days: int
    first_day: date
    last_day: date
    calls: int
    seconds: float
    thesis_id: str
    action_id: str


def run_demo(
    root: Path | None = None, days: int = DEFAULT_DAYS, console: Console | None = None, skipped: int = 0
) -> DemoReport:
    """Run the demo in new runs under `root` (default: `place.default_root()`) and return what it did.

    `skipped` trading days are left out before the first. Raises ConfigError for a wrong root or number of days, and
    DemoFailed when a call, the explanation, `leaks` or `verify` failed. The ledgers stay behind in any case.
    """
    screen, prices, started = console or Console(), load_prices(), time.monotonic()
    span = span_of(prices, days, skipped)
    place = claim_place(root or default_root())
    symbols = ", ".join(sorted(prices.bars))
    tell(screen, ["Act one: a backtest"])
    for line in (
        f"Two rule-based agents, {RESEARCHER} and {TRADER}, trade {symbols} on",
        "real daily prices under a simulated clock, with a simulated broker that a harness watches. Each",
        "of the three has a Deskbook server of its own, over stdio, and one ledger between them. None",
        "keeps anything from one evening to the next but memory.",
        f"store   {place.root}\nconfig  {place.config}\nrun     {place.run}\n",
    ):
        say(screen, line)
    try:
        first, second = anyio.run(_both_acts, place, prices, span, screen)
    except BaseExceptionGroup as group:
        raise only_failure(group) from group
    seconds = time.monotonic() - started
    say(screen, f"\nDone in {seconds:.1f} s. The store stays in {place.root}; look into it with:", "bold")
    for line in explore_lines(place, first.explanation, second.retrieval_id):
        say(screen, f"  {line}")
    return DemoReport(
        root=place.root,
        config=place.config,
        run=place.name,
        live=place.live().config,
        heir=place.heir().config,
        days=days,
        first_day=prices.days[span[0]],
        last_day=prices.days[span[-1]],
        calls=first.calls + second.calls,
        seconds=seconds,
        thesis_id=first.explanation.thesis_id,
        action_id=first.explanation.action_id,
    )


async def _both_acts(
    place: DemoPlace, prices: PriceHistory, days: range, screen: Console
) -> tuple[Backtest, Inherited]:
    first = await backtest(place, prices, days, screen)
    return first, await inherit(place, first, prices, days[-REPLAYED_DAYS:], screen)


def span_of(prices: PriceHistory, days: int, skipped: int = 0) -> range:
    """The indices of so many trading days, `skipped` ones left out; ConfigError when prices do not reach."""
    first = WARM_UP_DAYS + skipped
    longest = len(prices.days) - first
    if not 1 <= days <= longest:
        raise ConfigError(f"The demo has prices for 1 to {longest} days, not {days}.", field="days")
    return range(first, first + days)


def only_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The demo's own error out of the task groups it passed through, else the group itself."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, DeskbookError) else group
