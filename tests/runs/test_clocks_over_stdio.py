"""Clock rules at real servers over stdio: what is missing or forbidden is an error, and time never goes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Hands, Server

Serve = Callable[..., "Server"]

LIVE = '[agents.trader]\nprofile = "trader"\n[agents.harness]\nprofile = "harness"\n'
INHERITING = """
[clock]
mode = "simulated"
run = "RUN"
inherit = "live"
[agents.solo]
profile = "solo"
"""
DAY_1, DAY_2, DAY_3 = "2020-03-02T21:00:00Z", "2020-03-03T21:00:00Z", "2020-03-04T21:00:00Z"
CALLS = (
    ("search_memory", {"query": "unicorn"}),
    ("get_memory_state", {}),
    ("get_memory", {"memory_id": "mem_0000000000000"}),
    ("remember", {"text": "unicorn"}),
)
INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?")
COUNT = "SELECT count(*) FROM memory_events"


def advance(server: Server, run: str | None, now: str) -> Any:
    """Call advance_clock, whose argument has the name of a label; its body or the error."""
    meta = {} if run is None else {"deskbook/run": run}
    answer = server.ask("tools/call", meta, name="advance_clock", arguments={"now": now})
    return json.loads(answer["result"]["content"][0]["text"])


def test_a_backtest_that_forgets_time_or_run_is_refused_and_never_given_live_memory(
    serve: Serve, desk_hands: Hands, run: str, era: str
) -> None:
    """P075: no context that could carry the clock is silently replaced by the wall clock."""
    kept = serve(era, config=LIVE).call("remember", text="unicorn of the live desk")
    before = desk_hands.rows(None, COUNT)
    backtest = serve(era)
    for now, named, field in ((DAY_1, None, "run"), (None, run, "now"), (None, None, "run")):
        for tool, arguments in (*CALLS, ("get_memory", {"memory_id": kept["id"]})):
            told = backtest.refused(tool, now, named, **arguments)
            assert (told["code"], told["field"]) == ("clock_error", f"deskbook/{field}"), (tool, told)
        answer = backtest.read("memory://state", now, named)
        assert answer["error"]["data"]["code"] == "clock_error"
    assert "of the live desk" not in "".join(backtest.heard)
    assert not desk_hands.path(run).exists()
    assert backtest.call("search_memory", DAY_1, run, query="unicorn")["total"] == 0
    assert desk_hands.rows(None, COUNT) == before


def test_a_time_or_run_as_an_argument_is_refused_in_a_backtest_and_live(
    serve: Serve, run: str, era: str
) -> None:
    """P075, P085: a call's time is never an argument, so no model can set it."""
    for server, label in ((serve(era), (DAY_1, run)), (serve(era, config=LIVE), (None, None))):
        for name in ("now", "run", "effective_at", "event_time", "timestamp"):
            told = server.refused("remember", *label, text="x", **{name: DAY_1})
            assert (told["code"], told["stored"]) == ("invalid_input", "no")
            assert name in told["message"]


def test_a_live_client_that_sends_a_time_or_a_run_is_refused(
    serve: Serve, desk_hands: Hands, era: str
) -> None:
    live = serve(era, config=LIVE)
    live.call("remember", text="unicorn")
    before = desk_hands.rows(None, "SELECT count(*) FROM memory_versions")
    for now, run, field in ((DAY_1, None, "deskbook/now"), (None, "any", "deskbook/run")):
        for tool, arguments in CALLS:
            told = live.refused(tool, now, run, **arguments)
            assert (told["code"], told["field"], told["stored"]) == ("clock_error", field, "no")
        assert live.read("memory://state", now, run)["error"]["data"]["code"] == "clock_error"
    assert desk_hands.rows(None, "SELECT count(*) FROM memory_versions") == before
    assert not desk_hands.path("any").exists()


@pytest.mark.parametrize(("variable", "value"), [("DESKBOOK_NOW", DAY_1), ("DESKBOOK_RUN", "r")])
def test_a_live_server_with_a_time_or_a_run_in_its_environment_serves_no_call(
    serve: Serve, variable: str, value: str
) -> None:
    live = serve("handshake" if variable == "DESKBOOK_NOW" else "modern", config=None, **{variable: value})
    for tool, arguments in CALLS:
        told = live.refused(tool, **arguments)
        assert (told["code"], told["field"]) == ("clock_error", variable)


