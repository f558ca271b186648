"""Cases that others ran into, and what Deskbook does in them today."""

from __future__ import annotations

from typing import Any

import pytest

from store.commands import (
    CloseThesis,
    Decide,
    FlagMemory,
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    Remember,
    UpdateThesis,
)
from store.errors import AlreadyClosed, IllegalTransition, InvalidInput, NotFound
from store.symbols import Alias, Symbols

DAY = 86_400_000_000


@pytest.mark.parametrize("known", [True, False])
def test_one_instrument_under_several_spellings_is_one_or_the_other_is_named(
    floor_at: Any, known: bool
) -> None:
    """P063: BTC-USD and BTC/USD are one without a word; btcusd is one by the config's alias, else it is named."""
    floor = floor_at(symbols=Symbols([Alias("BTCUSD", "BTC/USD")] if known else []))
    thesis = floor.thesis("btcusd").id
    decision = floor.do(Decide(text="Buy bitcoin.", action="buy", symbol="BTC-USD")).id
    found = floor.seat.find(symbol="BTC/USD")
    assert {hit["id"] for hit in found["hits"]} == ({thesis, decision} if known else {decision})
    if not known:
        nothing = floor.seat.find(symbol="ETH/USD")
        assert "message" in nothing
        floor.thesis("ETHUSD")
        assert "similar: ETHUSD" in floor.seat.find(symbol="ETH-USD")["message"]
    floor.hold("BTC-USD")
    assert (floor.state("bob")["holdings_without_thesis"] == []) == known
    warned = [line for line in floor.submit(symbol="BTC_USD").warnings if "memory_thesis" in line]
    assert len(warned) == 1
    assert (thesis in warned[0]) == known


@pytest.mark.parametrize("name", ["T-999", "ths_0000000000000", "", " ", "another strategy's", "a lesson"])
def test_an_unknown_thesis_id_is_not_found_and_makes_nothing(
    floor: Any, floor_at: Any, reason: str, name: str
) -> None:
    """P089: refused with the open theses named; an order that names it is refused as well."""
    standing = floor.thesis().id
    if name == "another strategy's":
        name = floor_at("elsewhere").thesis().id
    elif name == "a lesson":
        name = floor.lesson().id
    order = IntendOrder(
        operation="submit", reason=reason, symbol="AAPL", side="buy", quantity="1", thesis_id=name
    )
    for command in (UpdateThesis(thesis_id=name, text="x"), CloseThesis(thesis_id=name), order):
        fault = floor.refuses(NotFound if name.strip() else InvalidInput, command)
        assert fault.field == "thesis_id"
        assert not name.strip() or standing in fault.hint


def test_a_closed_thesis_takes_no_update_and_a_post_mortem_is_a_lesson(floor: Any) -> None:
    """P091: refused with the way on; it asks nobody who trades on to have seen it."""
    thesis = floor.thesis().id
    floor.do(CloseThesis(thesis_id=thesis, result="loss"))
    fault = floor.refuses(AlreadyClosed, UpdateThesis(thesis_id=thesis, text="new"))
    assert "open_thesis" in fault.hint
    assert "remember_lesson" in fault.hint
    assert floor.lesson(text=f"Post-mortem of {thesis}.").status == "proposed"
    assert floor.submit().warnings == ()


def test_two_open_theses_on_one_symbol_are_allowed_named_and_both_shown(floor: Any) -> None:
    """P093: the second is told of the first; state and warning know both; another strategy's is none of them."""
    first = floor.thesis(direction="long").id
    second = floor.thesis(direction="short")
    assert any(first in line for line in second.warnings)
    floor.hold("AAPL")
    assert {item["id"] for item in floor.state("bob")["open_theses"]} == {first, second.id}
    floor.submit()
    (content,) = floor.warned("position_order_without_memory_thesis")
    assert set(content["related"]) == {first, second.id}


def test_identical_decisions_and_orders_are_two_unless_one_key_folds_them(floor: Any) -> None:
    """P097: without a client_order_id two equal submits are two orders, the second one warned of."""
    decide = Decide(text="Buy AAPL.", action="buy", symbol="AAPL")
    assert len({floor.do(decide, key=key).id for key in (None, None, "a", "b", "b")}) == 4
    orders = [floor.submit() for _ in range(2)]
    assert orders[0].id != orders[1].id
    assert orders[1].warnings[0].startswith("duplicate_order_risk")


def test_an_empty_memory_says_so_and_calls_for_no_lessons(floor: Any) -> None:
    """P098: neither holdings, lessons nor orders are asserted."""
    state = floor.state()
    assert "Do not invent" in state["empty"]
    assert state["positions_reason"] == "no positions reported"
    assert state["validated_lessons"] == state["unreconciled_orders"] == state["warnings"] == []
    assert "Do not invent" in floor.seat.find("lessons")["message"]


