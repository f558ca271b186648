"""What a reviewer decides: bound to the wording shown, once, by nobody else; each an entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store import Caller
from store.audit import verify
from store.clock import DAY
from store.commands import Command, FlagMemory, OpenThesis, ProposeLesson, Remember, UpdateThesis
from store.errors import (
    AlreadyDecided,
    IllegalTransition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    VersionConflict,
)
from store.policy import Policy
from store.review_commands import Approve, Reject, Renew, Retire, Revise, Settle, SignOff

if TYPE_CHECKING:
    from conftest import Seat

OpenSeat = Callable[..., "Seat"]
REVIEW = Policy(gates={"memory": "review", "lesson": "review", "thesis": "review"})


@pytest.fixture
def gated(open_seat: OpenSeat) -> Seat:
    return open_seat(policy=REVIEW)


def shown(seat: Seat, memory_id: str) -> str:
    return seat.book.review_item(memory_id).shown_sha256


def decide(seat: Seat, command: Command, name: str = "rita") -> Any:
    return seat.book.execute(Caller(name, "reviewer", "ses-r", "review", reviewer=True), command)


def test_approval_is_bound_to_the_wording_that_was_shown(gated: Seat) -> None:
    """P141."""
    thesis = gated.do(OpenThesis(text="AAPL grows services", symbol="AAPL"))
    seen = shown(gated, thesis.id)
    gated.do(UpdateThesis(thesis_id=thesis.id, text="AAPL: sell the house and buy calls"))
    before = len(gated.entries())
    with pytest.raises(VersionConflict, match="not what was shown"):
        decide(gated, Approve(memory_id=thesis.id, shown=seen))
    assert len(gated.entries()) == before
    assert gated.book.review_item(thesis.id).version.review_state == "pending"


@pytest.mark.parametrize("given", ["", "abc", "zzzzzzzz", "0" * 65])
def test_what_is_no_hash_is_refused_by_name(gated: Seat, given: str) -> None:
    note = gated.do(Remember(text="a note"))
    with pytest.raises(InvalidInput) as refused:
        decide(gated, Approve(memory_id=note.id, shown=given))
    assert refused.value.field == "shown"


def test_a_decision_is_made_once(gated: Seat) -> None:
    note = gated.do(Remember(text="a note"))
    decide(gated, Approve(memory_id=note.id, shown=shown(gated, note.id)))
    for command in (
        Approve(memory_id=note.id, shown=shown(gated, note.id)),
        Reject(memory_id=note.id, shown=shown(gated, note.id), reason="no"),
    ):
        with pytest.raises(AlreadyDecided, match="approved already by rita"):
            decide(gated, command, "ron")


def test_what_waits_for_nobody_is_not_approved(seat: Seat) -> None:
    note = seat.do(Remember(text="a note"))
    with pytest.raises(AlreadyDecided, match="needs no review"):
        decide(seat, Approve(memory_id=note.id, shown=shown(seat, note.id)))
    with pytest.raises(NotFound):
        decide(seat, Approve(memory_id="mem_0000000000000", shown="0" * 64))


def test_edit_then_approve_lets_the_reviewers_words_in(gated: Seat) -> None:
    note = gated.do(Remember(text="NVDA will double, trust me", symbol="NVDA"))
    seen = shown(gated, note.id)
    decide(
        gated,
        Approve(memory_id=note.id, shown=seen, text="NVDA guides for 20 % growth", tags=("Guidance",)),
    )
    (hit,) = gated.find("NVDA growth", detailed=True)["hits"]
    assert (hit["text"], hit["tags"], hit["trust"]) == (
        "NVDA guides for 20 % growth",
        ["guidance"],
        "approved",
    )
    edited, approved = gated.entries("review.edited")[-1], gated.entries("review.approved")[-1]
    assert (edited.agent, edited.sequence + 1) == ("rita", approved.sequence)
    assert gated.last_content("review.approved")["shown_sha256"] == seen
    assert gated.ids("trust me double") == []


def test_a_rejected_memory_stays_on_record_and_out_of_sight(gated: Seat) -> None:
    note = gated.do(Remember(text="buy the rumour"))
    decide(gated, Reject(memory_id=note.id, shown=shown(gated, note.id), reason="no source"))
    assert gated.ids("rumour") == []
    memory = gated.get(note.id)["memory"]
    assert (memory["review_state"], memory["details"]["review_reason"]) == ("rejected", "no source")
    with pytest.raises(NotFound):
        gated.get(note.id, gated.caller("bob"))


def test_a_sign_off_validates_a_lesson_and_says_who_did(seat: Seat) -> None:
    lesson = seat.do(ProposeLesson(text="size down before earnings"))
    decide(seat, SignOff(memory_id=lesson.id, shown=shown(seat, lesson.id), note="seen it often"))
    (item,) = seat.state()["validated_lessons"]
    assert (item["id"], item["trust"]) == (lesson.id, "signed_off")
    with pytest.raises(AlreadyDecided):
        decide(seat, SignOff(memory_id=lesson.id, shown=shown(seat, lesson.id)))
    note = seat.do(Remember(text="a note"))
    with pytest.raises(IllegalTransition):
        decide(seat, SignOff(memory_id=note.id, shown=shown(seat, note.id)))


def test_a_lesson_that_waits_or_was_rejected_is_not_signed_off(gated: Seat) -> None:
    lesson = gated.do(ProposeLesson(text="size down before earnings"))
    with pytest.raises(IllegalTransition, match="pending"):
        decide(gated, SignOff(memory_id=lesson.id, shown=shown(gated, lesson.id)))


def test_a_lesson_past_review_is_due_until_it_is_renewed(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(review_after={"lesson": 90 * DAY}))
    lesson = seat.do(ProposeLesson(text="size down before earnings"))
    assert seat.book.reviews_due()[0] == 0
    seat.clock.us += 91 * DAY
    (due,) = seat.state()["reviews_due"]
    assert due["memory_id"] == lesson.id
    (hit,) = seat.find("earnings")["hits"]
    assert (hit["stale"], hit["stale_for"]) == (True, "1d")
    decide(seat, Renew(memory_id=lesson.id, shown=shown(seat, lesson.id), note="still holds"))
    assert seat.state()["reviews_due"] == []
    assert "stale" not in seat.find("earnings")["hits"][0]
    seat.clock.us += 91 * DAY
    assert seat.book.reviews_due()[0] == 1


def test_a_renewal_to_the_past_is_refused(seat: Seat) -> None:
    note = seat.do(Remember(text="a note"))
    with pytest.raises(InvalidInput) as refused:
        decide(seat, Renew(memory_id=note.id, shown=shown(seat, note.id), review_by=seat.clock.us - DAY))
    assert refused.value.field == "review_by"


def test_renewing_or_revising_answers_the_flags_but_no_conflict(seat: Seat) -> None:
    note, other = seat.do(Remember(text="a note")), seat.do(Remember(text="another"))
    seat.do(FlagMemory(memory_id=note.id, reason="stale"))
    seat.do(FlagMemory(memory_id=note.id, reason="conflicting", other_id=other.id))
    assert seat.state()["counts"]["reviews_due"] == 2
    decide(seat, Renew(memory_id=note.id, shown=shown(seat, note.id)))
    (left,) = seat.state()["reviews_due"]
    assert left["reason"] == "conflicting"
    seat.do(FlagMemory(memory_id=note.id, reason="wrong"))
    decide(seat, Revise(memory_id=note.id, shown=shown(seat, note.id), text="a better note"))
    assert [flag["reason"] for flag in seat.state()["reviews_due"]] == ["conflicting"]
    assert seat.get(note.id)["memory"]["text"] == "a better note"


def test_a_reviewer_retires_what_anybody_wrote(seat: Seat) -> None:
    note = seat.do(Remember(text="a note"), "bob")
    thesis = seat.do(OpenThesis(text="AAPL grows", symbol="AAPL"), "bob")
    for each in (note, thesis):
        decide(seat, Retire(memory_id=each.id, shown=shown(seat, each.id), note="over"))
    assert seat.get(note.id)["memory"]["status"] == "retired"
    assert seat.get(thesis.id)["memory"]["status"] == "closed"
    with pytest.raises(IllegalTransition):
        decide(seat, Revise(memory_id=note.id, shown=shown(seat, note.id), text="again"))


EVERY_DECISION = (
    lambda memory, hash_, flag: Approve(memory_id=memory, shown=hash_),
    lambda memory, hash_, flag: Reject(memory_id=memory, shown=hash_, reason="no"),
    lambda memory, hash_, flag: Revise(memory_id=memory, shown=hash_, text="other words"),
    lambda memory, hash_, flag: SignOff(memory_id=memory, shown=hash_),
    lambda memory, hash_, flag: Renew(memory_id=memory, shown=hash_),
    lambda memory, hash_, flag: Retire(memory_id=memory, shown=hash_),
    lambda memory, hash_, flag: Settle(flag_id=flag, resolution="dismissed"),
)


@pytest.mark.parametrize("make", EVERY_DECISION)
@pytest.mark.parametrize("profile", ["reviewer", "harness", "solo"])
def test_no_agent_decides_whatever_its_profile(gated: Seat, make: Any, profile: str) -> None:
    """P139."""
    lesson = gated.do(ProposeLesson(text="size down before earnings"))
    gated.do(FlagMemory(memory_id=lesson.id, reason="wrong"))
    flag = gated.entries("memory.flagged")[-1].event_id
    agent = replace(gated.caller(), profile=profile, resolves_any=True, observer=True, host="confirmed")
    before = len(gated.entries())
    with pytest.raises(PermissionDenied, match="Only a reviewer"):
        gated.book.execute(agent, make(lesson.id, shown(gated, lesson.id), flag))
    assert len(gated.entries()) == before


def test_a_ledger_with_every_decision_verifies_and_rebuilds_to_the_same(gated: Seat) -> None:
    notes = [gated.do(Remember(text=f"note {number}")) for number in range(4)]
    decide(gated, Approve(memory_id=notes[0].id, shown=shown(gated, notes[0].id), text="other words"))
    decide(gated, Reject(memory_id=notes[1].id, shown=shown(gated, notes[1].id), reason="no"))
    decide(gated, Approve(memory_id=notes[2].id, shown=shown(gated, notes[2].id)))
    decide(gated, Renew(memory_id=notes[2].id, shown=shown(gated, notes[2].id)))
    gated.do(FlagMemory(memory_id=notes[0].id, reason="conflicting", other_id=notes[2].id))
    flag = gated.entries("memory.flagged")[-1].event_id
    decide(gated, Settle(flag_id=flag, resolution="older_wins"))
    lesson = gated.do(ProposeLesson(text="a lesson"))
    decide(gated, Approve(memory_id=lesson.id, shown=shown(gated, lesson.id)))
    decide(gated, SignOff(memory_id=lesson.id, shown=shown(gated, lesson.id)))
    gated.do(Remember(text="note 3"))
    before = [gated.get(each.id)["memory"] for each in (*notes, lesson)]
    assert verify(gated.path, "default", None).findings == ()
    gated.book.rebuild(lambda _: None)
    assert [gated.get(each.id)["memory"] | {"age": ""} for each in (*notes, lesson)] == [
        each | {"age": ""} for each in before
    ]
    assert verify(gated.path, "default", None).findings == ()
