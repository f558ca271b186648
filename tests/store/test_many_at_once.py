"""Two writers at one ledger: nothing is lost, nothing is decided twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from store.audit import verify
from store.commands import CloseThesis, OpenThesis, Remember, UpdateThesis
from store.errors import AlreadyClosed, DeskbookError, VersionConflict

ROUNDS = 50


def _at_once(*calls: Any) -> list[Any]:
    """What each call answers, or the error it raises, when all start at the same moment."""
    barrier = threading.Barrier(len(calls))

    def one(call: Any) -> Any:
        barrier.wait(30)
        try:
            return call()
        except DeskbookError as fault:
            return fault

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


@pytest.fixture
def two(open_seat: Any) -> tuple[Any, Any]:
    """Two books on one ledger, each with its own writer, as two processes have them."""
    return open_seat(agent="ann"), open_seat(agent="bob")


def test_of_two_closes_of_one_thesis_exactly_one_is_accepted(two: tuple[Any, Any]) -> None:
    """P011"""
    ann, bob = two
    for _ in range(ROUNDS):
        thesis = ann.do(OpenThesis(text="x", symbol="AAPL")).id
        answers = _at_once(
            lambda thesis=thesis: ann.do(CloseThesis(thesis_id=thesis, return_pct="2")),
            lambda thesis=thesis: bob.do(CloseThesis(thesis_id=thesis, return_pct="-1")),
        )
        (lost,) = [answer for answer in answers if isinstance(answer, DeskbookError)]
        (won,) = [answer for answer in answers if not isinstance(answer, DeskbookError)]
        assert isinstance(lost, AlreadyClosed)
        assert f"sequence {won.sequence}" in lost.message
        outcome = ann.get(thesis)["memory"]["details"]["outcome"]
        assert outcome["return_pct"] == ("2" if answers[0] is won else "-1")
    assert len(ann.entries("thesis.closed")) == ROUNDS


def test_of_two_updates_from_one_version_exactly_one_is_accepted(two: tuple[Any, Any]) -> None:
    """P009"""
    ann, bob = two
    thesis = ann.do(OpenThesis(text="v1")).id
    for version in range(1, 21):
        answers = _at_once(
            lambda version=version: ann.do(
                UpdateThesis(thesis_id=thesis, text=f"ann {version}", expected_version=version)
            ),
            lambda version=version: bob.do(
                UpdateThesis(thesis_id=thesis, text=f"bob {version}", expected_version=version)
            ),
        )
        assert [type(answer) for answer in answers].count(VersionConflict) == 1
    assert ann.get(thesis)["memory"]["version"] == 21


def test_two_writers_of_two_hundred_notes_make_one_gap_free_chain(two: tuple[Any, Any]) -> None:
    ann, bob = two

    def write(seat: Any) -> list[str]:
        return [seat.do(Remember(text=f"{seat.agent} {at}")).id for at in range(200)]

    ids = _at_once(lambda: write(ann), lambda: write(bob))
    assert len({*ids[0], *ids[1]}) == 400
    entries = ann.entries()
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    recorded = [entry for entry in entries if entry.event_type == "memory.recorded"]
    assert {agent: [e.subject_id for e in recorded if e.agent == agent] for agent in ("ann", "bob")} == {
        "ann": ids[0], "bob": ids[1],
    }  # fmt: skip
    assert verify(ann.path, "default", None).sound