def test_a_backtest_takes_time_and_run_from_its_environment(
    serve: Serve, desk_hands: Hands, run: str
) -> None:
    server = serve("modern", DESKBOOK_NOW=DAY_1, DESKBOOK_RUN=run)
    assert server.call("remember", text="unicorn")["effective_at"] == DAY_1
    assert server.call("remember", DAY_2, text="the call's own time wins")["effective_at"] == DAY_2
    told = server.refused("remember", text="the environment's lies behind now")
    assert (told["code"], told["field"]) == ("clock_error", "DESKBOOK_NOW")
    assert len(desk_hands.rows(run, "SELECT 1 FROM memory_versions")) == 2


def test_a_fixed_run_needs_no_name_and_takes_no_other(
    serve: Serve, desk_hands: Hands, run: str, era: str
) -> None:
    server = serve(era, "solo", INHERITING.replace("RUN", run))
    assert server.call("remember", DAY_1, text="unicorn")["effective_at"] == DAY_1
    assert server.call("remember", DAY_1, run, text="unicorn")["effective_at"] == DAY_1
    told = server.refused("remember", DAY_1, "another", text="unicorn")
    assert (told["code"], told["field"]) == ("clock_error", "deskbook/run")
    assert not desk_hands.path("another").exists()


def test_a_harness_moves_the_clock_for_every_process_and_never_back(
    serve: Serve, desk_hands: Hands, run: str, era: str
) -> None:
    harness, trader, other = serve(era, "harness"), serve(era, "trader"), serve(era, "researcher")
    assert trader.refused("remember", None, run, text="before any time")["code"] == "clock_error"
    moved = advance(harness, run, DAY_1)
    assert (moved["effective_at"], moved["status"]) == (DAY_1, "advanced")
    assert trader.call("remember", None, run, text="unicorn")["effective_at"] == DAY_1
    assert other.call("search_memory", None, run, query="unicorn")["total"] == 1
    assert other.call("get_memory_state", None, run)["as_of"] == DAY_1
    resource = other.read("memory://state", None, run)["result"]["contents"][0]["text"]
    assert json.loads(resource)["as_of"] == DAY_1
    assert advance(harness, run, DAY_1)["effective_at"] == DAY_1  # equal times are no step back
    assert advance(harness, run, DAY_3)["effective_at"] == DAY_3
    back = advance(harness, run, DAY_2)
    assert (back["code"], back["field"], back["stored"]) == ("clock_error", "now", "no")
    assert DAY_2 in back["message"]
    assert DAY_3 in back["message"]
    told = trader.refused("remember", DAY_2, run, text="behind the advanced clock")
    assert (told["code"], told["field"]) == ("clock_error", "deskbook/now")
    assert trader.call("remember", None, run, text="with it")["effective_at"] == DAY_3
    advanced = desk_hands.rows(run, "SELECT agent FROM memory_events WHERE event_type = 'clock.advanced'")
    assert advanced == [("harness",)] * 3


def test_a_call_with_a_later_time_leaves_the_advanced_clock_behind(serve: Serve, run: str, era: str) -> None:
    harness, trader = serve(era, "harness"), serve(era, "trader")
    advance(harness, run, DAY_1)
    trader.call("remember", DAY_1, run, text="the same instant")
    trader.call("remember", DAY_2, run, text="ahead of the advanced clock")
    for tool, arguments in CALLS:
        told = trader.refused(tool, None, run, **arguments)
        assert told["code"] == "clock_error"
        assert DAY_1 in told["message"]
        assert DAY_2 in told["message"]
    advance(harness, run, DAY_2)
    assert trader.call("remember", None, run, text="together again")["effective_at"] == DAY_2


def test_only_the_harness_of_a_backtest_has_the_clock(
    serve: Serve, desk_hands: Hands, run: str, era: str
) -> None:
    assert "advance_clock" in serve(era, "harness").tools()
    for agent in ("trader", "researcher"):
        server = serve(era, agent)
        assert "advance_clock" not in server.tools()
        assert advance(server, run, DAY_1)["code"] == "permission_denied"
    live = serve(era, "harness", LIVE)
    assert "advance_clock" not in live.tools()
    assert advance(live, None, DAY_1)["code"] == "permission_denied"
    advanced = desk_hands.rows(None, "SELECT 1 FROM memory_events WHERE event_type = 'clock.advanced'")
    assert advanced == []


