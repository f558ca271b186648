"""Act one of the demo as a user runs it: real server processes, real clients, one ledger."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from rich.console import Console
from typer.testing import CliRunner

from server.cli import app
from server.demo import DEFAULT_DAYS, LIVE_DAYS, checks, desk, live, place, run
from server.demo.book import outcome, read_position
from server.demo.desk import DemoFailed
from server.demo.place import DemoPlace, claim_place
from server.demo.run import run_demo
from server.demo.strategy import WARM_UP_DAYS
from store.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conftest import Lived

    from server.demo.market import PriceHistory

pytestmark = pytest.mark.slow

DAYS, SKIPPED = 40, 200


def is_alarm(order: Mapping[str, Any]) -> bool:
    return str(order["memory"]["details"]["client_order_id"]).endswith("-alarm")


def test_the_demo_lives_through_the_days_asked_for(lived: Lived, prices: PriceHistory) -> None:
    days = prices.days[WARM_UP_DAYS + SKIPPED :][: lived.report.days]
    assert len(days) == DAYS
    assert (lived.report.first_day, lived.report.last_day) == (days[0], days[-1])
    assert lived.report.calls > 10 * lived.report.days


def test_the_agents_leave_every_kind_of_memory(lived: Lived) -> None:
    found = {(kind, memory["status"]) for kind, some in lived.memories.items() for memory in some}
    assert found >= {
        ("memory", "active"),
        ("proposal", "withdrawn"),
        ("risk_note", "active"),
        ("decision", "recorded"),
        ("lesson", "proposed"),
        ("lesson", "validated"),
        ("lesson", "contradicted"),
        ("thesis", "closed"),
    }
    assert len(lived.memories["decision"]) == 18


def test_each_memory_is_by_the_agent_whose_server_wrote_it(lived: Lived) -> None:
    authors = {kind: {memory["agent"] for memory in found} for kind, found in lived.memories.items()}
    assert authors["proposal"] == authors["risk_note"] == authors["memory"] == {"researcher"}
    assert authors["decision"] == authors["thesis"] == {"trader"}


def test_every_outcome_in_memory_is_the_one_the_prices_give(lived: Lived, prices: PriceHistory) -> None:
    opens = {(symbol, bar.day): bar.open for symbol, bars in prices.bars.items() for bar in bars}
    for thesis in lived.memories["thesis"]:
        position = read_position(thesis["text"])
        assert all(opens[position.symbol, fill.day] == fill.price for fill in position.fills)
        if thesis["status"] == "closed" and position.fills:
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
    # An alarm's order is journalled without a search, and its decision with it.
    alarms = {order["memory"]["details"]["decision_id"] for order in lived.orders if is_alarm(order)}
    assert {decision.subject_id for decision in decisions if decision.retrieval_id is None} == alarms
    for decision in decisions:
        if decision.retrieval_id is None:
            continue
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
        evidence = details.get("evidence", {})
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


def test_the_screen_explains_one_trade_shows_the_state_and_checks_both_runs(lived: Lived) -> None:
    first, second = lived.report.run, lived.report.heir.stem
    parts = [
        "Act one",
        "Orders, each written down before the broker was called",
        "From memory: ",
        "deskbook explain ths_",
        "searched for",
        "thesis.opened",
        "intended to submit",
        "outcome",
        "get_memory_state",
        "The broker holds ",
        f"deskbook leaks {first}\n  no leak: ",
        f"deskbook verify --run {first}\n  sound: ",
        "Act two",
        "memory of today does not exist",
        "ranks over both",
        f"deskbook leaks {second}\n  no leak: ",
        f"deskbook verify --run {second}\n  sound: ",
        f"The store stays in {lived.report.root}",
    ]
    place_of = 0
    for part in parts:
        place_of = lived.printed.index(part, place_of)
    explained = next(t for t in lived.memories["thesis"] if t["id"] == lived.report.thesis_id)
    assert explained["details"]["outcome"]["pnl"] in lived.printed


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ("demo", DEFAULT_DAYS)),
        (["--days", "7"], ("demo", 7)),
        (["--live"], ("live", LIVE_DAYS)),
        (["--live", "--days", "7"], ("live", 7)),
    ],
)
def test_the_command_lives_through_the_default_number_of_days_unless_told(
    monkeypatch: pytest.MonkeyPatch, words: list[str], asked: tuple[str, int]
) -> None:
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(run, "run_demo", lambda root, days: told.append(("demo", days)))
    monkeypatch.setattr(live, "run_live", lambda root, days: told.append(("live", days)))
    done = CliRunner().invoke(app, ["demo", *words])
    assert (done.exit_code, told) == (0, [asked])


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


def test_a_refused_call_stops_the_demo_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = place.config_text
    monkeypatch.setattr(place, "config_text", lambda where: honest(where).replace('"trader"', '"researcher"'))
    with pytest.raises(
        DemoFailed, match=r"trader's open_thesis at 2007-12-07T21:00:\d\d\+00:00 failed"
    ) as failed:
        run_demo(tmp_path, DAYS, Console(file=io.StringIO()))
    assert "permission_denied" in failed.value.message


def test_a_server_that_does_not_start_stops_the_demo_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        desk, "serve_arguments", lambda where, agent: ["-c", "raise SystemExit('no disk left')"]
    )
    with pytest.raises(DemoFailed, match="harness's server is lost") as failed:
        run_demo(tmp_path, DAYS, Console(file=io.StringIO()))
    assert "no disk left" in failed.value.message


def faulting(monkeypatch: pytest.MonkeyPatch, check: str) -> None:
    """Let one command find something wrong."""
    honest = desk.command_arguments

    def faulted(where: DemoPlace, *words: str) -> list[str]:
        faults = words[0] == check
        return ["-c", "raise SystemExit('entry 7 was edited')"] if faults else honest(where, *words)

    monkeypatch.setattr(checks, "command_arguments", faulted)


@pytest.mark.parametrize("check", ["leaks", "verify"])
def test_a_check_that_finds_something_fails_and_shows_it(
    lived: Lived, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    faulting(monkeypatch, check)
    where = DemoPlace(lived.report.root, lived.report.run)
    with pytest.raises(DemoFailed, match=rf"deskbook {check}.* exited with 1:\n  entry 7 was edited"):
        anyio.run(checks.check_run, where, Console(file=io.StringIO()))


def test_a_backtest_that_leaks_fails_the_demo_before_act_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulting(monkeypatch, "leaks")
    screen = io.StringIO()
    with pytest.raises(DemoFailed, match="leaks"):
        run_demo(tmp_path, DAYS, Console(file=screen))
    assert "Act two" not in screen.getvalue()
    assert "Done" not in screen.getvalue()


def test_a_demo_too_short_for_a_closed_trade_says_so(tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match="no closed trade"):
        run_demo(tmp_path, 3, Console(file=io.StringIO()))


def test_the_commands_it_ends_with_work_as_they_stand(lived: Lived) -> None:
    commands = [line.strip() for line in lived.printed.splitlines() if "--config " in line]
    assert len(commands) == 12
    for command in commands:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.strip()
