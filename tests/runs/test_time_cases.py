"""Cases of the class time-backtest: the future stays out of the past, and every time is one instant, shown right."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store.clock import LAST_INSTANT, format_instant, parse_instant
from store.commands import Remember
from store.leaks import find_leaks

if TYPE_CHECKING:
    from conftest import HandClock, Hands, InMemoryDesk, OpenDesk, Ran, Seat, Server

HOUR = 3_600_000_000
SIMULATED = '[clock]\nmode = "simulated"\ninherit = "{}"\ntimezone = "{}"\n[agents.a]\nprofile = "{}"\n'
JANUARY, JUNE, JULY = "2024-01-05T21:00:00Z", "2024-06-01T21:00:00Z", "2024-07-01T21:00:00Z"


def simulated(inherit: str = "none", zone: str = "UTC", profile: str = "solo") -> str:
    return SIMULATED.format(inherit, zone, profile)


def at(now: str, run: str = "r") -> dict[str, Any]:
    return {"deskbook/now": now, "deskbook/run": run}


def us(text: str) -> int:
    return parse_instant(text, field="t")


@pytest.mark.anyio
async def test_a_lesson_of_june_reaches_no_january_in_any_run(open_desk: OpenDesk, era: str) -> None:
    """P073: not by a search, a state or an id, in the same run as of then or in a new run of the same store."""
    desk = open_desk(simulated(), "a")
    async with desk.client(era) as client:
        await desk.call(client, "remember", meta=at(JANUARY, "one"), text="unicorn of january")
        lesson = await desk.call(
            client, "remember_lesson", meta=at(JUNE, "one"), text="unicorn lesson of june", symbol="AAPL"
        )
        for meta, as_of, total in ((at(JUNE, "one"), JANUARY, 1), (at(JANUARY, "two"), None, 0)):
            for query in ("unicorn lesson", "", "AAPL", lesson["id"]):
                found = await desk.call(
                    client, "search_memory", meta=meta, query=query, as_of=as_of, response_format="detailed"
                )
                assert found["total"] <= total
                assert lesson["id"] not in json.dumps(found["hits"])
            state = await desk.call(client, "get_memory_state", meta=meta, as_of=as_of)
            assert state["as_of"] == JANUARY
            assert state["counts"]["memories"] == total
            assert "june" not in json.dumps(state)
            told = await desk.refused(client, "get_memory", meta=meta, memory_id=lesson["id"], as_of=as_of)
            assert told["code"] == "not_found"
    record = desk.contents("memory.retrieved", run="one")[0]
    assert (record["as_of"], record["cut"]) == (us(JANUARY), 3)  # the cut is on record
    for run in ("one", "two"):
        assert find_leaks(desk.root, "default", run).leaks == ()


def test_a_lesson_of_june_in_the_live_ledger_reaches_no_january_of_a_run(
    open_seat: Callable[..., Seat], clock: HandClock
) -> None:
    """P073, over the inherited live ledger: the store was filled yesterday and still shows January as it was."""
    clock.us = us(JANUARY) - HOUR
    live = open_seat()
    live.do(Remember(text="unicorn of january"))
    clock.us = us(JUNE)
    late = live.do(Remember(text="unicorn of june", symbol="AAPL"))
    run = open_seat(run="r", inherit="live", begins=us(JANUARY))
    early = run.caller(now=us(JANUARY))
    for query in ("unicorn", "", "AAPL", late.id):
        body = run.find(query, who=early)
        assert [hit["text"] for hit in body["hits"]] in ([], ["unicorn of january"])
        assert body["total"] == len(body["hits"])
    assert run.state(early)["counts"]["memories"] == 1
    assert run.find("unicorn", who=run.caller(now=us(JULY)))["total"] == 2
    assert run.last_content("memory.retrieved")["inherited_cut"] == live.book.head().sequence


@pytest.mark.anyio
async def test_what_a_backtest_learned_is_no_live_memory_and_never_validated(
    open_desk: OpenDesk, era: str
) -> None:
    """P077. What applies today: there is no import, and a run is never read by live, so a backtest's lesson cannot
    come up live at all; in its run it is a proposal with the run's id on its entry. The label of an imported lesson
    is for the importer to show."""
    desk, live = open_desk(simulated(), "a"), open_desk()
    async with desk.client(era) as client, live.client(era) as other:
        lesson = await desk.call(
            client, "remember_lesson", meta=at(JUNE), text="unicorn", outcome='{"pnl": 9}'
        )
        assert lesson["status"] == "proposed"
        told = await desk.refused(client, "remember_lesson", meta=at(JUNE), text="x", status="validated")
        assert told["code"] == "invalid_input"
        state = await desk.call(client, "get_memory_state", meta=at(JUNE))
        assert (state["validated_lessons"], state["counts"]["validated_lessons"]) == ([], 0)
        assert (await live.call(other, "search_memory", query="unicorn"))["total"] == 0
        assert (await live.refused(other, "get_memory", memory_id=lesson["id"]))["code"] == "not_found"
    (entry,) = desk.entries("lesson.recorded", run="r")
    assert (entry.run_id, entry.effective_at) == ("r", us(JUNE))
    assert live.entries("lesson.recorded") == []


def test_times_are_stored_in_utc_and_shown_with_their_offset_in_any_zone_of_the_machine(
    serve: Callable[..., Server], desk_hands: Hands, run: str
) -> None:
    """P079. The Parquet copies come with exports; the ledger and every reply are held here."""
    live = serve("modern", config=None, TZ="Pacific/Kiritimati")
    written = live.call("remember", text="unicorn")
    assert written["effective_at"].endswith("Z")
    ((effective, recorded),) = desk_hands.rows(
        None, "SELECT effective_at, recorded_at FROM memory_events WHERE sequence = ?", written["sequence"]
    )
    now = time.time_ns() // 1_000
    assert abs(now - effective) < HOUR  # fourteen hours off, were it local time
    assert abs(now - recorded) < HOUR
    assert us(written["effective_at"]) == effective
    simulated_there = serve("modern", "a", simulated(zone="Pacific/Kiritimati"), TZ="America/New_York")
    body = simulated_there.call("remember", "2024-06-01T21:00:00-04:00", run, text="unicorn")
    assert body["effective_at"] == "2024-06-02T15:00:00+14:00"
    state = simulated_there.call("get_memory_state", "2024-06-02T01:00:00Z", run)
    assert (state["as_of"], state["recent"][0][:25]) == ("2024-06-02T15:00:00+14:00",) * 2
    assert desk_hands.rows(run, "SELECT DISTINCT effective_at FROM memory_events") == [
        (us("2024-06-02T01:00:00Z"),)
    ]


@pytest.mark.anyio
async def test_the_repeated_hour_keeps_its_order_and_the_skipped_one_is_no_local_time(
    open_desk: OpenDesk, era: str
) -> None:
    """P081. The strategy's day is the date as shown: late in the evening it is not yet the next day of UTC."""
    desk = open_desk(simulated(zone="America/New_York"), "a")
    first, second = "2024-11-03T01:30:00-04:00", "2024-11-03T01:30:00-05:00"
    async with desk.client(era) as client:
        gap = await desk.call(client, "remember", meta=at("2024-03-10T02:30:00-05:00"), text="in the gap")
        assert gap["effective_at"] == "2024-03-10T03:30:00-04:00"
        for naive in ("2024-03-10T02:30:00", "2024-03-10 02:30", "2024-11-03T01:30:00"):
            told = await desk.refused(client, "remember", meta=at(naive), text="x")
            assert (told["code"], told["field"]) == ("invalid_input", "deskbook/now")
        evening = await desk.call(client, "remember", meta=at("2024-06-02T03:59:59Z"), text="evening")
        assert evening["effective_at"].startswith("2024-06-01T23:59:59-04:00")
        for moment in (first, second):
            shown = await desk.call(client, "remember", meta=at(moment), text=f"unicorn {moment}")
            assert shown["effective_at"] == moment
        told = await desk.refused(client, "remember", meta=at(first), text="back an hour")
        assert told["code"] == "clock_error"
        newest = await desk.call(client, "search_memory", meta=at(second), limit=2)
        assert [hit["effective_at"] for hit in newest["hits"]] == [second, first]
        assert [hit["age"] for hit in newest["hits"]] == ["0s", "1h"]
        between = "2024-11-03T01:45:00-04:00"
        for options, left in (
            ({"since": between}, [second]),
            ({"as_of": between, "query": "unicorn"}, [first]),
        ):
            found = await desk.call(client, "search_memory", meta=at(second), **options)
            assert [hit["effective_at"] for hit in found["hits"]] == left
    stamps = [entry.effective_at for entry in desk.entries("memory.recorded", run="r")]
    assert stamps[3] - stamps[2] == HOUR


