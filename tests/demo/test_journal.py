"""What orders, positions and lessons go through in act one, at real servers, as tools and the ledger tell it."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from rich.console import Console

from server.demo.book import read_position
from server.demo.checks import STORY, check_story, command
from server.demo.live import run_live
from server.demo.place import HARNESS, TRADER, DemoPlace
from store import Book
from store.rows import EntryFilter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conftest import Lived

    from server.demo.market import PriceHistory

pytestmark = pytest.mark.slow


def outcomes(order: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What was recorded of an order, in order: agent, certainty, standing."""
    return [
        (entry["agent"], entry["content"]["certainty"], entry["content"]["standing"])
        for entry in order["history"]
        if entry["event"] == "order.outcome"
    ]


def test_every_order_was_journalled_before_the_broker_answered_and_has_an_outcome(lived: Lived) -> None:
    assert len(lived.orders) > 10
    for order in lived.orders:
        events = [entry["event"] for entry in order["history"]]
        assert events[0] == "order_action.recorded"
        first = outcomes(order)[0]
        assert first[0] == TRADER
        assert first[1] in {"acknowledged", "rejected", "unknown"}
        assert len(order["memory"]["text"]) >= 200


def test_the_trader_only_claims_and_every_fill_is_observed_by_the_harness(lived: Lived) -> None:
    told = [outcome for order in lived.orders for outcome in outcomes(order)]
    assert {(agent, standing) for agent, _, standing in told} == {
        (TRADER, "claim"),
        (HARNESS, "observed"),
    }
    assert {agent for agent, certainty, _ in told if certainty == "filled"} == {HARNESS}


def test_an_order_without_an_answer_stays_unknown_until_the_harness_reconciles_it(lived: Lived) -> None:
    unknown = [order for order in lived.orders if outcomes(order)[0][1] == "unknown"]
    assert len(unknown) == 2
    for order in unknown:
        assert outcomes(order) == [
            (TRADER, "unknown", "claim"),
            (HARNESS, "acknowledged", "observed"),
            (HARNESS, "filled", "observed"),
        ]
        first, second = [e["effective_at"][:10] for e in order["history"] if e["event"] == "order.outcome"][
            :2
        ]
        assert first < second
        name = order["memory"]["details"]["client_order_id"]
        assert (
            f"{name}: the broker did not answer, so it stayed unknown and list_unreconciled" in lived.printed
        )
    assert lived.waiting == []
    assert lived.state["unreconciled_orders"] == []


def test_an_order_that_skipped_its_search_is_warned_about_and_no_other_is(lived: Lived) -> None:
    warnings = [
        json.loads(entry.content) | {"order": entry.subject_id}
        for entry in lived.ledger
        if entry.event_type == "warning"
    ]
    unseen = [w for w in warnings if w["code"] == "position_order_without_memory_thesis"]
    alarms = {
        order["memory"]["id"]
        for order in lived.orders
        if str(order["memory"]["details"]["client_order_id"]).endswith("-alarm")
    }
    assert {warning["order"] for warning in unseen} == alarms
    assert alarms
    theses = {memory["id"] for memory in lived.memories["thesis"]}
    assert all(set(warning["related"]) <= theses and warning["related"] for warning in unseen)
    assert "position_order_without_memory_thesis" in lived.printed


def test_a_lesson_is_validated_by_fills_that_the_harness_observed(lived: Lived) -> None:
    judged = [lesson for lesson in lived.memories["lesson"] if lesson["details"].get("tally")]
    validated = [lesson for lesson in judged if lesson["status"] == "validated"]
    assert validated
    events = {entry.event_id: entry for entry in lived.ledger}
    for lesson in judged:
        for name in lesson["details"]["outcome_ids"]:
            fill = json.loads(events[name].content)
            assert (events[name].agent, fill["standing"], fill["certainty"]) == (
                HARNESS,
                "observed",
                "filled",
            )
    assert {lesson["id"] for lesson in lived.state["validated_lessons"]} == {v["id"] for v in validated}


def test_positions_theses_and_the_brokers_fills_say_the_same(lived: Lived, prices: PriceHistory) -> None:
    reports = [entry for entry in lived.ledger if entry.event_type == "positions.reported"]
    held = {row["symbol"]: int(row["quantity"]) for row in json.loads(reports[-1].content)["positions"]}
    assert lived.state["held_symbols"] == sorted(held)
    filled: dict[str, int] = {}
    for order in lived.orders:
        details = order["memory"]["details"]
        if details.get("order", {}).get("status") == "filled":
            sign = 1 if details["side"].startswith("buy") else -1
            symbol = order["memory"]["symbol"]
            filled[symbol] = filled.get(symbol, 0) + sign * int(details["order"]["filled_quantity"])
    assert {symbol: shares for symbol, shares in filled.items() if shares} == held
    positions = [read_position(m["text"]) for m in lived.memories["thesis"] if m["status"] == "open"]
    assert {p.symbol: p.shares * (1 if p.direction == "long" else -1) for p in positions if p.shares} == held


def test_each_report_carries_the_days_close_and_the_average_cost(lived: Lived, prices: PriceHistory) -> None:
    closes = {(symbol, str(bar.day)): bar.close for symbol, bars in prices.bars.items() for bar in bars}
    reports = [entry for entry in lived.ledger if entry.event_type == "positions.reported"]
    days = [str(day) for day in prices.days]
    assert reports
    for entry in reports:
        day = days[0]
        for row in json.loads(entry.content)["positions"]:
            day = next(
                d for d in days if closes[row["symbol"], d] == json_number(row["last_price"]) and d >= day
            )
            assert json_number(row["market_value"]) == json_number(row["last_price"]) * int(row["quantity"])
            assert json_number(row["average_cost"]) > 0


def json_number(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def test_explain_names_the_search_the_thesis_the_intent_and_the_outcome(lived: Lived) -> None:
    where = DemoPlace(lived.report.root, lived.report.run)
    for name in (lived.report.thesis_id, lived.report.action_id):
        told = json.loads(anyio.run(command, where, "explain", name, "--json")[0])
        assert set(STORY) <= {step["event"] for step in told["steps"]}
        check_story(name, told["steps"])


def test_the_live_demo_plays_the_same_days_on_the_wall_clock(tmp_path: Path) -> None:
    screen = io.StringIO()
    report = run_live(tmp_path, 14, Console(file=screen, width=200), pace=0.0)
    printed = screen.getvalue()
    parts = [
        "on the wall clock",
        "Orders, each",
        "deskbook explain",
        "get_memory_state",
        "deskbook verify\n  sound",
    ]
    places = [printed.index(part) for part in parts]
    assert places == sorted(places)
    book = Book.open(report.root, report.strategy, None, create=False)
    try:
        ledger = book.log(EntryFilter(limit=10_000))
    finally:
        book.close()
    assert {entry.run_id for entry in ledger} == {None}
    assert all(entry.effective_at <= entry.recorded_at for entry in ledger)
    agents = {entry.agent for entry in ledger if entry.kind is not None}
    assert agents == {"researcher", TRADER, HARNESS}
    withdrawn = [entry for entry in ledger if entry.event_type == "memory.status_changed"]
    assert withdrawn  # yesterday's proposals, told apart by the evening and not by the date


def test_a_live_demo_without_an_order_explains_none_and_still_verifies(tmp_path: Path) -> None:
    screen = io.StringIO()
    report = run_live(tmp_path, 1, Console(file=screen, width=200), pace=0.0)
    assert (report.explained is None) == ("deskbook explain" not in screen.getvalue().split("Done")[0])
    assert "sound" in screen.getvalue()
