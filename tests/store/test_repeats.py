"""What an agent says again word for word: the memory that stands, counted; on other terms it is a new one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import NoteRisk, OpenThesis, Propose, ProposeLesson, Remember, ResolveMemory

if TYPE_CHECKING:
    from store.commands import Command

REPEATED: dict[str, Command] = {
    "memory": Remember(text="t", symbol="aapl", tags=("x",), category="macro"),
    "proposal": Propose(text="t", symbol="aapl", tags=("x",), action="BUY"),
    "risk_note": NoteRisk(text="t", symbol="aapl", tags=("x",)),
    "lesson": ProposeLesson(text="t", symbol="aapl", tags=("x",), outcome={"pnl": "1"}),
    "thesis": OpenThesis(text="t", symbol="aapl", tags=("x",), direction="Long"),
}


@pytest.mark.parametrize(("kind", "command"), REPEATED.items())
def test_an_exact_repeat_is_the_memory_that_stands_and_is_counted(
    seat: Any, kind: str, command: Command
) -> None:
    first = seat.do(command)
    for count in (1, 2):
        again = seat.do(command)
        assert (again.id, again.kind, again.version, again.extra) == (first.id, kind, 1, {"repeat": count})
        (warning,) = again.warnings
        assert first.id in warning
        assert seat.last_content("memory.repeated")["count"] == count
    assert seat.find("t", kind=kind)["total"] == 1
    assert seat.do(command, "bob").id != first.id
    assert seat.do(replace(command, symbol="MSFT")).id != first.id


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("memory", {"category": "micro"}),
        ("proposal", {"action": "sell"}),
        ("lesson", {"outcome": {"pnl": "-1"}}),
        ("thesis", {"direction": "short"}),
        ("thesis", {"target": "210"}),
        ("thesis", {"horizon": "a week"}),
        ("thesis", {"invalidation": "below 180"}),
        *((kind, {name: 1_900_000_000_000_000}) for kind in REPEATED for name in ("review_by", "expires_at")),
    ],
)
def test_the_same_words_on_other_terms_are_no_repeat(seat: Any, kind: str, told: dict[str, Any]) -> None:
    first = seat.do(REPEATED[kind]).id
    other = seat.do(replace(REPEATED[kind], **told))
    assert other.id != first
    assert "repeat" not in other.extra
    assert seat.do(replace(REPEATED[kind], **told)).extra == {"repeat": 1}
    assert seat.find("t", kind=kind)["total"] == 2


def test_what_is_over_is_said_anew_and_not_counted(seat: Any) -> None:
    """An ended or expired note stands no more, and neither does one that was closed."""
    note = Remember(text="t")
    ended = seat.do(note).id
    seat.do(ResolveMemory(memory_id=ended, status="retired"))
    brief = seat.do(replace(note, expires_at=seat.clock.us + 60_000_000)).id
    assert brief != ended
    seat.clock.us += 3_600_000_000
    last = seat.do(note)
    assert last.id not in (ended, brief)
    assert seat.do(note).extra == {"repeat": 1}


def test_a_note_that_replaces_one_of_the_same_words_is_a_new_one(seat: Any) -> None:
    first = seat.do(Remember(text="t")).id
    second = seat.do(Remember(text="t", supersedes=first))
    assert second.id != first
    assert seat.do(Remember(text="t")).id == second.id
