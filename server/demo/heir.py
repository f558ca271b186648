"""Act two: a live desk writes down what act one taught, and a second run inherits the live ledger.

The run replays real days at their real dates. What live memory holds was written today, so on those days it does
not exist; once the harness moves the run's clock to today, one search ranks over both ledgers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console

from .backtest import Backtest, live_through
from .broker import Broker
from .carry import Kept, write_down
from .checks import check_run
from .course import Course
from .desk import AgentDesk, DemoClock, DemoFailed, open_desk
from .market import PriceHistory
from .place import HARNESS, RESEARCHER, TRADER, DemoPlace
from .screen import say, tell
from .strategy import Reply, dated, first_sentence

LIVE = "live"
HITS_ASKED, HITS_SHOWN = 50, 8


@dataclass(frozen=True, slots=True)
class Inherited:
    """What act two left: its number of tool calls, and the search that ranked over both ledgers."""

    calls: int
    retrieval_id: str


async def inherit(
    place: DemoPlace, taught: Backtest, prices: PriceHistory, days: range, screen: Console
) -> Inherited:
    """Play act two beside the finished run of `place`; DemoFailed when the run sees the future, or not the past."""
    live, heir, clock = place.live(), place.heir(), DemoClock()
    tell(screen, ["", "Act two: a second run inherits a live ledger"])
    async with open_desk(live, RESEARCHER, DemoClock()) as desk:
        kept = await desk.play(write_down(taught.taught), f"{live.name}/taught")
        calls = desk.calls
    tell(screen, _kept_lines(kept))
    say(screen, f"config  {heir.config}\nrun     {heir.run}\n")
    calls += await live_through(heir, prices, days, clock, screen, Broker(), Course())
    topic = taught.explanation.topic
    async with open_desk(heir, TRADER, clock) as trader, open_desk(heir, HARNESS, clock) as harness:
        await _ask_before(trader, str(prices.days[days[-1]]), kept[0], topic, screen)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        # From here on no call carries a time: what the trader may see is up to the run's own clock.
        clock.leave()
        await harness.call("advance_clock", {"now": now}, f"{heir.name}/now")
        say(screen, f"\nThe harness moves the run's clock to {now} (advance_clock).")
        retrieval_id = await _ask_after(trader, topic, screen)
        calls += trader.calls + harness.calls
    await check_run(heir, screen)
    return Inherited(calls, retrieval_id)


async def _ask_before(trader: AgentDesk, day: str, known: Kept, topic: str, screen: Console) -> None:
    """On the run's last day live memory must not exist, neither by search nor by id."""
    found = await trader.call("search_memory", _question(topic), f"{trader.name}/before")
    told = await trader.refused("get_memory", {"memory_id": known.memory_id}, f"{trader.name}/before")
    early = [hit["id"] for hit in found["hits"] if hit.get("source") == LIVE]
    if early or told["code"] != "not_found":
        raise DemoFailed(
            f"On {day} the run was shown live memory of today: {', '.join(early) or known.memory_id}."
        )
    lines = [
        "",
        f"{day}, in the run: memory of today does not exist",
        f'  search_memory "{topic}": {found["total"]} found, none from live',
        f"  get_memory {known.memory_id}, which stands in live: {told['code']}",
    ]
    tell(screen, lines)


async def _ask_after(trader: AgentDesk, topic: str, screen: Console) -> str:
    """At the time of today one search must rank over the run and live; the search's id."""
    found = await trader.call("search_memory", _question(topic), f"{trader.name}/after")
    live = [hit for hit in found["hits"] if hit.get("source") == LIVE]
    if not live:
        raise DemoFailed("At the time of today the run sees nothing of the live memory that it inherits.")
    tell(
        screen,
        [
            f"Today, in the run: the same search, with no time of its own, ranks over both ({found['total']} found)",
            *(f"  {rank}. {_hit(hit)}" for rank, hit in enumerate(found["hits"][:HITS_SHOWN], 1)),
        ],
    )
    return str(found["retrieval_id"])


def _question(topic: str) -> dict[str, str | int]:
    return {"query": topic, "kind": "lesson", "limit": HITS_ASKED}


def _hit(hit: Reply) -> str:
    source = "from live" if hit.get("source") == LIVE else "own run"
    return f"{source}, {dated(hit)}, {hit['agent']}: {first_sentence(hit['text'])}"


def _kept_lines(kept: Sequence[Kept]) -> list[str]:
    known = sum(memory.known for memory in kept)
    said = f"{len(kept) - known} memories" if known < len(kept) else "nothing new"
    if known:
        said += f", for {known} stood there from an earlier demo"
    return [
        "",
        f"A live desk's researcher writes down what the backtest taught: {said}",
        *(f"  {memory.written_at[:19]}Z {memory.kind}: {first_sentence(memory.text)}" for memory in kept),
        "",
        "The second run inherits live and replays days of the same backtest, at their real dates",
    ]
