"""Conflicts: recorded by a flag, shown beside each hit, open until settled by a person or the configured policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store import Caller
from store.clock import DAY
from store.commands import FlagMemory, NoteRisk, OpenThesis, ProposeLesson, Remember, ResolveMemory
from store.errors import AlreadyDecided, InvalidInput, NotFound
from store.policy import Policy
from store.review_commands import Reject, Revise, Settle, SignOff

if TYPE_CHECKING:
    from conftest import Seat

OpenSeat = Callable[..., "Seat"]


def decide(seat: Seat, command: Any) -> Any:
    return seat.book.execute(Caller("rita", "reviewer", "ses-r", "review", reviewer=True), command)


def conflict(seat: Seat) -> tuple[str, str, str]:
    """Two notes that contradict each other, the older first, and the flag that says so."""
    old = seat.do(Remember(text="AAPL guidance raised to 5 %", symbol="AAPL"), "bob").id
    new = seat.do(Remember(text="AAPL guidance cut to 2 %", symbol="AAPL")).id
    seat.do(FlagMemory(memory_id=new, reason="conflicting", other_id=old))
    return old, new, seat.entries("memory.flagged")[-1].event_id


def told(seat: Seat) -> dict[str, list[str]]:
    """For each hit on AAPL the ids that it is shown to contradict."""
    hits = seat.find("AAPL guidance")["hits"]
    return {hit["id"]: [other["id"] for other in hit.get("conflicts_with", ())] for hit in hits}


def test_an_open_conflict_stands_beside_each_hit_that_it_concerns(seat: Seat) -> None:
    """P106."""
    old, new, _ = conflict(seat)
    assert told(seat) == {old: [new], new: [old]}
    (other,) = seat.get(old)["memory"]["conflicts_with"]
    assert (other["id"], other["agent"], other["flagged_by"]) == (new, "ann", "ann")
    for each in (old, new):
        assert seat.get(each)["memory"]["status"] == "active"


@pytest.mark.parametrize(("resolution", "lost"), [("newer_wins", 0), ("older_wins", 1)])
def test_the_one_that_loses_is_superseded_and_linked(seat: Seat, resolution: Any, lost: int) -> None:
    pair = conflict(seat)
    decide(seat, Settle(flag_id=pair[2], resolution=resolution, note="read the filing"))
    loser, winner = pair[lost], pair[1 - lost]
    memory = seat.get(loser)["memory"]
    assert (memory["status"], memory["details"]["superseded_by"]) == ("superseded", winner)
    assert seat.get(winner)["memory"]["status"] == "active"
    settled = seat.last_content("review.settled")
    assert settled["supersedes"] == loser
    assert {settled["contradicts"], pair[1]} == {pair[0], pair[1]}
    assert told(seat)[winner] == []
    with pytest.raises(AlreadyDecided, match=resolution):
        decide(seat, Settle(flag_id=pair[2], resolution=resolution))


def test_both_may_hold_each_in_its_scope(seat: Seat) -> None:
    old, new, flag = conflict(seat)
    with pytest.raises(InvalidInput) as refused:
        decide(seat, Settle(flag_id=flag, resolution="both_hold"))
    assert refused.value.field == "scope"
    decide(seat, Settle(flag_id=flag, resolution="both_hold", scope="5 % for the year, 2 % for Q3"))
    assert told(seat) == {old: [], new: []}
    assert seat.get(new)["memory"]["details"]["settled"]["scope"] == "5 % for the year, 2 % for Q3"


def test_what_is_no_conflict_is_settled_without_a_link(seat: Seat) -> None:
    old, new, flag = conflict(seat)
    decide(seat, Settle(flag_id=flag, resolution="not_a_conflict"))
    assert told(seat) == {old: [], new: []}
    assert "contradicts" not in seat.last_content("review.settled")


def test_a_conflict_as_it_stood_before_it_was_settled_is_shown_as_of_then(seat: Seat) -> None:
    old, new, flag = conflict(seat)
    then = seat.clock.us
    decide(seat, Settle(flag_id=flag, resolution="not_a_conflict"))
    hits = seat.find("AAPL guidance", as_of=then)["hits"]
    assert {hit["id"]: len(hit["conflicts_with"]) for hit in hits} == {old: 1, new: 1}


def test_an_answer_must_fit_its_flag(seat: Seat) -> None:
    note = seat.do(Remember(text="a note"))
    seat.do(FlagMemory(memory_id=note.id, reason="wrong"))
    flag = seat.entries("memory.flagged")[-1].event_id
    with pytest.raises(InvalidInput) as refused:
        decide(seat, Settle(flag_id=flag, resolution="newer_wins"))
    assert refused.value.field == "resolution"
    with pytest.raises(NotFound):
        decide(seat, Settle(flag_id="ev_0000000000000", resolution="dismissed"))
    decide(seat, Settle(flag_id=flag, resolution="upheld"))
    assert seat.get(note.id)["memory"]["status"] == "retired"


def test_a_conflict_with_what_has_ended_is_shown_no_more(seat: Seat) -> None:
    old, new, _ = conflict(seat)
    seat.do(ResolveMemory(memory_id=new, status="retired"))
    assert told(seat)[old] == []


def test_a_policy_of_the_newest_settles_at_once_and_says_so(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(conflicts="newest"))
    old, new, _ = conflict(seat)
    assert seat.get(old)["memory"]["status"] == "superseded"
    assert seat.last_content("review.settled")["policy"] == "newest"
    assert told(seat)[new] == []


def test_under_no_policy_a_claim_beats_what_a_person_vouches_for(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(conflicts="newest"))
    old = seat.do(ProposeLesson(text="gaps fill"), "bob").id
    decide(seat, SignOff(memory_id=old, shown=seat.book.review_item(old).shown_sha256))
    new = seat.do(ProposeLesson(text="gaps never fill")).id
    seat.do(FlagMemory(memory_id=old, reason="conflicting", other_id=new))
    assert seat.entries("review.settled") == []
    assert seat.get(old)["memory"]["status"] == "validated"


def test_the_newest_validated_wins_only_with_somebody_behind_it(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(conflicts="newest_validated"))
    old, new, _ = conflict(seat)
    assert told(seat) == {old: [new], new: [old]}
    claim = seat.do(ProposeLesson(text="gaps fill"), "bob").id
    proven = seat.do(ProposeLesson(text="gaps never fill")).id
    decide(seat, SignOff(memory_id=proven, shown=seat.book.review_item(proven).shown_sha256))
    seat.do(FlagMemory(memory_id=claim, reason="conflicting", other_id=proven))
    assert seat.get(claim)["memory"]["status"] == "retired"


@pytest.mark.parametrize("policy", ["newest", "newest_validated"])
def test_what_nobody_sees_or_is_over_wins_against_nothing(open_seat: OpenSeat, policy: Any) -> None:
    gated = {"researcher": {"memory": "review", "risk_note": "review"}}
    seat = open_seat(policy=Policy(conflicts=policy, gates_of=gated))
    standing = seat.do(NoteRisk(text="hundred shares of NVDA at most", symbol="NVDA"), "bob").id
    low = replace(seat.caller("scout"), profile="researcher")
    soon = seat.clock.us + DAY

    def flag(memory_id: str) -> None:
        seat.book.execute(low, FlagMemory(memory_id=memory_id, reason="conflicting", other_id=standing))

    waiting = seat.book.execute(low, NoteRisk(text="no limit on NVDA", symbol="NVDA"))
    rejected = seat.book.execute(low, NoteRisk(text="no limit whatever", symbol="NVDA"))
    shown = seat.book.review_item(rejected.id).shown_sha256
    decide(seat, Reject(memory_id=rejected.id, shown=shown, reason="no"))
    retired = seat.do(NoteRisk(text="no limit at all", symbol="NVDA"), "carl")
    seat.do(ResolveMemory(memory_id=retired.id, status="resolved"), "carl")
    expired = seat.do(NoteRisk(text="no limit today", symbol="NVDA", expires_at=soon), "carl")
    kind = seat.do(Remember(text="no limit in a note", symbol="NVDA"), "carl")
    elsewhere = seat.do(NoteRisk(text="no limit on TSLA", symbol="TSLA"), "carl")
    seat.clock.us = soon
    for each in (waiting, rejected, retired, expired, kind, elsewhere):
        flag(each.id)
    assert seat.get(standing)["memory"]["status"] == "active"
    assert seat.entries("review.settled") == []


def test_the_policy_says_what_it_ended_and_undoes_no_persons_answer(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(conflicts="newest"))
    old = seat.do(Remember(text="AAPL guidance raised to 5 %", symbol="AAPL"), "bob").id
    new = seat.do(Remember(text="AAPL guidance cut to 2 %", symbol="AAPL")).id
    told = seat.do(FlagMemory(memory_id=new, reason="conflicting", other_id=old), key="k")
    assert old in " ".join(told.warnings)
    assert seat.do(FlagMemory(memory_id=new, reason="conflicting", other_id=old), key="k") == told
    asking = open_seat("other")
    old, new, flag = conflict(asking)
    decide(asking, Settle(flag_id=flag, resolution="both_hold", scope="the year, and Q3"))
    asking.book.close()
    again = open_seat("other", policy=Policy(conflicts="newest"))
    again.do(FlagMemory(memory_id=old, reason="conflicting", other_id=new))
    assert again.get(old)["memory"]["status"] == "active"
    assert again.get(old)["memory"]["scope"] == again.get(new)["memory"]["scope"] == "the year, and Q3"


def test_what_a_reviewer_reworded_loses_to_no_claim(open_seat: OpenSeat) -> None:
    seat = open_seat(policy=Policy(conflicts="newest"))
    old = seat.do(Remember(text="weights as agreed"), "bob").id
    shown = seat.book.review_item(old).shown_sha256
    decide(seat, Revise(memory_id=old, shown=shown, text="weight of tech at most 20 %"))
    new = seat.do(Remember(text="weight of tech is free")).id
    seat.do(FlagMemory(memory_id=new, reason="conflicting", other_id=old))
    assert seat.get(old)["memory"]["status"] == "active"


def test_flags_that_mirror_each_other_have_one_answer(seat: Seat) -> None:
    old, new, flag = conflict(seat)
    seat.do(FlagMemory(memory_id=old, reason="conflicting", other_id=new), "carl")
    assert told(seat) == {old: [new], new: [old]}
    decide(seat, Settle(flag_id=flag, resolution="newer_wins"))
    assert seat.book.open_flags(reason="conflicting")[0] == 0
    other = seat.entries("memory.flagged")[-1].event_id
    with pytest.raises(AlreadyDecided):
        decide(seat, Settle(flag_id=other, resolution="older_wins"))


def test_an_upheld_flag_on_what_has_ended_meanwhile_is_answered(seat: Seat) -> None:
    note = seat.do(Remember(text="a note"))
    seat.do(FlagMemory(memory_id=note.id, reason="wrong"))
    seat.do(ResolveMemory(memory_id=note.id, status="retired"))
    flag = seat.entries("memory.flagged")[-1].event_id
    decide(seat, Settle(flag_id=flag, resolution="upheld"))
    assert seat.last_content("review.settled")["resolution"] == "upheld"


def test_a_thesis_is_never_ended_by_a_settlement(seat: Seat) -> None:
    old = seat.do(OpenThesis(text="AAPL long", symbol="AAPL", direction="long")).id
    new = seat.do(OpenThesis(text="AAPL short", symbol="AAPL", direction="short"), "bob").id
    seat.do(FlagMemory(memory_id=old, reason="conflicting", other_id=new))
    flag = seat.entries("memory.flagged")[-1].event_id
    decide(seat, Settle(flag_id=flag, resolution="newer_wins"))
    assert seat.get(old)["memory"]["status"] == "open"
    assert seat.get(old)["memory"]["details"]["settled"]["supersedes"] == old
