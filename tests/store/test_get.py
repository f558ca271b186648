"""One memory whole, with its history, as it stood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.commands import CloseThesis, Decide, FlagMemory, OpenThesis, Remember, UpdateThesis
from store.errors import InvalidInput, NotFound

HOUR = 3_600_000_000


def _thesis(seat: Any) -> tuple[str, list[int]]:
    """A thesis that was opened, updated, flagged and closed, and the instant after each."""
    opened = seat.do(OpenThesis(text="v1", symbol="AAPL", review_by=1_800_000_000_000_000))
    after = [seat.clock.us]
    for command, agent in (
        (UpdateThesis(thesis_id=opened.id, text="v2"), "bob"),
        (FlagMemory(memory_id=opened.id, reason="wrong", note="really?"), "carol"),
        (CloseThesis(thesis_id=opened.id, result="win", pnl="3.5"), "ann"),
    ):
        seat.clock.us += HOUR
        seat.do(command, agent)
        after.append(seat.clock.us)
    return opened.id, after


def test_a_memory_is_given_whole_with_who_did_what(seat: Any) -> None:
    memory_id, _ = _thesis(seat)
    reply = seat.book.get(seat.caller("dave"), memory_id)
    body = reply.body
    assert json.loads(reply.text) == body
    memory = body["memory"]
    assert (memory["text"], memory["status"], memory["version"]) == ("v2", "closed", 3)
    assert memory["details"]["outcome"] == {"result": "win", "pnl": "3.5"}
    assert memory["details"]["closed_at"].endswith("Z")
    assert [(step["event"], step["agent"]) for step in body["history"]] == [
        ("thesis.opened", "ann"), ("thesis.updated", "bob"), ("memory.flagged", "carol"), ("thesis.closed", "ann"),
    ]  # fmt: skip
    assert body["history"][0]["content"]["review_by"] == "2027-01-15T08:00:00Z"
    assert body["history_total"] == 4
    assert body["recorded"] is True


def test_a_memory_as_of_then_is_as_it_was_then_with_the_history_up_to_then(seat: Any) -> None:
    memory_id, after = _thesis(seat)
    for at, (instant, text, status, version) in enumerate(
        zip(after, ("v1", "v2", "v2", "v2"), ("open", "open", "open", "closed"), (1, 2, 2, 3), strict=True)
    ):
        body = seat.get(memory_id, as_of=instant)
        memory = body["memory"]
        assert (memory["text"], memory["status"], memory["version"]) == (text, status, version)
        assert len(body["history"]) == body["history_total"] == at + 1
    with pytest.raises(NotFound, match="at that time"):
        seat.get(memory_id, as_of=after[0] - HOUR)


def test_an_id_that_names_nothing_or_another_kind_is_not_found(open_seat: Any, refused: Any) -> None:
    seat, other = open_seat(), open_seat("other")
    note = seat.do(Remember(text="x"))
    foreign = other.do(Remember(text="x"))
    for name in ("mem_none", foreign.id, "ret_x", "x" * 128):
        with refused(seat, NotFound, "memory_id"):
            seat.get(name)
    with refused(seat, NotFound, "memory_id", "no thesis"):
        seat.get(note.id, kind="thesis")
    for name in ("", "a\nb", "\ud800", "x" * 129):
        with refused(seat, InvalidInput, "memory_id"):
            seat.get(name)


def test_a_memory_that_is_shown_is_recorded_once_until_it_changes(seat: Any) -> None:
    note = seat.do(OpenThesis(text="x"))
    for _ in range(3):
        seat.get(note.id)
    (entry,) = seat.entries("memory.delivered")
    assert entry.subject_id == note.id
    content = json.loads(entry.content)
    assert (content["surface"], content["shown"]) == ("memory", [{"id": note.id, "version": 1}])
    seat.do(UpdateThesis(thesis_id=note.id, text="y"))
    seat.get(note.id)
    assert len(seat.entries("memory.delivered")) == 2
    assert [step["event"] for step in seat.get(note.id)["history"]] == ["thesis.opened", "thesis.updated"]


def test_a_reply_keeps_its_size_whatever_a_memory_holds(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text='"\\' * 45_000, tags=tuple(f"{'t' * 60}{n}" for n in range(50))))
    for at in range(60):
        seat.do(UpdateThesis(thesis_id=thesis.id, text=f"{at} " + "long\n" * 15_000))
    decision = seat.do(Decide(text="x", action="buy", evidence=["目" * 20_000]))
    for memory_id in (thesis.id, decision.id):
        for size in (16_000, 8_000):
            reply = seat.book.get(seat.caller(), memory_id, reply_chars=size)
            assert len(reply.text) <= size
            assert json.loads(reply.text) == reply.body
            assert reply.body["truncated"]


def test_a_book_shows_by_any_id_and_names_what_it_does_not_know(seat: Any) -> None:
    memory_id, _ = _thesis(seat)
    retrieval_id = seat.find("v2")["retrieval_id"]
    assert seat.book.show(memory_id)[0].event_type == "thesis.opened"
    assert seat.book.show(retrieval_id)[0].event_type == "memory.retrieved"
    event_id = seat.entries()[-1].event_id
    assert seat.book.show(event_id)[0].event_id == event_id
    with pytest.raises(NotFound):
        seat.book.show("mem_none")
