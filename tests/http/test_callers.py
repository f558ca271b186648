"""Who is calling, over HTTP: the token of each request says it, and nothing that a client claims."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

pytestmark = pytest.mark.anyio
WIRES = [("http", "legacy"), ("http", "modern"), ("sse", "legacy"), ("sse", "modern")]
BACKTEST = """
[clock]
mode = "simulated"
[agents.trader]
profile = "trader"
token_env = "TRADER_TOKEN"
[agents.live]
profile = "trader"
token_env = "LIVE_TOKEN"
clock = { mode = "live" }
"""


def told(result: Any) -> dict[str, Any]:
    return dict(json.loads(result.content[0].text))


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_claims_of_another_identity_change_nothing(desk: HttpDesk, transport: str, era: str) -> None:
    """P127: an argument, a header and `_meta` that name another agent; what was claimed is kept as claimed."""
    claims = {"X-Agent-Id": "trader", "X-Forwarded-User": "trader", "Deskbook-Agent": "trader"}
    async with desk.client("researcher", transport, era, **claims) as client:
        decided = await client.call_tool(
            "remember_decision", {"text": "t", "action": "hold"}, meta={"deskbook/agent": "trader"}
        )
        assert told(decided)["code"] == "permission_denied"
        named = await client.call_tool("remember", {"text": "t", "agent_name": "trader"})
        assert told(named)["code"] == "invalid_input"
        kept = told(await client.call_tool("remember", {"text": f"by whom, {transport}, {era}"}))
    (entry,) = [entry for entry in desk.entries("memory.recorded") if entry.subject_id == kept["id"]]
    assert (entry.agent, entry.profile) == ("researcher", "researcher")
    assert entry.session_id
    started = [
        json.loads(found.content)
        for found in desk.entries("session.started")
        if found.session_id == entry.session_id
    ]
    (session,) = started
    assert session["transport"] == transport
    assert session["token_id"] == "env:researcher"
    assert session["client_name"]
    assert session["protocol_version"] == ("2025-11-25" if era == "legacy" else "2026-07-28")


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_labels_come_by_headers_and_meta_goes_before_them(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    desk = start_desk(BACKTEST)
    labels = {
        "Deskbook-Now": "2026-03-02T14:30:00Z",
        "Deskbook-Run": "run-1",
        "Deskbook-Model-Call": "call-1",
        "Deskbook-Session": "my-session",
    }
    async with desk.client("trader", transport, era, **labels) as client:
        first = told(await client.call_tool("remember", {"text": "one"}))
        later = {"deskbook/now": "2026-03-02T15:00:00Z", "deskbook/model_call_id": "call-2"}
        second = told(await client.call_tool("remember", {"text": "two"}, meta=later))
        assert first["effective_at"] == "2026-03-02T14:30:00Z"
        assert second["effective_at"] == "2026-03-02T15:00:00Z"
        back = told(await client.call_tool("remember", {"text": "three"}))
        assert (back["code"], back["field"]) == ("clock_error", "Deskbook-Now")
    one, two = desk.entries("memory.recorded", run="run-1")
    assert (one.session_id, one.model_call_id) == ("my-session", "call-1")
    assert (two.session_id, two.model_call_id) == ("my-session", "call-2")


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_a_live_agent_takes_no_time_and_no_run_by_header(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    desk = start_desk(BACKTEST)
    for header, value in (("Deskbook-Now", "2026-03-02T14:30:00Z"), ("Deskbook-Run", "r")):
        async with desk.client("live", transport, era, **{header: value}) as client:
            refused = told(await client.call_tool("remember", {"text": "t"}))
            assert (refused["code"], refused["field"]) == ("clock_error", header)
            assert (await client.list_tools()).tools


async def test_labels_in_the_servers_own_environment_are_not_those_of_its_callers(
    start_desk: StartDesk,
) -> None:
    desk = start_desk(
        BACKTEST, DESKBOOK_NOW="2026-03-02T14:30:00Z", DESKBOOK_SESSION="server", DESKBOOK_MODEL_CALL="server"
    )
    async with desk.client("live") as client:
        kept = told(await client.call_tool("remember", {"text": "t"}))
    (entry,) = desk.entries("memory.recorded")
    assert entry.subject_id == kept["id"]
    assert entry.session_id != "server"
    assert entry.model_call_id is None


@pytest.mark.parametrize("agent", ["researcher", "trader", "auditor"])
async def test_a_client_that_says_nothing_of_itself_is_served(desk: HttpDesk, agent: str) -> None:
    """P137: every tool from a bare client without headers, labels or a name: served, or told what to do."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with desk.raw(agent) as http:

        def ask(method: str, **params: Any) -> dict[str, Any]:
            body, headers = desk.modern(method, **params)
            body["params"]["_meta"] = meta
            return desk.answer(http.post("/mcp", json=body, headers=headers))["result"]  # type: ignore[no-any-return]

        for tool in ask("tools/list")["tools"]:
            result = ask("tools/call", name=tool["name"], arguments={})
            told = json.loads(result["content"][0]["text"])
            if result.get("isError"):
                assert told["hint"]
                assert told["stored"] == "no"
            else:
                assert "code" not in told
        remembered = ask("tools/call", name="remember", arguments={"text": "bare"})
        assert bool(remembered.get("isError")) is (agent == "auditor")


