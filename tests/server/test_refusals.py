"""Refused and failed calls become entries: the first at once, repeats summed in one more, none lost."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from server.refusals import KINDS, LEDGERS, WINDOW_SECONDS, Refusals
from server.tools import TOOLS
from store.engines.sqlite import SqliteEngine
from store.errors import StoreBusy, StoreFull

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

RESEARCHER = '[agents.r]\nprofile = "researcher"'


class HandClock:
    """A clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def refusals(clock: HandClock) -> Refusals:
    return Refusals(clock)


class Page:
    """What was written; `closed` makes the ledger refuse."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.closed = False

    def write(self, count: int) -> None:
        if self.closed:
            raise StoreBusy("held")
        self.counts.append(count)


def test_the_first_is_written_at_once_and_repeats_in_one_more_after_a_minute(
    refusals: Refusals, clock: HandClock
) -> None:
    page = Page()
    for _ in range(5):
        refusals.note("k", page.write)
    assert page.counts == [1]
    clock.now += WINDOW_SECONDS - 1
    refusals.flush()
    assert page.counts == [1]
    clock.now += 1
    refusals.flush()
    assert page.counts == [1, 4]
    refusals.note("k", page.write)
    assert page.counts == [1, 4, 1]


def test_a_refusal_without_repeats_leaves_no_sum(refusals: Refusals, clock: HandClock) -> None:
    page = Page()
    refusals.note("k", page.write)
    clock.now += WINDOW_SECONDS
    refusals.flush()
    refusals.flush(everything=True)
    assert page.counts == [1]


def test_refusals_of_different_kinds_are_counted_apart(refusals: Refusals) -> None:
    one, other = Page(), Page()
    for _ in range(3):
        refusals.note("one", one.write)
        refusals.note("other", other.write)
    refusals.flush(everything=True)
    assert one.counts == other.counts == [1, 2]


def test_what_cannot_be_written_is_owed_until_it_can(refusals: Refusals, clock: HandClock) -> None:
    page = Page()
    page.closed = True
    refusals.note("k", page.write)
    refusals.note("k", page.write)
    for _ in range(3):
        clock.now += WINDOW_SECONDS
        refusals.flush()
    assert page.counts == []
    page.closed = False
    clock.now += WINDOW_SECONDS
    refusals.flush()
    assert page.counts == [2]


def test_a_failure_of_the_ledger_itself_waits_for_the_next_flush(
    refusals: Refusals, clock: HandClock
) -> None:
    page = Page()
    refusals.note("k", page.write, at_once=False)
    assert page.counts == []
    clock.now += WINDOW_SECONDS
    refusals.flush()
    assert page.counts == [1]


def test_what_is_still_owed_at_the_end_is_told_to_the_log(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    page = Page()
    page.closed = True
    refusals.note("k", page.write)
    with caplog.at_level(logging.ERROR):
        refusals.flush(everything=True)
    assert "1 refused or failed calls could not be recorded" in caplog.text


def test_more_kinds_than_are_kept_apart_are_counted_together(refusals: Refusals, clock: HandClock) -> None:
    page = Page()
    for number in range(KINDS):
        refusals.note(number, page.write, ledger="one")
    assert page.counts == [1] * KINDS
    for number in range(50):
        refusals.note(("new", number), page.write, ledger="one")
    assert page.counts == [1] * (KINDS + 1)
    refusals.note("first", page.write, ledger="another")  # which does not suffer from it
    refusals.note("first", page.write, ledger="another")
    assert page.counts == [1] * (KINDS + 2)
    clock.now += WINDOW_SECONDS
    refusals.flush()
    assert sorted(page.counts)[-2:] == [1, 49]


def test_of_too_many_ledgers_the_oldest_is_told_to_the_log(
    refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    page = Page()
    for number in range(LEDGERS + 1):
        for _ in range(3):
            refusals.note("kind", page.write, ledger=number)
    assert "2 refused or failed calls could not be recorded" in caplog.text
    refusals.flush(everything=True)
    assert sum(page.counts) == 3 * (LEDGERS + 1) - 2


# Through a real server


def moved_clock(desk: InMemoryDesk, monkeypatch: pytest.MonkeyPatch) -> HandClock:
    clock = HandClock()
    monkeypatch.setattr(desk.server._dispatch._refusals, "_now", clock)
    return clock


@pytest.mark.anyio
async def test_denied_calls_are_entries_the_first_at_once_and_repeats_summed(
    open_desk: OpenDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(RESEARCHER)
    clock = moved_clock(desk, monkeypatch)
    async with desk.client(era) as client:
        for _ in range(4):
            await desk.refused(client, "open_thesis", text="t")
        (first,) = desk.entries("permission.denied")
        assert json.loads(first.content) == {"tool": "open_thesis", "count": 1}
        assert (first.agent, first.profile, first.tool) == ("r", "researcher", "open_thesis")
        clock.now += WINDOW_SECONDS
        await desk.call(client, "remember", text="later")
    assert [content["count"] for content in desk.contents("permission.denied")] == [1, 3]


@pytest.mark.anyio
async def test_failed_writes_are_entries_with_code_and_field_and_without_arguments(
    desk: InMemoryDesk, era: str
) -> None:
    secret = "hunter2-hunter2"
    async with desk.client(era) as client:
        for _ in range(3):
            await desk.refused(client, "remember", text="x", tags=[secret * 9])
        await desk.refused(client, "remember", text="")
        await desk.refused(client, "close_thesis", thesis_id="ths_unknown")
    desk.server.drain()
    told = [(c["tool"], c["code"], c["field"], c["count"]) for c in desk.contents("call.failed")]
    assert told == [
        ("remember", "invalid_input", "tags", 1),
        ("remember", "invalid_input", "text", 1),
        ("close_thesis", "not_found", "thesis_id", 1),
        ("remember", "invalid_input", "tags", 2),
    ]
    assert secret not in "".join(entry.content for entry in desk.entries())


@pytest.mark.anyio
async def test_a_failed_search_or_reading_is_no_entry(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        await desk.refused(client, "search_memory", limit=0)
        await desk.refused(client, "get_memory", memory_id="mem_unknown")
    assert desk.entries("call.failed") == []


@pytest.mark.anyio
async def test_open_sums_are_written_when_serving_ends(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk(RESEARCHER)
    async with desk.client(era) as client:
        for _ in range(7):
            await desk.refused(client, "close_thesis", thesis_id="ths_1")
    desk.server.drain()
    assert [content["count"] for content in desk.contents("permission.denied")] == [1, 6]


@pytest.mark.anyio
async def test_a_write_the_ledger_could_not_take_is_recorded_once_it_can(
    desk: InMemoryDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any, **__: Any) -> Any:
        raise StoreBusy("Another writer held the ledger; nothing was stored.")

    async with desk.client(era) as client:
        await desk.call(client, "remember", text="before")
        with monkeypatch.context() as held:
            held.setattr(SqliteEngine, "write", busy)
            told = await desk.refused(client, "remember", text="x")
            assert (told["code"], told["stored"], told["retryable"]) == ("store_busy", "no", True)
        assert desk.contents("call.failed") == []
    desk.server.drain()
    assert desk.contents("call.failed") == [{"tool": "remember", "code": "store_busy", "count": 1}]


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [StoreBusy("held"), StoreFull("no space"), RuntimeError("broken")])
async def test_an_outcome_that_could_not_be_written_leaves_the_order_and_asks_for_the_same_key_again(
    desk: InMemoryDesk, era: str, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise fault

    async with desk.client(era) as client:
        order = await desk.call(
            client, "record_order_intent", operation="cancel", reason="r" * 200, client_order_id="c-1"
        )
        outcome = {"action_id": order["id"], "certainty": "unknown", "idempotency_key": "k"}
        with monkeypatch.context() as broken:
            broken.setattr(SqliteEngine, "write", fails)
            told = await desk.refused(client, "record_order_outcome", **outcome)
            other = await desk.refused(client, "remember", text="x")
        assert "the order itself stands" in told["hint"]
        assert "same idempotency_key" in told["hint"]
        assert "order" not in other["hint"]
        wrong = await desk.refused(client, "record_order_outcome", **outcome | {"certainty": "filled"})
        assert "the order itself stands" not in wrong["hint"]  # here the call is at fault, not the ledger
        assert (await desk.call(client, "record_order_outcome", **outcome))["status"] == "unknown"


@pytest.mark.anyio
async def test_an_unexpected_failure_of_a_write_is_recorded_and_tells_nothing_of_its_cause(
    desk: InMemoryDesk, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret /home/someone/key.pem")

    async with desk.client(era) as client:
        await desk.call(client, "remember", text="before")
        with monkeypatch.context() as broken_store:
            broken_store.setattr("store.book.plan", broken)
            told = await desk.refused(client, "remember", text="x")
        assert told["code"] == "internal_error"
        assert told["stored"] == "unknown"
        assert "secret" not in json.dumps(told)
        assert caplog.text.count("RuntimeError: secret") == 1
        await desk.call(client, "remember", text="after")
    assert desk.contents("call.failed") == [{"tool": "remember", "code": "internal_error", "count": 1}]


@pytest.mark.anyio
async def test_no_reading_waits_to_write_what_is_owed(
    open_desk: OpenDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that is due is left to a call that may wait for the write lock (invariant 7)."""
    desk = open_desk(RESEARCHER)
    clock = moved_clock(desk, monkeypatch)
    async with desk.client(era) as client:
        note = await desk.call(client, "remember", text="n")
        for _ in range(2):
            await desk.refused(client, "open_thesis", text="t")
        clock.now += WINDOW_SECONDS

        def no_flush(**_: Any) -> None:
            pytest.fail("a reading wrote what was owed")

        with monkeypatch.context() as watched:
            watched.setattr(desk.server._dispatch._refusals, "flush", no_flush)
            await desk.call(client, "get_memory_state")
            await desk.call(client, "get_memory", memory_id=note["id"])
            await desk.call(client, "search_memory", query="n")
            await client.read_resource("memory://state")
            await client.list_tools()
        await desk.call(client, "remember", text="m")
    assert [content["count"] for content in desk.contents("permission.denied")] == [1, 1]


def test_every_tool_that_changes_memory_says_so() -> None:
    assert {name for name, tool in TOOLS.items() if not tool.changes} == {
        "search_memory",
        "get_memory",
        "get_memory_state",
        "list_unreconciled_orders",
    }
