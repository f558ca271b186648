"""A reason that says what it takes away is refused, by the places of its words and never by themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.commands import Decide, Remember
from store.errors import InvalidInput
from store.redaction.reasons import Gone, gone_with, telling

TEXT = "Zebulon Quirke sold the house in march because of the flood, account DE-4477-ACC90817 of his bank"
LETTERS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäé", min_size=5, max_size=9)


@pytest.fixture
def gone() -> Gone:
    return gone_with([], [TEXT])


@pytest.mark.parametrize(
    ("reason", "place"),
    [
        ("the name Zebulon Quirke", "words 3 and 4"),
        ("it named ZEBULON", "word 3"),
        ("quirke asked for it", "word 1"),
        ("he wrote that he sold the house", "words 5 and 6"),
        ("number acc90817 was a mistake", "word 2"),
        ("holds 4477 ACC90817", "words 2 and 3"),
        ("a loss by Flood of private things", "word 4"),
    ],
)
def test_a_reason_that_says_it_is_found_out(gone: Gone, reason: str, place: str) -> None:
    found = telling(reason, gone)
    assert found is not None
    assert place in found


@pytest.mark.parametrize(
    "reason",
    [
        "by mistake",
        "a client asked for it",
        "because of the law",  # words that hold sentences together
        "Flood of private things",  # the capital of a sentence's first word
        "in 2026 by an order of the court",
        "",
    ],
)
def test_a_reason_in_other_words_passes(gone: Gone, reason: str) -> None:
    assert telling(reason, gone) is None


@given(st.lists(LETTERS, min_size=2, max_size=30, unique=True), st.data())
def test_any_two_words_in_a_row_and_any_name_are_found(words: list[str], data: st.DataObject) -> None:
    text = " ".join([*words, "Quorvex77"])
    gone = gone_with([], [text])
    at = data.draw(st.integers(0, len(words) - 2))
    assert telling(f"why: {words[at].upper()}, {words[at + 1]}", gone) is not None
    assert telling(f"why {words[at].capitalize()}", gone) is not None
    assert telling("since quorvex77", gone) is not None
    assert telling("zz".join(words), gone) is None
    assert telling(f"why: {words[at]}", gone_with([], [text], in_a_row=False)) is None


@pytest.mark.parametrize(
    "reason", ["Zebulon asked", "tagged zebulontag1", "the tail risk", "seen with Pelligrew", "of 90817.25"]
)
def test_all_that_goes_is_compared_and_nothing_is_changed(
    open_seat: Any, redact: Any, register: Any, reason: str
) -> None:
    seat = open_seat()
    made = seat.do(
        Decide(
            text="Zebulon sells.",
            action="sell",
            symbol="AAPL",
            tags=("zebulontag1",),
            evidence={"Pelligrew": ["a tail risk", 90817.25]},
        )
    )
    seat.find("Zebulon")
    seat.book.close()
    with pytest.raises(InvalidInput, match="says what is to be taken away") as fault:
        redact(made.id, reason=reason)
    assert fault.value.field == "reason"
    for word in ("Zebulon", "zebulontag1", "tail", "Pelligrew", "90817"):
        assert word not in f"{fault.value.message} {fault.value.hint}"
    assert register.lines(seat.book.genesis.store_id) == []
    assert redact(made.id, reason="a decision of ann on AAPL, by mistake").entries


def test_a_search_is_compared_by_its_query(open_seat: Any, redact: Any) -> None:
    seat = open_seat()
    seat.do(Remember(text="plain words"))
    found = seat.find("plain Pelligrew")
    seat.book.close()
    with pytest.raises(InvalidInput, match="word 2"):
        redact(found["retrieval_id"], reason="about pelligrew")
    assert redact(found["retrieval_id"], reason="plain mistake").entries == {None: 1}
