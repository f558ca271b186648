"""Clock, run, labels and identity of a call, through real tools: fixed by the launch, never by an argument."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_types import Implementation

from server.ledgers import MOST_OPEN
from store.clock import parse_instant

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio

SIMULATED = """
[clock]
mode = "simulated"
[agents.a]
profile = "trader"
[agents.r]
profile = "researcher"
"""
DAY_1, DAY_2, DAY_3 = "2026-03-02T21:00:00Z", "2026-03-03T21:00:00Z", "2026-03-04T21:00:00Z"


def at(now: str | None, run: str | None = "run-1", **more: str) -> dict[str, Any]:
    """The `_meta` of a call."""
    sent = {"deskbook/now": now, "deskbook/run": run, **more}
    return {key: value for key, value in sent.items() if value is not None}


async def test_a_live_desk_refuses_a_time_and_a_run_and_stores_nothing(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        for meta, field in ((at(DAY_1, None), "deskbook/now"), (at(None), "deskbook/run")):
            for tool, arguments in (
                ("remember", {"text": "x"}),
                ("search_memory", {}),
                ("get_memory_state", {}),
            ):
                told = await desk.refused(client, tool, meta=meta, **arguments)
                assert (told["code"], told["field"], told["stored"]) == ("clock_error", field, "no")
    assert {entry.event_type for entry in desk.entries()} == {"genesis", "session.started", "call.failed"}


@pytest.mark.parametrize(("variable", "value"), [("DESKBOOK_NOW", DAY_1), ("DESKBOOK_RUN", "run-1")])
async def test_a_live_desk_refuses_a_time_and_a_run_from_its_environment(
    desk: InMemoryDesk, era: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    async with desk.client(era) as client:
        told = await desk.refused(client, "remember", text="x")
    assert (told["code"], told["field"]) == ("clock_error", variable)


async def test_a_simulated_desk_refuses_a_call_without_time_or_run(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk(SIMULATED, "a")
    async with desk.client(era) as client:
        for meta, field in (
            (at(None), "deskbook/now"),
            (at(DAY_1, None), "deskbook/run"),
            ({}, "deskbook/run"),
            (None, "deskbook/run"),
        ):
            for tool, arguments in (
                ("remember", {"text": "x"}),
                ("search_memory", {}),
                ("get_memory_state", {}),
            ):
                told = await desk.refused(client, tool, meta=meta, **arguments)
                assert (told["code"], told["field"]) == ("clock_error", field), (meta, tool)
    assert desk.entries() == []  # a backtest leaves no trace in the live ledger, not even of its failures
    assert not (desk.root / "default" / "memory.sqlite").exists()


async def test_a_run_lives_by_its_own_clock_which_never_goes_back(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk(SIMULATED, "a")
    async with desk.client(era) as client:
        first = await desk.call(client, "remember", meta=at(DAY_1), text="first day")
        await desk.call(client, "remember", meta=at(DAY_1), text="the same instant again")
        later = await desk.call(client, "remember", meta=at(DAY_3), text="third day")
        assert (first["effective_at"], later["effective_at"]) == (DAY_1, DAY_3)
        before = desk.entries(run="run-1")
        for tool, arguments in (("remember", {"text": "x"}), ("search_memory", {}), ("get_memory_state", {}),
                                ("get_memory", {"memory_id": first["id"]})):  # fmt: skip
            told = await desk.refused(client, tool, meta=at(DAY_2), **arguments)
            assert told["code"] == "clock_error"
            assert DAY_2 in told["message"]
            assert DAY_3 in told["message"]
            assert "as_of" in told["hint"]
        added = desk.entries(run="run-1")[len(before) :]
        assert [entry.event_type for entry in added] == ["call.failed"]
    stamps = [entry.effective_at for entry in desk.entries(run="run-1")]
    assert stamps == sorted(stamps)
    assert stamps[0] == parse_instant(DAY_1, field="t")
    recorded = [entry.recorded_at for entry in desk.entries(run="run-1")]
    assert min(recorded) > parse_instant(DAY_3, field="t")


async def test_runs_never_read_each_other_nor_the_live_ledger(open_desk: OpenDesk, era: str) -> None:
    live, simulated = open_desk(), open_desk(SIMULATED, "a")
    async with live.client(era) as one, simulated.client(era) as other:
        kept = await live.call(one, "remember", text="unicorn live")
        in_run = await simulated.call(other, "remember", meta=at(DAY_1, "run-1"), text="unicorn run one")
        await simulated.call(other, "remember", meta=at(DAY_1, "run-2"), text="unicorn run two")
        for meta, words in ((at(DAY_2, "run-1"), "run one"), (at(DAY_2, "run-2"), "run two")):
            found = await simulated.call(other, "search_memory", meta=meta, query="unicorn")
            assert [hit["text"] for hit in found["hits"]] == [f"unicorn {words}"]
        assert (await live.call(one, "search_memory", query="unicorn"))["total"] == 1
        for desk, client, meta, name in (
            (live, one, None, in_run["id"]),
            (simulated, other, at(DAY_2, "run-1"), kept["id"]),
            (simulated, other, at(DAY_2, "run-2"), in_run["id"]),
        ):
            told = await desk.refused(client, "get_memory", meta=meta, memory_id=name)
            assert told["code"] == "not_found"
            assert name not in json.dumps(told)


async def test_a_search_in_a_run_is_recorded_with_the_exact_text_handed_over(
    open_desk: OpenDesk, era: str
) -> None:
    desk = open_desk(SIMULATED, "a")
    async with desk.client(era) as client:
        note = await desk.call(client, "remember", meta=at(DAY_1), text="unicorn margin", symbol="AAPL")
        result = await client.call_tool(
            "search_memory",
            {"query": "unicorn", "symbol": "aapl", "as_of": DAY_2},
            meta=at(DAY_3),  # type: ignore[arg-type]
        )
        body = desk.body(result)
    (entry,) = desk.entries("memory.retrieved", run="run-1")
    content = json.loads(entry.content)
    assert content["rendered"] == result.content[0].text  # type: ignore[union-attr]
    assert (content["query"], content["filters"]) == ("unicorn", {"symbol": "AAPL"})
    assert content["as_of"] == parse_instant(DAY_2, field="t")
    assert content["selected"] == [{"id": note["id"], "version": 1}]
    assert content["total"] == 1
    assert content["candidates"][0]["lexical_rank"] == 1
    assert (entry.retrieval_id, entry.run_id, entry.agent) == (body["retrieval_id"], "run-1", "a")
    assert entry.effective_at == parse_instant(DAY_3, field="t")


async def test_every_read_surface_applies_the_one_cut_of_as_of(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk(SIMULATED, "a")
    async with desk.client(era) as client:
        thesis = await desk.call(client, "open_thesis", meta=at(DAY_1), text="unicorn first", symbol="AAPL")
        await desk.call(
            client, "update_thesis", meta=at(DAY_2), thesis_id=thesis["id"], text="unicorn second"
        )
        await desk.call(client, "close_thesis", meta=at(DAY_3), thesis_id=thesis["id"], result="win")
        now = at(DAY_3)
        for as_of, version, status, text in (
            (DAY_1, 1, "open", "unicorn first"),
            (DAY_2, 2, "open", "unicorn second"),
            (DAY_3, 3, "closed", "unicorn second"),
        ):
            found = await desk.call(client, "search_memory", meta=now, query="unicorn", as_of=as_of)
            assert [(hit["status"], hit["text"]) for hit in found["hits"]] == [(status, text)]
            got = await desk.call(client, "get_memory", meta=now, memory_id=thesis["id"], as_of=as_of)
            assert (got["memory"]["version"], got["history_total"]) == (version, version)
            state = await desk.call(client, "get_memory_state", meta=now, as_of=as_of)
            assert state["as_of"] == as_of
            assert [each["text"] for each in state["open_theses"]] == ([text] if status == "open" else [])
        early = "2026-03-01T00:00:00Z"
        told = await desk.refused(client, "get_memory", meta=now, memory_id=thesis["id"], as_of=early)
        assert told["code"] == "not_found"
        assert (await desk.call(client, "search_memory", meta=now, as_of=early))["total"] == 0
        assert (await desk.call(client, "get_memory_state", meta=now, as_of=early))["counts"]["memories"] == 0


async def test_a_cursor_never_leads_past_the_cut_of_its_own_call(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk(SIMULATED, "a")
    async with desk.client(era) as client:
        for number in range(4):
            await desk.call(client, "remember", meta=at(DAY_1), text=f"unicorn {number}")
        await desk.call(client, "remember", meta=at(DAY_3), text="unicorn late")
        now = await desk.call(client, "search_memory", meta=at(DAY_3), query="unicorn", limit=2)
        assert now["truncated"]
        onward = await desk.call(
            client,
            "search_memory",
            meta=at(DAY_3),
            query="unicorn",
            as_of=DAY_1,
            cursor=now["cursor"],
            limit=50,
        )
        assert all("late" not in hit["text"] for hit in onward["hits"])
        other = await desk.refused(
            client, "search_memory", meta=at(DAY_3), query="another", cursor=now["cursor"]
        )
        assert other["field"] == "cursor"


async def test_labels_of_session_and_model_call_stand_on_every_entry(desk: InMemoryDesk, era: str) -> None:
    labels = {"deskbook/session_id": "chat-7", "deskbook/model_call_id": "turn-3"}
    async with desk.client(era) as client:
        await desk.call(client, "remember", meta=labels, text="labelled")
        await desk.call(client, "search_memory", meta=labels, query="labelled")
        await desk.call(client, "get_memory_state", meta=labels)
        await desk.refused(client, "remember", meta=labels, text="")
        await desk.call(client, "remember", text="without labels")
    entries = desk.entries()[1:]
    labelled = [entry for entry in entries if entry.session_id == "chat-7"]
    assert [entry.event_type for entry in labelled] == [
        "session.started",
        "memory.recorded",
        "memory.retrieved",
        "memory.delivered",
        "call.failed",
    ]
    assert {entry.model_call_id for entry in labelled} == {"turn-3"}
    rest = entries[len(labelled) :]
    assert [entry.event_type for entry in rest] == ["session.started", "memory.recorded"]
    assert rest[0].session_id
    assert rest[0].session_id.startswith("ses_")


@pytest.mark.parametrize("sent", [5, True, ["x"], {"x": 1}, "", "a\nb", "x" * 129, "\u2028"])
@pytest.mark.parametrize(
    "key", ["deskbook/session_id", "deskbook/model_call_id", "deskbook/run", "deskbook/now"]
)
async def test_a_label_that_is_no_identifier_is_refused_by_its_key(
    desk: InMemoryDesk, era: str, key: str, sent: object
) -> None:
    async with desk.client(era) as client:
        told = await desk.refused(client, "remember", meta={key: sent}, text="x")
        assert told["field"] == key
        await desk.call(client, "remember", text="still there")


async def test_identity_cannot_be_claimed_by_argument_meta_or_client_name_p127(
    open_desk: OpenDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P127, and P135 as far as stdio goes: calls that claim to be another come between calls that do not."""
    desk = open_desk('[agents.r]\nprofile = "researcher"\n[agents.pm]\nprofile = "trader"', "r")
    claims = {
        "deskbook/agent": "pm", "deskbook/profile": "trader", "agent": "pm", "X-Agent-Id": "pm",
        "deskbook/identity": {"agent": "pm"}, "authorization": "Bearer pm",
    }  # fmt: skip
    for variable in ("DESKBOOK_AGENT", "DESKBOOK_PROFILE"):
        monkeypatch.setenv(variable, "pm")
    async with desk.client(era, client_info=Implementation(name="pm", version="trader")) as client:
        for tool in ("remember_decision", "open_thesis"):
            told = await desk.refused(client, tool, meta=claims, text="x", action="buy", agent_name="pm")
            assert told["code"] == "permission_denied"
        for argument in ("agent", "agent_name", "agent_id", "profile", "author", "user"):
            told = await desk.refused(client, "remember", meta=claims, text="x", **{argument: "pm"})
            assert (told["code"], told["field"]) == ("invalid_input", argument)
        await desk.call(client, "remember", meta=claims, text="who wrote this")
    assert {(entry.agent, entry.profile) for entry in desk.entries()[1:]} == {("r", "researcher")}
    (started,) = desk.contents("session.started")
    assert (started["client_name"], started["client_version"]) == ("pm", "trader")  # as claimed, no more


