"""The order journal in the demo: the harness' evening, the alarm, the reasons, and what the screen says of it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from server.demo.alarm import sound_alarm
from server.demo.book import Order, Position, read_position
from server.demo.broker import Broker, BrokerTimeout, Holding, Ticket
from server.demo.checks import STORY, check_story
from server.demo.course import Course
from server.demo.crew import check_book
from server.demo.desk import DemoFailed
from server.demo.harness import harness_turn
from server.demo.screen import fold_story
from server.demo.strategy import ToolCall
from server.demo.trader import trader_turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.demo.market import MarketView, PriceHistory

Notebook: TypeAlias = Any  # the class of that name in conftest.py, which tests do not import
DAY, ALARM_DAY = date(2008, 1, 3), date(2008, 1, 4)  # AAPL falls from 191.45 to 180.05 on the second


def view_of(prices: PriceHistory, day: date) -> MarketView:
    return prices.view(prices.days.index(day))


def of(calls: list[ToolCall], tool: str) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in calls if call.tool == tool]


class Scripted(Broker):
    """A broker that answers as told: "take", "keep silent" (and take it) or "lose" it."""

    def __init__(self, answer: str) -> None:
        super().__init__("broker-0")
        self.answer = answer

    def _chance(self, what: str, ticket: Ticket) -> int:
        return {"take": 999, "keep silent": 25 if what == "answer" else 1, "lose": 26}[self.answer]


def submitted(notebook: Notebook, broker: Broker, name: str = "AAPL-1", shares: int = 31) -> str:
    """An order that the trader journalled and sent; its action's id."""
    given = {"text": "why", "reason": "w" * 200, "client_order_id": name, "symbol": "AAPL"}
    action = str(notebook.order("trader", "record_order_intent", given)["id"])
    try:
        broker.submit(Ticket(name, action, "AAPL", "buy", shares))
    except BrokerTimeout:
        notebook.outcome("trader", {"action_id": action, "certainty": "unknown"})
    else:
        notebook.outcome("trader", {"action_id": action, "certainty": "acknowledged"})
    return action


def test_the_harness_records_what_was_filled_and_reports_what_is_held(
    prices: PriceHistory, notebook: Notebook
) -> None:
    broker, view = Scripted("take"), view_of(prices, DAY)
    action = submitted(notebook, broker)
    broker.open_market(view)
    calls = notebook.play(harness_turn(view, broker), "harness", DAY)
    assert [call.tool for call in calls] == [
        "list_unreconciled_orders",
        "record_order_outcome",
        "report_positions",
    ]
    bar = view.today("AAPL")
    filled = of(calls, "record_order_outcome")[0]
    assert (filled["action_id"], filled["certainty"]) == (action, "filled")
    assert (filled["filled_quantity"], filled["average_price"]) == ("31", str(bar.open))
    (row,) = notebook.positions
    assert (row["symbol"], row["quantity"], row["asset_type"]) == ("AAPL", "31", "stock")
    assert Decimal(row["average_cost"]) == bar.open
    assert (row["last_price"], row["market_value"]) == (str(bar.close), str(bar.close * 31))


def test_an_evening_without_orders_and_positions_reports_nothing(
    prices: PriceHistory, notebook: Notebook
) -> None:
    calls = notebook.play(harness_turn(view_of(prices, DAY), Broker()), "harness", DAY)
    assert [call.tool for call in calls] == ["list_unreconciled_orders"]


@pytest.mark.parametrize(
    ("answer", "found"), [("keep silent", ["acknowledged", "filled"]), ("lose", ["not_sent"])]
)
@pytest.mark.parametrize("late", [0, 1])
def test_the_harness_asks_the_broker_about_an_order_without_an_answer(
    prices: PriceHistory, notebook: Notebook, answer: str, found: list[str], late: int
) -> None:
    broker, view = Scripted(answer), view_of(prices, DAY)
    action = submitted(notebook, broker)
    assert notebook.memories[action]["status"] == "unknown"
    broker.open_market(view)
    later = prices.view(prices.days.index(DAY) + late)
    calls = notebook.play(harness_turn(later, broker), "harness", later.day)
    told = of(calls, "record_order_outcome")
    assert [outcome["certainty"] for outcome in told] == found
    assert {outcome["action_id"] for outcome in told} == {action}
    assert of(notebook.play(harness_turn(later, Broker()), "harness", DAY), "record_order_outcome") == []


