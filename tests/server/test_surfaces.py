"""Resources and prompts, names that are not there, and caps that hold whatever is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from server.sections import LimitSettings

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "uri", ["memory://memory/mem_none", "memory://thesis/x", "memory://nothing", "file:///etc"]
)
async def test_a_resource_that_is_not_there_is_refused_in_the_one_error_shape(
    desk: InMemoryDesk, era: str, uri: str
) -> None:
    async with desk.client(era) as client:
        with pytest.raises(MCPError) as refusal:
            await client.read_resource(uri)
        told = refusal.value.error.data
        assert told["code"] == "not_found"
        assert told.keys() == {"code", "message", "stored", "retryable", "hint", "field", "uri"}
        assert told["uri"] == uri
        assert json.loads(refusal.value.error.message) == told


async def test_prompts_are_filled_in_and_refuse_by_name(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        told = await client.get_prompt("decision_journal", {"symbol": "BRK.B"})
        assert "Before you decide on BRK.B" in told.messages[0].content.text  # type: ignore[union-attr]
        for name, given, field in (
            ("decision_journal", {}, "symbol"),
            ("decision_journal", {"symbol": "x" * 200}, "symbol"),
            ("decision_journal", {"symbol": "A", "simbol": "B"}, "simbol"),
            ("decision_jurnal", {"symbol": "A"}, "name"),
        ):
            with pytest.raises(MCPError) as refusal:
                await client.get_prompt(name, given)
            assert refusal.value.error.data["field"] == field


async def test_an_unknown_tool_is_refused_with_a_near_miss(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        told = await desk.refused(client, "serch_memory", query="x")
        assert told["field"] == "name"
        assert "search_memory" in told["message"]


async def test_no_reply_is_over_its_cap_whatever_is_stored(open_desk: OpenDesk, era: str) -> None:
    caps = LimitSettings()
    desk = open_desk()
    async with desk.client(era) as client:
        evidence = json.dumps({"raw": "e" * 63_000})
        for _ in range(3):
            big = await desk.call(
                client,
                "remember_decision",
                text='\u2028\t"quoted" 目标价 💹 ' * 4_000,
                action="other",
                evidence=evidence,
                tags=[f"{number} {'t' * 60}" for number in range(50)],
            )
        thesis = await desk.call(
            client, "open_thesis", text="T" * 100_000, horizon="h" * 500, target="t" * 500
        )
        for number in range(5):
            await desk.call(client, "update_thesis", thesis_id=thesis["id"], text=f"{number}" * 100_000)
        for tool, arguments, cap in (
            ("search_memory", {"limit": 50, "response_format": "detailed"}, caps.reply_chars),
            ("search_memory", {"limit": 50}, caps.reply_chars),
            ("get_memory", {"memory_id": big["id"]}, caps.reply_chars),
            ("get_memory", {"memory_id": thesis["id"]}, caps.reply_chars),
            ("get_memory_state", {}, caps.state_chars),
        ):
            result = await client.call_tool(tool, arguments)
            desk.body(result)
            assert len(result.content[0].text) <= cap, (tool, arguments)  # type: ignore[union-attr]


async def test_showings_do_not_crowd_the_history_of_a_memory_out(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        thesis = await desk.call(client, "open_thesis", text="first words")
        for number in range(60):
            meta = {"deskbook/session_id": f"session-{number}"}
            await desk.call(client, "get_memory", meta=meta, memory_id=thesis["id"])
        await desk.call(client, "update_thesis", thesis_id=thesis["id"], text="second words")
        shown = await desk.call(client, "get_memory", memory_id=thesis["id"])
    assert [entry["event"] for entry in shown["history"]] == ["thesis.opened", "thesis.updated"]
    assert shown["history_total"] == 2
    assert len(desk.entries("memory.delivered")) == 61
