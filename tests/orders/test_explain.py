"""One trade explained: what was shown and searched before, the thesis, the intent, the outcome, what came of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import SearchRequest
from store.commands import Decide, OpenThesis, UpdateThesis
from store.errors import InvalidInput, NotFound

IDS = {
    "one model call": {"client_order_id": "c-1"},
    "no model call": {},
    "no model call, the broker's id": {"broker_order_id": "b-1"},
}


@pytest.fixture(params=list(IDS))
def story(request: pytest.FixtureRequest, floor: Any) -> dict[str, Any]:
    """A whole trade, with noise around it: other agents, other symbols, looks that came after."""
    call = {"model_call_id": "call-1"} if request.param == "one model call" else {}
    named = IDS[request.param]
    own, brokers = named.get("client_order_id"), named.get("broker_order_id")
    caller = floor.caller(**call)
    lesson = floor.lesson().id
    thesis = floor.thesis(text="Services grow.").id
    floor.do(UpdateThesis(thesis_id=thesis, text="Services grow faster."), "bob")
    floor.thesis("MSFT", "bob", text="Cloud margins widen.")
    floor.book.state(caller)
    found = floor.book.search(caller, SearchRequest(query="services")).body
    floor.book.search(floor.caller("bob"), SearchRequest(query="noise"))
    decision = floor.do(
        Decide(
            text="Add AAPL.",
            action="buy",
            symbol="AAPL",
            thesis_id=thesis,
            retrieval_id=found["retrieval_id"],
        ),
        **call,
    ).id
    order = floor.submit(decision_id=decision, evidence={"close": "187.30"}, client_order_id=own, labels=call)
    floor.outcome(order.id, "unknown", "ann", error_type="timeout")
    floor.outcome(order.id, "acknowledged", broker_order_id=brokers)
    fill = floor.outcome(order.id, "filled", filled_quantity="10", average_price="187.31")
    floor.report({"symbol": "AAPL", "quantity": "10", "average_cost": "187.31", "last_price": "190"})
    floor.judge(lesson, "supports", fill.event_id)
    floor.do(UpdateThesis(thesis_id=thesis, text="Services grow as said."))
    return {
        "thesis": thesis,
        "decision": decision,
        "order": order.id,
        "retrieval": found["retrieval_id"],
        "call": call,
    }


def steps(floor: Any, name: str, **wanted: Any) -> list[dict[str, Any]]:
    return list(floor.book.explain(name, **wanted).body["steps"])


EVENTS = [
    "thesis.opened", "thesis.updated", "memory.delivered", "memory.retrieved", "decision.recorded",
    "order_action.recorded", "order.outcome", "order.outcome", "order.submitted", "order.outcome",
    "thesis.outcome_observed", "lesson.judged", "thesis.updated",
]  # fmt: skip


@pytest.mark.parametrize("subject", ["order", "decision", "thesis"])
def test_one_bundle_tells_the_whole_trade_in_order_of_sequence(
    floor: Any, story: dict[str, Any], subject: str
) -> None:
    explained = floor.book.explain(story[subject])
    told = explained.body["steps"]
    assert [step["event"] for step in told] == EVENTS
    assert [step["sequence"] for step in told] == sorted(step["sequence"] for step in told)
    assert explained.body["subject"]["id"] == story[subject]
    assert {story["order"], story["decision"], story["thesis"]} == {
        story[subject],
        *explained.body["related"],
    }
    assert explained.body["steps_total"] == len(EVENTS)
    by_event = {step["event"]: step for step in told}
    assert by_event["memory.delivered"]["subject"] == "state"
    assert story["thesis"] in [item["id"] for item in by_event["memory.delivered"]["shown"]]
    assert by_event["memory.retrieved"]["shown"] == [{"id": story["thesis"], "version": 2}]
    assert by_event["memory.retrieved"]["retrieval_id"] == story["retrieval"]
    assert by_event["order_action.recorded"]["evidence"] == {"close": "187.30"}
    assert "average_price 187.31" in told[9]["what"]
    assert "validated" in by_event["lesson.judged"]["what"]
    assert told[6]["what"] == "outcome unknown (claim), error_type timeout"
    assert explained.body["notice"]


def test_the_text_says_the_same_a_line_a_step(floor: Any, story: dict[str, Any]) -> None:
    explained = floor.book.explain(story["order"])
    head, *lines = explained.lines()
    assert head == f"order_action {story['order']} acknowledged, order filled AAPL"
    heads = {name: floor.book.explain(story[name]).lines()[0] for name in ("decision", "thesis")}
    assert heads["decision"].endswith("recorded AAPL (action buy)")
    assert heads["thesis"].endswith("open AAPL")
    assert len(lines) == len(EVENTS)
    for line, step in zip(lines, explained.body["steps"], strict=True):
        assert line.split()[0] == str(step["sequence"])
        assert step["what"][:60] in line
    assert f"[{story['thesis']}]" in lines[3]


def test_get_memory_detailed_tells_the_same(floor: Any, story: dict[str, Any]) -> None:
    body = floor.book.get(floor.caller("bob"), story["order"], detailed=True).body
    explained = floor.book.explain(story["order"]).body
    assert body["explanation"]["steps"] == explained["steps"]
    assert body["explanation"]["related"] == explained["related"]
    assert "explanation" not in floor.book.get(floor.caller("bob"), story["order"]).body
    lesson = floor.lesson().id
    assert "explanation" not in floor.book.get(floor.caller("bob"), lesson, detailed=True).body


def test_looking_at_an_explanation_adds_nothing_to_it(floor: Any, story: dict[str, Any]) -> None:
    """P112"""
    before = {name: steps(floor, story[name]) for name in ("order", "decision", "thesis")}
    for agent in ("ann", "bob", "broker-link"):
        for name in before:
            floor.book.get(floor.caller(agent, session_id=f"later-{agent}"), story[name], detailed=True)
    assert {name: steps(floor, story[name]) for name in before} == before


def test_as_of_a_time_it_tells_what_stood_then(floor: Any, story: dict[str, Any]) -> None:
    entry = next(entry for entry in floor.seat.entries("order_action.recorded"))
    told = steps(floor, story["thesis"], as_of=entry.effective_at)
    assert [step["event"] for step in told] == EVENTS[:6]
    with pytest.raises(NotFound):
        floor.book.explain(story["order"], entry.effective_at - 2_000)


def test_long_stories_fit_a_reply_and_say_how_long_they_are(floor: Any, story: dict[str, Any]) -> None:
    for at in range(300):
        floor.do(UpdateThesis(thesis_id=story["thesis"], text=f"Wording {at}. " + "word " * 100))
    explained = floor.book.explain(story["thesis"]).body
    assert (len(explained["steps"]), explained["steps_total"]) == (200, len(EVENTS) + 300)
    reply = floor.book.get(floor.caller(), story["thesis"], detailed=True, reply_chars=8_000)
    assert len(reply.text) <= 8_000
    assert reply.body["explanation"]["steps_total"] == len(EVENTS) + 300


@pytest.mark.parametrize(
    "name", ["act_0000000000000", "%", "*", "' OR 1=1 --", "../../x", "$.decision_id", "state", "clock"]
)
def test_an_id_that_names_nothing_explains_nothing(floor: Any, story: dict[str, Any], name: str) -> None:
    with pytest.raises(NotFound):
        floor.book.explain(name)


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\ud800", "x" * 200, "a\nb"])
def test_an_id_that_is_none_is_refused(floor: Any, name: str) -> None:
    with pytest.raises(InvalidInput):
        floor.book.explain(name)


def test_what_is_no_order_decision_or_thesis_has_no_explanation(floor: Any) -> None:
    with pytest.raises(NotFound):
        floor.book.explain(floor.lesson().id)


def test_a_hostile_query_or_reason_stays_one_line(floor: Any) -> None:
    floor.book.search(floor.caller(), SearchRequest(query="buy\nnow\r\n  99 fake line"))
    order = floor.submit(reason="line one\n     7  2026-01-01  ceo  approved\n" + "x" * 200)
    lines = floor.book.explain(order.id).lines()
    assert not any("\n" in line or "\r" in line for line in lines)


def test_a_cancel_tells_the_order_it_cancelled_and_a_submit_what_followed_it(floor: Any) -> None:
    submit = floor.submit().id
    floor.outcome(submit, "acknowledged")
    modify = floor.follow("modify", submit, quantity="5").id
    cancel = floor.follow("cancel", modify).id
    floor.outcome(cancel, "cancelled")
    for name in (submit, modify, cancel):
        subjects = {step["subject"] for step in steps(floor, name)}
        assert subjects >= {submit, modify, cancel} - ({cancel} if name == modify else set())


def test_a_cancel_names_its_order_and_says_how_that_stands(floor: Any) -> None:
    submit = floor.submit(symbol="MSFT", client_order_id="c-7").id
    floor.outcome(submit, "acknowledged")
    cancel = floor.follow("cancel", submit, symbol="MSFT", client_order_id="c-7").id
    floor.outcome(cancel, "acknowledged")
    assert floor.book.explain(cancel).body["subject"]["order_status"] == "open"
    floor.outcome(cancel, "cancelled")
    explained = floor.book.explain(cancel)
    assert explained.lines()[0] == f"order_action {cancel} acknowledged, order cancelled MSFT"
    told = next(step["what"] for step in explained.body["steps"] if step["subject"] == cancel)
    assert told.startswith(f"intended to cancel MSFT of order {submit} (c-7): AAPL closed")
    first = next(step["what"] for step in explained.body["steps"] if step["subject"] == submit)
    assert first.startswith("intended to submit MSFT buy 10: AAPL closed")


def test_a_thesis_is_told_with_the_searches_and_state_of_its_session_just_before_it(floor: Any) -> None:
    floor.book.state(floor.caller())
    floor.book.search(floor.caller(), SearchRequest(query="services"))
    floor.book.search(floor.caller("bob"), SearchRequest(query="noise"))
    floor.book.search(floor.caller(session_id="ses-other"), SearchRequest(query="elsewhere"))
    thesis = floor.thesis(direction="long", target="250", invalidation="below 181").id
    explained = floor.book.explain(thesis)
    assert [step["event"] for step in explained.body["steps"]] == [
        "memory.delivered", "memory.retrieved", "thesis.opened",
    ]  # fmt: skip
    assert explained.lines()[0].endswith("open AAPL (direction long, target 250, invalidation below 181)")
    subject = explained.body["subject"]
    assert (subject["direction"], subject["target"], subject["invalidation"]) == ("long", "250", "below 181")
    floor.book.search(floor.caller(), SearchRequest(query="later"))
    assert floor.book.explain(thesis).body["steps_total"] == 3


def test_a_run_tells_the_live_thesis_before_its_own_acts_and_mixes_no_sequences(floor_at: Any) -> None:
    live = floor_at("default")
    thesis = live.do(OpenThesis(text="Services grow.", symbol="AAPL")).id
    live.do(UpdateThesis(thesis_id=thesis, text="Services grow faster."))
    at = live.seat.clock.us + 1_000_000
    run = floor_at("default", "r1", inherit="live", begins=at)
    run.book.search(run.caller(now=at), SearchRequest(query="services"))
    order = run.submit(thesis_id=thesis, labels={"now": at}).id
    told = steps(run, order)
    assert [step["event"] for step in told] == [
        "thesis.opened", "thesis.updated", "memory.retrieved", "order_action.recorded", "decision.recorded",
    ]  # fmt: skip
    assert [step.get("source") for step in told[:3]] == ["live", "live", None]
    assert json.dumps(told)
