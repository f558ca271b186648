"""Search finds by words and filters, pages steadily, and records what it did before it answers."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest

from store import Filter, SearchRequest
from store.clock import format_instant
from store.commands import (
    CloseThesis,
    Decide,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    UpdateThesis,
)
from store.errors import InvalidInput, NotRecorded
from store.render import as_text

KINDS = (Remember, Propose, NoteRisk, ProposeLesson, OpenThesis)


def _fill(seat: Any, count: int, text: str = "breakout") -> list[str]:
    return [seat.do(Remember(text=f"{text} number {at}")).id for at in range(count)]


def test_hits_of_every_kind_are_filled_and_say_the_same_as_text(seat: Any) -> None:
    """P045"""
    for make in KINDS:
        seat.do(make(text=f"about {make.__name__} and aluminium", symbol="AA", tags=("metal",)), "bob")
    seat.do(Decide(text="decided on aluminium", action="buy", symbol="AA", tags=("metal",)), "bob")
    for detailed in (False, True):
        request = SearchRequest(query="aluminium", detailed=detailed)
        reply = seat.book.search(seat.caller(), request)
        assert json.loads(reply.text) == reply.body
        hits = reply.body["hits"]
        assert {hit["kind"] for hit in hits} == {
            "memory", "proposal", "risk_note", "decision", "lesson", "thesis",
        }  # fmt: skip
        for hit in hits:
            assert "aluminium" in hit["text"]
            assert (hit["symbol"], hit["agent"], hit["profile"]) == ("AA", "bob", "solo")
            assert all(hit[name] for name in ("id", "status", "effective_at", "age"))
            assert detailed == ("tags" in hit) == ("provenance" in hit)


def test_each_filter_narrows_and_several_tags_mean_all_of_them(seat: Any) -> None:
    one = seat.do(Remember(text="x one", tags=("a", "b"), symbol="F"))
    two = seat.do(Remember(text="x two", tags=("a",)), "bob")
    three = seat.do(NoteRisk(text="x three", tags=("b",), symbol="F"))
    times = [entry.effective_at for entry in seat.entries() if entry.subject_id in (one.id, two.id, three.id)]
    every = {one.id: 0, two.id: 1, three.id: 2}
    for conditions, wanted in (
        ({}, {0, 1, 2}),
        ({"tags": ("a",)}, {0, 1}),
        ({"tags": ("a", "b")}, {0}),
        ({"tags": ("a", "c")}, set()),
        ({"kind": "risk_note"}, {2}),
        ({"symbol": "F"}, {0, 2}),
        ({"agent": "bob"}, {1}),
        ({"status": "active"}, {0, 1, 2}),
        ({"status": "retired"}, set()),
        ({"since": times[1]}, {1, 2}),
        ({"until": times[1]}, {0, 1}),
        ({"since": times[1], "until": times[1]}, {1}),
        ({"kind": "memory", "tags": ("a",), "agent": "ann"}, {0}),
    ):
        for query in ("x", "", "!"):
            found = seat.find(query, **conditions)
            if query != "!":
                assert {every[hit["id"]] for hit in found["hits"]} == wanted, (query, conditions)
                assert found["total"] == len(wanted)


def test_short_tickers_are_found_and_told_apart(seat: Any) -> None:
    """P037"""
    ids = {symbol: seat.do(Remember(text=f"bought {symbol} today", symbol=symbol)).id
           for symbol in ("F", "T", "GE", "GEV", "GM")}  # fmt: skip
    for symbol, memory_id in ids.items():
        assert seat.ids(symbol) == [memory_id]
        assert seat.ids(symbol=symbol) == [memory_id]
        assert seat.ids("bought", symbol=symbol) == [memory_id]


def test_a_ticker_that_is_an_english_word_is_found_in_capitals(seat: Any) -> None:
    seat.do(Remember(text="it is what it is, all on now"))
    wanted = [seat.do(Remember(text="position", symbol=symbol)).id for symbol in ("IT", "ALL", "ON")]
    assert seat.ids("IT position")[0] == wanted[0]
    assert seat.ids("it", symbol="IT") == [wanted[0]]


BLANK = {"": "recent", "   ": "recent", "\n": "recent", "。": "literal", "?!": "literal", "🚀": "terms"}


@pytest.mark.parametrize(("query", "mode"), BLANK.items())
@pytest.mark.parametrize(
    "conditions", [{}, {"symbol": "F"}, {"kind": "memory"}], ids=["all", "symbol", "kind"]
)
def test_a_query_without_words_lists_or_looks_literally_and_the_record_says_which(
    seat: Any, query: str, mode: str, conditions: dict[str, Any]
) -> None:
    """P041"""
    plain = [seat.do(Remember(text=f"plain {at}", symbol="F")).id for at in range(3)]
    odd = seat.do(Remember(text="完。 really?! 🚀", symbol="F")).id
    found = seat.find(query, **conditions)
    assert [hit["id"] for hit in found["hits"]] == ([odd, *plain[::-1]] if mode == "recent" else [odd])
    assert seat.last_content("memory.retrieved")["mode"] == mode


def test_old_wording_no_longer_matches_and_one_memory_is_one_hit(seat: Any) -> None:
    """P039"""
    thesis = seat.do(OpenThesis(text="alpha wording"))
    for word in ("beta", "gamma", "delta"):
        seat.do(UpdateThesis(thesis_id=thesis.id, text=f"{word} wording"))
    seat.do(CloseThesis(thesis_id=thesis.id, result="win"))
    assert [seat.ids(word) for word in ("alpha", "beta", "gamma")] == [[], [], []]
    assert seat.ids("delta") == seat.ids("wording") == [thesis.id]
    assert seat.ids("delta", status="open") == []


def test_a_search_as_of_then_sees_the_wording_the_status_and_the_count_of_then(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="alpha wording"))
    then = seat.clock.us
    seat.do(UpdateThesis(thesis_id=thesis.id, text="beta wording"))
    seat.do(CloseThesis(thesis_id=thesis.id, result="win"))
    _fill(seat, 3, "wording")
    found = seat.find("wording", as_of=then)
    assert (found["total"], found["hits"][0]["text"], found["hits"][0]["status"]) == (
        1,
        "alpha wording",
        "open",
    )
    assert seat.find("beta", as_of=then)["total"] == 0
    assert seat.find("alpha", as_of=then - 10_000_000)["total"] == 0
    assert seat.find(as_of=then)["total"] == 1


def test_nothing_relevant_returns_nothing_and_says_so(seat: Any) -> None:
    _fill(seat, 3)
    found = seat.find("zinc")
    assert (found["total"], found["hits"], found["truncated"], found["cursor"]) == (0, [], False, None)
    assert "not invent" in found["message"]


def test_the_best_match_comes_first_and_the_newer_of_equals(seat: Any) -> None:
    both = seat.do(Remember(text="zinc and cobalt")).id
    old = seat.do(Remember(text="zinc shipment")).id
    new = seat.do(Remember(text="zinc shipment"), "bob").id
    seat.do(Remember(text="zinc " + "filler " * 200))
    assert seat.ids("zinc cobalt")[:3] == [both, new, old]


def test_a_memory_named_by_id_comes_first(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="quiet", symbol="F"))
    for _ in range(3):
        seat.do(Remember(text=f"see {thesis.id} for more"))
    assert seat.ids(f"what became of {thesis.id}?")[0] == thesis.id
    assert seat.ids(thesis.id)[0] == thesis.id
    assert thesis.id not in seat.ids(thesis.id, kind="memory")


def test_an_expired_memory_is_not_found_even_by_its_id(seat: Any) -> None:
    note = seat.do(Remember(text="short lived", expires_at=seat.clock.us + 3_600_000_000))
    assert seat.ids("lived") == seat.ids(note.id) == [note.id]
    seat.clock.us += 3_600_000_000
    assert seat.ids("lived") == seat.ids(note.id) == seat.ids() == []
    assert seat.get(note.id)["memory"]["text"] == "short lived"


@pytest.mark.parametrize("query", ["breakout", ""], ids=["words", "listing"])
def test_pages_stay_the_same_while_others_write_in_between(seat: Any, query: str) -> None:
    ids = _fill(seat, 25)
    seen, cursor, rounds = [], None, 0
    while True:
        page = seat.find(query, limit=4, cursor=cursor)
        seen += [hit["id"] for hit in page["hits"]]
        assert page["total"] == 25
        rounds += 1
        seat.do(Remember(text="breakout written in between"), "bob")
        cursor = page["cursor"]
        assert page["truncated"] == (cursor is not None)
        if cursor is None:
            break
    assert rounds == 7
    assert Counter(seen) == Counter(ids)
    assert seen == ids[::-1] if query == "" else sorted(seen) == sorted(ids)


def test_pages_of_a_search_as_of_then_stay_in_then(seat: Any) -> None:
    ids = _fill(seat, 6)
    then = seat.clock.us
    _fill(seat, 6)
    first = seat.find("breakout", limit=4, as_of=then)
    second = seat.find("breakout", limit=4, as_of=then, cursor=first["cursor"])
    assert {hit["id"] for hit in first["hits"] + second["hits"]} == set(ids)
    third = seat.find("breakout", limit=4, as_of=then, cursor=first["cursor"])
    assert [hit["id"] for hit in third["hits"]] == [hit["id"] for hit in second["hits"]]


def test_a_reply_too_small_for_its_page_pages_on_without_a_miss(seat: Any) -> None:
    ids = [seat.do(Remember(text=f"{at} " + "breakout " * 30)).id for at in range(12)]
    seen, cursor = [], None
    while True:
        page = seat.find("breakout", limit=50, reply_chars=2_000, cursor=cursor)
        assert len(as_text(page)) <= 2_000
        seen += [hit["id"] for hit in page["hits"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(ids)
    assert len(seen) == len(ids)


FORGED = ["", "x", "!!!", "é", "W10", "WzEsMiwzXQ", "bnVsbA", "e30", "A" * 5_000]


@pytest.mark.parametrize("cursor", FORGED)
def test_a_cursor_that_no_search_gave_is_refused(seat: Any, refused: Any, cursor: str) -> None:
    _fill(seat, 3)
    with refused(seat, InvalidInput, "cursor"):
        seat.find("breakout", cursor=cursor)


ABSURD = [
    "[1e400,1,1,{0}]", "[5,-1e300,1,{0}]", "[5,1,-1,{0}]", "[-5,1,1,{0}]", "[5,1,1e300,{0}]", "[5,1,1]",
    "[NaN,1,1,{0}]", "[null,1,1,{0}]", "[5,-100000000000000000000000000,1,{0}]", "[[],1,1,{0}]", "[5,1,1,{0},1]",
    "[5,1,1,null]", "{{}}",
]  # fmt: skip


@pytest.mark.parametrize("fields", ABSURD)
def test_a_cursor_with_absurd_numbers_is_refused(seat: Any, refused: Any, fields: str) -> None:
    _fill(seat, 3)
    genuine = seat.find("breakout", limit=1)["cursor"]
    told = json.loads(base64.urlsafe_b64decode(genuine + "=" * (-len(genuine) % 4)))
    forged = base64.urlsafe_b64encode(fields.format(json.dumps(told[3])).encode()).decode().rstrip("=")
    with refused(seat, InvalidInput, "cursor"):
        seat.find("breakout", cursor=forged)


def test_a_cursor_of_another_search_is_refused(seat: Any, refused: Any) -> None:
    _fill(seat, 5)
    cursor = seat.find("breakout", limit=2)["cursor"]
    for query, conditions in (("number", {}), ("breakout", {"kind": "memory"}), ("", {})):
        with refused(seat, InvalidInput, "cursor"):
            seat.find(query, cursor=cursor, **conditions)


@pytest.mark.parametrize("limit", [0, -1, 51, 10**9])
def test_a_limit_out_of_bounds_is_refused(seat: Any, refused: Any, limit: int) -> None:
    with refused(seat, InvalidInput, "limit"):
        seat.find("x", limit=limit)


@pytest.mark.parametrize(
    "query", ["x" * 10_001, "a\x00b", "\ud800"], ids=["too long", "NUL", "half a character"]
)
def test_a_query_that_cannot_be_kept_is_refused(seat: Any, refused: Any, query: str) -> None:
    with refused(seat, InvalidInput, "query"):
        seat.find(query)


@pytest.mark.parametrize(
    ("conditions", "field"),
    [({"kind": "lessons"}, "kind"), ({"status": "unheard of"}, "status")],
)
def test_a_filter_value_that_can_never_match_is_an_error_and_no_empty_list(
    seat: Any, refused: Any, conditions: dict[str, str], field: str
) -> None:
    """P043"""
    with refused(seat, InvalidInput, field) as fault:
        seat.find("x", **conditions)
    assert "lesson" in fault.value.hint or "open" in fault.value.hint


def test_a_filter_value_may_be_spelt_with_other_capitals_and_spaces(seat: Any) -> None:
    """P043, P059"""
    note = seat.do(Remember(text="x", symbol="brk.b", tags=("Swing Trade",)))
    assert seat.ids(kind="Memory ", status="ACTIVE ", agent=" ann ") == [note.id]
    assert seat.ids(symbol=" Brk.B") == seat.ids("x", tags=("swing  TRADE",)) == [note.id]


def test_a_default_hit_is_small(seat: Any) -> None:
    """P047"""
    for text in ("word " * 2_000, "目标价" * 2_000, 'he said "no" \\ ' * 500, "🚀" * 2_000):
        seat.do(Remember(text="fact " + text, symbol="AAPL", tags=tuple(f"tag{at}" for at in range(50))))
    hits = seat.find("fact")["hits"]
    assert len(hits) == 4
    for hit in hits:
        assert len(as_text(hit).encode()) <= 600
        assert hit["text_truncated"]
        assert len(hit["text"]) >= 40
    assert len(as_text(seat.find("fact", detailed=True)["hits"][0]).encode()) > 600


def test_a_default_hit_tells_the_terms_of_a_thesis_and_the_action_of_a_decision_and_stays_small(
    seat: Any,
) -> None:
    """P047"""
    seat.do(OpenThesis(text="fact", symbol="AAPL", direction="long", target="250", invalidation="below 181"))
    seat.do(Decide(text="fact", symbol="AAPL", action="buy"))
    decision, thesis = seat.find("fact")["hits"]
    assert (thesis["direction"], thesis["target"], thesis["invalidation"]) == ("long", "250", "below 181")
    assert decision["action"] == "buy"
    for word in ("word ", "目标价", "🚀", 'no" \\ '):
        long = (word * 400)[:480].strip()
        seat.do(OpenThesis(text=f"wide {word * 900}", symbol="AAPL", direction="neutral", target=long,
                           invalidation=long))  # fmt: skip
    for hit in seat.find("wide")["hits"]:
        assert len(as_text(hit).encode()) <= 600
        assert len(hit["text"]) >= 40
        assert hit["target"].endswith("…")


def test_a_search_is_recorded_with_all_that_it_saw_and_gave(seat: Any) -> None:
    ids = _fill(seat, 70)
    request = SearchRequest(query="breakout", conditions=Filter(kind="memory"), limit=5)
    cut = seat.book.head().sequence
    reply = seat.book.search(seat.caller(call="call-1"), request)
    entry = seat.entries()[-1]
    content = json.loads(entry.content)
    assert (entry.event_type, entry.subject_id) == ("memory.retrieved", reply.body["retrieval_id"])
    assert (entry.retrieval_id, entry.model_call_id) == (reply.body["retrieval_id"], "call-1")
    assert (content["query"], content["mode"], content["filters"]) == (
        "breakout",
        "terms",
        {"kind": "memory"},
    )
    assert (content["cut"], content["total"]) == (cut, 70)
    assert len(content["candidates"]) == 50
    assert all(
        set(one) == {"id", "version", "lexical_rank", "lexical_score", "score"}
        for one in content["candidates"]
    )
    assert [one["lexical_rank"] for one in content["candidates"]] == list(range(1, 51))
    assert [one["id"] for one in content["selected"]] == [hit["id"] for hit in reply.body["hits"]]
    assert all(one["version"] == 1 for one in content["selected"])
    assert content["rendered"] == reply.text
    assert set(ids) > {one["id"] for one in content["candidates"]}


def test_a_search_as_of_then_is_recorded_with_then(seat: Any) -> None:
    _fill(seat, 2)
    then = seat.clock.us
    seat.find("breakout", as_of=then)
    content = seat.last_content("memory.retrieved")
    assert format_instant(content["as_of"]) == format_instant(then)
    assert content["cut"] == 4


def test_what_did_not_fit_the_reply_was_not_handed_over(seat: Any) -> None:
    _fill(seat, 10)
    reply = seat.find("breakout", reply_chars=900)
    content = seat.last_content("memory.retrieved")
    assert 0 < len(reply["hits"]) < 10
    assert [one["id"] for one in content["selected"]] == [hit["id"] for hit in reply["hits"]]


def test_a_search_that_cannot_be_recorded_is_not_answered(
    seat: Any, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.readings.SEARCH_SECONDS", 0.2)
    _fill(seat, 2)
    connection = raw(seat.path)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotRecorded) as fault:
        seat.find("breakout")
    assert (fault.value.retryable, fault.value.stored) == (True, "no")
    connection.execute("ROLLBACK")
    connection.close()
    assert seat.find("breakout")["total"] == 2
    assert len(seat.entries("memory.retrieved")) == 1


def test_reading_changes_no_memory(seat: Any, raw: Any) -> None:
    _fill(seat, 3)
    connection = raw(seat.path)
    before = connection.execute("SELECT * FROM memory_versions ORDER BY 1").fetchall()
    seat.find("breakout")
    seat.state()
    seat.get(seat.ids()[0])
    assert connection.execute("SELECT * FROM memory_versions ORDER BY 1").fetchall() == before
    connection.close()
