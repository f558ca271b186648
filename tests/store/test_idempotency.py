"""The same key with the same arguments gives the first answer back, whatever has happened since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from store.commands import CloseThesis, Decide, NoteRisk, OpenThesis, Remember, UpdateThesis
from store.errors import IdempotencyConflict, InvalidInput, NotFound

NOTE = Remember(text="once", tags=("a", "b"))
DECISION = Decide(text="once", action="hold", tags=("a", "b"))


def test_a_repeat_is_stored_once_and_answered_with_the_first_answer(seat: Any) -> None:
    first = seat.do(NOTE, key="k1")
    before = seat.entries()
    assert seat.do(NOTE, key="k1") == first
    assert seat.do(NOTE, key=" k1 ") == first
    assert seat.do(Remember(text="once", tags=("a", "b"), symbol=None), key="k1") == first
    assert seat.entries() == before


@pytest.mark.parametrize(
    "other",
    [
        Remember(text="once"),
        Remember(text="once", tags=("b", "a")),
        Remember(text="once ", tags=("a", "b")),
        Remember(text="once", tags=("a", "b"), symbol="AAPL"),
        NoteRisk(text="once", tags=("a",)),
    ],
)
def test_a_key_with_other_arguments_is_a_conflict_that_names_the_first_use(
    seat: Any, refused: Any, other: Any
) -> None:
    first = seat.do(NOTE, key="k1")
    with refused(seat, IdempotencyConflict, "idempotency_key", f"sequence {first.sequence}"):
        seat.do(other, key="k1")


def test_clearing_the_tags_is_another_call_than_leaving_them(seat: Any, refused: Any) -> None:
    thesis = seat.do(OpenThesis(text="v1", tags=("a",)))
    seat.do(UpdateThesis(thesis_id=thesis.id, text="v2"), key="k1")
    with refused(seat, IdempotencyConflict, "idempotency_key"):
        seat.do(UpdateThesis(thesis_id=thesis.id, text="v2", tags=()), key="k1")


def test_a_key_belongs_to_one_agent_one_tool_and_one_ledger(open_seat: Any) -> None:
    seat, other, run = open_seat(), open_seat("other"), open_seat("default", "r1")
    first = seat.do(DECISION, "ann", key="k1", tool="remember")
    written = [
        first,
        seat.do(DECISION, "bob", key="k1", tool="remember"),
        seat.do(DECISION, "ann", key="k1", tool="remember_note"),
        seat.do(DECISION, "ann", key="k1", tool=None),
        seat.do(DECISION, "ann", key="k2", tool="remember"),
        other.do(DECISION, "ann", key="k1", tool="remember"),
        run.do(DECISION, "ann", key="k1", tool="remember", now=run.clock.us),
    ]
    assert len({answer.id for answer in written}) == len(written)
    assert seat.do(DECISION, "ann", key="k1", tool="remember") == first


def test_a_repeat_has_an_answer_of_its_own_under_its_key(open_seat: Any) -> None:
    """What a key gives back is the count, not the first note; without a key each repeat is counted."""
    seat = open_seat()
    first = seat.do(NOTE, key="k1")
    again = seat.do(NOTE, key="k2")
    assert (again.id, again.extra) == (first.id, {"repeat": 1})
    assert seat.do(NOTE, key="k2") == again
    assert seat.do(NOTE, key="k1") == first
    assert seat.do(NOTE).extra == {"repeat": 2}
    assert len(seat.entries("memory.repeated")) == 2


def test_a_key_counts_in_every_session_and_model_call_and_after_a_restart(open_seat: Any) -> None:
    seat = open_seat()
    first = seat.do(NOTE, key="k1", session="s1", call="c1")
    assert seat.do(NOTE, key="k1", session="s2", call="c2") == first
    seat.book.close()
    assert open_seat().do(NOTE, key="k1") == first


def test_a_caller_without_a_tool_has_its_repeats_folded_too(seat: Any) -> None:
    first = seat.do(NOTE, key="k1", tool=None)
    assert seat.do(NOTE, key="k1", tool=None) == first
    assert len(seat.entries("memory.recorded")) == 1


def test_a_repeat_after_later_changes_gives_the_first_answer(seat: Any) -> None:
    opening = OpenThesis(text="v1", symbol="AAPL")
    seat.do(OpenThesis(text="older", symbol="AAPL"))
    opened = seat.do(opening, key="k1")
    assert opened.warnings != ()
    updated = seat.do(UpdateThesis(thesis_id=opened.id, text="v2"), key="k2")
    closed = seat.do(CloseThesis(thesis_id=opened.id, pnl="1"), key="k3")
    for command, key, answer in (
        (opening, "k1", opened),
        (UpdateThesis(thesis_id=opened.id, text="v2"), "k2", updated),
        (CloseThesis(thesis_id=opened.id, pnl="1"), "k3", closed),
    ):
        assert seat.do(command, key=key) == answer
    assert (opened.status, opened.version, updated.version, closed.status) == ("open", 1, 2, "closed")


def test_a_call_that_failed_leaves_its_key_free(seat: Any) -> None:
    with pytest.raises(NotFound):
        seat.do(UpdateThesis(thesis_id="ths_none", text="x"), key="k1")
    assert seat.do(NOTE, key="k1").version == 1


def test_evidence_is_compared_by_value(seat: Any) -> None:
    first = seat.do(Decide(text="x", action="buy", evidence={"a": 1.0, "b": [1e16]}), key="k1")
    assert seat.do(Decide(text="x", action="buy", evidence={"b": [1e16], "a": 1}), key="k1") == first
    with pytest.raises(IdempotencyConflict):
        seat.do(Decide(text="x", action="buy", evidence={"a": 2, "b": [1e16]}), key="k1")


@pytest.mark.parametrize("key", ["", "  ", "x" * 129, "a\nb", "a\x00", "\ud800"])
def test_a_key_that_cannot_be_kept_is_refused(seat: Any, refused: Any, key: str) -> None:
    with refused(seat, InvalidInput, "idempotency_key"):
        seat.do(NOTE, key=key)


def test_repeats_at_the_same_moment_are_stored_once(seat: Any) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: seat.do(NOTE, key="k1"), range(32)))
    assert len(set(answers)) == 1
    assert len(seat.entries("memory.recorded")) == 1
