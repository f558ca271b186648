"""The demo as a user runs it: real server processes, real clients, one ledger."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console

from server.demo.book import outcome, read_position
from server.demo.desk import AgentDesk, DemoClock, DemoFailed, open_desk
from server.demo.market import PriceHistory
from server.demo.place import STRATEGY, TRADER, DemoPlace, claim_place
from server.demo.run import DemoReport, run_demo
from server.demo.strategy import WARM_UP_DAYS
from store.book import Book
from store.entry import Entry
from store.errors import ConfigError
from store.rows import EntryFilter

DAYS = 40
KINDS = ("memory", "proposal", "risk_note", "decision", "lesson", "thesis")


@dataclass(frozen=True)
class Lived:
    """A finished demo: its report, what it printed, its memories as tools tell them, and its ledger."""

    report: DemoReport
    printed: str
    memories: Mapping[str, list[dict[str, Any]]]
    ledger: list[Entry]


async def read_back(place: DemoPlace, last: date) -> dict[str, list[dict[str, Any]]]:
    clock = DemoClock()
    clock.begin(last + timedelta(days=1))
    async with open_desk(place, TRADER, clock) as desk:
        return {kind: await everything(desk, kind) for kind in KINDS}


async def everything(desk: AgentDesk, kind: str) -> list[dict[str, Any]]:
    """Every memory of a kind, whole, oldest first."""
    asked = {"query": "", "kind": kind, "limit": 50}
    page = await desk.call("search_memory", asked, "read-back")
    hits = list(page["hits"])
    while page["cursor"]:
        page = await desk.call("search_memory", {**asked, "cursor": page["cursor"]}, "read-back")
        hits += page["hits"]
    assert len(hits) == page["total"]
    replies = [await desk.call("get_memory", {"memory_id": hit["id"]}, "read-back") for hit in reversed(hits)]
    return [reply["memory"] for reply in replies]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    screen = io.StringIO()
    report = run_demo(tmp_path_factory.mktemp("demo"), DAYS, Console(file=screen, width=200))
    book = Book.open(report.root, STRATEGY, report.run, create=False)
    try:
        ledger = book.log(EntryFilter())
    finally:
        book.close()
    memories = anyio.run(read_back, DemoPlace(report.root, report.run), report.last_day)
    return Lived(report, screen.getvalue(), memories, ledger)


def test_the_demo_lives_through_the_days_asked_for(lived: Lived, prices: PriceHistory) -> None:
    days = prices.days[WARM_UP_DAYS : WARM_UP_DAYS + DAYS]
    assert (lived.report.first_day, lived.report.last_day) == (days[0], days[-1])
    assert lived.report.calls > 5 * DAYS


def test_the_agents_leave_every_kind_of_memory(lived: Lived) -> None:
    counts = Counter((kind, memory["status"]) for kind in KINDS for memory in lived.memories[kind])
    assert counts == {
        ("memory", "superseded"): 1,
        ("memory", "active"): 1,
        ("proposal", "withdrawn"): 8,
        ("risk_note", "resolved"): 1,
        ("risk_note", "active"): 2,
        ("decision", "recorded"): 24,
        ("lesson", "proposed"): 3,
        ("thesis", "open"): 2,
        ("thesis", "closed"): 3,
    }


def test_each_memory_is_by_the_agent_whose_server_wrote_it(lived: Lived) -> None:
    authors = {kind: {memory["agent"] for memory in lived.memories[kind]} for kind in KINDS}
    assert authors["proposal"] == authors["risk_note"] == authors["memory"] == {"researcher"}
    assert authors["decision"] == authors["thesis"] == {"trader"}


def test_every_outcome_in_memory_is_the_one_the_prices_give(lived: Lived, prices: PriceHistory) -> None:
    opens = {(symbol, bar.day): bar.open for symbol, bars in prices.bars.items() for bar in bars}
    for thesis in lived.memories["thesis"]:
        position = read_position(thesis["text"])
        assert all(opens[position.symbol, fill.day] == fill.price for fill in position.fills)
        if thesis["status"] == "closed":
            done, claimed = outcome(position.direction, position.fills), thesis["details"]["outcome"]
            assert (claimed["result"], claimed["pnl"]) == (done.result, str(done.pnl))
            assert (claimed["return_pct"], claimed["exit_price"]) == (
                str(done.return_pct),
                str(done.exit_price),
            )


def test_every_decision_rests_on_a_search_by_the_trader_that_the_ledger_recorded_before_it(
    lived: Lived,
) -> None:
    searches = {entry.subject_id: entry for entry in lived.ledger if entry.event_type == "memory.retrieved"}
    decisions = [entry for entry in lived.ledger if entry.event_type == "decision.recorded"]
    assert len(decisions) == 24
    for decision in decisions:
        assert decision.retrieval_id is not None
        search = searches[decision.retrieval_id]
        assert search.sequence < decision.sequence
        assert (search.agent, search.model_call_id) == ("trader", decision.model_call_id)


def test_what_a_decision_cites_its_searches_had_handed_over(lived: Lived) -> None:
    handed = {
        entry.subject_id: {selected["id"] for selected in json.loads(entry.content)["selected"]}
        for entry in lived.ledger
        if entry.event_type == "memory.retrieved"
    }
    cited = 0
    for decision in lived.memories["decision"]:
        details = decision["details"]
        evidence = details["evidence"]
        if "searched" in evidence:
            seen = handed[details["retrieval_id"]] | handed[evidence["risk_notes_retrieval_id"]]
            assert set(evidence.get("cited_ids", ())) <= seen
            assert set(evidence["searched"]["found"]) == handed[details["retrieval_id"]]
            cited += len(evidence.get("cited_ids", ()))
    assert cited > 0


def test_time_never_runs_backwards_between_the_two_processes(lived: Lived) -> None:
    times = [entry.effective_at for entry in lived.ledger]
    assert times == sorted(times)
    assert [entry.sequence for entry in lived.ledger] == list(range(1, len(times) + 1))


def test_the_screen_explains_one_trade_shows_the_state_and_verifies(lived: Lived) -> None:
    parts = [
        "Why was it made?",
        "On what evidence?",
        "What was searched before?",
        "What came of it?",
        "get_memory_state",
        "deskbook verify",
        str(lived.report.root),
    ]
    places = [lived.printed.index(part) for part in parts[:-1]] + [lived.printed.rindex(parts[-1])]
    assert places == sorted(places)
    explained = next(t for t in lived.memories["thesis"] if t["id"] == lived.report.thesis_id)
    assert explained["details"]["outcome"]["pnl"] in lived.printed


def test_a_second_demo_takes_the_next_run_and_leaves_the_first_alone(tmp_path: Path) -> None:
    first, second = claim_place(tmp_path), claim_place(tmp_path)
    assert first.run != second.run
    assert first.run in first.config.read_text(encoding="utf-8")
    assert second.run in second.config.read_text(encoding="utf-8")


@pytest.mark.parametrize("days", [0, 529])
def test_more_days_than_there_are_prices_for_are_refused_before_anything_is_made(
    tmp_path: Path, days: int
) -> None:
    with pytest.raises(ConfigError, match="1 to 528 days"):
        run_demo(tmp_path / "none", days)
    assert not (tmp_path / "none").exists()


def test_a_root_that_cannot_be_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot write"):
        run_demo(tmp_path / "file", 1)


def test_a_refused_call_stops_the_demo_and_says_which(tmp_path: Path) -> None:
    async def open_a_thesis_as_the_researcher() -> None:
        clock = DemoClock()
        clock.begin(date(2008, 1, 2))
        async with open_desk(claim_place(tmp_path), "researcher", clock) as desk:
            await desk.call("open_thesis", {"text": "Up."}, "test")

    with pytest.raises(BaseExceptionGroup) as caught:
        anyio.run(open_a_thesis_as_the_researcher)
    failures = caught.value.subgroup(DemoFailed)
    assert failures is not None
    assert "open_thesis at 2008-01-02T21:00:01+00:00 failed" in str(failures.exceptions[0])
