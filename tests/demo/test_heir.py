"""Act two of the demo: what a live desk wrote today is not there in 2008, and is there today."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from rich.console import Console

from server.demo import heir
from server.demo.carry import KIND_OF, Kept, gather, write_down
from server.demo.desk import AgentDesk, DemoClock, DemoFailed
from server.demo.strategy import ToolCall
from store.clock import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Lived, Notebook

    from server.demo.market import PriceHistory
    from store.entry import Entry

TOPIC = "short breakdown MSFT stormy volatility"


def content(entry: Entry) -> dict[str, Any]:
    return dict(json.loads(entry.content))


def searches(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.event_type == "memory.retrieved"]


def sources(search: Entry) -> list[str | None]:
    return [selected.get("source") for selected in content(search)["selected"]]


def test_the_live_desk_writes_lessons_and_a_memory_of_a_backtest_that_lost_in_no_symbol(lived: Lived) -> None:
    written = {entry.subject_id: entry for entry in lived.live if entry.kind is not None}
    kinds = [entry.kind for entry in written.values()]
    assert {"lesson", "memory"} == set(kinds)
    assert {(entry.agent, entry.run_id) for entry in written.values()} == {("researcher", None)}
    taught = {memory["text"]: memory["id"] for memory in lived.memories["lesson"]}
    for entry in written.values():
        if entry.kind == "lesson":
            origin = content(entry)["outcome"]
            assert (origin["run"], origin["memory_id"]) == (lived.report.run, taught[content(entry)["text"]])


def test_live_memory_takes_the_wall_clock_and_not_a_backtests(lived: Lived, prices: PriceHistory) -> None:
    for entry in lived.live:
        assert entry.effective_at <= entry.recorded_at
        assert format_instant(entry.effective_at)[:10] > max(prices.days).isoformat()


def test_the_second_run_inherits_the_live_ledger_with_all_that_was_written(lived: Lived) -> None:
    begun = content(lived.heir[0])
    assert (begun["inherit"], begun["run"]) == ("live", lived.report.heir.stem)
    assert begun["live_store_id"] == content(lived.live[0])["store_id"]
    assert begun["live_sequence"] == lived.live[-1].sequence


def test_on_its_own_days_the_run_is_shown_nothing_of_live(lived: Lived) -> None:
    (moved,) = [entry for entry in lived.heir if entry.event_type == "clock.advanced"]
    before = [entry for entry in lived.heir if entry.sequence < moved.sequence]
    assert len(searches(before)) > 4 * lived.report.days
    for entry in before:
        shown = content(entry)
        assert shown.get("inherited_cut", 0) == 0
        assert not [item for item in shown.get("selected", shown.get("shown", [])) if "source" in item]


def test_after_the_clock_moved_the_last_search_ranks_over_both_and_took_its_time_from_the_run(
    lived: Lived,
) -> None:
    (moved,) = [entry for entry in lived.heir if entry.event_type == "clock.advanced"]
    last = searches(lived.heir)[-1]
    assert (moved.agent, last.agent) == ("harness", "trader")
    assert last.sequence > moved.sequence
    assert last.effective_at == moved.effective_at
    assert {*sources(last)} == {None, "live"}
    assert content(last)["inherited_cut"] == lived.live[-1].sequence


def test_the_screen_says_which_hit_came_from_live(lived: Lived) -> None:
    shown = sources(searches(lived.heir)[-1])[: heir.HITS_SHOWN]
    _, _, below = lived.printed.partition("ranks over both")
    lines = below.splitlines()[1 : 1 + len(shown)]
    assert [". from live, " in line for line in lines] == [source == "live" for source in shown]
    assert [". own run, 200" in line for line in lines] == [source is None for source in shown]


def test_every_desk_has_a_config_of_its_own_beside_the_others(lived: Lived) -> None:
    configs = (lived.report.config, lived.report.live, lived.report.heir)
    inherits = ['inherit = "none"', 'mode = "live"', 'inherit = "live"']
    assert [line in path.read_text() for line, path in zip(inherits, configs, strict=True)] == [True] * 3
    assert len({path.parent for path in configs}) == 1


def test_what_a_backtest_taught_is_written_once_however_often_it_is_shown(
    prices: PriceHistory, live_through: Callable[[PriceHistory, int], Notebook], notebook: Notebook
) -> None:
    lived = live_through(prices, 120)
    finding = lived.play(gather(TOPIC, "run-1"), "researcher", prices.days[-1])
    assert {call.tool for call in finding} == {"search_memory"}
    notes = taught(lived)
    assert {note.tool for note in notes} == set(KIND_OF)
    first = notebook.play(write_down(notes), "researcher", prices.days[-1])
    again = notebook.play(write_down(notes), "researcher", prices.days[-1])
    assert [call for call in first if call.tool != "search_memory"] == list(notes)
    assert {call.tool for call in again} == {"search_memory"}


def taught(lived: Notebook) -> tuple[ToolCall, ...]:
    turn = gather(TOPIC, "run-1")
    call = next(turn)
    while True:
        try:
            call = turn.send(lived.answer("researcher", call) | {"retrieval_id": "r"})
        except StopIteration as end:
            return tuple(end.value)


class Forged(AgentDesk):
    """A desk that answers by itself: every search with hits of one source, every id as told."""

    def __init__(self, source: str | None, code: str, tmp_path: Path) -> None:
        super().__init__("trader", "run", None, DemoClock(), tmp_path / "log")  # type: ignore[arg-type]
        self.hit = {"id": "les_1", "text": "t", "agent": "a", "effective_at": "2026-01-01T00:00:00Z"}
        self.hit |= {"source": source} if source else {}
        self.code = code

    async def call(self, tool: str, arguments: Any, model_call: str) -> Any:
        return {"retrieval_id": "r", "total": 1, "hits": [self.hit]}

    async def refused(self, tool: str, arguments: Any, model_call: str) -> Any:
        return {"code": self.code}


@pytest.mark.parametrize(("source", "code"), [("live", "not_found"), (None, "store_busy")])
def test_live_memory_shown_on_a_day_of_the_run_fails_the_demo(
    tmp_path: Path, source: str | None, code: str
) -> None:
    desk, known = Forged(source, code, tmp_path), Kept("les_1", "lesson", "t", "2026-01-01", False)
    with pytest.raises(DemoFailed, match="shown live memory of today"):
        anyio.run(heir._ask_before, desk, "2008-12-08", known, TOPIC, Console(file=io.StringIO()))


def test_a_run_that_sees_nothing_of_what_it_inherits_today_fails_the_demo(tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match="sees nothing of the live memory"):
        anyio.run(heir._ask_after, Forged(None, "", tmp_path), TOPIC, Console(file=io.StringIO()))
