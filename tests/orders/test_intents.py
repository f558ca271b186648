"""The order journal's intents: exact limits, errors by name that leave nothing, and the reference in the reply."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from store.commands import Decide, IntendOrder, RecordOutcome
from store.errors import Conflict, IdempotencyConflict, Inherited, InvalidInput, NotFound
from store.limits import ORDER_BYTES, REASON_BYTES

LEG = {"symbol": "A", "side": "buy", "quantity": "1"}


def order(reason: str, **terms: Any) -> IntendOrder:
    named = {"symbol": "AAPL", "side": "buy", "quantity": "10"} if "legs" not in terms else {}
    return IntendOrder(**{"operation": "submit", "reason": reason, **named, **terms})


# Reasons.


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("x" * 199, False),
        ("x" * 200, True),
        (" " * 300, False),
        ("\t \n" * 100, False),
        (" " * 50 + "x" * 199 + " " * 50, False),
        (" " * 50 + "x" * 200 + " " * 50, True),
        ("x" * 100_000, True),
        ("x" * 100_001, False),
        ("😀" * 100_000, True),
        ('"' * 100_000, True),
        ("\x01" * 68_266 + "xxxx", True),
        ("\x01" * 68_266 + "xxxxx", False),
        ("\x01" * 100_000, False),
    ],
)
def test_a_reason_has_200_characters_to_100_000_and_400_kib_as_written_in_json(
    floor: Any, text: str, fits: bool
) -> None:
    """P119: bytes are those of the text as the ledger writes it in JSON, escapes included; spaces do not count."""
    if not fits:
        assert floor.refuses(InvalidInput, order(text)).field == "reason"
        return
    written = floor.do(order(text))
    (content,) = floor.told("order_action.recorded")
    assert content["text"] == text
    assert len(json.dumps(text, ensure_ascii=False).encode()) - 2 <= REASON_BYTES
    salted = bytes.fromhex(content["reason_salt"]) + text.encode()
    assert written.extra["reason_sha256"] == content["reason_sha256"] == hashlib.sha256(salted).hexdigest()


@pytest.mark.parametrize(("text", "fits"), [("x", True), (" x ", True), ("", False), ("  \n", False)])
def test_a_harness_needs_one_character_and_never_none(
    floor: Any, harness: str, text: str, fits: bool
) -> None:
    """P119"""
    if fits:
        assert floor.do(order(text), harness).status == "intent"
    else:
        assert floor.refuses(InvalidInput, order(text), harness).field == "reason"


@pytest.mark.parametrize("operation", ["submit", "modify", "cancel"])
def test_every_operation_needs_a_reason(floor: Any, operation: str) -> None:
    previous = floor.submit().id
    command = order("too short", operation=operation, previous_action_id=previous)
    assert floor.refuses(InvalidInput, command).field == "reason"


def test_everything_together_has_at_most_1_mib(floor: Any, reason: str) -> None:
    """P119"""
    whole = len('{"note":""}')
    just = {"note": "x" * (ORDER_BYTES - whole)}
    over = {"note": "x" * (ORDER_BYTES - whole + 1)}
    assert floor.refuses(InvalidInput, order(reason, evidence=just)).field == "evidence"  # alone it would fit
    assert floor.refuses(InvalidInput, order(reason, evidence=over)).field == "evidence"
    assert floor.refuses(InvalidInput, order(reason, snapshot=over)).field == "snapshot"
    half = {"note": "x" * (ORDER_BYTES // 2)}
    assert floor.refuses(InvalidInput, order(reason, evidence=half, snapshot=half)).field == "evidence"
    fits = {"note": "x" * (ORDER_BYTES // 2 - 2_000)}
    assert floor.do(order(reason, evidence=fits, snapshot=fits)).status == "intent"
    big = "x" * 100_000
    assert floor.refuses(InvalidInput, order(big, evidence=fits, snapshot=fits)).field == "evidence"


# Terms.


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"evidence": ["a", "list"]}, "evidence"),
        ({"evidence": "text"}, "evidence"),
        ({"evidence": {"a": float("nan")}}, "evidence.a"),
        ({"snapshot": 3}, "snapshot"),
        ({"snapshot": {"rows": [1, float("inf")]}}, "snapshot.rows[1]"),
        ({"operation": "replace"}, "operation"),
        ({"operation": ""}, "operation"),
        ({"side": "long"}, "side"),
        ({"side": None}, "side"),
        ({"quantity": None}, "quantity"),
        ({"quantity": "0"}, "quantity"),
        ({"quantity": "-1"}, "quantity"),
        ({"quantity": "NaN"}, "quantity"),
        ({"quantity": "Infinity"}, "quantity"),
        ({"quantity": "50%"}, "quantity"),
        ({"quantity": "ten"}, "quantity"),
        ({"symbol": None}, "symbol"),
        ({"symbol": "A\x00"}, "symbol"),
        ({"order_type": "guess"}, "order_type"),
        ({"order_type": "limit"}, "limit_price"),
        ({"order_type": "stop_limit", "limit_price": "1"}, "stop_price"),
        ({"limit_price": "5%"}, "limit_price"),
        ({"stop_price": "1e999"}, "stop_price"),
        ({"time_in_force": "soon"}, "time_in_force"),
        ({"client_order_id": "a\nb"}, "client_order_id"),
        ({"client_order_id": "x" * 129}, "client_order_id"),
        ({"legs": []}, "legs"),
        ({"legs": {"symbol": "A"}}, "legs"),
        ({"legs": [LEG] * 41}, "legs"),
        ({"legs": ["AAPL"]}, "legs[0]"),
        ({"legs": [{"side": "buy", "quantity": "1"}]}, "legs[0].symbol"),
        ({"legs": [{"symbol": 5, "side": "buy", "quantity": "1"}]}, "legs[0].symbol"),
        ({"legs": [LEG, {"symbol": "B", "side": "buy"}]}, "legs[1].quantity"),
        ({"legs": [{"symbol": "A", "quantity": "1"}]}, "legs[0].side"),
        ({"legs": [{"symbol": "A", "side": "up", "quantity": "1"}]}, "legs[0].side"),
        ({"legs": [{"symbol": "A", "side": "buy", "quantity": "-1"}]}, "legs[0].quantity"),
        ({"legs": [{"symbol": "A", "side": "buy", "quantity": "1", "price": "NaN"}]}, "legs[0].price"),
        ({"legs": [{"symbol": "A", "side": "buy", "quantity": "1", "strike": "1"}]}, "legs[0]"),
    ],
)  # fmt: skip
def test_a_wrong_term_is_refused_by_name_and_nothing_is_stored(
    floor: Any, reason: str, terms: dict[str, Any], field: str
) -> None:
    assert floor.refuses(InvalidInput, order(reason, **terms)).field == field


@pytest.mark.parametrize("operation", ["modify", "cancel"])
def test_a_modify_or_cancel_says_which_order_it_is_about(floor: Any, reason: str, operation: str) -> None:
    command = IntendOrder(operation=operation, reason=reason, symbol="AAPL")
    assert floor.refuses(InvalidInput, command).field == "previous_action_id"
    elsewhere = floor.follow(operation, client_order_id="made-elsewhere")
    assert elsewhere.extra["previous_action_id"] is None
    (warning,) = elsewhere.warnings
    assert warning.startswith("No submit of this client_order_id is known here")
    known = floor.submit(client_order_id="made-here").id
    floor.outcome(known, "acknowledged")
    assert floor.follow(operation, client_order_id="made-here").warnings == ()
    assert floor.follow(operation, known, client_order_id="replacement").extra["previous_action_id"] == known


def test_terms_are_kept_in_one_form_and_the_spelling_of_a_leg_as_typed(floor: Any) -> None:
    legs = [
        {"symbol": "brk-b", "action": "Buy to open", "ratio": 2, "price": 1.5},
        {"symbol": "X", "side": "sell", "quantity": "1"},
    ]
    floor.submit(
        legs=legs, order_type=" Limit ", limit_price="-0.50", time_in_force="GTC", snapshot=[{"bar": 1}]
    )
    (content,) = floor.told("order_action.recorded")
    assert content["legs"][0] == {
        "symbol": "BRK.B", "symbol_given": "brk-b", "side": "buy_to_open", "quantity": "2", "price": "1.5",
    }  # fmt: skip
    assert (content["order_type"], content["limit_price"], content["time_in_force"]) == (
        "limit",
        "-0.50",
        "gtc",
    )
    assert content["touches"] == ["BRK.B", "X"]
    assert content["snapshot"] == [{"bar": 1}]


@pytest.mark.parametrize("field", ["thesis_id", "decision_id", "previous_action_id"])
def test_an_id_that_is_named_must_exist_and_be_of_its_kind(floor: Any, reason: str, field: str) -> None:
    other = floor.lesson().id
    for name in ("ths_0000000000000", other):
        assert floor.refuses(NotFound, order(reason, **{field: name})).field == field


# Decisions and the reference.


def test_the_decision_is_named_or_the_previous_actions_or_this_model_calls_latest_or_new(floor: Any) -> None:
    call = {"model_call_id": "call-1"}
    first = floor.do(Decide(text="Buy AAPL.", action="buy", symbol="AAPL"), **call).id
    latest = floor.do(Decide(text="Buy more AAPL.", action="buy", symbol="AAPL"), **call).id
    floor.do(Decide(text="Buy MSFT.", action="buy"), "bob", **call)
    named = floor.submit(decision_id=first, labels=call)
    assert named.extra["decision_id"] == first
    assert floor.submit(labels=call, quantity="2").extra["decision_id"] == latest
    assert floor.follow("modify", named.id, quantity="3", labels=call).extra["decision_id"] == first
    by_client_id = floor.submit(decision_id=first, client_order_id="c-1", quantity="4")
    assert floor.follow("cancel", client_order_id="c-1").extra["decision_id"] == first
    assert floor.follow("cancel", by_client_id.id, decision_id=latest).extra["decision_id"] == latest
    before = len(floor.told("decision.recorded"))
    new = floor.submit(quantity="5", labels={"model_call_id": "call-2"})
    assert new.extra["decision_id"] not in (first, latest)
    assert len(floor.told("decision.recorded")) == before + 1
    assert floor.told("decision.recorded")[-1]["action"] == "buy"
    assert floor.status(new.extra["decision_id"]) == "recorded"


def test_the_reply_is_the_compact_reference(floor_at: Any, reason: str) -> None:
    floor = floor_at()
    text = reason + "y" * 2_000
    labels = {"model_call_id": "call-1", "revision": "abc123", "deployment": "paper"}
    command = order(text, client_order_id="c-1")
    reply = floor.book.answer(floor.do(command, **labels)).body
    named = (
        "decision_id", "action_id", "previous_action_id", "operation", "agent", "run", "model_call_id", "revision",
        "deployment", "recorded_at", "reason_preview", "reason_sha256",
    )  # fmt: skip
    assert reply.keys() >= {*named}
    assert (reply["agent"], reply["operation"], reply["run"]) == ("ann", "submit", None)
    assert (reply["model_call_id"], reply["revision"], reply["deployment"]) == ("call-1", "abc123", "paper")
    assert reply["reason_preview"] == text[:799] + "…"
    assert re.fullmatch(r"[0-9a-f]{64}", reply["reason_sha256"])
    assert reply["recorded_at"].endswith("Z")
    assert text not in json.dumps(reply)


def test_in_a_run_the_reference_names_the_run_and_no_machines_clock(floor_at: Any) -> None:
    floor = floor_at("default", "r1")
    reply = floor.submit(labels={"now": floor.seat.clock.us}).extra
    assert (reply["run"], reply["recorded_at"]) == ("r1", None)


# Repeats.


def test_a_second_submit_under_a_client_order_id_is_the_first_or_is_refused(floor: Any, reason: str) -> None:
    """P117"""
    first = floor.submit(client_order_id=" c-1 ")
    again = floor.submit("bob", client_order_id="c-1", symbol=" aapl ", quantity="10")
    assert (again.id, again.sequence) == (first.id, first.sequence)
    for other in ({"quantity": "11"}, {"side": "sell"}, {"symbol": "MSFT"}, {"order_type": "market"}):
        command = order(reason, client_order_id="c-1", **other)
        assert floor.refuses(Conflict, command).field == "client_order_id"
    assert len(floor.told("order_action.recorded")) == 1


def test_the_same_legs_repeat_and_others_do_not(floor: Any, reason: str) -> None:
    legs = [{"symbol": "A", "side": "buy", "quantity": "1"}]
    first = floor.submit(legs=legs, client_order_id="c-1")
    assert floor.submit(legs=legs, client_order_id="c-1").id == first.id
    other = [{"symbol": "A", "side": "buy", "quantity": "2"}]
    floor.refuses(Conflict, order(reason, legs=other, client_order_id="c-1"))


def test_one_key_gives_one_answer_word_for_word(floor: Any, reason: str) -> None:
    floor.thesis()
    first = floor.submit(key="k")
    assert first.warnings
    floor.outcome(first.id, "unknown")
    assert floor.submit(key="k") == first
    floor.refuses(IdempotencyConflict, order(reason, quantity="9"), key="k")
    assert floor.submit("bob", key="k").id != first.id


def test_a_run_neither_follows_nor_settles_an_order_it_inherits(floor_at: Any, reason: str) -> None:
    live = floor_at("default")
    action = live.submit().id
    at = live.seat.clock.us + 1_000_000
    run = floor_at("default", "r1", inherit="live", begins=at)
    for command in (
        IntendOrder(operation="cancel", reason=reason, previous_action_id=action),
        RecordOutcome(action_id=action, certainty="acknowledged"),
        RecordOutcome(action_id=action, certainty="filled"),
    ):
        assert run.refuses(Inherited, command, now=at).field in ("action_id", "previous_action_id")
