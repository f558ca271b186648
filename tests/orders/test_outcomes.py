"""What became of an order: legal steps only, a timeout is unknown, and no claim keeps an observation out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from store.commands import FlagMemory, IntendOrder, RecordOutcome
from store.errors import IllegalTransition, InvalidInput, NotFound

ANSWERS = ("acknowledged", "rejected", "unknown", "not_sent")
FILLS = ("partially_filled", "filled", "cancelled")


@pytest.mark.parametrize(("first", "second"), list(itertools.product((*ANSWERS, None), (*ANSWERS, *FILLS))))
@pytest.mark.parametrize("agent", ["ann", "broker-link"])
def test_one_outcome_may_follow_another_only_as_the_table_has_it(
    floor: Any, first: str | None, second: str, agent: str
) -> None:
    action = floor.submit().id
    if first is not None:
        floor.outcome(action, first, agent)
    told = {"filled_quantity": "1"} if second == "partially_filled" else {}
    command = RecordOutcome(action_id=action, certainty=second, **told)
    legal = (
        second in ANSWERS
        if first is None
        else second in FILLS
        if first == "acknowledged"
        else first == "unknown" and second in ("acknowledged", "rejected", "not_sent")
    )
    if first == second:
        before = floor.book.head().sequence
        assert floor.do(command, agent).status == first
        assert floor.book.head().sequence == before
    elif legal:
        assert floor.do(command, agent).status == ("acknowledged" if second in FILLS else second)
    else:
        assert floor.refuses(IllegalTransition, command, agent).field == "certainty"


@pytest.mark.parametrize("ended", ["filled", "cancelled"])
def test_an_order_that_ended_stays_so(floor: Any, ended: str) -> None:
    action = floor.submit().id
    floor.outcome(action, "acknowledged")
    floor.outcome(action, ended)
    for certainty in FILLS:
        if certainty != ended:
            command = RecordOutcome(action_id=action, certainty=certainty, filled_quantity="1")
            assert floor.refuses(IllegalTransition, command).field == "certainty"


def test_an_acknowledgement_is_not_a_fill(floor: Any) -> None:
    action = floor.submit().id
    for told in ({"filled_quantity": "10"}, {"average_price": "187.30"}):
        command = RecordOutcome(action_id=action, certainty="acknowledged", **told)
        assert floor.refuses(InvalidInput, command).field in told
    reply = floor.outcome(action, "acknowledged", filled_quantity="0", broker_order_id="b-1")
    assert reply.extra["order"] == {"status": "open", "broker_order_id": "b-1"}


@pytest.mark.parametrize(
    "error", ["timeout", "ReadTimeout", "Request timed out", "time-out", "DEADLINE_EXCEEDED"]
)
def test_a_timeout_is_unknown_and_never_a_rejection(floor: Any, error: str) -> None:
    """P117"""
    action = floor.submit().id
    rejected = RecordOutcome(action_id=action, certainty="rejected", error_type=error)
    fault = floor.refuses(InvalidInput, rejected)
    assert fault.field == "certainty"
    assert "unknown" in fault.hint
    assert floor.outcome(action, "unknown", error_type=error).status == "unknown"
    assert [row["action_id"] for row in floor.open_orders()] == [action]
    assert floor.outcome(action, "rejected", error_type="insufficient funds").status == "rejected"


def test_an_acknowledged_submit_appends_order_submitted_exactly_once(floor: Any) -> None:
    action = floor.submit(client_order_id="c-1").id
    floor.outcome(action, "acknowledged", "ann", broker_order_id="b-1")
    floor.outcome(action, "acknowledged", "bob", broker_order_id="b-1")
    floor.outcome(action, "acknowledged", broker_order_id="b-1")
    (entry,) = floor.seat.entries("order.submitted")
    assert (entry.subject_id, entry.symbol) == (action, "AAPL")
    assert json.loads(entry.content) == {
        "action_id": action,
        "client_order_id": "c-1",
        "broker_order_id": "b-1",
    }
    modify = floor.follow("modify", action, quantity="12").id
    floor.outcome(modify, "acknowledged")
    assert len(floor.seat.entries("order.submitted")) == 1


def test_an_observation_settles_what_was_only_claimed(floor: Any) -> None:
    action = floor.submit().id
    floor.outcome(action, "rejected", "ann", error_type="margin")
    assert floor.open_orders() == []
    assert floor.outcome(action, "acknowledged").status == "acknowledged"
    floor.outcome(action, "filled", "ann", filled_quantity="10", average_price="99")
    floor.outcome(action, "partially_filled", filled_quantity="4")
    seen = floor.seat.get(action)["memory"]["details"]["order"]
    assert seen == {"status": "partially_filled", "filled_quantity": "4", "standing": "observed"}
    # And what was observed is not claimed away.
    claim = RecordOutcome(action_id=action, certainty="partially_filled", filled_quantity="3")
    floor.refuses(IllegalTransition, claim)
    floor.refuses(IllegalTransition, RecordOutcome(action_id=action, certainty="rejected"))


def test_an_observation_of_what_was_claimed_is_an_entry_of_its_own(floor: Any) -> None:
    action = floor.submit().id
    claim = floor.fill(action, "ann", filled_quantity="10").event_id
    observed = floor.outcome(action, "filled", filled_quantity="10").event_id
    assert observed != claim
    assert floor.outcome(action, "filled", "ann", filled_quantity="10").event_id == observed
    assert [content["standing"] for content in floor.told("order.outcome")] == ["claim", "claim", "observed"]


def test_an_unknown_that_was_observed_opens_a_claimed_answer_again(floor: Any) -> None:
    action = floor.submit().id
    floor.outcome(action, "acknowledged", "ann")
    assert floor.outcome(action, "unknown").extra == {}
    assert [row["status"] for row in floor.open_orders()] == ["unknown"]
    assert floor.outcome(action, "acknowledged").extra["order"]["status"] == "open"
    assert len(floor.seat.entries("order.submitted")) == 1


def test_what_was_said_of_an_order_that_proved_not_to_stand_says_nothing_of_the_next(floor: Any) -> None:
    action = floor.submit().id
    floor.outcome(action, "acknowledged", "ann")
    floor.outcome(action, "partially_filled", "ann", filled_quantity="6")
    floor.outcome(action, "unknown")
    again = RecordOutcome(action_id=action, certainty="partially_filled", filled_quantity="6")
    assert floor.refuses(IllegalTransition, again).field == "certainty"
    floor.outcome(action, "acknowledged")
    reply = floor.outcome(action, "partially_filled", filled_quantity="2")
    assert reply.extra["order"] == {"status": "partially_filled", "filled_quantity": "2"}


def test_a_fill_never_falls_nor_passes_what_was_ordered(floor: Any) -> None:
    action = floor.submit(quantity="10").id
    floor.outcome(action, "acknowledged")
    floor.outcome(action, "partially_filled", filled_quantity="6")
    for certainty in FILLS:
        less = RecordOutcome(action_id=action, certainty=certainty, filled_quantity="5")
        assert floor.refuses(IllegalTransition, less).field == "filled_quantity"
        more = RecordOutcome(action_id=action, certainty=certainty, filled_quantity="12")
        assert floor.refuses(InvalidInput, more).field == "filled_quantity"
    modify = floor.follow("modify", action, quantity="12").id
    assert floor.outcome(modify, "filled", filled_quantity="12").id == action
    for told in ({"filled_quantity": "-1"}, {"filled_quantity": "NaN"}, {"filled_quantity": "5%"}, {}):
        command = RecordOutcome(action_id=floor.submit().id, certainty="partially_filled", **told)
        floor.refuses((InvalidInput, IllegalTransition), command)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"filled_quantity": "10", "average_price": "187.31"}, []),
        ({"average_price": "187.31"}, []),
        ({"filled_quantity": "4", "average_price": "187.31"}, ["4 of the 10 ordered"]),
        ({"filled_quantity": "10"}, ["no average_price"]),
        ({"filled_quantity": "4"}, ["4 of the 10 ordered", "no average_price"]),
    ],
)
def test_a_final_fill_that_leaves_something_open_is_kept_and_says_so(
    floor: Any, told: dict[str, str], said: list[str]
) -> None:
    action = floor.submit(quantity="10").id
    floor.outcome(action, "acknowledged")
    written = floor.outcome(action, "filled", **told)
    assert len(written.warnings) == len(said)
    for warning, part in zip(written.warnings, said, strict=True):
        assert part in warning
    assert floor.outcome(action, "filled", **told).warnings == written.warnings
    assert written.extra["order"]["status"] == "filled"


def test_a_fill_is_held_against_the_order_as_it_was_modified(floor: Any) -> None:
    action = floor.submit(quantity="10").id
    floor.outcome(action, "acknowledged")
    for quantity in ("6", "8"):
        floor.outcome(floor.follow("modify", action, quantity=quantity).id, "acknowledged")
    floor.outcome(floor.follow("modify", action, quantity="20").id, "rejected")
    assert floor.outcome(action, "filled", filled_quantity="8", average_price="1").warnings == ()
    late = floor.submit(quantity="10", symbol="MSFT").id
    floor.outcome(late, "acknowledged")
    floor.outcome(floor.follow("modify", late, quantity="12").id, "acknowledged")
    (warning,) = floor.outcome(late, "filled", filled_quantity="10", average_price="1").warnings
    assert "10 of the 12 ordered" in warning


def test_an_order_that_ended_tells_what_can_still_be_done(floor: Any) -> None:
    action = floor.submit().id
    floor.fill(action, filled_quantity="10", average_price="1")
    fault = floor.refuses(IllegalTransition, RecordOutcome(action_id=action, certainty="cancelled"))
    assert "flag_memory" in fault.hint
    assert floor.do(FlagMemory(memory_id=action, reason="wrong")).id == action


def test_a_modify_that_was_turned_down_orders_no_more(floor: Any) -> None:
    action = floor.submit(quantity="10").id
    floor.outcome(action, "acknowledged")
    floor.outcome(floor.follow("modify", action, quantity="12").id, "rejected")
    command = RecordOutcome(action_id=action, certainty="filled", filled_quantity="12")
    assert floor.refuses(InvalidInput, command).field == "filled_quantity"


def test_a_cancellation_belongs_to_the_order_that_was_submitted(floor: Any) -> None:
    action = floor.submit().id
    floor.outcome(action, "acknowledged")
    cancel = floor.follow("cancel", action).id
    floor.outcome(cancel, "acknowledged")
    reply = floor.outcome(cancel, "cancelled", filled_quantity="0")
    assert (reply.id, reply.extra["order"]["status"]) == (action, "cancelled")
    assert floor.status(cancel) == "acknowledged"


@pytest.mark.parametrize("certainty", ["banana", "", "timeout", "returned", None])
def test_only_the_listed_certainties_are_taken(floor: Any, certainty: Any) -> None:
    command = RecordOutcome(action_id=floor.submit().id, certainty=certainty)
    assert floor.refuses(InvalidInput, command).field == "certainty"


def test_an_outcome_is_of_an_action_that_exists(floor: Any) -> None:
    for name in ("act_0000000000000", floor.lesson().id):
        assert floor.refuses(NotFound, RecordOutcome(action_id=name, certainty="filled")).field == "action_id"


# What is not reconciled.


def test_every_intent_without_an_outcome_and_every_unknown_is_listed_oldest_first_with_its_age(
    floor: Any,
) -> None:
    first, second, third = (floor.submit(symbol=name).id for name in ("AAPL", "MSFT", "TSLA"))
    between = floor.seat.clock.us
    floor.seat.clock.us += 3 * 3_600 * 1_000_000
    floor.outcome(second, "acknowledged")
    floor.outcome(third, "unknown")
    orders = floor.open_orders()
    assert [(row["action_id"], row["status"]) for row in orders] == [(first, "intent"), (third, "unknown")]
    assert {row["age"] for row in orders} == {"3h"}
    assert floor.state()["unreconciled_orders"] == orders
    assert floor.state()["counts"]["unreconciled_orders"] == 2
    before = floor.open_orders(as_of=between)
    assert [(row["action_id"], row["status"]) for row in before] == [
        (first, "intent"), (second, "intent"), (third, "intent"),
    ]  # fmt: skip


def test_the_list_of_a_symbol_holds_what_has_it_as_a_leg(floor: Any) -> None:
    legs = [{"symbol": name, "side": "buy", "quantity": "1"} for name in ("brk-b", "MSFT")]
    spread, plain = floor.submit(legs=legs).id, floor.submit(symbol="MSFT").id
    assert [row["action_id"] for row in floor.open_orders("BRK.B")] == [spread]
    assert [row["action_id"] for row in floor.open_orders("MSFT")] == [spread, plain]
    assert floor.open_orders("TSLA") == []


@pytest.mark.parametrize("certainty", [None, "unknown"])
@pytest.mark.parametrize("operation", ["submit", "modify", "cancel"])
def test_a_new_intent_on_a_symbol_with_an_open_action_is_warned_in_reply_and_entry(
    floor: Any, reason: str, certainty: str | None, operation: str
) -> None:
    """P117"""
    first = floor.submit().id
    if certainty:
        floor.outcome(first, certainty)
    written = floor.do(
        IntendOrder(
            operation=operation,
            reason=reason,
            symbol="AAPL",
            side="buy",
            quantity="1",
            previous_action_id=first,
        )
    )
    (warning,) = written.warnings
    assert warning.startswith("duplicate_order_risk: AAPL")
    assert first in warning
    (content,) = floor.warned("duplicate_order_risk")
    assert (content["related"], content["action_id"]) == ([first], written.id)


@pytest.mark.parametrize("certainty", ["rejected", "not_sent", "filled", "cancelled"])
def test_a_settled_action_is_no_risk(floor: Any, certainty: str) -> None:
    first = floor.submit().id
    if certainty in FILLS:
        floor.outcome(first, "acknowledged")
    floor.outcome(first, certainty)
    assert floor.submit().warnings == ()


@pytest.mark.parametrize("partly", [True, False])
def test_a_submit_beside_an_order_at_work_on_the_symbol_is_warned(floor: Any, partly: bool) -> None:
    first = floor.submit().id
    floor.outcome(first, "acknowledged")
    if partly:
        floor.outcome(first, "partially_filled", filled_quantity="4")
    assert floor.submit(symbol="MSFT").warnings == ()
    second = floor.submit(symbol="aapl", quantity="3")
    (warning,) = second.warnings
    assert warning == (
        f"duplicate_order_risk: AAPL has orders still at work at the broker: {first}."
        " Modify or cancel them if this order is to take their place."
    )
    third = floor.submit(quantity="4")
    assert second.id in third.warnings[0]
    assert floor.warned("duplicate_order_risk")[-1]["related"] == [second.id, first]


def test_a_modify_or_cancel_of_an_order_at_work_is_no_risk(floor: Any) -> None:
    first = floor.submit().id
    floor.outcome(first, "acknowledged")
    modify = floor.follow("modify", first, quantity="12")
    assert modify.warnings == ()
    floor.outcome(modify.id, "acknowledged")
    assert floor.follow("cancel", first).warnings == ()


def test_a_submit_repeated_under_its_client_order_id_is_told_to_reconcile_first(floor: Any) -> None:
    """P117: the same order journaled again is the first one, and the reply says that it must not be sent."""
    first = floor.submit(client_order_id="c-1")
    floor.outcome(first.id, "unknown", error_type="timeout")
    again = floor.submit(client_order_id="c-1")
    assert again.id == first.id
    (warning,) = again.warnings
    assert warning.startswith("duplicate_order_risk")
    assert "unknown" in warning
    floor.outcome(first.id, "rejected")
    (warning,) = floor.submit(client_order_id="c-1").warnings
    assert "rejected" in warning
    assert "client_order_id of its own" in warning
