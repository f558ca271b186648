"""The order of hits: named ones, evidence, standing and age, ties, failures first; and pages of each."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store import Caller, Filter, SearchRequest
from store.commands import (
    CloseThesis,
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    Remember,
    ResolveMemory,
    ValidateLesson,
)
from store.errors import InvalidInput
from store.search.trust import Ranking

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk, Seat

Embed = Callable[["Seat"], int]
OpenSeat = Callable[..., "Seat"]
DAY = 86_400_000_000
PLAIN = Ranking(validated=1, contradicted=1, ended=1, stale=1, tally=0, age=0)


def lost(seat: Seat, text: str, **more: Any) -> str:
    """A thesis that was closed with a loss."""
    thesis = seat.do(OpenThesis(text=text)).id
    seat.do(CloseThesis(thesis_id=thesis, **(more or {"result": "loss"})))
    return thesis


def ordered(seat: Seat, reason: str = "for another", client_order_id: str | None = None) -> str:
    """An order of an agent, who gives a reason as long as one must be."""
    why = f"{reason} {'.' * 200}"
    named = {"symbol": "F", "side": "buy", "quantity": "1", "client_order_id": client_order_id}
    return seat.do(IntendOrder(operation="submit", reason=why, **named)).id


def observed(seat: Seat, action: str, certainty: str) -> str:
    """What a harness saw of an order; gives the entry's event id."""
    harness = Caller("link", "harness", "ses-link", "tool", observer=True)
    return seat.book.execute(harness, RecordOutcome(action_id=action, certainty=certainty)).event_id


def judged(seat: Seat, text: str, verdict: str, author: str | None = None) -> str:
    """A lesson that the outcome of a later order speaks for or against."""
    lesson = seat.do(ProposeLesson(text=text), author).id
    action = ordered(seat)
    observed(seat, action, "acknowledged")
    outcome = observed(seat, action, "filled")
    seat.do(ValidateLesson(lesson_id=lesson, verdict=verdict, outcome_ids=(outcome,)))
    return lesson


def equals(seat: Seat, text: str, count: int) -> list[str]:
    """Notes of one text, each by an agent of its own: one agent's repeat would be the note that stands."""
    return [seat.do(Remember(text=text), f"agent-{at}").id for at in range(count)]


def refused(seat: Seat, reason: str, client_order_id: str | None = None) -> str:
    """An order that the broker refused."""
    action = ordered(seat, reason, client_order_id)
    observed(seat, action, "rejected")
    return action


@pytest.mark.parametrize("vectors", [False, True], ids=["by words", "by words and meaning"])
def test_what_the_query_names_by_id_stands_above_all_else(meant: Seat, embed: Embed, vectors: bool) -> None:
    named = meant.do(Remember(text="quiet")).id
    order = refused(meant, "quiet too", "co-77-a")
    equals(meant, f"revenue rose, see {named} and co-77-a", 5)
    if vectors:
        embed(meant)
    for query in (f"revenue rose {named}", named, f"why was {named} written?", f"({named})"):
        assert meant.ids(query)[0] == named
    for query in ("co-77-a revenue rose", "co-77-a", "what came of co-77-a?"):
        assert meant.ids(query)[0] == order
    assert set(meant.ids(f"co-77-a, {named}")[:2]) == {order, named}
    assert order not in meant.ids("revenue co-77-a", kind="memory")
    provenance = meant.find(named, detailed=True)["hits"][0]["provenance"]
    assert provenance["rank"] == 1
    assert "trust" not in provenance