def test_an_entry_of_a_clock_gone_wrong_is_told_and_ranks_by_its_place_not_its_date(
    open_seat: Callable[..., Seat], deskbook: Callable[..., Ran], clock: HandClock, root: Any
) -> None:
    """P083. It is flagged by a clock.anomaly entry and by `status`, and newest means written last."""
    live = open_seat(root=root)
    before = live.do(Remember(text="unicorn before"))
    right = clock.us
    clock.us = us("2099-01-01T00:00:00Z")
    live.do(Remember(text="unicorn of 2099"))
    clock.us = right + HOUR
    live.do(Remember(text="unicorn after"))
    order = ["unicorn after", "unicorn of 2099", "unicorn before"]
    assert [hit["text"] for hit in live.find()["hits"]] == order
    recent = live.state()["recent"]
    assert [line.rpartition(": ")[2] for line in recent] == order
    (hit,) = [hit for hit in live.find()["hits"] if "2099" in hit["text"]]
    assert (hit["effective_at"][:4], hit["age"]) == ("2099", "0s")
    anomaly = live.last_content("clock.anomaly")
    assert (format_instant(anomaly["previous"])[:4], anomaly["observed"] < us("2030-01-01T00:00:00Z")) == (
        "2099",
        True,
    )
    told = json.loads(deskbook("status", "--json").out)
    assert "2099" in told["clock"]
    # As of now it is not seen, nor is what came behind it: the cut may hide, but never shows what lies ahead.
    for as_of in (clock.us, right + 2 * HOUR):
        assert [hit["text"] for hit in live.find(as_of=as_of)["hits"]] == ["unicorn before"]
    run = open_seat(run="r", inherit="live", begins=right + 2 * HOUR, root=root)
    seen = run.find("unicorn", who=run.caller(now=right + 2 * HOUR))["hits"]
    assert [hit["id"] for hit in seen] == [before.id]


