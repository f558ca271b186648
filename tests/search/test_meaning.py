"""With the bundled model, what was written in other words is found, and what answers nothing is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import NoteRisk, Remember
from store.search import meaning

if TYPE_CHECKING:
    from conftest import Seat

    from store.embedding.loading import Encoder

NOTES = {
    "breakouts": "Breakouts right after a rate decision failed four times in five, so wait an hour.",
    "size": "Cut the position in half when volatility doubles.",
    "options": "Never hold short options over the weekend.",
    "fuel": "The airline hedged its jet fuel for the winter.",
    "earnings": "Earnings beat estimates but the shares fell on weak guidance.",
    "margin": "Our broker rejected the order because margin was insufficient.",
    "gold": "Gold rises when real yields fall.",
}
PARAPHRASES = {
    "brokerage refused a trade for lack of collateral": "margin",
    "stock dropped although profits topped forecasts": "earnings",
    "bullion climbs as inflation-adjusted interest goes down": "gold",
    "do not keep sold calls or puts from Friday to Monday": "options",
}
OFF_TOPIC = ("sourdough starter feeding ratio", "best way to train a puppy", "poems about autumn rain")


class Shelf:
    """A ledger with the notes, embedded; `words` reads it without a model."""

    def __init__(
        self, open_seat: Callable[..., Seat], embed: Callable[[Seat], int], bundled: Encoder
    ) -> None:
        self.seat = open_seat(encoder=bundled)
        self.words = open_seat()
        self.ids = {name: self.seat.do(Remember(text=text)).id for name, text in NOTES.items()}
        embed(self.seat)


@pytest.fixture
def shelf(open_seat: Callable[..., Seat], embed: Callable[[Seat], int], bundled: Encoder) -> Shelf:
    return Shelf(open_seat, embed, bundled)


@pytest.mark.parametrize("query", PARAPHRASES)
def test_a_paraphrase_without_a_word_in_common_is_found_by_meaning_alone(shelf: Shelf, query: str) -> None:
    wanted = shelf.ids[PARAPHRASES[query]]
    assert wanted not in shelf.words.ids(query)
    assert shelf.seat.ids(query)[0] == wanted


@pytest.mark.parametrize("query", OFF_TOPIC)
def test_a_query_that_nothing_answers_finds_nothing_and_says_so(shelf: Shelf, query: str) -> None:
    found = shelf.seat.find(query)
    assert (found["total"], found["hits"], found["cursor"], found["truncated"]) == (0, [], None, False)
    assert found["message"] == "Nothing relevant is recorded. Do not invent a memory."
    assert "semantic" not in found


@pytest.mark.parametrize("query", OFF_TOPIC)
def test_what_was_looked_at_and_rejected_stands_in_the_record(shelf: Shelf, query: str) -> None:
    shelf.seat.find(query)
    said = shelf.seat.last_content("memory.retrieved")
    assert (said["mode"], said["total"], said["selected"]) == ("hybrid", 0, [])
    rejected = said["candidates"]
    assert {one["id"] for one in rejected} <= set(shelf.ids.values())
    assert rejected
    assert [float(one["score"]) for one in rejected] == sorted(
        (float(one["score"]) for one in rejected), reverse=True
    )
    assert all(set(one) >= {"id", "version", "vector_rank", "vector_score", "score"} for one in rejected)


@pytest.mark.parametrize(
    "query", ["PLTR guidance", "Coinbase fees", "what did we say about Coinbase?", "$RBLX"]
)
def test_an_instrument_of_which_nothing_is_kept_is_named_in_the_reply(shelf: Shelf, query: str) -> None:
    shelf.seat.do(Remember(text="Guidance was cut and fees rose", symbol="NVDA"))
    name = next(word for word in ("PLTR", "Coinbase", "$RBLX") if word in query)
    found = shelf.seat.find(query)
    assert found["hits"] == []
    assert found["message"] == (
        f"Nothing was found by words alone. Do not invent a memory. Nothing is kept about {name}."
    )


def test_one_of_two_instruments_is_found_and_the_other_is_not_made_up(shelf: Shelf) -> None:
    note = shelf.seat.do(Remember(text="Guidance was cut again", symbol="NVDA")).id
    found = shelf.seat.find("guidance of NVDA or PLTR")
    assert [hit["id"] for hit in found["hits"]][:1] == [note]
    assert found["message"] == "Nothing is kept about PLTR."


@pytest.mark.parametrize(
    "query",
    [
        "What do we hold open on AAPL, and why?",
        "What did we learn last time trading Apple?",
        "AAPL exit plan",
        "AAPL, MSFT and TSLA",
        "APPLE",
    ],
)
def test_a_question_about_an_instrument_of_the_memory_finds_what_is_kept_about_it(
    shelf: Shelf, embed: Callable[[Seat], int], query: str
) -> None:
    kept = {
        shelf.seat.do(Remember(text="iPhone demand is weak in China, cut the size.", symbol="AAPL")).id,
        shelf.seat.do(Remember(text="Services margin carries the quarter.", symbol="AAPL")).id,
    }
    for number in range(8):
        shelf.seat.do(Remember(text=f"Cloud growth slows to {number} %.", symbol="MSFT"))
    embed(shelf.seat)
    assert kept & {hit["id"] for hit in shelf.seat.find(query)["hits"]}


@pytest.mark.parametrize(
    "query", ["what is the MAX drawdown limit", "CHECK the drawdown limit PLEASE", "drawdown limit"]
)
def test_a_word_said_with_force_is_no_instrument(
    shelf: Shelf, embed: Callable[[Seat], int], query: str
) -> None:
    note = shelf.seat.do(Remember(text="The drawdown limit of the desk is 4 percent.")).id
    embed(shelf.seat)
    found = shelf.seat.find(query)
    assert found["hits"][0]["id"] == note
    assert "message" not in found


def test_a_lesson_about_no_instrument_is_found_for_one_of_which_nothing_is_kept(
    shelf: Shelf, embed: Callable[[Seat], int]
) -> None:
    lesson = shelf.seat.do(Remember(text="Never hold long options through an earnings report.")).id
    shelf.seat.do(Remember(text="Held the options through the earnings report.", symbol="NVDA"))
    embed(shelf.seat)
    found = shelf.seat.find("should we hold options through the earnings report of Amazon?")
    assert [hit["id"] for hit in found["hits"]] == [lesson]
    assert found["message"] == "Nothing is kept about Amazon."


def test_what_was_just_written_is_found_by_its_meaning_at_once(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "FEW", 8)
    monkeypatch.setattr(meaning, "FEW_SECONDS", 60.0)
    note = shelf.seat.do(Remember(text="The carrier lowered its guidance before the results, so we sold.")).id
    found = shelf.seat.find("why did we exit the airline ahead of earnings")
    assert note in [hit["id"] for hit in found["hits"]]
    assert "semantic" not in found


@pytest.mark.parametrize("query", ["nvda", "Nvidia", "NVDA?", "$NVDA", "NVDA’s"])
def test_a_query_that_is_only_an_instrument_finds_what_is_kept_about_it(
    shelf: Shelf, embed: Callable[[Seat], int], query: str
) -> None:
    note = shelf.seat.do(Remember(text="The chip maker guided below the street.", symbol="NVDA")).id
    for vectors in ("not yet there", "there"):
        found = shelf.seat.find(query)
        assert [hit["id"] for hit in found["hits"]] == [note], vectors
        embed(shelf.seat)


def test_a_text_with_every_word_of_the_query_is_found_whatever_the_model_makes_of_it(shelf: Shelf) -> None:
    note = shelf.seat.do(NoteRisk(text="Cut it in half when volatility doubles", symbol="F")).id
    for query in ("F half", "F volatility"):
        assert shelf.words.ids(query)[0] == note
        assert shelf.seat.ids(query)[0] == note


def test_a_reference_deep_in_a_long_note_is_found_by_that_word_alone(
    open_seat: Callable[..., Seat], embed: Callable[[Seat], int], bundled: Encoder
) -> None:
    filler = "The desk reviewed positions and risk limits and agreed to keep exposure low into the print. "
    seat = open_seat(encoder=bundled)
    for day in range(30):
        seat.do(Remember(text=f"{filler}Day {day}."))
    note = seat.do(Remember(text=f"{filler * 12}The reference was QX7781. {filler * 6}")).id
    embed(seat)
    assert open_seat().ids("QX7781") == [note]
    assert seat.ids("QX7781") == [note]


def test_a_new_text_is_found_by_its_words_before_it_has_vectors_and_the_reply_says_so(
    shelf: Shelf, embed: Callable[[Seat], int]
) -> None:
    note = shelf.seat.do(Remember(text="A tanker strike delays crude cargoes")).id
    found = shelf.seat.find("tanker strike")
    assert [hit["id"] for hit in found["hits"]][:1] == [note]
    assert found["semantic"] == "newer texts by words only: they are being embedded"
    assert embed(shelf.seat) == 1
    found = shelf.seat.find("petroleum shipments held up by industrial action")
    assert [hit["id"] for hit in found["hits"]][:1] == [note]
    assert "semantic" not in found


@pytest.mark.parametrize("padding", ["", " and then some more was said about it" * 8], ids=["short", "long"])
def test_the_first_texts_of_a_ledger_are_found_by_their_words_before_any_has_vectors(
    open_seat: Callable[..., Seat], bundled: Encoder, padding: str
) -> None:
    seat = open_seat(encoder=bundled)
    note = seat.do(Remember(text="Zinc shipment is late" + padding)).id
    for query in ("zinc", "zinc shipment", "the late shipment of zinc"):
        found = seat.find(query)
        assert [hit["id"] for hit in found["hits"]] == [note]
        assert found["semantic"] == "newer texts by words only: they are being embedded"


def test_a_detailed_reply_says_of_each_hit_why_it_stands_where_it_does(shelf: Shelf) -> None:
    def provenance(query: str) -> list[dict[str, Any]]:
        return [hit["provenance"] for hit in shelf.seat.find(query, detailed=True)["hits"]]

    by_both = provenance("gold and real yields")[0]
    assert by_both["rank"] == by_both["lexical_rank"] == by_both["vector_rank"] == 1
    assert by_both["lexical_score"] > 0
    assert 0.5 < by_both["vector_score"] <= 1
    assert by_both["score"] > by_both["vector_score"]
    by_meaning = provenance("bullion climbs as inflation-adjusted interest goes down")[0]
    assert by_meaning["vector_rank"] == 1
    assert "lexical_rank" not in by_meaning
    assert all("provenance" not in hit for hit in shelf.seat.find("gold")["hits"])


def test_of_many_instruments_of_which_nothing_is_kept_a_few_are_named(shelf: Shelf) -> None:
    query = " ".join(f"$AB{chr(65 + at // 26)}{chr(65 + at % 26)}" for at in range(400))
    found = shelf.seat.find(query, reply_chars=2_000)
    assert found["hits"] == []
    assert found["message"].count("$") == 5
