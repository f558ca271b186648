from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import pytest

from server.demo.book import Fill, Order, Position, outcome, read_position
from server.demo.broker import Broker
from server.demo.lessons import lesson_text, pattern_text, read_experience, speaks_against
from server.demo.market import MarketView, PriceHistory
from server.demo.researcher import researcher_turn
from server.demo.rules import plan, reason_to_leave, trailed_stop, weigh
from server.demo.strategy import Setup, ToolCall, find_setup, volatility_band
from server.demo.trader import trader_turn

Notebook: TypeAlias = Any  # the class of that name in conftest.py, which tests do not import
Living: TypeAlias = Callable[[PriceHistory, int], Notebook]
BREAKDOWN_DAY = date(2008, 1, 16)  # AAPL and MSFT close under their 20-day lows


def view_of(prices: PriceHistory, day: date) -> MarketView:
    return prices.view(prices.days.index(day))


def of(calls: list[ToolCall], tool: str) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in calls if call.tool == tool]


def setup_on(prices: PriceHistory, symbol: str, day: date) -> Setup:
    setup = find_setup(view_of(prices, day), symbol)
    assert setup is not None
    return setup


def lesson(text: str, day: str, memory_id: str = "lesson-1") -> dict[str, Any]:
    told = {"id": memory_id, "text": text, "symbol": "AAPL", "status": "proposed"}
    return told | {"effective_at": f"{day}T21:00:00Z"}


LOST = "Lost 6.95% on a short breakdown in AAPL, stormy volatility. In at ... . Leave it."


def test_a_setup_is_a_close_outside_the_range_with_the_trend_on_its_first_day_only(
    prices: PriceHistory,
) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    assert (setup.direction, setup.name, setup.band) == ("short", "breakdown", "stormy")
    assert setup.evidence["close"] == Decimal("159.64")
    assert setup.evidence["range_level"] == Decimal("164.66")
    assert find_setup(view_of(prices, date(2008, 1, 15)), "AAPL") is None
    assert find_setup(view_of(prices, date(2008, 1, 17)), "AAPL") is None


@pytest.mark.parametrize(("annual", "band"), [(0.29, "calm"), (0.30, "elevated"), (0.50, "stormy")])
def test_volatility_is_named_in_three_bands(annual: float, band: str) -> None:
    assert volatility_band(annual) == band


def test_the_researcher_searches_before_it_proposes(prices: PriceHistory, notebook: Notebook) -> None:
    calls = notebook.play(researcher_turn(view_of(prices, BREAKDOWN_DAY)), "researcher", BREAKDOWN_DAY)
    names = [call.tool for call in calls]
    proposals = of(calls, "remember_proposal")
    assert [(p["symbol"], p["action"]) for p in proposals] == [("AAPL", "sell"), ("MSFT", "sell")]
    assert names[names.index("remember_proposal") - 1] == "search_memory"
    assert "159.64" in proposals[0]["text"]
    assert "No lesson on it so far." in proposals[0]["text"]


def test_the_researcher_warns_once_and_resolves_its_warning_when_the_danger_is_over(
    prices: PriceHistory, live_through: Living
) -> None:
    notebook = live_through(prices, 250)
    notes = [memory for memory in notebook.memories.values() if memory["kind"] == "risk_note"]
    assert {memory["status"] for memory in notes} == {"active", "resolved"}
    standing = Counter((m["symbol"], m["text"].split(" risk")[0]) for m in notes if m["status"] == "active")
    assert max(standing.values()) == 1


def test_the_researcher_repeats_what_lessons_say_in_its_proposal(
    prices: PriceHistory, notebook: Notebook
) -> None:
    notebook.day = date(2008, 1, 8)
    notebook.add("lesson", "proposed", "trader", {"text": LOST, "symbol": "AAPL"})
    calls = notebook.play(researcher_turn(view_of(prices, BREAKDOWN_DAY)), "researcher", BREAKDOWN_DAY)
    assert "Lessons so far: 2008-01-08: Lost 6.95%" in of(calls, "remember_proposal")[0]["text"]


def test_a_setup_that_memory_says_nothing_about_is_traded_in_full(prices: PriceHistory) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    assert weigh(setup, BREAKDOWN_DAY, [], []).size == 1


