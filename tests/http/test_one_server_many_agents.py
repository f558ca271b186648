"""Requests of several agents on one server, also through one connection: each is judged by its own token."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from store import Book
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

    from store.entry import Entry

ROUNDS = 25
DECISION = {"text": "d", "action": "buy"}


def entries_of(desk: HttpDesk, event_type: str) -> list[Entry]:
    book = Book.open(desk.root, "default", create=False)
    try:
        return book.log(EntryFilter(event_type=event_type, limit=1_000_000))
    finally:
        book.close()


def refused_by(desk: HttpDesk) -> Counter[tuple[str, str]]:
    """How often each agent was refused each thing, as the ledger of a server that has ended has it."""
    found: Counter[tuple[str, str]] = Counter()
    for entry in entries_of(desk, "permission.denied"):
        told = json.loads(entry.content)
        found[entry.agent, told["tool"]] += told["count"]
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_two_sessions_of_different_profiles_never_cross_over_p129(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    """P129: a hundred calls of two sessions, two of each under way at once."""
    desk = start_desk()
    answers: dict[tuple[str, str], list[dict[str, Any]]] = {}

    async def call(client: Any, agent: str, tool: str, **arguments: Any) -> None:
        result = await client.call_tool(tool, arguments)
        answers.setdefault((agent, tool), []).append(json.loads(result.content[0].text))

    async with (
        desk.client("researcher", transport, era) as researcher,
        desk.client("trader", transport, era) as trader,
    ):
        for number in range(ROUNDS):
            async with anyio.create_task_group() as tasks:
                for client, agent in ((researcher, "researcher"), (trader, "trader")):

                    async def decide(client: Any = client, agent: str = agent) -> None:
                        await call(client, agent, "remember_decision", **DECISION)

                    async def note(client: Any = client, agent: str = agent, number: int = number) -> None:
                        await call(client, agent, "remember", text=f"{agent} {number}")

                    tasks.start_soon(decide)
                    tasks.start_soon(note)
    assert desk.stop() == 0

    assert {told["code"] for told in answers["researcher", "remember_decision"]} == {"permission_denied"}
    assert {told["kind"] for told in answers["trader", "remember_decision"]} == {"decision"}
    assert sum(len(found) for found in answers.values()) == 4 * ROUNDS == 100
    assert [entry.agent for entry in entries_of(desk, "decision.recorded")] == ["trader"] * ROUNDS
    assert refused_by(desk) == {("researcher", "remember_decision"): ROUNDS}
    notes = entries_of(desk, "memory.recorded")
    assert {(entry.agent, json.loads(entry.content)["text"].split()[0]) for entry in notes} == {
        ("researcher", "researcher"),
        ("trader", "trader"),
    }
    assert len({(entry.agent, entry.session_id) for entry in notes}) == 2
    assert len({entry.session_id for entry in notes}) == 2


class OneSocket:
    """One connection that is kept alive; a second one is never made."""

    def __init__(self, desk: HttpDesk) -> None:
        self._desk = desk
        self._connection = http.client.HTTPConnection("127.0.0.1", desk.port, timeout=60)
        self._connection.connect()
        self._socket = self._connection.sock
        self.headers: dict[str, str] = {}

    def post(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._connection.request("POST", "/mcp", json.dumps(body), {**accept, **headers})
        answer = self._connection.getresponse()
        content = answer.read().decode()
        self.headers = {name.lower(): value for name, value in answer.headers.items()}
        assert self._connection.sock is self._socket, "the server closed the connection"
        lines = [line[6:] for line in content.splitlines() if line.startswith("data: {")] or [content]
        return answer.status, json.loads(lines[0]) if lines[0] else {}

    def close(self) -> None:
        self._connection.close()


def outcome(status: int, answer: dict[str, Any]) -> str:
    """The code of what was refused, or the kind of what was written."""
    if status != 200:
        return f"{status} {answer['error']['data']['code']}"
    text = json.loads(answer["result"]["content"][0]["text"])
    return str(text["code"] if answer["result"]["isError"] else text["kind"])


def test_each_request_of_one_connection_is_judged_by_its_own_token_p135(start_desk: StartDesk) -> None:
    """P135: one connection, kept alive, with another Authorization header on every request."""
    desk = start_desk()
    request, headers = desk.modern("tools/call", name="remember_decision", arguments=DECISION)
    senders = {
        "researcher": (desk.bearer("researcher"), "permission_denied"),
        "trader": (desk.bearer("trader"), "decision"),
        "nobody": ({}, "401 unauthorized"),
        "auditor": (desk.bearer("auditor"), "permission_denied"),
        "stranger": (desk.bearer("stranger"), "401 unauthorized"),
    }
    wire = OneSocket(desk)
    for _ in range(20):
        for sender, (bearer, expected) in senders.items():
            assert outcome(*wire.post(request, {**headers, **bearer})) == expected, sender
    wire.close()
    assert desk.stop() == 0
    assert [entry.agent for entry in entries_of(desk, "decision.recorded")] == ["trader"] * 20
    assert refused_by(desk) == {("researcher", "remember_decision"): 20, ("auditor", "remember_decision"): 20}


def test_a_session_serves_its_own_token_alone_on_a_shared_connection_p135(start_desk: StartDesk) -> None:
    """P135, in the older era: two sessions over one connection, each also asked for with the other's token."""
    desk = start_desk()
    wire = OneSocket(desk)
    own: dict[str, dict[str, str]] = {}
    for agent in ("researcher", "trader"):
        hello = desk.rpc("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=CLIENT)
        assert wire.post(hello, desk.bearer(agent))[0] == 200
        own[agent] = {"Mcp-Session-Id": wire.headers["mcp-session-id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert wire.post(note, {**own[agent], **desk.bearer(agent)})[0] == 202
    request = desk.rpc("tools/call", name="remember_decision", arguments=DECISION)
    for _ in range(20):
        for session, bearer, expected in (
            ("researcher", "researcher", "permission_denied"),
            ("trader", "researcher", "404 session_not_found"),
            ("trader", "trader", "decision"),
            ("researcher", "trader", "404 session_not_found"),
        ):
            assert outcome(*wire.post(request, {**own[session], **desk.bearer(bearer)})) == expected
    wire.close()
    assert desk.stop() == 0
    assert [entry.agent for entry in entries_of(desk, "decision.recorded")] == ["trader"] * 20
    assert refused_by(desk) == {
        ("researcher", "remember_decision"): 20,
        ("researcher", "session"): 20,
        ("trader", "session"): 20,
    }


CLIENT = {"name": "test", "version": "1"}
