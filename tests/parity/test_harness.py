"""configs/harness.py as a user copies it: its example runs, and it is refused where its clock does not belong."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import anyio
import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from conftest import Theatre

CLOSE = datetime(2026, 3, 2, 21, tzinfo=UTC)


async def note(desk: Any) -> None:
    await desk.call("remember", text=f"Closed on {desk.now:%Y-%m-%d}.")


def only(group: BaseExceptionGroup[Any]) -> BaseException:
    """The one error that the task groups wrapped."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        (inner,) = inner.exceptions
    return inner


def failure(act: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseExceptionGroup) as raised:
        act()
    return only(raised.value)


def test_the_example_in_its_docstring_runs_as_it_stands(
    theatre: Theatre, harness: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (harness.__doc__ or "").splitlines()
    example = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ") or not line))
    played: list[tuple[Any, ...]] = []
    monkeypatch.setattr(anyio, "run", lambda *given: played.append(given))
    exec(example, vars(harness) | {"Path": Path, "ZoneInfo": ZoneInfo})
    monkeypatch.undo()
    (_, strategy, server, run, closes), (_, same, desk, times) = played
    assert [given[0] for given in played] == [harness.backtest, harness.live]
    assert (strategy, closes) == (same, times)
    assert (server.config.name, desk.config.name, run) == ("backtest.toml", "desk.toml", "run-1")
    in_run = theatre.backtest(strategy, closes)
    assert theatre.comparable(in_run) == theatre.comparable(theatre.live(strategy, closes))
    decided = [json.loads(entry.content)["text"] for entry in in_run if entry.kind == "decision"]
    assert decided == [f"Skip AAPL on 2026-03-0{day}." for day in (2, 3, 4)]


def test_under_the_machines_own_clock_the_wall_time_stands_in_the_ledger(theatre: Theatre) -> None:
    """No clock is injected here: the harness waits as it does for a user, the server is the shipped one."""
    now = datetime.now(UTC)
    times = [now - timedelta(days=1), now]
    notes = [entry for entry in theatre.wall(note, times) if entry.event_type == "memory.recorded"]
    assert [entry.model_call_id for entry in notes] == [f"trader/{at.isoformat()}" for at in times]
    assert all(now.timestamp() * 1e6 <= entry.effective_at <= entry.recorded_at for entry in notes)


def test_a_time_to_come_is_slept_for_and_one_that_has_passed_is_not(
    harness: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def wait() -> None:
        await harness.wait_until(datetime.max.replace(tzinfo=UTC))
        await harness.wait_until(CLOSE.replace(year=2020))

    monkeypatch.setattr(anyio, "sleep", sleep)
    anyio.run(wait)
    assert slept[0] > timedelta(days=365 * 1000).total_seconds()
    assert slept[1] == 0.0


@pytest.mark.parametrize("play", ["backtest", "live"])
def test_a_naive_time_is_refused_before_any_call(theatre: Theatre, play: str) -> None:
    told = failure(lambda: getattr(theatre, play)(note, [datetime(2026, 3, 2, 16)]))  # noqa: DTZ001
    assert isinstance(told, ValueError)
    assert "2026-03-02T16:00:00+00:00" in str(told)


@pytest.mark.parametrize("moved", [False, True], ids=["time with each call", "advance_clock"])
def test_time_that_runs_backwards_is_refused_by_its_code(
    theatre: Theatre, harness: ModuleType, moved: bool
) -> None:
    told = failure(lambda: theatre.backtest(note, [CLOSE, CLOSE - timedelta(days=1)], moved=moved))
    assert isinstance(told, harness.Refused)
    assert (told.code, told.field, told.stored) == ("clock_error", "now" if moved else "deskbook/now", "no")
    assert "never goes back" in told.hint


def test_a_live_desk_refuses_a_backtest_and_a_backtests_desk_refuses_live(
    theatre: Theatre, harness: ModuleType
) -> None:
    live, simulated = theatre.server("live"), theatre.server("simulated")
    told = failure(lambda: anyio.run(harness.backtest, note, live, "run-1", [CLOSE]))
    assert isinstance(told, harness.Refused)
    assert told.code == "clock_error"
    told = failure(lambda: anyio.run(harness.live, note, simulated, [CLOSE]))
    assert isinstance(told, harness.Refused)
    assert (told.code, told.field) == ("clock_error", "deskbook/run")


@pytest.mark.parametrize("play", ["backtest", "live"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"agent": "tradr"}, 'did you mean "trader"?'),
        ({"config": Path("/nowhere/desk.toml")}, "/nowhere/desk.toml"),
        ({"command": ("/nowhere/deskbook",)}, "/nowhere/deskbook cannot be started: No such file"),
    ],
    ids=["agent", "config", "command"],
)
def test_a_server_that_does_not_start_is_one_plain_error_in_its_own_words(
    theatre: Theatre, harness: ModuleType, play: str, change: dict[str, Any], says: str
) -> None:
    server = replace(theatre.server("simulated" if play == "backtest" else "live"), **change)
    run = ("run-1",) if play == "backtest" else ()
    with pytest.raises(harness.NotStarted) as raised:
        anyio.run(getattr(harness, play), note, server, *run, [CLOSE])
    assert says in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_harness_that_does_not_start_is_one_plain_error_too(theatre: Theatre, harness: ModuleType) -> None:
    trader = theatre.server("simulated")
    with pytest.raises(harness.NotStarted, match="harnes"):
        anyio.run(harness.backtest, note, trader, "run-1", [CLOSE], replace(trader, agent="harnes"))


def test_an_agent_that_may_not_move_the_clock_is_refused(theatre: Theatre, harness: ModuleType) -> None:
    trader = theatre.server("simulated")
    told = failure(lambda: anyio.run(harness.backtest, note, trader, "run-1", [CLOSE], trader))
    assert isinstance(told, harness.Refused)
    assert (told.code, told.retryable) == ("permission_denied", False)