def test_an_active_risk_note_halves_the_trade_and_is_cited(prices: PriceHistory) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    note = {
        "id": "note-1",
        "symbol": "AAPL",
        "text": "Volatility risk in AAPL: 61%. Half size.",
        "status": "active",
    }
    other = note | {"id": "note-2", "symbol": "IBM"}
    verdict = weigh(setup, BREAKDOWN_DAY, [note, other], [])
    assert (verdict.size, verdict.cited) == (Decimal("0.5"), ("note-1",))
    assert verdict.because == ("Volatility risk in AAPL: 61%",)


def test_the_same_trade_is_skipped_for_120_days_after_it_was_lost(prices: PriceHistory) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    recent, old = lesson(LOST, "2007-09-19"), lesson(LOST, "2007-09-17")
    assert weigh(setup, BREAKDOWN_DAY, [], [recent]).size == 0
    assert weigh(setup, BREAKDOWN_DAY, [], [recent]).cited == ("lesson-1",)
    assert weigh(setup, BREAKDOWN_DAY, [], [old]).size == 1


@pytest.mark.parametrize(
    "text",
    [
        LOST.replace("Lost", "Won"),
        LOST.replace("AAPL", "IBM"),
        LOST.replace("short breakdown", "long breakout"),
        LOST.replace("stormy", "calm"),
        "Never trade on Mondays.",
    ],
)
def test_a_lesson_about_another_trade_does_not_stop_this_one(prices: PriceHistory, text: str) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    assert weigh(setup, BREAKDOWN_DAY, [], [lesson(text, "2008-01-10")]).size == 1


def test_a_pattern_against_the_conditions_halves_the_trade(prices: PriceHistory) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    past = read_experience(lesson(LOST, "2008-01-08"))
    assert past is not None
    pattern = lesson(pattern_text(past.conditions, [past, past, past]), "2008-01-09", "lesson-2")
    assert "lost 3 of 3 times, -20.85% in sum" in pattern["text"]
    assert speaks_against(pattern, past.conditions)
    verdict = weigh(setup, BREAKDOWN_DAY, [], [pattern])
    assert (verdict.size, verdict.cited) == (Decimal("0.5"), ("lesson-2",))


def test_a_trade_risks_a_thousand_dollars_to_its_stop_and_half_of_it_at_half_size(
    prices: PriceHistory,
) -> None:
    view = view_of(prices, BREAKDOWN_DAY)
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    full, half = plan(view, setup, Decimal(1)), plan(view, setup, Decimal("0.5"))
    assert full is not None
    assert half is not None
    (position, shares), (_, fewer) = full, half
    assert (shares, fewer) == (63, 31)
    assert Decimal(980) < 63 * (position.stop - Decimal("159.64")) <= Decimal(1000)
    assert position.stop > Decimal("159.64") > position.target
    assert plan(view, setup, Decimal("0.001")) is None


def calm_broker() -> Broker:
    """One that answers every order of these tests."""
    return Broker("broker-0")


def test_the_trader_searches_opens_a_thesis_decides_reads_it_back_and_journals_before_the_broker_is_called(
    prices: PriceHistory, notebook: Notebook
) -> None:
    view, broker = view_of(prices, BREAKDOWN_DAY), calm_broker()
    notebook.play(researcher_turn(view), "researcher", view.day)
    calls = notebook.play(trader_turn(view, broker), "trader", view.day)
    opened = [i for i, call in enumerate(calls) if call.tool == "open_thesis"]
    assert len(opened) == 2
    for index in opened:
        assert [call.tool for call in calls[index - 1 : index + 6]] == [
            "search_memory",
            "open_thesis",
            "remember_decision",
            "get_memory",
            "record_order_intent",
            "record_order_outcome",
            "update_thesis",
        ]
        searched, decision, intent = (calls[index + step].arguments for step in (-1, 1, 3))
        assert searched["kind"] == "lesson"
        assert decision["action"] == "sell"
        assert intent["thesis_id"] == decision["thesis_id"] in notebook.memories
        assert notebook.memories[intent["decision_id"]]["text"] == decision["text"]
        assert (intent["side"], intent["order_type"]) == ("sell_short", "market")
        evidence = json.loads(decision["evidence"])
        assert evidence["proposal_id"] in notebook.memories
        assert Decimal(evidence["close"]) == view.today(decision["symbol"]).close
        waiting = broker.find(intent["client_order_id"])
        assert waiting is not None
        assert calls[index + 4].arguments["broker_order_id"] == waiting.broker_order_id
    risky = next(m for m in notebook.memories.values() if m["kind"] == "thesis" and m["symbol"] == "AAPL")
    order = read_position(risky["text"]).order
    assert order is not None
    assert (order.side, order.shares) == ("sell", 31)  # halved: AAPL carries two risk notes
    assert notebook.memories[order.action_id]["status"] == "acknowledged"