def test_everything_sold_is_reported_as_nothing_held(prices: PriceHistory, notebook: Notebook) -> None:
    broker, view = Scripted("take"), view_of(prices, DAY)
    submitted(notebook, broker)
    broker.open_market(view)
    notebook.outcome("harness", {"action_id": "order_action-1", "certainty": "filled"})
    sold = notebook.add("order_action", "acknowledged", "trader", {}) | {"details": {}, "history": []}
    notebook.memories[sold["id"]] |= sold
    broker.submit(Ticket("AAPL-2", sold["id"], "AAPL", "sell", 31))
    broker.open_market(view_of(prices, ALARM_DAY))
    notebook.positions = [{"symbol": "AAPL"}]
    notebook.play(harness_turn(view_of(prices, ALARM_DAY), broker), "harness", ALARM_DAY)
    assert notebook.positions == []


def holding(notebook: Notebook, broker: Broker, prices: PriceHistory, order: Order | None = None) -> str:
    """A position of 31 AAPL at the broker, and its thesis; the thesis' id."""
    action = submitted(notebook, broker)
    broker.open_market(view_of(prices, DAY))
    notebook.outcome("harness", {"action_id": action, "certainty": "filled", "average_price": "195.41"})
    position = Position(
        "AAPL",
        "long",
        "breakout",
        "stormy",
        "It rises.",
        Decimal(178),
        Decimal(226),
        40,
        Order("buy", 31, action),
    ).filled(DAY, Decimal("195.41"))
    if order is not None:
        position = Position(**{**{n: getattr(position, n) for n in position.__slots__}, "order": order})
    thesis = notebook.add("thesis", "open", "trader", {"text": position.text(), "symbol": "AAPL"})
    return str(thesis["id"])


def test_the_alarm_is_written_down_before_anything_is_read_and_the_thesis_is_read_before_the_broker_is_called(
    prices: PriceHistory, notebook: Notebook
) -> None:
    broker = Scripted("take")
    thesis = holding(notebook, broker, prices)
    calls = notebook.play(trader_turn(view_of(prices, ALARM_DAY), broker), "trader", ALARM_DAY)
    assert [call.tool for call in calls[:6]] == [
        "record_order_intent",
        "search_memory",
        "get_memory",
        "record_order_outcome",
        "update_thesis",
        "get_memory_state",
    ]
    intent = calls[0].arguments
    assert (intent["client_order_id"], intent["side"], intent["quantity"]) == (
        f"AAPL-{ALARM_DAY}-alarm",
        "sell",
        "31",
    )
    assert "thesis_id" not in intent
    assert "6.0% against it, from 191.45 at the open to 180.05 at the close" in intent["reason"]
    order = read_position(notebook.memories[thesis]["text"]).order
    assert order is not None
    assert (order.side, order.shares) == ("sell", 31)
    assert len(of(calls, "record_order_intent")) == 1  # the review of the same evening sends no second order


def test_no_alarm_sounds_on_a_day_that_loses_little(prices: PriceHistory, notebook: Notebook) -> None:
    broker = Scripted("take")
    holding(notebook, broker, prices)
    assert notebook.play(sound_alarm(view_of(prices, DAY), broker), "trader", DAY) == []


def test_an_alarm_that_would_double_an_order_at_the_broker_is_not_sent(
    prices: PriceHistory, notebook: Notebook
) -> None:
    broker = Scripted("take")
    waiting = notebook.add("order_action", "unknown", "trader", {})
    notebook.memories[waiting["id"]] |= {"details": {}, "history": [], "status": "unknown"}
    holding(notebook, broker, prices, Order("sell", 31, waiting["id"]))
    calls = notebook.play(sound_alarm(view_of(prices, ALARM_DAY), broker), "trader", ALARM_DAY)
    assert [told["certainty"] for told in of(calls, "record_order_outcome")] == ["not_sent"]
    assert broker.find(f"AAPL-{ALARM_DAY}-alarm") is None


def test_every_reason_is_long_enough_dated_and_says_what_would_prove_it_wrong(
    prices: PriceHistory, live_through: Callable[[PriceHistory, int], Notebook]
) -> None:
    lived = live_through(prices, 260)
    intents = [(day, call.arguments) for day, _, call, _ in lived.calls if call.tool == "record_order_intent"]
    assert {str(given["client_order_id"]).rsplit("-", 1)[1] for _, given in intents} == {
        "entry",
        "exit",
        "reduce",
        "alarm",
    }
    for day, given in intents:
        reason = given["reason"]
        assert 400 <= len(reason) <= 2500
        assert str(day) in reason
        assert "Risks:" in reason
        assert "It is wrong" in reason
        assert len(given["public_reason"].encode()) <= 280
        close = prices.view(prices.days.index(day)).today(given["symbol"]).close
        assert str(close) in reason


