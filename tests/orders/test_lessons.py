"""Lessons are earned: observed outcomes count, each once, and a stated rule turns the tally into a status."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from store.commands import FlagMemory, ResolveMemory, ValidateLesson
from store.errors import IllegalTransition, InvalidInput, NotFound, PermissionDenied

CASES = list(itertools.product(("supports", "contradicts"), repeat=4))


def fills(floor: Any, count: int) -> list[str]:
    return [floor.fill(floor.submit(symbol=f"S{at}").id).event_id for at in range(count)]


@pytest.mark.parametrize("verdicts", CASES)
def test_a_lesson_is_validated_while_more_outcomes_support_than_contradict_it(
    floor: Any, verdicts: tuple[str, ...]
) -> None:
    lesson = floor.lesson().id
    supports = 0
    for at, (verdict, outcome) in enumerate(zip(verdicts, fills(floor, 4), strict=True), start=1):
        supports += verdict == "supports"
        want = "validated" if supports > at - supports else "contradicted"
        assert floor.judge(lesson, verdict, outcome).status == want
        tally = {"supports": supports, "contradicts": at - supports}
        assert floor.seat.ids("breakouts", kind="lesson", status=want) == [lesson]
        assert floor.seat.find("breakouts")["hits"][0]["tally"] == tally
        assert floor.told("lesson.judged")[-1].items() >= (tally | {"status": want}).items()
        shown = [item["tally"] for item in floor.state()["validated_lessons"]]
        assert shown == ([tally] if want == "validated" else [])


def test_several_outcomes_count_one_each(floor: Any) -> None:
    lesson = floor.lesson().id
    first, second, third = fills(floor, 3)
    floor.judge(lesson, "supports", first, second)
    floor.judge(lesson, "contradicts", third)
    assert floor.told("lesson.judged")[-1]["supports"] == 2
    assert floor.status(lesson) == "validated"


def test_an_outcome_counts_once_for_a_lesson_and_again_for_another(floor: Any) -> None:
    first, second = floor.lesson().id, floor.lesson(text="Gaps close.").id
    (outcome,) = fills(floor, 1)
    floor.judge(first, "supports", outcome)
    for verdict in ("supports", "contradicts"):
        command = ValidateLesson(lesson_id=first, verdict=verdict, outcome_ids=(outcome,))
        assert floor.refuses(InvalidInput, command, "bob").field == "outcome_ids[0]"
    twice = ValidateLesson(lesson_id=second, verdict="supports", outcome_ids=(outcome, outcome))
    assert floor.refuses(InvalidInput, twice).field == "outcome_ids"
    assert floor.judge(second, "supports", outcome).status == "validated"


def test_a_repeat_under_one_key_counts_once(floor: Any) -> None:
    lesson, (outcome,) = floor.lesson().id, fills(floor, 1)
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(outcome,))
    assert floor.do(command, key="k") == floor.do(command, key="k")
    assert len(floor.told("lesson.judged")) == 1


def test_a_retired_lesson_is_judged_no_more(floor: Any) -> None:
    lesson, (outcome,) = floor.lesson().id, fills(floor, 1)
    floor.do(ResolveMemory(memory_id=lesson, status="retired"))
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(outcome,))
    assert floor.refuses(IllegalTransition, command).field == "lesson_id"
    assert floor.status(lesson) == "retired"


def test_an_observation_of_a_thesis_counts_and_what_the_broker_merely_answered_does_not(floor: Any) -> None:
    lesson, thesis = floor.lesson().id, floor.thesis().id
    answer = floor.outcome(floor.submit().id, "acknowledged").event_id
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(answer,))
    assert floor.refuses(InvalidInput, command).field == "outcome_ids[0]"
    floor.hold("AAPL")
    observed = next(
        entry for entry in floor.seat.entries("thesis.outcome_observed") if entry.subject_id == thesis
    )
    assert floor.judge(lesson, "supports", observed.event_id).status == "validated"


def test_a_claimed_observation_of_a_thesis_counts_nothing(floor: Any) -> None:
    lesson = floor.lesson().id
    floor.thesis()
    floor.hold("AAPL", agent="ann")
    (entry,) = floor.seat.entries("thesis.outcome_observed")
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(entry.event_id,))
    assert floor.refuses(PermissionDenied, command).field == "outcome_ids[0]"


def test_an_outcome_counts_only_when_it_came_after_the_lesson(floor: Any) -> None:
    """Else an author could write a lesson from a fill and have the same fill bear it out."""
    (before,) = fills(floor, 1)
    lesson = floor.lesson().id
    (after,) = fills(floor, 1)
    for names, at in (((before,), 0), ((after, before), 1)):
        command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=names)
        fault = floor.refuses(InvalidInput, command)
        assert fault.field == f"outcome_ids[{at}]"
        assert "later outcome" in fault.hint
    assert floor.judge(lesson, "supports", after).status == "validated"


def test_a_lesson_is_as_old_as_its_first_entry_and_not_as_its_last_judgement(floor: Any) -> None:
    lesson = floor.lesson().id
    first, second = fills(floor, 2)
    floor.judge(lesson, "contradicts", second)
    assert floor.judge(lesson, "contradicts", first).status == "contradicted"


@pytest.mark.parametrize(
    ("written", "traded", "counts"),
    [
        (None, "TSLA", True),
        ("AAPL", "AAPL", True),
        ("aapl", "AAPL", True),
        ("BRK.B", "brk-b", True),
        ("AAPL", "TSLA", False),
        ("AAPL", "AAPL.L", False),
    ],
)
def test_a_lesson_on_a_symbol_is_judged_by_outcomes_on_that_instrument(
    floor: Any, written: str | None, traded: str, counts: bool
) -> None:
    lesson = floor.lesson(symbol=written).id
    fill = floor.fill(floor.submit(symbol=traded).id).event_id
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(fill,))
    if counts:
        assert floor.do(command).status == "validated"
        return
    fault = floor.refuses(InvalidInput, command)
    assert (fault.field, "symbol" in fault.hint) == ("outcome_ids[0]", True)
    assert floor.status(lesson) == "proposed"


def test_an_observation_of_a_thesis_judges_lessons_on_its_symbol_alone(floor: Any) -> None:
    mine, other = floor.lesson(symbol="AAPL").id, floor.lesson(symbol="MSFT").id
    floor.thesis()
    floor.hold("AAPL")
    (entry,) = floor.seat.entries("thesis.outcome_observed")
    refused = ValidateLesson(lesson_id=other, verdict="supports", outcome_ids=(entry.event_id,))
    assert floor.refuses(InvalidInput, refused).field == "outcome_ids[0]"
    assert floor.judge(mine, "supports", entry.event_id).status == "validated"


def test_a_fill_of_a_spread_is_an_outcome_on_each_of_its_legs(floor: Any) -> None:
    lesson, other = floor.lesson(symbol="AAPL").id, floor.lesson(symbol="TSLA").id
    legs = [{"symbol": name, "side": "buy", "quantity": "1"} for name in ("MSFT", "AAPL")]
    fill = floor.fill(floor.submit(legs=legs).id).event_id
    assert floor.judge(lesson, "supports", fill).status == "validated"
    refused = ValidateLesson(lesson_id=other, verdict="supports", outcome_ids=(fill,))
    assert floor.refuses(InvalidInput, refused).field == "outcome_ids[0]"


def test_a_harness_judges_by_the_same_rule(floor: Any, harness: str) -> None:
    lesson = floor.lesson().id
    claim = floor.fill(floor.submit().id, "bob").event_id
    command = ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=(claim,))
    assert floor.refuses(PermissionDenied, command, harness).field == "outcome_ids[0]"
    assert floor.refuses(
        InvalidInput, ValidateLesson(lesson_id=lesson, verdict="supports", outcome_ids=()), harness
    )


def test_only_lessons_are_judged(floor: Any) -> None:
    (outcome,) = fills(floor, 1)
    for name in (floor.thesis().id, "les_0000000000000", outcome):
        command = ValidateLesson(lesson_id=name, verdict="supports", outcome_ids=(outcome,))
        assert floor.refuses(NotFound, command).field == "lesson_id"
    verdict = ValidateLesson(lesson_id=floor.lesson().id, verdict="maybe", outcome_ids=(outcome,))
    assert floor.refuses(InvalidInput, verdict).field == "verdict"


def test_a_claim_asks_a_person_and_changes_no_status(floor: Any) -> None:
    lesson = floor.lesson(outcome={"result": "win"}).id
    floor.do(FlagMemory(memory_id=lesson, reason="other", note="Please sign off: my fills bear it out."))
    assert floor.status(lesson) == "proposed"
    assert [item["memory_id"] for item in floor.state()["reviews_due"]] == [lesson]