def held(prices: PriceHistory, day: date = BREAKDOWN_DAY) -> Position:
    planned = plan(view_of(prices, day), setup_on(prices, "AAPL", day), Decimal(1))
    assert planned is not None
    ordered = replace(planned[0], order=Order("sell", planned[1], "act_1"))
    return ordered.filled(date(2008, 1, 17), Decimal("161.51"))


def test_a_trade_ends_at_its_stop_at_its_target_or_when_its_time_is_over(prices: PriceHistory) -> None:
    position = held(prices)
    later = view_of(prices, date(2008, 1, 18))  # close 161.36
    assert reason_to_leave(later, position) is None
    assert (
        reason_to_leave(later, replace(position, stop=Decimal("161.36")))
        == "close 161.36 broke the stop 161.36"
    )
    near = replace(position, target=Decimal("161.36"))
    assert reason_to_leave(later, near) == "close 161.36 reached the target 161.36"
    assert reason_to_leave(later, replace(position, horizon=1)) == "1 trading days are over at 161.36"


def test_a_trailed_stop_never_moves_back(prices: PriceHistory) -> None:
    position = held(prices)
    start = prices.days.index(date(2008, 1, 17))
    stops = [position.stop]
    for index in range(start, start + 30):
        position = replace(position, stop=trailed_stop(prices.view(index), position))
        stops.append(position.stop)
    assert stops == sorted(stops, reverse=True)
    assert stops[-1] < stops[0]


def test_a_fresh_risk_note_on_a_held_symbol_gives_back_half(prices: PriceHistory, notebook: Notebook) -> None:
    day = date(2008, 1, 18)
    notebook.day = day
    thesis = notebook.add("thesis", "open", "trader", {"text": held(prices).text(), "symbol": "AAPL"})
    notebook.add(
        "risk_note", "active", "researcher", {"text": "Event risk in AAPL: results.", "symbol": "AAPL"}
    )
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    decision, intent = of(calls, "remember_decision")[0], of(calls, "record_order_intent")[0]
    assert (decision["action"], decision["thesis_id"]) == ("reduce", thesis["id"])
    assert (intent["side"], intent["quantity"]) == ("buy_to_cover", "31")
    assert "Event risk in AAPL: results" in intent["reason"]
    order = read_position(thesis["text"]).order
    assert order is not None
    assert (order.side, order.shares) == ("buy", 31)
    assert thesis["version"] == 2