def test_whatever_the_broker_does_the_theses_hold_what_it_holds_and_no_order_stays_unknown_for_long(
    prices: PriceHistory, live_through: Callable[[PriceHistory, int, str], Notebook]
) -> None:
    lived = live_through(prices, 200, "another seed")
    statuses = [m["status"] for m in lived.memories.values() if m["kind"] == "order_action"]
    assert set(statuses) <= {"acknowledged", "rejected", "not_sent", "unknown"}
    assert statuses.count("unknown") <= 1
    held = {row["symbol"]: int(row["quantity"]) for row in lived.positions}
    open_theses = [m for m in lived.memories.values() if m["kind"] == "thesis" and m["status"] == "open"]
    positions = [read_position(thesis["text"]) for thesis in open_theses]
    assert {p.symbol: p.shares * (1 if p.direction == "long" else -1) for p in positions if p.shares} == held


def state(quantity: str, thesis: str = "") -> dict[str, Any]:
    rows = [{"symbol": "AAPL", "quantity": quantity}] if quantity else []
    return {"current_position_rationales": rows, "open_theses": [{"text": thesis}] if thesis else []}


def test_a_state_that_does_not_match_the_brokers_book_fails_the_demo(
    prices: PriceHistory, notebook: Notebook
) -> None:
    broker = Scripted("take")
    text = notebook.memories[holding(notebook, broker, prices)]["text"]
    assert broker.holdings() == {"AAPL": Holding(31, view_of(prices, DAY).today("AAPL").open)}
    assert "31 AAPL" in check_book(state("31", text), broker)
    for wrong in (state("30", text), state("31"), state("", text)):
        with pytest.raises(DemoFailed, match="The broker holds"):
            check_book(wrong, broker)
    assert "nothing" in check_book(state(""), Broker())


def step(sequence: int, event: str, subject: str = "s", **more: str) -> dict[str, Any]:
    return {"sequence": sequence, "event": event, "subject": subject} | more


def story() -> list[dict[str, Any]]:
    search, *rest = STORY
    told = [step(1, search, "ret_1"), *(step(number, event) for number, event in enumerate(rest, 2))]
    told[2]["retrieval_id"] = "ret_1"
    return told


def test_a_story_needs_its_search_thesis_decision_intent_and_outcome_in_this_order() -> None:
    check_story("ths_1", story())
    for missing in range(len(STORY)):
        with pytest.raises(DemoFailed, match="lacks"):
            check_story("ths_1", [s for s in story() if s["event"] != STORY[missing]])
    late = story()
    late[0]["sequence"] = 9
    with pytest.raises(DemoFailed, match="does not rest"):
        check_story("ths_1", late)
    other = story()
    other[2]["retrieval_id"] = "ret_2"
    with pytest.raises(DemoFailed, match="does not rest"):
        check_story("ths_1", other)


def test_a_story_is_folded_after_its_first_outcome_and_says_how_much_is_left_out() -> None:
    said = ["was shown the state", "intended to submit", "outcome unknown (claim)", "was shown the state"]
    said += ["observed AAPL", "decision.recorded AAPL: Hold long AAPL", "outcome filled (observed)"]
    lines = [
        "thesis ths_1",
        *(f"  {n:>6}  2008-01-01T21:00:00Z  trader  {what}" for n, what in enumerate(said)),
    ]
    told = fold_story(lines)
    assert [line.split(" trader ")[-1].strip() for line in told] == [
        "thesis ths_1",
        "was shown the state",
        "intended to submit",
        "outcome unknown (claim)",
        "(3 more: shown, searched, observed, updated, held)",
        "outcome filled (observed)",
    ]


def test_the_course_tells_only_what_calls_told() -> None:
    course = Course()
    assert "0 intents" in " ".join(course.lines())
    intent = ToolCall("record_order_intent", {"client_order_id": "AAPL-1"})
    course.note(intent, {"action_id": "act_1", "warnings": ["code: It was not shown. Search."]})
    for certainty in ("unknown", "acknowledged", "filled"):
        course.note(ToolCall("record_order_outcome", {"action_id": "act_1", "certainty": certainty}), {})
    assert course.reconciled() == {}
    course.note(ToolCall("list_unreconciled_orders", {}), {"orders": [{"action_id": "act_1"}]})
    course.note(ToolCall("validate_lesson", {"lesson_id": "les_1"}), {"status": "validated"})
    assert course.reconciled() == {"AAPL-1": ["acknowledged", "filled"]}
    told = " ".join(course.lines())
    for part in ("1 intents", "1 unknown", "acknowledged, then filled", "It was not shown", "1 validated"):
        assert part in told


def test_the_evidence_of_an_order_is_json(
    prices: PriceHistory, live_through: Callable[..., Notebook]
) -> None:
    lived = live_through(prices, 60)
    for _, _, call, _ in lived.calls:
        if call.tool == "record_order_intent":
            assert "day" in json.loads(call.arguments["evidence"])
            assert {"day", "open", "close"} == set(json.loads(call.arguments["snapshot"]))