@pytest.mark.parametrize("vectors", [False, True], ids=["by words", "by words and meaning"])
def test_among_equals_the_newer_stands_first_in_every_page(meant: Seat, embed: Embed, vectors: bool) -> None:
    ids = equals(meant, "revenue rose", 9)
    if vectors:
        embed(meant)
    meant.clock.us += 400 * DAY
    assert meant.ids("revenue rose", limit=50) == ids[::-1]
    pages, cursor = [], None
    while True:
        page = meant.find("revenue rose", limit=2, cursor=cursor)
        pages += [hit["id"] for hit in page["hits"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert pages == ids[::-1]


def test_a_text_that_both_words_and_meaning_speak_for_stands_above_one_that_either_does(
    meant: Seat, embed: Embed
) -> None:
    by_meaning = meant.do(Remember(text="turnover dropped")).id
    both = meant.do(Remember(text="sales dropped")).id
    neither = meant.do(Remember(text="weather was fine")).id
    embed(meant)
    found = meant.ids("sales dropped")
    assert found.index(both) < found.index(by_meaning)
    assert neither not in found[:2]


def test_losses_first_puts_every_kind_of_failure_before_the_rest(meant: Seat, embed: Embed) -> None:
    fine = equals(meant, "breakout revenue rose", 3)
    won = lost(meant, "breakout revenue rose", result="win", pnl="12.5")
    proven = judged(meant, "breakout revenue rose", "supports")
    failures = {
        "a loss": lost(meant, "breakout"),
        "stopped out": lost(meant, "breakout", result="Stopped out"),
        "money lost": lost(meant, "breakout", result="done", pnl="-0.01"),
        "a return below zero": lost(meant, "breakout", return_pct="-3"),
        "a lesson refuted": judged(meant, "breakout", "contradicts"),
    }
    for _ in range(2):
        found = meant.ids("breakout revenue rose", order="losses_first", limit=50)
        assert set(found[: len(failures)]) == set(failures.values())
        assert set(found[len(failures) :]) >= {*fine, won, proven}
        usual = meant.ids("breakout revenue rose", limit=50)
        assert not set(usual[:4]) & set(failures.values())
        embed(meant)
    content = meant.last_content("memory.retrieved")
    assert "order" not in content
    meant.find("breakout", order="losses_first")
    assert meant.last_content("memory.retrieved")["order"] == "losses_first"


def test_of_the_orders_that_a_query_names_the_refused_one_leads_by_losses_first(meant: Seat) -> None:
    wrong = refused(meant, "breakout", "co-1")
    filled = ordered(meant, "breakout", "co-2")
    observed(meant, filled, "acknowledged")
    query = "what came of co-2 and co-1?"
    assert meant.ids(query)[:2] == [filled, wrong]
    assert meant.ids(query, order="losses_first")[0] == wrong
    assert filled in meant.ids(query, order="losses_first")


def test_pages_of_losses_first_are_the_whole_and_keep_its_order(meant: Seat, embed: Embed) -> None:
    rng = random.Random(5)
    ids = []
    for at in range(30):
        text = f"breakout {'revenue ' * (at % 3)}"
        fails = rng.random() < 0.4
        ids.append(lost(meant, text) if fails else meant.do(Remember(text=text), f"agent-{at}").id)
    embed(meant)
    whole = meant.ids("breakout revenue", order="losses_first", limit=50)
    assert sorted(whole) == sorted(ids)
    pages, cursor = [], None
    while True:
        page = meant.find("breakout revenue", order="losses_first", limit=7, cursor=cursor)
        assert page["total"] == 30
        pages += [hit["id"] for hit in page["hits"]]
        meant.do(Remember(text="breakout revenue written in between"), f"agent-{len(pages)}")
        cursor = page["cursor"]
        if cursor is None:
            break
    assert pages == whole


def test_a_listing_by_losses_first_begins_with_its_failures_over_all_its_pages(meant: Seat) -> None:
    failure = lost(meant, "an old loss")
    fine = [meant.do(Remember(text=f"note {at}")).id for at in range(5)]
    assert meant.ids("", order="losses_first", limit=50) == [failure, *fine[::-1]]
    pages, cursor = [], None
    while True:
        page = meant.find("", order="losses_first", limit=2, cursor=cursor)
        pages.append([hit["id"] for hit in page["hits"]])
        cursor = page["cursor"]
        if cursor is None:
            break
    assert [each for page in pages for each in page] == [failure, *fine[::-1]]


@pytest.mark.parametrize("query", ["breakout", ""], ids=["words", "listing"])
def test_a_cursor_belongs_to_the_order_that_gave_it(meant: Seat, query: str) -> None:
    equals(meant, "breakout", 4)
    by_relevance = meant.find(query, limit=2)["cursor"]
    by_losses = meant.find(query, limit=2, order="losses_first")["cursor"]
    for cursor, order in ((by_relevance, "losses_first"), (by_losses, "relevance")):
        with pytest.raises(InvalidInput) as fault:
            meant.find(query, limit=2, order=order, cursor=cursor)
        assert fault.value.field == "cursor"
    assert len(meant.find(query, limit=2, cursor=by_relevance)["hits"]) == 2
    assert len(meant.find(query, limit=2, order="losses_first", cursor=by_losses)["hits"]) == 2


def standings(seat: Seat) -> dict[str, str]:
    """Lessons and a memory with one text and each another standing, the best last but written in no such order.

    Where one that stands has the text already, the next is another agent's, as a repeat would not be a new one.
    """
    text = "breakout revenue rose"
    ended = seat.do(ProposeLesson(text=text)).id
    seat.do(ResolveMemory(memory_id=ended, status="retired", note="over"))
    ids = {"ended": ended, "validated": judged(seat, text, "supports")}
    ids["contradicted"] = judged(seat, text, "contradicts", "bob")
    ids["stale"] = seat.do(Remember(text=text, review_by=seat.clock.us + 60_000_000)).id
    ids["proposed"] = seat.do(ProposeLesson(text=text), "cleo").id
    seat.clock.us += 3_600_000_000
    return ids


@pytest.mark.parametrize("vectors", [False, True], ids=["by words", "by words and meaning"])
def test_standing_orders_what_equal_evidence_speaks_for(meant: Seat, embed: Embed, vectors: bool) -> None:
    ids = standings(meant)
    if vectors:
        embed(meant)
    found = meant.ids("breakout revenue rose", limit=50)
    place = {name: found.index(memory_id) for name, memory_id in ids.items()}
    assert place["validated"] < place["proposed"] < min(place["stale"], place["ended"], place["contradicted"])
    assert max(place["stale"], place["ended"]) < place["contradicted"]
    trusts = {
        hit["id"]: hit["provenance"].get("trust", 1.0)
        for hit in meant.find("breakout revenue rose", limit=50, detailed=True)["hits"]
    }
    assert trusts[ids["validated"]] > 1.09
    assert trusts[ids["contradicted"]] < 0.82


def test_factors_of_one_change_nothing(open_seat: OpenSeat, encoder: Any, embed: Embed) -> None:
    seat = open_seat(encoder=encoder, ranking=PLAIN)
    ids = standings(seat)
    seat.clock.us += 900 * DAY
    embed(seat)
    found = seat.find("breakout revenue rose", limit=50, detailed=True)["hits"]
    assert {hit["id"] for hit in found} >= set(ids.values())
    assert all("trust" not in hit["provenance"] for hit in found)
    alike = [hit for hit in found if hit["id"] in ids.values()]
    assert len({hit["provenance"]["score"] for hit in alike}) == 1


@pytest.mark.parametrize(
    ("ranking", "first"),
    [
        (Ranking(validated=1, contradicted=2, ended=1, stale=1, tally=0, age=0), "contradicted"),
        (Ranking(validated=1, contradicted=1, ended=2, stale=1, tally=0, age=0), "ended"),
        (Ranking(validated=1, contradicted=1, ended=1, stale=2, tally=0, age=0), "stale"),
        (Ranking(validated=2, contradicted=1, ended=1, stale=1, tally=0, age=0), "validated"),
        (Ranking(validated=1, contradicted=1, ended=1, stale=1, tally=1, age=0), "validated"),
    ],
)
def test_each_factor_counts(
    open_seat: OpenSeat, encoder: Any, embed: Embed, ranking: Ranking, first: str
) -> None:
    seat = open_seat(encoder=encoder, ranking=ranking)
    ids = standings(seat)
    embed(seat)
    assert seat.ids("breakout revenue rose")[0] == ids[first]


def test_age_lowers_a_score_by_half_its_share_at_the_half_life(open_seat: OpenSeat) -> None:
    seat = open_seat(ranking=Ranking(age=0.4, half_life_days=10))
    seat.do(Remember(text="breakout"))
    seat.clock.us += 10 * DAY
    trust = seat.find("breakout", detailed=True)["hits"][0]["provenance"]["trust"]
    assert trust == pytest.approx(0.8, abs=0.001)


def test_a_better_text_is_not_overtaken_by_standing_alone(meant: Seat, embed: Embed) -> None:
    judged(meant, "breakout", "supports")
    both = meant.do(Remember(text="breakout revenue rose")).id
    embed(meant)
    assert meant.ids("breakout revenue rose")[0] == both


@pytest.mark.anyio
async def test_the_config_says_what_standing_counts_and_the_tool_takes_an_order(
    open_desk: OpenDesk,
) -> None:
    usual = open_desk('[agents.local]\nprofile = "solo"\n', "local")
    turned = open_desk('[ranking]\nended = 2.0\n[agents.local]\nprofile = "solo"\n', "local")

    async def ids(desk: InMemoryDesk, **wanted: Any) -> list[str]:
        async with desk.client() as client:
            body = await desk.call(client, "search_memory", query="breakout", **wanted)
            return [hit["id"] for hit in body["hits"]]

    async with usual.client() as client:
        old = (await usual.call(client, "remember_lesson", text="breakout"))["id"]
        await usual.call(client, "resolve_memory", memory_id=old, status="retired", note="over")
        thesis = (await usual.call(client, "open_thesis", text="breakout that failed"))["id"]
        await usual.call(client, "close_thesis", thesis_id=thesis, result="loss", pnl="-5")
        new = (await usual.call(client, "remember", text="breakout"))["id"]
        page = await usual.call(client, "search_memory", query="breakout", limit=1)
        told = await usual.refused(
            client, "search_memory", query="breakout", limit=1, order="losses_first", cursor=page["cursor"]
        )
        assert (told["field"], told["stored"]) == ("cursor", "no")
        odd = await usual.refused(client, "search_memory", query="breakout", order="newest")
        assert odd["field"] == "order"
    assert (await ids(usual))[0] == new
    assert (await ids(turned))[0] == old
    assert (await ids(usual, order="losses_first"))[0] == thesis
    assert (await ids(usual, order="relevance")) == await ids(usual)


def test_a_search_asks_as_before_where_no_order_is_given() -> None:
    assert SearchRequest(query="x", conditions=Filter()).asked == "x"
    assert SearchRequest(query="x", order="losses_first").asked != "x"
