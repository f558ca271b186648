"""The three agents of a ledger at their desks, the broker beside them, and what they do of an evening."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from .book import read_position
from .broker import Broker
from .course import Course
from .desk import AgentDesk, DemoClock, DemoFailed, open_desk
from .harness import harness_turn
from .market import MarketView
from .place import HARNESS, RESEARCHER, TRADER, DemoPlace
from .researcher import researcher_turn
from .strategy import Reply
from .trader import trader_turn


@dataclass(frozen=True, slots=True)
class Crew:
    """Three desks on one ledger and the broker they trade with."""

    harness: AgentDesk
    researcher: AgentDesk
    trader: AgentDesk
    broker: Broker

    @property
    def calls(self) -> int:
        """Tool calls of all three so far."""
        return self.harness.calls + self.researcher.calls + self.trader.calls

    async def live(self, view: MarketView) -> None:
        """A trading day: orders fill at its open; after its close the harness observes, then the agents work."""
        name = f"{self.trader.name}/{view.day}"
        self.broker.open_market(view)
        await self.harness.play(harness_turn(view, self.broker), f"{name}/{HARNESS}")
        await self.researcher.play(researcher_turn(view), f"{name}/{RESEARCHER}")
        await self.trader.play(trader_turn(view, self.broker), f"{name}/{TRADER}")


@asynccontextmanager
async def open_crew(
    place: DemoPlace, clock: DemoClock, broker: Broker, course: Course
) -> AsyncGenerator[Crew]:
    """Start a server for each of the three; `course` is told of every call."""
    async with (
        open_desk(place, HARNESS, clock, course.note) as harness,
        open_desk(place, RESEARCHER, clock, course.note) as researcher,
        open_desk(place, TRADER, clock, course.note) as trader,
    ):
        yield Crew(harness, researcher, trader, broker)


def check_book(state: Reply, broker: Broker) -> str:
    """Hold the state against the broker's book; a line that says so.

    Both what the harness reported and what the trader's theses add up to, from fills that it read in memory, must be
    what the broker holds: DemoFailed otherwise.
    """
    held = {symbol: holding.shares for symbol, holding in broker.holdings().items()}
    reported = {row["symbol"]: int(row["quantity"]) for row in state["current_position_rationales"]}
    theses = [read_position(thesis["text"]) for thesis in state["open_theses"]]
    traded = {p.symbol: p.shares * (1 if p.direction == "long" else -1) for p in theses if p.shares}
    if not held == reported == traded:
        raise DemoFailed(
            f"The broker holds {held}, memory was told of {reported}, the theses say {traded}.",
            hint="A fill was recorded wrongly, or not at all.",
        )
    what = ", ".join(f"{shares} {symbol}" for symbol, shares in held.items()) or "nothing"
    return f"  The broker holds {what}: so say the reported positions, and so say the fills in the theses."