def test_what_a_writer_claims_of_a_lesson_ranks_and_validates_nothing(floor: Any) -> None:
    """P100: a confidence is content of the claimed outcome; rank and status do not see it."""
    sure = floor.lesson(text="Breakouts on volume hold.", outcome={"confidence": 1.0}).id
    meek = floor.lesson(text="Breakouts on volume hold.", agent="bob").id
    hits = floor.seat.find("breakouts volume", detailed=True)["hits"]
    scores = {hit["id"]: hit["provenance"]["lexical_score"] for hit in hits}
    assert scores[sure] == scores[meek]
    assert {hit["status"] for hit in hits} == {"proposed"}
    assert floor.state()["validated_lessons"] == []


def test_opposing_lessons_can_be_asked_for_and_carry_their_tally(floor: Any) -> None:
    """P102: the status tells which lessons outcomes contradict, each judged one shows its tally, and a reply that
    shows a few says how all of the best hits are mixed.
    """
    texts = [f"Gap up setup {at} paid." if at < 9 else f"Gap up setup {at} bled money." for at in range(12)]
    lessons = [floor.lesson(text=text).id for text in texts]
    for at, lesson in enumerate(lessons):
        outcome = floor.fill(floor.submit(symbol=f"S{at}").id).event_id
        floor.judge(lesson, "supports" if at < 9 else "contradicts", outcome)
    against = floor.seat.find("gap up setup", status="contradicted")
    assert against["total"] == 3
    assert [hit["tally"] for hit in against["hits"]] == [{"supports": 0, "contradicts": 1}] * 3
    assert floor.seat.find("gap up setup", status="validated")["total"] == 9
    floor.lesson(text="Gap up setup, not judged yet.")
    for asked in ({}, {"limit": 3}, {"order": "losses_first", "limit": 1}):
        assert floor.seat.find("gap up setup", **asked)["outcomes"] == {"wins": 9, "losses": 3}
    assert against["outcomes"] == {"wins": 0, "losses": 3}
    assert "outcomes" not in floor.seat.find("not judged yet", status="proposed")


def test_thousands_of_proposed_lessons_crowd_nothing_out(floor: Any) -> None:
    """P104, with fewer: the state takes the newest validated ones only, counts the rest, and all stay on record."""
    earned = floor.lesson(text="Earned.").id
    floor.judge(earned, "supports", floor.fill(floor.submit().id).event_id)
    for at in range(300):
        floor.do(ProposeLesson(text=f"Trivial lesson {at}."))
    reply = floor.book.state(floor.caller("bob"))
    assert [item["id"] for item in reply.body["validated_lessons"]] == [earned]
    assert len(reply.text) <= 16_000
    assert floor.seat.find("trivial lesson", limit=50)["total"] == 300


def test_contradicting_notes_are_both_returned_dated_and_can_be_marked(floor: Any) -> None:
    """P106: the second is told of the first as it is written; once flagged, each shows the other beside it."""
    up = floor.do(Remember(text="AAPL guidance raised to 5%, source X", symbol="AAPL")).id
    second = floor.do(Remember(text="AAPL guidance cut to 2%, source Y", symbol="AAPL"), "bob")
    down = second.id
    assert [alike["id"] for alike in second.extra["similar"]] == [up]
    hits = floor.seat.find("AAPL guidance")["hits"]
    assert {(hit["id"], hit["agent"], bool(hit["effective_at"])) for hit in hits} == {
        (up, "ann", True), (down, "bob", True),
    }  # fmt: skip
    assert not any("conflicts_with" in hit for hit in hits)
    floor.do(FlagMemory(memory_id=up, reason="conflicting", other_id=down))
    assert floor.state()["reviews_due"][0]["other_id"] == down
    hits = floor.seat.find("AAPL guidance")["hits"]
    beside = {hit["id"]: [each["id"] for each in hit["conflicts_with"]] for hit in hits}
    assert beside == {up: [down], down: [up]}
    assert {hit["status"] for hit in hits} == {"active"}
    assert floor.seat.get(down)["memory"]["conflicts_with"][0]["id"] == up


def test_a_fact_that_was_true_twice_is_two_records(floor: Any) -> None:
    """P108: told apart by when each expires, or by the first being over when the second is written."""
    ends = [floor.seat.clock.us + days * DAY for days in (90, 400)]
    said = [Remember(text="AAPL in uptrend", symbol="AAPL", expires_at=end) for end in ends]
    first, second = (floor.do(command).id for command in said)
    assert set(floor.seat.ids("uptrend")) == {first, second}
    assert floor.do(said[0]).id == first
    floor.seat.clock.us = ends[0]
    assert floor.seat.ids("uptrend") == [second]
    floor.seat.clock.us = ends[1]
    third = floor.do(Remember(text="AAPL in uptrend", symbol="AAPL")).id
    assert floor.seat.ids("uptrend") == [third]
    assert set(floor.seat.ids("uptrend", expired=True)) == {first, second, third}