async def test_every_tool_works_for_a_bare_client_p137(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        note = await desk.call(client, "remember", text="n")
        thesis = await desk.call(client, "open_thesis", text="t")
        for tool, arguments in {
            "search_memory": {}, "get_memory": {"memory_id": note["id"]}, "get_memory_state": {},
            "remember_proposal": {"text": "p"}, "remember_risk_note": {"text": "r"},
            "remember_lesson": {"text": "l"}, "remember_decision": {"text": "d", "action": "skip"},
            "update_thesis": {"thesis_id": thesis["id"], "text": "u"}, "close_thesis": {"thesis_id": thesis["id"]},
            "flag_memory": {"memory_id": note["id"], "reason": "stale"},
            "resolve_memory": {"memory_id": note["id"], "status": "retired"},
        }.items():  # fmt: skip
            assert await desk.call(client, tool, **arguments)
    assert {(entry.agent, entry.profile) for entry in desk.entries()[1:]} == {("local", "solo")}


async def test_one_strategy_has_no_private_memories_and_another_sees_nothing_p131_p133(
    open_desk: OpenDesk, era: str
) -> None:
    config = (
        '[agents.a]\nprofile = "trader"\n[agents.b]\nprofile = "trader"\n'
        '[agents.other]\nprofile = "trader"\nstrategy = "elsewhere"'
    )
    a, b, other = (open_desk(config, name) for name in ("a", "b", "other"))
    async with a.client(era) as one, b.client(era) as two, other.client(era) as three:
        thesis = await a.call(one, "open_thesis", text="unicorn", symbol="AAPL")
        decided = await a.call(one, "remember_decision", text="d", action="buy", thesis_id=thesis["id"])
        searched = await a.call(one, "search_memory", query="unicorn")
        assert (await b.call(two, "get_memory", memory_id=thesis["id"]))["memory"]["agent"] == "a"
        foreign = (thesis["id"], thesis["id"][:8], decided["id"], searched["retrieval_id"])
        for name in foreign:
            told = await other.refused(three, "get_memory", memory_id=name)
            assert told["code"] == "not_found"
            assert name not in json.dumps(told)
        ways = (
            ("remember_decision", {"text": "x", "action": "buy", "thesis_id": thesis["id"]}),
            ("remember_decision", {"text": "x", "action": "buy", "retrieval_id": searched["retrieval_id"]}),
            ("remember", {"text": "x", "supersedes": decided["id"]}),
            ("flag_memory", {"memory_id": decided["id"], "reason": "wrong"}),
            ("close_thesis", {"thesis_id": thesis["id"]}),
        )
        for tool, arguments in ways:
            told = await other.refused(three, tool, **arguments)
            assert told["code"] == "not_found"
            assert not [name for name in foreign if name in json.dumps(told)]
        assert (await other.call(three, "search_memory", query=thesis["id"]))["total"] == 0
        state = await other.call(three, "get_memory_state")
        assert (state["counts"]["memories"], state["open_theses"]) == (0, [])
        again = await other.call(three, "open_thesis", text="same symbol", symbol="AAPL")
        assert again["warnings"] == []


async def test_many_more_runs_than_may_be_open_are_served_at_once_without_a_failure(
    open_desk: OpenDesk, era: str
) -> None:
    desk = open_desk(SIMULATED, "a")
    runs = [f"run-{number}" for number in range(MOST_OPEN + 9)]
    async with desk.client(era) as client:

        async def live(run: str, tool: str, **arguments: Any) -> None:
            await desk.call(client, tool, meta=at(DAY_1, run), **arguments)

        texts = iter(f"unicorn {number}" for number in range(12 * len(runs)))
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                for run in runs * 4:
                    tasks.start_soon(partial(live, run, "remember", text=next(texts)))
                    tasks.start_soon(partial(live, run, "search_memory", query="unicorn"))
                    tasks.start_soon(partial(live, run, "get_memory_state"))
    assert len(desk.server._ledgers._slots) <= MOST_OPEN
    assert not any(shared.users for shared in desk.server._ledgers._slots.values())
    for run in runs:
        assert len(desk.entries("memory.recorded", run=run)) == 12