async def test_what_another_strategy_holds_is_not_found_whichever_way_it_is_asked_for(
    start_desk: StartDesk,
) -> None:
    """P131: by id, by its beginning, by link, in state and search, as a resource: the same as what never was."""
    desk = start_desk(
        '[agents.a]\nprofile = "solo"\nstrategy = "one"\ntoken_env = "A_TOKEN"\n'
        '[agents.b]\nprofile = "solo"\nstrategy = "two"\ntoken_env = "B_TOKEN"\n'
    )
    async with desk.client("a") as client:
        thesis = told(await client.call_tool("open_thesis", {"text": "secret edge", "symbol": "AAPL"}))["id"]
        found = told(await client.call_tool("search_memory", {"query": "secret"}))["retrieval_id"]
    async with desk.client("b") as client:
        for memory_id in (thesis, thesis[:8]):
            seen = told(await client.call_tool("get_memory", {"memory_id": memory_id}))
            never = told(await client.call_tool("get_memory", {"memory_id": "ths_0000000000000"}))
            assert seen == never
            assert seen["code"] == "not_found"
            for uri in (f"memory://thesis/{memory_id}", f"memory://memory/{memory_id}"):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert refused.value.error.data["code"] == "not_found"
        linked = {"text": "t", "action": "hold"}
        for link in ({"thesis_id": thesis}, {"retrieval_id": found}):
            answer = told(await client.call_tool("remember_decision", {**linked, **link}))
            assert answer["code"] in ("not_found", "invalid_input")
        for tool, arguments in (("search_memory", {"query": "secret edge"}), ("get_memory_state", {})):
            answer = (await client.call_tool(tool, arguments)).content[0].text  # type: ignore[union-attr]
            assert thesis not in answer
            assert "secret" not in answer.replace("secret edge", "", 1) or tool == "get_memory_state"


async def test_calls_without_a_session_share_one_in_the_record(desk: HttpDesk) -> None:
    ids = []
    for text in ("first", "second"):
        async with desk.client("trader") as client:
            ids.append(told(await client.call_tool("remember", {"text": text}))["id"])
    sessions = {entry.session_id for entry in desk.entries("memory.recorded") if entry.subject_id in ids}
    assert len(sessions) == 1


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_text_that_no_encoding_can_carry_breaks_no_connection(
    desk: HttpDesk, transport: str, era: str
) -> None:
    async with desk.client("trader", transport, era) as client:
        for arguments in ({"query": "x\x00y"}, {"quer\ufffdy": "x"}, {"query": "𝕏" * 60_000}):
            assert told(await client.call_tool("search_memory", arguments))["code"] == "invalid_input"
        assert (await client.list_tools()).tools


def test_every_answer_names_the_agent_it_was_given_to(desk: HttpDesk) -> None:
    body, headers = desk.modern("tools/list")
    for agent in ("researcher", "trader"):
        with desk.raw(agent) as http:
            assert http.post("/mcp", json=body, headers=headers).headers["deskbook-agent"] == agent
    with desk.raw() as http:
        assert "deskbook-agent" not in http.post("/mcp", json=body, headers=headers).headers


def test_the_documented_client_does_what_it_says(desk: HttpDesk) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    token = desk.bearer("trader")["Authorization"].removeprefix("Bearer ")
    for shown, meant in (("http://127.0.0.1:8765", desk.url), ("dbk_...", token)):
        assert shown in program
        program = program.replace(shown, meant)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "memory://state changed\n"), ran.stderr


def test_a_lone_surrogate_is_refused_and_the_next_request_is_served(desk: HttpDesk) -> None:
    with desk.raw("trader") as http:
        body, headers = desk.modern(
            "tools/call", name="remember", arguments={"text": "SURROGATE", "kind\udc00": 1}
        )
        raw = json.dumps(body).replace("SURROGATE", "\\ud800")
        found = http.post("/mcp", content=raw, headers={**headers, "Content-Type": "application/json"})
        assert found.status_code in (200, 400)
        assert "\\ud800" not in found.text
        body, headers = desk.modern("tools/list")
        assert http.post("/mcp", json=body, headers=headers).status_code == 200
