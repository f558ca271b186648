"""Two agents, each with a stdio server of its own, write one ledger at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Look, StartServer

pytestmark = pytest.mark.faults

EACH = 200


def test_two_servers_write_two_hundred_memories_each_into_one_gapless_chain(
    start_server: StartServer, desk_config: Path, look: Look, root: Path
) -> None:
    agents = ("researcher", "trader")
    servers = {agent: start_server("--config", str(desk_config), "--agent", agent).open() for agent in agents}
    asked = {
        agent: [
            server.frame("tools/call", name="remember", arguments={"text": f"{agent} says {number}"})
            for number in range(EACH)
        ]
        for agent, server in servers.items()
    }
    for agent, server in servers.items():
        server.send(*asked[agent])
    for agent, server in servers.items():
        for number, frame in enumerate(asked[agent]):
            answer = server.result(frame["id"])
            assert not answer.is_error, (number, answer.body)
        assert len(server.stored()) == EACH

    report = look.assert_sound()
    rows = look.rows(
        "SELECT agent, profile, content FROM memory_events WHERE kind = 'memory' ORDER BY sequence"
    )
    assert len(rows) == 2 * EACH
    assert report.entries == 2 * EACH + 1 + len(agents)  # genesis and two sessions
    for agent in agents:
        texts = [json.loads(content)["text"] for who, _, content in rows if who == agent]
        assert sorted(texts) == sorted(f"{agent} says {number}" for number in range(EACH))
    assert {(who, profile) for who, profile, _ in rows} == {(agent, agent) for agent in agents}
    acknowledged = {body["event_id"] for server in servers.values() for body in server.stored().values()}
    assert len(acknowledged) == 2 * EACH
    assert acknowledged <= look.event_ids()
    assert [server.end() for server in servers.values()] == [0, 0]
    look.assert_rebuild_changes_nothing(root)


def test_sixty_parallel_calls_on_one_pipe_are_sixty_memories(start_server: StartServer, look: Look) -> None:
    """P001, P167."""
    server = start_server().open()
    asked = [
        server.frame("tools/call", name="remember", arguments={"text": f"token{number}"})
        for number in range(60)
    ]
    server.send(*asked)
    answers = [server.result(frame["id"]) for frame in asked]
    assert not any(answer.is_error for answer in answers)
    assert sorted(look.texts()) == sorted(f"token{number}" for number in range(60))
    for number in range(60):
        found = server.call("search_memory", query=f"token{number}").body
        assert [hit["text"] for hit in found["hits"]] == [f"token{number}"]
    look.assert_sound()