@pytest.mark.anyio
async def test_since_and_until_go_by_the_strategys_clock_and_a_claimed_time_is_content(
    open_desk: OpenDesk, era: str
) -> None:
    """P085. There is no event_time to be ignored: a claimed time is refused as an argument and may stand in the text;
    both filters take the time at which the strategy wrote."""
    desk = open_desk(simulated(), "a")
    async with desk.client(era) as client:
        told = await desk.refused(client, "remember", meta=at(JANUARY), text="x", event_time="2015-07-23")
        assert (told["code"], "event_time" in told["message"]) == ("invalid_input", True)
        await desk.call(client, "remember", meta=at(JANUARY), text="unicorn, happened 2015-07-23")
        await desk.call(client, "remember", meta=at(JUNE), text="unicorn, happened 2030-01-01")
        for options, texts in (
            ({"until": "2020-01-01T00:00:00Z"}, []),
            ({"until": JANUARY}, ["unicorn, happened 2015-07-23"]),
            ({"since": "2024-01-05T21:00:00.000001Z"}, ["unicorn, happened 2030-01-01"]),
            (
                {"since": JANUARY, "until": JUNE},
                ["unicorn, happened 2030-01-01", "unicorn, happened 2015-07-23"],
            ),
        ):
            for query in ("unicorn", ""):
                found = await desk.call(client, "search_memory", meta=at(JULY), query=query, **options)
                assert [hit["text"] for hit in found["hits"]] == texts
                assert found["total"] == len(texts)


EXACT = ("1969-12-31T23:59:59.999999Z", "1684-07-28T00:12:25.259009Z", "2255-06-05T23:47:34.740991Z")
REFUSED = (
    "0001-01-01T00:00:00Z", "0000-12-31T00:00:00Z", "9999-12-31T23:59:59Z", "2016-12-31T23:59:60Z",
    "2255-06-05T23:47:34.740992Z", "1684-07-28T00:12:25.259008Z", "2024-02-30T00:00:00Z",
    "2024-01-01T00:00:00.0000001Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "2024-01-01T00:00:00+24:00", "99999-01-01T00:00:00Z", "-2024-01-01T00:00:00Z",
)  # fmt: skip


