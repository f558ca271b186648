"""Staleness: a memory past its review ranks lower and says so, one that has expired is found by who asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from store import Caller
from store.clock import DAY
from store.commands import NoteRisk, OpenThesis, Propose, ProposeLesson, Remember
from store.errors import InvalidInput
from store.policy import Policy
from store.review_commands import Renew

if TYPE_CHECKING:
    from conftest import Seat

OpenSeat = Callable[..., "Seat"]
START = 1_772_461_800_000_000  # 2026-03-02T14:30:00Z


@pytest.mark.parametrize("kind", [Remember, Propose, NoteRisk, ProposeLesson, OpenThesis])
def test_every_kind_may_say_until_when_it_holds(seat: Seat, kind: Callable[..., Remember]) -> None:
    soon, late = seat.clock.us + DAY, seat.clock.us + 2 * DAY
    written = seat.do(kind(text="holds for a while", symbol="AAPL", review_by=soon, expires_at=late))
    assert seat.ids("holds") == [written.id]
    seat.clock.us = soon + DAY // 2
    (hit,) = seat.find("holds")["hits"]
    assert (hit["stale"], hit["stale_for"]) == (True, "12h")
    seat.clock.us = late
    assert seat.ids("holds") == []
    (hit,) = seat.find("holds", expired=True)["hits"]
    assert (hit["id"], hit["expired"]) == (written.id, True)
    assert seat.ids(expired=True) == [written.id]
    assert seat.ids(symbol="AAPL", kind=hit["kind"], expired=True) == [written.id]


@pytest.mark.parametrize("kind", [Remember, Propose, NoteRisk, ProposeLesson, OpenThesis])
def test_what_would_be_expired_at_once_is_refused(seat: Seat, kind: Callable[..., Remember]) -> None:
    with pytest.raises(InvalidInput) as refused:
        seat.do(kind(text="over", expires_at=seat.clock.us - 1))
    assert refused.value.field == "expires_at"
    assert seat.entries("session.started") == []


def test_a_stale_memory_ranks_below_a_fresh_one(seat: Seat) -> None:
    stale = seat.do(Remember(text="breakout on volume", review_by=seat.clock.us + DAY), "bob").id
    seat.clock.us += 2 * DAY
    fresh = seat.do(Remember(text="breakout on volume")).id
    assert seat.ids("breakout volume") == [fresh, stale]


def test_open_theses_and_lessons_past_review_are_due_and_nothing_else(seat: Seat) -> None:
    soon = seat.clock.us + DAY
    lesson = seat.do(ProposeLesson(text="a lesson", review_by=soon)).id
    thesis = seat.do(OpenThesis(text="a thesis", review_by=soon)).id
    seat.do(Remember(text="a note", review_by=soon))
    assert seat.state()["reviews_due"] == []
    seat.clock.us = soon
    assert {due["memory_id"] for due in seat.state()["reviews_due"]} == {lesson, thesis}
    assert {item.version.memory_id for item in seat.book.reviews_due()[1]} == {lesson, thesis}


def test_in_a_run_staleness_follows_the_simulated_clock(open_seat: OpenSeat) -> None:
    seat = open_seat(run="r1", policy=Policy(review_after={"lesson": 180 * DAY}))
    lesson = seat.do(ProposeLesson(text="size down before earnings"), now=START).id
    seat.clock.us += 3_650 * DAY  # the machine's clock is not asked
    assert seat.state(seat.caller(now=START + 179 * DAY))["reviews_due"] == []
    (due,) = seat.state(seat.caller(now=START + 180 * DAY))["reviews_due"]
    assert due["memory_id"] == lesson
    shown = seat.book.review_item(lesson).shown_sha256
    rita = Caller("rita", "reviewer", "ses-r", "review", now=START + 181 * DAY, reviewer=True)
    seat.book.execute(rita, Renew(memory_id=lesson, shown=shown))
    assert seat.state(seat.caller(now=START + 182 * DAY))["reviews_due"] == []
    assert seat.state(seat.caller(now=START + 361 * DAY))["counts"]["reviews_due"] == 1
