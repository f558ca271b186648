"""What a new memory passes before it counts: gates, repeats, quotas, dates, resemblance, lineage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store import Caller
from store.admission import ConfirmationNeeded
from store.clock import DAY
from store.commands import (
    Decide,
    IntendOrder,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.errors import Lapsed, NotFound, TooManyPending
from store.policy import Policy
from store.review_commands import Approve, Reject

if TYPE_CHECKING:
    from conftest import Seat

STEP = 1_000
OpenSeat = Callable[..., "Seat"]
REVIEW = Policy(gates={"memory": "review", "lesson": "review", "thesis": "review"})
REASON = "Momentum after earnings, sized at half a percent, invalid below the gap. " * 4


def reviewer(name: str = "rita") -> Caller:
    return Caller(name, "reviewer", "ses-review", "review", reviewer=True)


def approve(seat: Seat, memory_id: str, **more: Any) -> None:
    shown = seat.book.review_item(memory_id).shown_sha256
    seat.book.execute(reviewer(), Approve(memory_id=memory_id, shown=shown, **more))


def test_what_waits_is_found_by_nobody_until_it_is_approved(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    note = seat.do(Remember(text="NVDA guides above consensus", symbol="NVDA"))
    assert note.extra["review_state"] == "pending"
    assert f"deskbook review approve {note.id}" in " ".join(note.warnings)
    for who in ("ann", "bob"):
        assert seat.ids("NVDA consensus", who=seat.caller(who)) == []
        assert seat.ids(who=seat.caller(who)) == []
        assert note.id not in str(seat.state(seat.caller(who)))
    approve(seat, note.id)
    (hit,) = seat.find("NVDA consensus", who=seat.caller("bob"))["hits"]
    assert (hit["id"], hit["trust"]) == (note.id, "approved")
    assert note.id in str(seat.state())


def test_what_waits_is_read_by_its_author_alone(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    note = seat.do(Remember(text="NVDA guides above consensus"))
    assert seat.get(note.id)["memory"]["review_state"] == "pending"
    with pytest.raises(NotFound):
        seat.get(note.id, seat.caller("bob"))
    with pytest.raises(NotFound):
        seat.do(Decide(text="buy", action="buy", thesis_id=note.id), "bob")


@pytest.mark.parametrize("profile", ["researcher", "trader"])
def test_a_gate_may_differ_by_profile(open_seat: OpenSeat, profile: str) -> None:
    seat = open_seat(policy=Policy(gates_of={"researcher": {"memory": "review"}}))
    caller = replace(seat.caller(), profile=profile)
    written = seat.book.execute(caller, Remember(text=f"seen by the {profile}"))
    assert written.extra.get("review_state") == ("pending" if profile == "researcher" else None)


def test_an_order_is_recorded_whatever_the_gates_say(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(gates={"order_action": "review"}))
    action = seat.do(IntendOrder(operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="1"))
    assert "review_state" not in action.extra
    assert [order["action_id"] for order in seat.state()["unreconciled_orders"]] == [action.id]


def test_an_update_waits_as_its_thesis_would_have_to(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    thesis = seat.do(OpenThesis(text="AAPL grows services", symbol="AAPL"))
    approve(seat, thesis.id)
    moon = UpdateThesis(thesis_id=thesis.id, text="AAPL to the moon, all in", target="1000")
    updated = seat.do(moon, "bob")
    assert updated.extra["review_state"] == "pending"
    for who in ("ann", "bob", "carol"):
        assert ("moon" in str(seat.get(thesis.id, seat.caller(who)))) is (who != "carol")
        (hit,) = seat.find("AAPL services", who=seat.caller(who))["hits"]
        assert (hit["text"], hit["trust"]) == ("AAPL grows services", "approved")
        assert "target" not in hit
    item = seat.book.review_item(thesis.id)
    assert (item.version.text, item.stands) == ("AAPL to the moon, all in", "AAPL grows services")
    assert seat.book.review_queue()[0] == 1
    assert seat.book.review_queue(agent="bob")[0] == 1
    approve(seat, thesis.id)
    (hit,) = seat.find("AAPL moon")["hits"]
    assert (hit["text"], hit["target"], hit["trust"]) == ("AAPL to the moon, all in", "1000", "approved")
    assert seat.book.review_queue()[0] == 0


def test_a_rejected_or_lapsed_update_leaves_what_was_let_in(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    thesis = seat.do(OpenThesis(text="AAPL grows services", symbol="AAPL"))
    approve(seat, thesis.id)
    seat.do(UpdateThesis(thesis_id=thesis.id, text="junk"), "bob")
    shown = seat.book.review_item(thesis.id).shown_sha256
    seat.book.execute(reviewer(), Reject(memory_id=thesis.id, shown=shown, reason="no evidence"))
    (hit,) = seat.find("AAPL")["hits"]
    assert (hit["text"], hit["trust"]) == ("AAPL grows services", "approved")
    seat.do(UpdateThesis(thesis_id=thesis.id, text="more junk"), "bob")
    seat.clock.us += 31 * DAY
    assert seat.book.review_queue()[0] == 0
    assert seat.find("AAPL")["hits"][0]["text"] == "AAPL grows services"
    with pytest.raises(Lapsed):
        approve(seat, thesis.id)


def test_an_update_may_be_edited_on_its_way_in(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    thesis = seat.do(OpenThesis(text="AAPL grows services", symbol="AAPL"))
    approve(seat, thesis.id)
    seat.do(UpdateThesis(thesis_id=thesis.id, text="AAPL to the moon", target="300"))
    approve(seat, thesis.id, text="AAPL may reach 300")
    (hit,) = seat.find("AAPL")["hits"]
    assert (hit["text"], hit["target"], hit["trust"]) == ("AAPL may reach 300", "300", "approved")
    assert "moon" not in str(seat.get(thesis.id, seat.caller("bob")))


def test_words_that_nobody_looked_at_lose_the_trust_of_those_that_were(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(gates_of={"researcher": {"thesis": "review"}}))
    careful = replace(seat.caller(), profile="researcher")
    thesis = seat.book.execute(careful, OpenThesis(text="AAPL grows services", symbol="AAPL"))
    approve(seat, thesis.id)
    seat.do(UpdateThesis(thesis_id=thesis.id, text="Short AAPL with everything", direction="short"), "bob")
    (hit,) = seat.find("AAPL")["hits"]
    assert (hit["text"], hit["trust"]) == ("Short AAPL with everything", "claim")


def test_what_was_never_let_in_is_in_nobody_elses_history_or_explanation(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    note = seat.do(Remember(text="buy the rumour"))
    approve(seat, note.id, text="a rumour is about")
    thesis = seat.do(OpenThesis(text="zebraquark hidden thesis", symbol="NVDA"))
    decision = seat.do(Decide(text="buy", action="buy", symbol="NVDA", thesis_id=thesis.id))
    for who in ("bob", "carol"):
        reader = seat.caller(who)
        assert "buy the rumour" not in str(seat.get(note.id, reader))
        told = str(seat.get(decision.id, reader, detailed=True))
        assert "zebraquark" not in told
        assert thesis.id not in str(seat.get(decision.id, reader, detailed=True)["explanation"])
    assert "buy the rumour" in str(seat.get(note.id))
    assert "zebraquark" in str(seat.get(decision.id, detailed=True))
    assert "zebraquark" in str(seat.book.explain(decision.id).body)


def test_the_note_that_a_waiting_one_replaces_stands_until_it_is_approved(open_seat: OpenSeat) -> None:
    auto = open_seat()
    old = auto.do(Remember(text="target weight of the book is 5 %"))
    auto.book.close()
    seat = open_seat(policy=REVIEW)
    new = seat.do(Remember(text="target weight of the book is 3 %", supersedes=old.id))
    assert seat.get(old.id)["memory"]["status"] == "active"
    approve(seat, new.id)
    assert seat.get(old.id)["memory"]["status"] == "superseded"
    assert seat.get(old.id)["memory"]["details"]["superseded_by"] == new.id


def test_an_agent_has_a_quota_of_what_may_wait_and_others_have_theirs(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=replace(REVIEW, max_pending=2))
    first = seat.do(Remember(text="one"))
    seat.do(Remember(text="two"))
    before = len(seat.entries())
    with pytest.raises(TooManyPending) as refused:
        seat.do(Remember(text="three"))
    assert "deskbook review" in (refused.value.hint or "")
    assert len(seat.entries()) == before
    seat.do(Remember(text="three"), "bob")
    seat.do(ResolveMemory(memory_id=first.id, status="retired"))
    seat.do(Remember(text="three"))


def test_what_has_waited_too_long_leaves_room_and_is_not_approved_any_more(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=replace(REVIEW, max_pending=1, pending_lasts=DAY))
    note = seat.do(Remember(text="one"))
    seat.clock.us += DAY
    assert seat.book.review_queue()[0] == 0
    seat.do(Remember(text="two"))
    with pytest.raises(Exception, match="waited until") as lapsed:
        approve(seat, note.id)
    assert lapsed.value.code == "lapsed"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "command",
    [
        Remember(text="NVDA guides above consensus", symbol="NVDA"),
        Propose(text="NVDA guides above consensus", symbol="NVDA"),
        NoteRisk(text="NVDA guides above consensus", symbol="NVDA"),
        ProposeLesson(text="NVDA guides above consensus", symbol="NVDA"),
        OpenThesis(text="NVDA guides above consensus", symbol="NVDA"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_an_exact_repeat_is_counted_and_answered_with_what_stands(seat: Seat, command: Any) -> None:
    first = seat.do(command)
    again, third = seat.do(command), seat.do(command)
    assert {first.id, again.id, third.id} == {first.id}
    assert [again.extra["repeat"], third.extra["repeat"]] == [1, 2]
    assert first.id in again.warnings[0]
    assert [entry.event_type for entry in seat.entries()[-2:]] == ["memory.repeated"] * 2
    assert seat.find()["total"] == 1
    assert seat.do(command, "bob").id != first.id


def test_a_repeat_of_what_has_ended_or_holds_for_another_time_is_new(seat: Seat) -> None:
    ended = seat.do(Remember(text="in uptrend", symbol="SPY"))
    seat.do(ResolveMemory(memory_id=ended.id, status="retired"))
    soon, late = seat.clock.us + DAY, seat.clock.us + 400 * DAY
    first = seat.do(Remember(text="in uptrend", symbol="SPY", expires_at=soon))
    other = seat.do(Remember(text="in uptrend", symbol="SPY", expires_at=late))
    assert len({ended.id, first.id, other.id}) == 3
    assert seat.do(Remember(text="in uptrend", symbol="SPY", expires_at=late)).id == other.id


def test_a_decision_is_one_of_its_own_each_time(seat: Seat) -> None:
    hold = Decide(text="hold: nothing has changed", action="hold", symbol="AAPL")
    assert seat.do(hold).id != seat.do(hold).id


def test_a_rejected_memory_said_again_is_proposed_anew(open_seat: OpenSeat) -> None:
    from store.review_commands import Reject

    seat = open_seat(policy=REVIEW)
    note = seat.do(Remember(text="sell everything"))
    shown = seat.book.review_item(note.id).shown_sha256
    seat.book.execute(reviewer(), Reject(memory_id=note.id, shown=shown, reason="no evidence"))
    again = seat.do(Remember(text="sell everything"))
    assert again.id != note.id
    assert again.extra["review_state"] == "pending"
    assert f"rita rejected the same words before, as {note.id}" in " ".join(again.warnings)


def test_a_key_of_a_repeat_gives_the_same_answer_again(seat: Seat) -> None:
    seat.do(Remember(text="one"))
    first = seat.do(Remember(text="one"), key="k")
    assert first.extra["repeat"] == 1
    assert seat.do(Remember(text="one"), key="k") == first


def test_dates_come_from_the_desk_where_the_author_says_nothing(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(review_after={"lesson": 90 * DAY}, expires_after={"memory": 365 * DAY}))
    lesson = seat.do(ProposeLesson(text="gaps fill on low volume"))
    own = seat.do(ProposeLesson(text="gaps run on high volume", review_by=seat.clock.us + DAY))
    note = seat.do(Remember(text="a note"))
    found = {each: seat.book.review_item(each.id).version for each in (lesson, own, note)}
    assert found[lesson].stale_at == pytest.approx(lesson.effective_at + 90 * DAY, abs=10 * STEP)
    assert found[own].stale_at is not None
    assert found[own].stale_at < own.effective_at + 2 * DAY
    assert found[note].stale_at is None
    assert found[note].expires_at == pytest.approx(note.effective_at + 365 * DAY, abs=10 * STEP)


def test_a_near_repeat_is_marked_and_kept(seat: Seat) -> None:
    first = seat.do(Remember(text="NVDA data center revenue grew 42 percent on cloud demand", symbol="NVDA"))
    near = seat.do(
        Remember(text="NVDA data-center revenue grew 42 percent, on cloud demand.", symbol="NVDA"), "bob"
    )
    assert near.id != first.id
    assert near.extra["similar"] == [{"id": first.id, "why": "near_repeat"}]
    assert first.id in " ".join(near.warnings)


def test_a_likely_contradiction_is_offered_and_nothing_is_retired(seat: Seat) -> None:
    first = seat.do(Remember(text="AAPL guidance for FY26 revenue growth raised to 5%", symbol="AAPL"))
    second = seat.do(Remember(text="AAPL guidance for FY26 revenue growth cut to 2%", symbol="AAPL"), "bob")
    (similar,) = second.extra["similar"]
    assert similar["id"] == first.id
    assert similar["why"] in ("number", "direction")
    assert "flag_memory" in " ".join(second.warnings)
    assert seat.get(first.id)["memory"]["status"] == "active"
    assert len(seat.ids(symbol="AAPL")) == 2


def test_what_is_saved_after_a_search_keeps_its_lineage_and_gains_no_trust(seat: Seat) -> None:
    seat.do(Remember(text="rumour: XYZ is taken over at 50", symbol="XYZ"), "scout")
    found = seat.find("XYZ takeover")
    copied = seat.do(ProposeLesson(text="rumour: XYZ is taken over at 50", symbol="XYZ"))
    memory = seat.get(copied.id)["memory"]
    assert memory["details"]["retrieval_id"] == found["retrieval_id"]
    assert (memory["trust"], memory["status"]) == ("claim", "proposed")
    assert copied.extra["similar"][0]["why"] == "near_repeat"


def test_a_decision_links_the_searches_since_the_one_before(seat: Seat) -> None:
    one, two = seat.find("AAPL")["retrieval_id"], seat.find("services")["retrieval_id"]
    first = seat.do(Decide(text="buy", action="buy", symbol="AAPL"))
    assert seat.get(first.id)["memory"]["details"]["retrievals"] == [two, one]
    three = seat.find("margin")["retrieval_id"]
    second = seat.do(Decide(text="hold", action="hold", symbol="AAPL"))
    assert seat.get(second.id)["memory"]["details"]["retrievals"] == [three]
    third = seat.do(Decide(text="hold on", action="hold", symbol="AAPL", retrieval_id=one))
    assert "retrievals" not in seat.get(third.id)["memory"]["details"]
    other = seat.do(Decide(text="buy", action="buy"), "bob")
    assert "retrievals" not in seat.get(other.id)["memory"].get("details", {})


def test_asking_writes_nothing_before_the_answer(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(gates={"memory": "ask"}))
    before = len(seat.entries())
    with pytest.raises(ConfirmationNeeded) as asked:
        seat.book.execute(replace(seat.caller(), host="asks"), Remember(text="keep me", symbol="AAPL"))
    assert (asked.value.kind, asked.value.event.text, asked.value.symbol) == ("memory", "keep me", "AAPL")
    assert len(seat.entries()) == before
    yes = seat.book.execute(replace(seat.caller(), host="confirmed"), Remember(text="keep me"))
    assert yes.extra["review_state"] == "host_confirmed"
    assert seat.find("keep")["hits"][0]["trust"] == "host_confirmed"
    waits = seat.do(Remember(text="nobody can be asked"))
    assert waits.extra["review_state"] == "pending"


def test_a_yes_of_the_host_opens_no_gate_that_asks_for_a_reviewer(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    written = seat.book.execute(replace(seat.caller(), host="confirmed"), Remember(text="keep me"))
    assert written.extra["review_state"] == "pending"


def test_what_a_reviewer_writes_stands_approved(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=REVIEW)
    written = seat.book.execute(reviewer(), Remember(text="house rule: no leverage"))
    assert written.extra["review_state"] == "approved"
    assert seat.ids("leverage") == [written.id]
