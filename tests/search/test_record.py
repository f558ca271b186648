"""What the record of a search by meaning says, and how far the vectors reached when it was made."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store import SearchRequest
from store.commands import Remember
from store.errors import InvalidInput

if TYPE_CHECKING:
    from conftest import Seat, Senses

    from store.embedding.loading import Encoder

Embed = Callable[["Seat"], int]


def fill(seat: Seat, count: int, text: str = "revenue") -> list[str]:
    return [seat.do(Remember(text=f"{text} number {at}")).id for at in range(count)]


def test_the_record_names_the_model_how_far_it_reached_and_both_channels_ranks_and_scores(
    meant: Seat, embed: Embed
) -> None:
    fill(meant, 70)
    by_meaning = meant.do(Remember(text="turnover")).id
    embed(meant)
    cut = meant.book.head().sequence
    reply = meant.book.search(meant.caller(), SearchRequest(query="revenue number", limit=50))
    said = meant.last_content("memory.retrieved")
    assert (said["mode"], said["model"], said["watermark"], said["cut"]) == ("hybrid", "senses", cut, cut)
    assert "inherited_watermark" not in said
    assert said["rendered"] == reply.text
    assert len(said["candidates"]) == 50
    assert said["total"] == reply.body["total"] == 71
    for one in said["candidates"]:
        assert set(one) == {
            "id", "version", "lexical_rank", "lexical_score", "vector_rank", "vector_score", "score",
        }  # fmt: skip
        assert all(len(one[name].partition(".")[2]) == 4 for name in one if name.endswith("score"))
    scores = [float(one["score"]) for one in said["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert [one["id"] for one in said["selected"]] == [hit["id"] for hit in reply.body["hits"]]
    meant.find("turnover")
    (first, *_) = meant.last_content("memory.retrieved")["candidates"]
    assert (first["id"], first["lexical_rank"], first["vector_rank"]) == (by_meaning, 1, 1)


def test_one_that_only_meaning_found_has_no_rank_by_words(meant: Seat, embed: Embed) -> None:
    note = meant.do(Remember(text="turnover slid")).id
    embed(meant)
    assert meant.ids("revenue dropped") == [note]
    (one,) = meant.last_content("memory.retrieved")["candidates"]
    assert set(one) == {"id", "version", "vector_rank", "vector_score", "score"}
    assert (one["vector_rank"], one["vector_score"]) == (1, "1.0000")


def test_the_record_says_how_far_the_vectors_reached_and_not_how_far_the_ledger_did(
    meant: Seat, embed: Embed
) -> None:
    fill(meant, 3)
    embed(meant)
    reached = meant.book.head().sequence
    late = meant.do(Remember(text="turnover later")).id
    found = meant.find("revenue number")
    said = meant.last_content("memory.retrieved")
    assert said["watermark"] == reached < said["cut"]
    assert late not in [hit["id"] for hit in found["hits"]]
    assert found["semantic"].startswith("newer texts by words only")
    meant.find("something else")
    embed(meant)
    found = meant.find("revenue number")
    said = meant.last_content("memory.retrieved")
    assert said["watermark"] == said["cut"]
    assert late in [hit["id"] for hit in found["hits"]]
    assert "semantic" not in found


def test_a_search_without_a_meaning_to_find_is_recorded_without_a_model(meant: Seat, embed: Embed) -> None:
    fill(meant, 2, "!! odd")
    embed(meant)
    for query, mode in (("", "recent"), ("!!", "literal")):
        found = meant.find(query)
        said = meant.last_content("memory.retrieved")
        assert said["mode"] == mode
        assert not {"model", "watermark", "inherited_watermark"} & set(said)
        assert "semantic" not in found
        assert found["total"] == 2


def test_a_search_as_of_then_tells_no_mark_beyond_then(meant: Seat, embed: Embed) -> None:
    fill(meant, 3)
    then, cut = meant.clock.us, meant.book.head().sequence
    later = fill(meant, 3, "turnover")
    embed(meant)
    found = meant.find("revenue", as_of=then)
    said = meant.last_content("memory.retrieved")
    assert (said["cut"], said["watermark"], said["total"]) == (cut, cut, 3)
    assert not {hit["id"] for hit in found["hits"]} & set(later)
    assert not {one["id"] for one in said["candidates"]} & set(later)
    assert "semantic" not in found


def test_the_second_page_goes_on_as_the_first_did_whatever_is_embedded_meanwhile(
    meant: Seat, embed: Embed
) -> None:
    ids = fill(meant, 6)
    by_meaning = [meant.do(Remember(text="turnover number"), f"agent-{at}").id for at in range(4)]
    embed(meant)
    whole = meant.ids("revenue number", limit=50)
    assert set(whole) == {*ids, *by_meaning}
    pages: list[str] = []
    cursor = None
    while True:
        page = meant.find("revenue number", limit=3, cursor=cursor)
        said = meant.last_content("memory.retrieved")
        assert (said["mode"], page["total"]) == ("hybrid", 10)
        pages += [hit["id"] for hit in page["hits"]]
        meant.do(Remember(text="turnover number written in between"), f"agent-{len(pages)}")
        embed(meant)
        cursor = page["cursor"]
        if cursor is None:
            break
    assert pages == whole


def test_a_second_page_looks_at_no_vectors_that_came_since_the_first(meant: Seat, embed: Embed) -> None:
    ids = fill(meant, 4)
    embed(meant)
    late = meant.do(Remember(text="turnover number")).id
    meant.do(Remember(text="nothing else"))
    first = meant.find("revenue number", limit=2)
    reached = meant.last_content("memory.retrieved")["watermark"]
    embed(meant)
    second = meant.find("revenue number", limit=50, cursor=first["cursor"])
    said = meant.last_content("memory.retrieved")
    assert (said["mode"], said["watermark"]) == ("hybrid", reached)
    shown = [hit["id"] for hit in first["hits"] + second["hits"]]
    assert len(set(shown)) == len(shown) == first["total"] == second["total"]
    assert {*ids} <= {*shown}
    fresh = meant.ids("revenue number", limit=50)
    assert fresh.index(late) < len(fresh)


def test_pages_that_began_by_words_go_on_by_words(open_seat: Callable[..., Seat], encoder: Encoder) -> None:
    plain = open_seat()
    ids = fill(plain, 5)
    first = plain.find("revenue", limit=2)
    seat = open_seat(encoder=encoder)
    while (step := seat.book.embed_next()) is not None and step.more:
        pass
    second = seat.find("revenue", limit=50, cursor=first["cursor"])
    assert seat.last_content("memory.retrieved")["mode"] == "terms"
    assert sorted(hit["id"] for hit in first["hits"] + second["hits"]) == sorted(ids)


@pytest.mark.parametrize(
    "extra",
    ["x", "[1,2,3]", '["a"]', "[true]", "{}", "[1.5]", "null,1", "[-5]", "[1e400]", "[1%s]" % ("0" * 30)],
)
def test_a_cursor_with_marks_that_no_search_gave_is_refused(meant: Seat, embed: Embed, extra: str) -> None:
    fill(meant, 4)
    embed(meant)
    genuine = meant.find("revenue", limit=1)["cursor"]
    fields = json.loads(base64.urlsafe_b64decode(genuine + "=" * (-len(genuine) % 4)))
    forged = json.dumps(fields[:4])[:-1] + f",{extra}]"
    with pytest.raises(InvalidInput) as fault:
        meant.find("revenue", limit=1, cursor=base64.urlsafe_b64encode(forged.encode()).decode().rstrip("="))
    assert fault.value.field == "cursor"


def test_a_forged_mark_shows_nothing_beyond_what_stands(meant: Seat, embed: Embed) -> None:
    fill(meant, 4)
    embed(meant)
    late = meant.do(Remember(text="turnover")).id
    genuine = meant.find("revenue", limit=1)["cursor"]
    fields: list[Any] = json.loads(base64.urlsafe_b64decode(genuine + "=" * (-len(genuine) % 4)))
    for mark in (2**52, 3, 0):
        fields[4:] = [[mark]]
        text = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
        page = meant.find("revenue", limit=50, cursor=text)
        assert late not in [hit["id"] for hit in page["hits"]]


def test_the_query_is_embedded_once_for_all_its_pages(meant: Seat, embed: Embed, senses: Senses) -> None:
    fill(meant, 6)
    embed(meant)
    senses.asked.clear()
    first = meant.find("revenue number", limit=2)
    meant.find("revenue number", limit=2, cursor=first["cursor"])
    assert senses.asked == ["revenue number"]
