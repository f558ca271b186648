"""Every profile against every tool, resource and prompt, in both eras: what is listed can be used, the rest not."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from server.permissions import PROFILES
from server.tools import TOOLS

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk
    from mcp import Client

pytestmark = pytest.mark.anyio

TABLE = runpy.run_path(str(Path(__file__).parents[1] / "fixtures" / "permission_matrix.py"))
EXPECTED: dict[str, tuple[set[str], set[str], set[str]]] = TABLE["EXPECTED"]
CUSTOM, VALID, RESOURCES, PROMPTS = (TABLE[name] for name in ("CUSTOM", "VALID", "RESOURCES", "PROMPTS"))
CELLS_OF_ONE_DESK = len(TOOLS) + len(RESOURCES) + len(PROMPTS)
seen_cells: set[tuple[str, str, str]] = set()


def opened(open_desk: OpenDesk, case: str) -> InMemoryDesk:
    profile, _, read_only = case.partition(", ")
    agent = f'[agents.a]\nprofile = "{profile}"\nread_only = {str(bool(read_only)).lower()}\n'
    return open_desk(CUSTOM + agent, "a")


async def usable_tools(desk: InMemoryDesk, client: Client) -> set[str]:
    """The tools whose call is not refused for want of permission; each refusal is checked to say so."""
    found = set()
    for name in TOOLS:
        result = await client.call_tool(name, VALID.get(name, {}))
        if not result.is_error or desk.error(result)["code"] != "permission_denied":
            found.add(name)
            continue
        told = desk.error(result)
        assert told["stored"] == "no"
        assert told["retryable"] is False
        assert name in told["message"]
    return found


async def usable_resources(client: Client) -> set[str]:
    found = set()
    for template in RESOURCES:
        try:
            await client.read_resource(template.replace("{id}", "mem_0"))
        except MCPError as refusal:
            if json.loads(refusal.error.message)["code"] == "permission_denied":
                continue
        found.add(template)
    return found


async def usable_prompts(client: Client) -> set[str]:
    found = set()
    for name, argument in (("decision_journal", "symbol"), ("review_open_thesis", "thesis_id")):
        try:
            await client.get_prompt(name, {argument: "x"})
        except MCPError as refusal:
            if json.loads(refusal.error.message)["code"] == "permission_denied":
                continue
        found.add(name)
    return found


@pytest.mark.parametrize("case", EXPECTED)
async def test_what_is_listed_can_be_used_and_the_rest_is_refused_and_recorded(
    open_desk: OpenDesk, era: str, case: str
) -> None:
    desk = opened(open_desk, case)
    tools, resources, prompts = EXPECTED[case]
    async with desk.client(era) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == tools
        shown = {resource.uri for resource in (await client.list_resources()).resources}
        shown |= {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        assert {str(uri) for uri in shown} == resources
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == prompts

        assert await usable_tools(desk, client) == tools
        assert await usable_resources(client) == resources
        assert await usable_prompts(client) == prompts

    denied = {content["tool"] for content in desk.contents("permission.denied")}
    assert denied == (set(TOOLS) - tools) | (RESOURCES - resources) | (set(PROMPTS) - prompts)
    assert all(entry.agent == "a" for entry in desk.entries("permission.denied"))
    written = {entry.kind for entry in desk.entries() if entry.event_type.endswith(".recorded")}
    assert written == {kind for name in tools for kind in TOOLS_TO_KINDS.get(name, ())}
    assert bool(desk.entries("positions.reported")) == ("report_positions" in tools)
    seen_cells.update((case, era, name) for name in (*TOOLS, *RESOURCES, *PROMPTS))


TOOLS_TO_KINDS = {
    "remember": ("memory",),
    "remember_proposal": ("proposal",),
    "remember_risk_note": ("risk_note",),
    "remember_lesson": ("lesson",),
    "remember_decision": ("decision",),
    "record_order_intent": ("order_action", "decision"),  # an order without a decision makes one
}


def test_the_matrix_was_walked_cell_by_cell() -> None:
    assert set(EXPECTED) >= set(PROFILES)
    assert CELLS_OF_ONE_DESK == 19 + 3 + 2
    assert len(seen_cells) in (0, len(EXPECTED) * 2 * CELLS_OF_ONE_DESK)  # 0 when this test runs alone
    assert len(EXPECTED) * 2 * CELLS_OF_ONE_DESK == 720


async def test_remember_is_no_back_door_to_a_decision_or_thesis(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk('[agents.a]\nprofile = "researcher"')
    async with desk.client(era) as client:
        for extra in ({"kind": "decision"}, {"action": "buy"}, {"event_type": "decision.recorded"},
                      {"type": "thesis"}, {"status": "validated"}, {"subject_type": "decision"}):  # fmt: skip
            assert (await desk.refused(client, "remember", text="t", **extra))["code"] == "invalid_input"
        written = await desk.call(
            client, "remember", text="DECISION: buy", category="decision", tags="decision,thesis"
        )
        assert (written["kind"], written["status"]) == ("memory", "active")
        lesson = await desk.call(
            client, "remember_lesson", text="t", outcome='{"status":"validated","observed":true}'
        )
        assert lesson["status"] == "proposed"
        assert (await desk.call(client, "search_memory", kind="decision"))["total"] == 0
        assert (await desk.call(client, "search_memory", status="validated"))["total"] == 0
        assert (await desk.call(client, "get_memory_state"))["validated_lessons"] == []


async def test_what_is_a_command_of_a_person_is_no_tool_and_not_open_to_anyone(
    desk: InMemoryDesk, era: str
) -> None:
    """What a person alone decides is refused as such, and that is an entry; other names are just unknown."""
    async with desk.client(era) as client:
        for name in ("export_ledger", "rm -rf", "preapproved"):
            assert (await desk.refused(client, name))["code"] == "not_found"
        assert desk.entries("permission.denied") == []
        for name in ("approve_memory", "redact_memory", "publish", "memory.reject"):
            told = await desk.refused(client, name)
            assert (told["code"], told["stored"]) == ("permission_denied", "no")
        (entry,) = desk.entries("permission.denied")
        assert json.loads(entry.content)["tool"] == "review"


async def test_two_desks_with_different_profiles_never_cross_over_p129(open_desk: OpenDesk, era: str) -> None:
    config = '[agents.r]\nprofile = "researcher"\n[agents.t]\nprofile = "trader"'
    researcher, trader = open_desk(config, "r"), open_desk(config, "t")
    async with researcher.client(era) as one, trader.client(era) as other:
        for _ in range(50):
            assert (await researcher.refused(one, "remember_decision", text="d", action="buy"))[
                "code"
            ] == "permission_denied"
            await trader.call(other, "remember_decision", text="d", action="buy")
    assert {entry.agent for entry in trader.entries("decision.recorded")} == {"t"}
    assert {entry.agent for entry in trader.entries("permission.denied")} == {"r"}
    assert len(trader.entries("decision.recorded")) == 50


async def test_only_who_may_resolve_any_ends_the_memory_of_another(open_desk: OpenDesk, era: str) -> None:
    config = (
        '[agents.author]\nprofile = "researcher"\n[agents.other]\nprofile = "trader"\n'
        '[agents.keeper]\nprofile = "keeper"\n'
        '[profiles.keeper]\nextends = "auditor"\nallow = ["resolve", "resolve_any"]'
    )
    author, other, keeper = (open_desk(config, name) for name in ("author", "other", "keeper"))
    async with author.client(era) as one, other.client(era) as two, keeper.client(era) as three:
        note = (await author.call(one, "remember", text="mine"))["id"]
        told = await other.refused(two, "resolve_memory", memory_id=note, status="retired")
        assert told["code"] == "permission_denied"
        assert "flag_memory" in told["hint"]
        ended = await keeper.call(three, "resolve_memory", memory_id=note, status="retired")
        assert ended["status"] == "retired"
        shown = await author.call(one, "get_memory", memory_id=note)
    assert (shown["memory"]["agent"], shown["memory"]["changed_by"]) == ("author", "keeper")