def ordered(notebook: Notebook, position: Position, *told: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A thesis of the position whose waiting order is in the journal, with what was recorded of it."""
    assert position.order is not None
    given = {"text": "why", "reason": "w" * 200, "client_order_id": "a", "symbol": "AAPL"}
    action = notebook.order("trader", "record_order_intent", given)
    for certainty, known in told:
        agent = "harness" if certainty == "filled" else "trader"
        notebook.outcome(agent, {"action_id": action["id"], "certainty": certainty, **known})
    position = replace(position, order=replace(position.order, action_id=action["id"]))
    return dict(
        notebook.add("thesis", "open", "trader", {"text": position.text(), "symbol": "AAPL"})
        | {"action_id": action["id"]}
    )


FILLED = {"average_price": "119.97", "filled_quantity": "63"}


def leaving(prices: PriceHistory) -> Position:
    position = held(prices).remarked(date(2008, 2, 6), "leaving: close 122.0 reached the target 128.04")
    return replace(position, order=Order("buy", 63, "act_2"))


def test_a_finished_trade_closes_its_thesis_with_the_outcome_that_memory_tells_and_leaves_a_lesson(
    prices: PriceHistory, notebook: Notebook
) -> None:
    day = date(2008, 2, 7)
    thesis = ordered(notebook, leaving(prices), ("acknowledged", {}), ("filled", FILLED))
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    closing, learned = of(calls, "close_thesis")[0], of(calls, "remember_lesson")[0]
    assert notebook.memories[thesis["id"]]["status"] == "closed"
    assert (closing["result"], closing["pnl"], closing["return_pct"]) == ("win", "2617.02", "25.72")
    assert closing["exit_price"] == "119.9700"
    experience = read_experience(lesson(learned["text"], "2008-02-08"))
    assert experience is not None
    assert (experience.lost, experience.return_pct, experience.band) == (False, 25.72, "stormy")
    assert experience.day == day
    assert json.loads(learned["outcome"])["thesis_id"] == thesis["id"]


def test_a_fill_that_a_harness_observed_judges_older_lessons_on_such_trades(
    prices: PriceHistory, notebook: Notebook
) -> None:
    day = date(2008, 2, 7)
    notebook.day = date(2008, 1, 8)
    older = {"symbol": "AAPL", "text": LOST}
    elsewhere = {"symbol": "IBM", "text": LOST.replace("AAPL", "IBM")}
    apart = notebook.add("lesson", "proposed", "trader", elsewhere)
    lost = notebook.add("lesson", "proposed", "trader", older)
    won = notebook.add(
        "lesson", "proposed", "trader", {**older, "text": older["text"].replace("Lost", "Won")}
    )
    other = notebook.add(
        "lesson", "proposed", "trader", {**older, "text": older["text"].replace("stormy", "calm")}
    )
    ordered(notebook, leaving(prices), ("acknowledged", {}), ("filled", FILLED))
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    (fill,) = [
        entry["event_id"]
        for memory in notebook.memories.values()
        for entry in memory.get("history", ())
        if entry["content"]["standing"] == "observed"
    ]
    assert {judged["lesson_id"]: judged["outcome_ids"] for judged in of(calls, "validate_lesson")} == {
        won["id"]: [fill],
        lost["id"]: [fill],
    }
    statuses = [notebook.memories[memory["id"]]["status"] for memory in (won, lost, other, apart)]
    assert statuses == ["validated", "contradicted", "proposed", "proposed"]


def test_while_it_is_not_known_what_became_of_an_order_nothing_else_is_sent(
    prices: PriceHistory, notebook: Notebook
) -> None:
    day = date(2008, 2, 7)
    thesis = ordered(notebook, leaving(prices), ("unknown", {"error_type": "timeout"}))
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    assert {call.tool for call in calls} == {"get_memory_state", "search_memory", "get_memory"}
    assert notebook.memories[thesis["id"]]["version"] == 1


def test_an_exit_that_never_reached_the_broker_is_decided_anew(
    prices: PriceHistory, notebook: Notebook
) -> None:
    day = date(2008, 2, 7)
    ordered(notebook, leaving(prices), ("unknown", {}), ("not_sent", {}))
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    assert [intent["client_order_id"] for intent in of(calls, "record_order_intent")] == [f"AAPL-{day}-exit"]


def test_a_trade_whose_entry_never_reached_the_broker_is_dropped_without_a_lesson(
    prices: PriceHistory, notebook: Notebook
) -> None:
    day = date(2008, 1, 17)
    position = replace(held(prices), fills=(), order=Order("sell", 63, "act_2"))
    thesis = ordered(notebook, position, ("unknown", {}), ("not_sent", {}))
    calls = notebook.play(trader_turn(view_of(prices, day), calm_broker()), "trader", day)
    assert notebook.memories[thesis["id"]]["status"] == "closed"
    assert "Never entered" in of(calls, "close_thesis")[0]["note"]
    assert not of(calls, "remember_lesson")


def test_a_lesson_that_outcomes_contradict_stops_no_trade(prices: PriceHistory) -> None:
    setup = setup_on(prices, "AAPL", BREAKDOWN_DAY)
    refuted = lesson(LOST, "2008-01-08") | {"status": "contradicted"}
    assert weigh(setup, BREAKDOWN_DAY, [], [refuted]).size == 1


def test_a_lesson_is_read_back_as_the_trade_it_was_written_from(prices: PriceHistory) -> None:
    fills = (
        Fill(date(2008, 1, 17), "sell", 63, Decimal("161.51"), "act_1"),
        Fill(date(2008, 2, 7), "buy", 63, Decimal(170), "act_1"),
    )
    position = replace(held(prices), fills=fills)
    text = lesson_text(position, outcome("short", fills), date(2008, 2, 7), 14, "it rose")
    experience = read_experience(lesson(text, "2008-02-07"))
    assert experience is not None
    assert (experience.symbol, experience.conditions) == ("AAPL", ("short", "breakdown", "stormy"))
    assert (experience.lost, experience.return_pct) == (True, -5.26)
