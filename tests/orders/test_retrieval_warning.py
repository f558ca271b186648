"""Who acts on a symbol at stake without having been shown why is warned: the whole table of cases, generated."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from store import SearchRequest
from store.commands import IntendOrder, OpenThesis

HELD = (True, False)
OPEN = (True, False)
SHOWN = ("searched and returned", "searched, not returned", "in the state", "by get_memory", "nothing")
WHO = ("same agent", "other agent")
WHEN = (
    "same model call", "other model call", "no call, same session", "no call, other session", "no call, in a run",
)  # fmt: skip
OPERATIONS = ("submit", "modify", "cancel", "multi-leg")
CELLS = list(product(HELD, OPEN, SHOWN, WHO, WHEN))
CODE = "position_order_without_memory_thesis"
RUN_TIME = 1_772_461_800_000_000


def test_the_table_has_all_its_cells() -> None:
    assert len(CELLS) * len(OPERATIONS) == 2 * 2 * 5 * 2 * 5 * 4 == 800


def expected(held: bool, is_open: bool, shown: str, who: str, when: str) -> bool:
    """The rule in one sentence: something is at stake, and the acting agent was not shown the thesis in time."""
    was_shown = (
        is_open
        and shown in ("searched and returned", "in the state", "by get_memory")
        and who == "same agent"
        and when in ("same model call", "no call, same session", "no call, in a run")
    )
    return (held or is_open) and not was_shown


def labels_of(when: str, *, acting: bool) -> dict[str, Any]:
    """The labels of the call that shows, or of the one that acts."""
    if when == "same model call":
        return {"model_call_id": "call-1", "session_id": "ses-1"}
    if when == "other model call":
        return {"model_call_id": "call-2" if acting else "call-1", "session_id": "ses-1"}
    if when == "no call, same session":
        return {"session_id": "ses-1"}
    if when == "no call, other session":
        return {"session_id": "ses-2" if acting else "ses-1"}
    return {"session_id": "ses-2" if acting else "ses-1", "now": RUN_TIME}


def show(floor: Any, shown: str, thesis: str | None, caller: Any) -> None:
    if shown == "searched and returned":
        floor.book.search(caller, SearchRequest(query="thesis"))
    elif shown == "searched, not returned":
        floor.book.search(caller, SearchRequest(query="unrelated zebra"))
    elif shown == "in the state":
        floor.book.state(caller)
    elif shown == "by get_memory" and thesis is not None:
        floor.book.get(caller, thesis)


def intend(operation: str, submit: str, reason: str) -> IntendOrder:
    if operation == "submit":
        return IntendOrder(operation="submit", reason=reason, symbol="AAPL", side="sell", quantity="1")
    if operation == "multi-leg":
        legs = [{"symbol": name, "side": "buy", "quantity": "1"} for name in ("MSFT", "AAPL")]
        return IntendOrder(operation="submit", reason=reason, legs=legs)
    return IntendOrder(operation=operation, reason=reason, previous_action_id=submit)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("when", WHEN)
def test_every_cell_of_the_table_warns_as_the_rule_says(
    floor_at: Any, harness: str, reason: str, when: str, operation: str
) -> None:
    wrong = []
    cells = [cell for cell in CELLS if cell[4] == when]
    for at, (held, is_open, shown, who, _) in enumerate(cells):
        run = "a-run" if when == "no call, in a run" else None
        floor = floor_at(f"cell-{at}", run)
        now = {"now": RUN_TIME} if run else {}
        # Someone else opened the order that is modified or cancelled, so the acting agent has no act before.
        submit = floor.submit("carl", labels=now).id
        if held:
            floor.report({"symbol": "AAPL", "quantity": "10"}, **now)
        thesis = None
        if is_open:
            thesis = floor.do(OpenThesis(text="A thesis on AAPL.", symbol="AAPL"), "carl", **now).id
        looker = "ann" if who == "same agent" else "bob"
        show(floor, shown, thesis, floor.caller(looker, **labels_of(when, acting=False)))
        before = len(floor.warned(CODE))
        written = floor.do(intend(operation, submit, reason), "ann", **labels_of(when, acting=True))
        entries = floor.warned(CODE)[before:]
        said = [line for line in written.warnings if line.startswith(CODE)]
        want = expected(held, is_open, shown, who, when)
        if (len(entries), len(said)) != ((1, 1) if want else (0, 0)):
            wrong.append((held, is_open, shown, who, entries))
        if entries:
            assert entries[0]["symbol"] == "AAPL"
            assert entries[0].get("related", []) == ([thesis] if thesis else [])
            assert entries[0]["action_id"] == written.id
        floor.book.close()
    assert len(cells) == 40
    assert wrong == []


def test_what_was_retrieved_instead_is_on_record(floor: Any) -> None:
    other = floor.thesis("MSFT", text="Cloud margins widen.").id
    mine = floor.thesis("AAPL", text="Services grow.").id
    floor.book.search(floor.caller(), SearchRequest(query="cloud margins"))
    floor.submit()
    (content,) = floor.warned(CODE)
    assert content["related"] == [mine]
    assert content["retrieved_instead"] == [other]


def test_a_search_before_the_previous_intent_on_the_symbol_does_not_count(floor: Any) -> None:
    floor.thesis()
    floor.book.search(floor.caller(), SearchRequest(query="thesis"))
    assert not any(line.startswith(CODE) for line in floor.submit().warnings)
    assert any(line.startswith(CODE) for line in floor.submit(quantity="11").warnings)
    floor.book.search(floor.caller(), SearchRequest(query="thesis"))
    floor.submit(symbol="MSFT")
    assert not any(line.startswith(CODE) for line in floor.submit(quantity="12").warnings)


def told(written: Any) -> str:
    (line,) = [line for line in written.warnings if line.startswith(CODE)]
    return str(line)


def test_the_warning_says_truly_when_the_thesis_was_last_shown(floor: Any) -> None:
    thesis = floor.thesis().id
    assert "which was never shown to ann. Search" in told(floor.submit())
    floor.book.search(floor.caller(), SearchRequest(query="thesis"))
    last = floor.book.head().sequence
    floor.submit(quantity="2")
    shown = f"(last shown at sequence {last})"
    since = "since its last order action on AAPL"
    assert f"{thesis}, which was not shown to ann {since} {shown}" in told(floor.submit(quantity="3"))
    elsewhere = {"session_id": "ses-2"}
    floor.book.search(floor.caller(**elsewhere), SearchRequest(query="thesis"))
    shown = f"(last shown at sequence {floor.book.head().sequence})"
    assert f"not shown to ann in this session {since} {shown}" in told(floor.submit(quantity="4"))
    assert f"not shown to ann in this model call {shown}" in told(floor.submit(labels={"model_call_id": "c"}))
    assert "never shown to bob." in told(floor.submit("bob"))


def test_the_warning_says_of_each_of_several_theses_when_it_was_shown(floor: Any) -> None:
    first, second = floor.thesis(text="Services grow.").id, floor.thesis(text="Buybacks shrink.").id
    floor.book.search(floor.caller(), SearchRequest(query="services"))
    last = floor.book.head().sequence
    floor.submit()
    line = told(floor.submit(quantity="2"))
    assert f"{first} last shown at sequence {last}" in line
    assert f"{second} never shown" in line


def test_reading_an_unchanged_state_again_counts_anew_after_an_order(floor: Any) -> None:
    thesis = floor.thesis().id
    for read in (floor.state, lambda: floor.book.get(floor.caller(), thesis)):
        floor.submit(symbol="TSLA")
        read()
        # Nothing is at work but the act: the order changes neither the thesis nor what is shown of it.
        assert not any(line.startswith(CODE) for line in floor.submit().warnings)
        assert any(line.startswith(CODE) for line in floor.submit().warnings)
    read()
    read()
    assert not any(line.startswith(CODE) for line in floor.submit().warnings)


def test_in_one_model_call_one_look_serves_several_orders(floor: Any) -> None:
    floor.thesis()
    call = {"model_call_id": "call-1"}
    floor.book.search(floor.caller(**call), SearchRequest(query="thesis"))
    for quantity in ("1", "2", "3"):
        floor.submit(quantity=quantity, labels=call)
    assert floor.warned(CODE) == []


def test_writing_a_thesis_is_not_being_shown_it(floor: Any) -> None:
    floor.thesis()
    assert any(line.startswith(CODE) for line in floor.submit().warnings)


def test_each_open_thesis_on_the_symbol_has_to_be_seen(floor: Any) -> None:
    floor.thesis(text="Services grow.")
    second = floor.thesis(text="Buybacks shrink.").id
    floor.book.search(floor.caller(), SearchRequest(query="services"))
    floor.submit()
    assert floor.warned(CODE)[0]["related"] == [second]


def test_a_modify_or_cancel_of_a_spread_touches_all_its_legs(floor: Any) -> None:
    legs = [{"symbol": name, "side": "buy", "quantity": "1"} for name in ("MSFT", "AAPL")]
    spread = floor.submit(legs=legs).id
    floor.outcome(spread, "acknowledged")
    floor.hold("AAPL", "MSFT")
    modify = floor.follow("modify", spread, quantity="2")
    assert {content["symbol"] for content in floor.warned(CODE)} == {"AAPL", "MSFT"}
    assert [row["action_id"] for row in floor.open_orders("MSFT")] == [modify.id]
    floor.outcome(modify.id, "acknowledged")
    floor.follow("cancel", modify.id)
    assert len(floor.warned(CODE)) == 4


def test_a_run_is_asked_for_the_thesis_it_inherits(floor_at: Any) -> None:
    live = floor_at("default")
    thesis = live.thesis().id
    at = live.seat.clock.us + 1_000_000
    run = floor_at("default", "r1", inherit="live", begins=at)
    now = {"now": at}
    assert any(thesis in line for line in run.submit(labels=now).warnings)
    run.book.search(run.caller(**now), SearchRequest(query="thesis"))
    assert not any(line.startswith(CODE) for line in run.submit(quantity="2", labels=now).warnings)