def test_the_same_junk_many_times_is_kept_counted_and_disturbs_no_other_session(floor: Any) -> None:
    """P110: answered with the one that stands and the count; the ledger keeps each, and no memory comes of it.

    Another agent's search, state and writing see one memory. Orders are folded by a client_order_id or a key.
    """
    text = "the same twenty words again"
    first = floor.do(Remember(text=text))
    replies = [floor.do(Remember(text=text)) for _ in range(499)]
    assert {reply.id for reply in replies} == {first.id}
    assert [reply.extra["repeat"] for reply in replies] == list(range(1, 500))
    assert all(first.id in reply.warnings[0] and "nothing new" in reply.warnings[0] for reply in replies)
    counts = [content["count"] for content in floor.told("memory.repeated")]
    assert counts == list(range(1, 500))
    assert floor.seat.find("twenty words", who=floor.caller("bob"))["total"] == 1
    state = floor.state("bob")
    assert (state["recent"], state["counts"]["memories"]) == ([], 1)
    bobs = floor.do(Remember(text=text), "bob")
    assert bobs.id != first.id
    assert "repeat" not in bobs.extra
    assert len(floor.state()["recent"]) == 1
    assert len({floor.submit(client_order_id="c-1").id for _ in range(20)}) == 1


def test_a_decision_is_linked_to_what_was_recalled_before_it(floor: Any) -> None:
    """P112: without naming ids, to the session's searches since the last decision; explaining is no recall."""
    note = floor.do(Remember(text="Services margin widens.")).id
    queries = ("services margin", "margin", "zebra")
    seen = [floor.seat.find(query, who=floor.caller())["retrieval_id"] for query in queries]
    floor.seat.find("margin", who=floor.caller("bob"))
    floor.seat.find("margin", who=floor.caller(session_id="another"))
    first = floor.do(Decide(text="Buy.", action="buy")).id
    later = floor.seat.find("zebra", who=floor.caller())["retrieval_id"]
    order = floor.submit().extra["decision_id"]
    last = floor.do(Decide(text="Hold.", action="hold")).id
    named = floor.do(Decide(text="Sell.", action="sell", retrieval_id=seen[0])).id
    before = floor.book.head().sequence
    told = {name: floor.book.explain(name).body["steps"] for name in (first, last)}
    assert floor.book.head().sequence == before
    linked = [content.get("retrievals") for content in floor.told("decision.recorded")]
    assert linked == [seen[::-1], [later], None, None]
    links = {entry.subject_id: entry.retrieval_id for entry in floor.seat.entries("decision.recorded")}
    assert links == {first: seen[-1], order: later, last: None, named: seen[0]}
    recalled = {
        name: [step["shown"] for step in steps if step["event"] == "memory.retrieved"]
        for name, steps in told.items()
    }
    shown = [{"id": note, "version": 1}]
    assert recalled == {first: [shown, shown, []], last: []}


def test_a_note_that_replaces_another_is_the_current_one(floor: Any) -> None:
    """P116"""
    old = floor.do(Remember(text="target weight 5%")).id
    new = floor.do(Remember(text="target weight 3%", supersedes=old)).id
    statuses = {hit["id"]: hit["status"] for hit in floor.seat.find("target weight")["hits"]}
    assert statuses == {old: "superseded", new: "active"}
    assert floor.seat.ids("target weight", status="active") == [new]


def test_ids_are_assigned_and_a_correction_is_an_event_of_the_same_action(floor: Any) -> None:
    """P121: equal content has different ids; a correction by the harness is a new entry about the first one."""
    first, second = floor.submit().id, floor.submit().id
    assert first != second
    floor.outcome(first, "rejected", "ann")
    floor.outcome(first, "acknowledged")
    events = [entry.event_type for entry in floor.book.show(first)]
    assert events.count("order.outcome") == 2
    assert floor.status(second) == "intent"
    assert len(floor.told("order_action.recorded")) == 2


def test_times_keep_their_microseconds_through_outcomes(floor: Any) -> None:
    """P123"""
    floor.seat.clock.us = 1_772_461_856_789_123
    order = floor.submit()
    floor.outcome(order.id, "acknowledged")
    entries = floor.book.show(order.id)
    assert entries[0].effective_at == order.effective_at
    assert order.effective_at % 1_000 == 123
    memory = floor.seat.get(order.id)["memory"]
    assert memory["created_at"].endswith("123Z")


def test_an_intent_whose_process_died_is_pending_and_its_replay_is_the_same(floor: Any, reason: str) -> None:
    """P125, without the kill, which test_order_server has: the journal opened again shows it and folds the replay."""
    order = floor.submit(key="k", client_order_id="c-1")
    assert [row["action_id"] for row in floor.open_orders()] == [order.id]
    assert floor.submit(key="k", client_order_id="c-1") == order
    settle = RecordOutcome(action_id=order.id, certainty="rejected")
    assert floor.do(settle, "broker-link", key="o") == floor.do(settle, "broker-link", key="o")
    floor.refuses(IllegalTransition, RecordOutcome(action_id=order.id, certainty="filled"), "broker-link")


def test_a_thesis_named_by_an_order_stays_the_desks_own(floor: Any) -> None:
    """P089: a thesis of the strategy may be named by any of its agents; the entry says who acted."""
    thesis = floor.do(OpenThesis(text="Services grow.", symbol="AAPL"), "bob").id
    floor.submit(thesis_id=thesis)
    (entry,) = floor.seat.entries("order_action.recorded")
    assert (entry.agent, floor.told("order_action.recorded")[0]["thesis_id"]) == ("ann", thesis)