async def one_of_each(
    desk: InMemoryDesk, client: Any, extreme: str, meta: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        await desk.refused(client, "remember", meta=at(extreme), text="x"),
        await desk.refused(client, "remember", meta=meta, text="x", review_by=extreme),
        await desk.refused(client, "remember", meta=meta, text="x", expires_at=extreme),
        await desk.refused(client, "search_memory", meta=meta, since=extreme),
        await desk.refused(client, "search_memory", meta=meta, until=extreme),
        await desk.refused(client, "search_memory", meta=meta, as_of=extreme),
        await desk.refused(client, "get_memory_state", meta=meta, as_of=extreme),
    ]


@pytest.mark.anyio
async def test_the_ends_of_the_calendar_are_exact_or_refused_and_crash_nothing(open_desk: OpenDesk) -> None:
    """P087. The bounds keep every instant exact in canonical JSON; Parquet takes all of them."""
    desk = open_desk(simulated(zone="America/New_York"), "a")
    async with desk.client() as client:
        for extreme in REFUSED:
            for told in await one_of_each(desk, client, extreme, at(JANUARY)):
                assert (told["code"], told["stored"]) == ("invalid_input", "no"), extreme
                assert told["field"] in ("deskbook/now", "review_by", "expires_at", "since", "until", "as_of")
        for number, extreme in enumerate(EXACT):
            run = at(extreme, f"run-{number}")
            written = await desk.call(client, "remember", meta=run, text="unicorn", review_by=extreme)
            assert us(written["effective_at"]) == us(extreme)
            for options in (
                {},
                {"as_of": extreme},
                {"since": extreme, "until": extreme},
                {"query": "unicorn"},
            ):
                assert (await desk.call(client, "search_memory", meta=run, **options))["total"] == 1
            assert us((await desk.call(client, "get_memory_state", meta=run))["as_of"]) == us(extreme)
            assert find_leaks(desk.root, "default", f"run-{number}").leaks == ()
        last = at(format_instant(LAST_INSTANT), "run-0")  # from 1969 to the last instant in one step
        await desk.call(client, "remember", meta=last, text="unicorn at last")
        found = await desk.call(client, "search_memory", meta=last, query="unicorn")
        assert sorted(hit["age"] for hit in found["hits"]) == ["0s", "104249d"]


@pytest.mark.anyio
async def test_a_thesis_is_absent_from_the_state_of_before_it_was_opened(
    open_desk: OpenDesk, era: str
) -> None:
    """P229: as of then in its own run, in another run of then, and by a clock that goes back."""
    desk = open_desk(simulated(), "a")
    async with desk.client(era) as client:
        await desk.call(client, "remember", meta=at(JANUARY), text="a note")
        thesis = await desk.call(client, "open_thesis", meta=at(JUNE), text="unicorn", symbol="AAPL")
        now = await desk.call(client, "get_memory_state", meta=at(JULY))
        assert [each["id"] for each in now["open_theses"]] == [thesis["id"]]
        assert {"open_theses": 1, "validated_lessons": 0, "memories": 2}.items() <= now["counts"].items()
        for meta, as_of, memories in (
            (at(JULY), "2024-06-01T20:59:59.999999Z", 1),
            (at(JULY), JANUARY, 1),
            (at(JULY), "2020-01-01T00:00:00Z", 0),
            (at(JANUARY, "another"), None, 0),
        ):
            state = await desk.call(client, "get_memory_state", meta=meta, as_of=as_of)
            assert state["open_theses"] == []
            assert {"open_theses": 0, "validated_lessons": 0, "memories": memories}.items() <= state[
                "counts"
            ].items()
            assert set(state["omitted"].values()) == {0}
            assert thesis["id"] not in json.dumps(state)
        told = await desk.refused(client, "get_memory_state", meta=at(JANUARY))
        assert told["code"] == "clock_error"


@pytest.mark.parametrize("approval", ["auto", "review"])
@pytest.mark.anyio
async def test_at_the_last_instant_an_age_of_the_config_ends_there(
    open_desk: OpenDesk, approval: str
) -> None:
    """P087: what is due or waits for longer than the calendar goes on is due, or waits, until it ends."""
    ages = f'[review]\nmemory = "90d"\n[approval]\nmemory = "{approval}"\n'
    desk = open_desk(simulated() + ages, "a")
    last = format_instant(LAST_INSTANT)
    async with desk.client() as client:
        written = await desk.call(client, "remember", meta=at(last), text="unicorn")
        assert written.get("pending_until", last) == last
        shown = await desk.call(client, "get_memory", meta=at(last), memory_id=written["id"])
        assert shown["memory"]["review_by"] == last