def test_a_time_without_an_offset_is_refused_with_the_right_form_shown(serve: Serve, run: str) -> None:
    server, harness = serve("modern"), serve("modern", "harness")
    for naive in ("2020-03-02T21:00:00", "2020-03-02", "03/02/2020 21:00", "yesterday", "1583182800"):
        for told in (server.refused("remember", naive, run, text="x"), advance(harness, run, naive)):
            assert told["code"] == "invalid_input"
            assert "2026-03-02T14:30:00Z" in told["hint"]
        assert server.refused("search_memory", DAY_1, run, as_of=naive)["field"] == "as_of"


def every_reply(server: Server, note: str) -> None:
    """Call every tool, resource and prompt, also wrongly; what was heard stays with the server."""
    thesis = server.call("open_thesis", DAY_2, text="unicorn thesis", symbol="AAPL", review_by=DAY_1)["id"]
    server.call("open_thesis", DAY_2, text="another", symbol="AAPL")
    lesson = server.call("remember_lesson", DAY_2, text="unicorn lesson", outcome='{"pnl": 1}')["id"]
    first = {"query": "unicorn", "response_format": "detailed", "limit": 1}
    found = server.call("search_memory", DAY_2, **first)
    decision = {"text": "d", "action": "buy", "retrieval_id": found["retrieval_id"], "thesis_id": thesis}
    for tool, arguments in (
        ("remember", {"text": "superseding", "supersedes": note}),
        ("remember_proposal", {"text": "unicorn", "action": "buy"}),
        ("remember_risk_note", {"text": "unicorn"}),
        ("remember_decision", decision),
        ("update_thesis", {"thesis_id": thesis, "text": "again"}),
        ("flag_memory", {"memory_id": thesis, "reason": "wrong"}),
        ("close_thesis", {"thesis_id": thesis, "result": "win"}),
        ("resolve_memory", {"memory_id": lesson, "status": "retired"}),
        ("search_memory", {"query": "unicorn", "response_format": "detailed"}),
        ("search_memory", {**first, "cursor": found["cursor"]}),
        ("search_memory", {"as_of": DAY_1}),
        ("get_memory", {"memory_id": thesis}),
        ("get_memory", {"memory_id": note, "as_of": DAY_1}),
        ("get_memory_state", {}),
    ):
        server.call(tool, DAY_3, **arguments)
    for tool, arguments in (
        ("close_thesis", {"thesis_id": thesis, "result": "loss"}),
        ("get_memory", {"memory_id": "mem_0000000000000"}),
        ("remember", {"text": ""}),
        ("remember", {"text": "x", "expires_at": DAY_1}),
        ("nothing", {}),
    ):
        server.refused(tool, DAY_3, **arguments)
    server.refused("get_memory_state", DAY_1)
    for uri in ("memory://state", f"memory://memory/{note}", f"memory://thesis/{thesis}", "memory://nothing"):
        server.read(uri, DAY_3)
    prompts = (("decision_journal", {"symbol": "AAPL"}), ("review_open_thesis", {"thesis_id": thesis}))
    for name, arguments in prompts:
        server.ask("prompts/get", {"deskbook/now": DAY_3}, name=name, arguments=arguments)
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        server.ask(method)


def test_in_a_run_no_reply_shows_the_wall_clock(serve: Serve, run: str, era: str) -> None:
    """Not where the run inherits a live ledger written today, and not in an error; hints show a fixed example."""
    serve(era, config=LIVE).call("remember", text="unicorn of today")
    server = serve(era, "solo", INHERITING.replace("RUN", run))
    every_reply(server, server.call("remember", DAY_1, text="unicorn", symbol="AAPL")["id"])
    heard = "".join(server.heard)
    assert "unicorn of today" not in heard
    assert "recorded_at" not in heard
    assert set(INSTANT.findall(heard)) - {"2026-03-02T14:30:00Z"} == {DAY_1, DAY_2, DAY_3}
