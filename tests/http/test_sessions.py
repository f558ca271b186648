"""Sessions: who may use one, how it ends, and what happens when there is no room for another."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from server.http.refusals import Refused
from server.http.sessions import OWN_IDLE_SECONDS, Session, Sessions

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

ROOT = Path(__file__).resolve().parents[2]
GUARD = 60.0
ONE = '[agents.researcher]\nprofile = "researcher"\ntoken_env = "RESEARCHER_TOKEN"\n'
FILE_TOKENS = '[agents.researcher]\nprofile = "researcher"\n[agents.trader]\nprofile = "trader"\n'


def post(http: httpx2.Client, session: str | None, body: dict[str, Any]) -> httpx2.Response:
    return http.post("/mcp", json=body, headers={} if session is None else {"Mcp-Session-Id": session})


def new_token(desk: HttpDesk, agent: str, *options: str) -> tuple[str, str]:
    """A token made by the command, and its id."""
    place = ["--config", str(desk.config), "--root", str(desk.root)]
    made = subprocess.run(
        [sys.executable, "-m", "server", "token", "new", agent, *place, *options],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=GUARD,
    )
    token = made.stdout.strip()
    return token, token.split("_")[1]


def revoke(desk: HttpDesk, token_id: str) -> None:
    command = [sys.executable, "-m", "server", "token", "revoke", token_id, "--config", str(desk.config)]
    subprocess.run(
        [*command, "--root", str(desk.root)], check=True, cwd=ROOT, capture_output=True, timeout=GUARD
    )


def test_a_session_that_is_not_known_is_told_to_initialize_anew(desk: HttpDesk) -> None:
    """P173."""
    with desk.raw("trader") as http:
        for call in (
            partial(post, http, "00000000000000000000000000000000", desk.rpc("tools/list")),
            partial(http.get, "/mcp", headers={"Mcp-Session-Id": "gone"}),
            partial(http.delete, "/mcp", headers={"Mcp-Session-Id": "gone"}),
            partial(http.post, "/messages/", params={"session_id": "gone"}, json=desk.rpc("ping")),
            partial(http.post, "/messages/", json=desk.rpc("ping")),
        ):
            assert "Initialize anew" in desk.refused(call(), 404, "session_not_found")["hint"]


def test_after_a_restart_the_old_id_is_unknown_and_initialize_with_it_gives_a_new_one(
    start_desk: StartDesk,
) -> None:
    """P173."""
    first = start_desk()
    old = first.initialize("trader")
    assert first.stop() == 0
    desk = start_desk()
    with desk.raw("trader") as http:
        desk.refused(post(http, old, desk.rpc("tools/list")), 404, "session_not_found")
    new = desk.initialize("trader", **{"Mcp-Session-Id": old})
    assert new != old
    with desk.raw("trader") as http:
        assert "tools" in desk.answer(post(http, new, desk.rpc("tools/list")))["result"]


def test_what_has_no_session_opens_none(start_desk: StartDesk) -> None:
    """P175: GET, DELETE and calls without an id; the one place there is stays free."""
    desk = start_desk(ONE + "[http]\nmax_sessions = 1\n")
    with desk.raw("researcher") as http:
        for _ in range(100):
            desk.refused(http.get("/mcp"), 400, "session_required")
            desk.refused(http.delete("/mcp"), 400, "session_required")
            desk.refused(post(http, None, desk.rpc("tools/list")), 400, "session_required")
            bad = {**desk.rpc("initialize"), "params": {"protocolVersion": 7}}
            assert "error" in desk.answer(post(http, None, bad))
    assert desk.initialize("researcher")


def test_a_session_of_another_token_looks_like_none_and_the_attempt_is_recorded(desk: HttpDesk) -> None:
    session = desk.initialize("trader")
    with desk.raw("researcher") as http:
        for attempt in (
            post(http, session, desk.rpc("tools/list")),
            http.get("/mcp", headers={"Mcp-Session-Id": session}),
            http.delete("/mcp", headers={"Mcp-Session-Id": session}),
        ):
            desk.refused(attempt, 404, "session_not_found")
    with desk.raw("trader") as http:
        assert "tools" in desk.answer(post(http, session, desk.rpc("tools/list")))["result"]
    (entry,) = [entry for entry in desk.entries("permission.denied") if entry.subject_id == "session"]
    assert entry.agent == "researcher"
    assert session not in str(entry)


@pytest.mark.anyio
async def test_the_legacy_stream_of_another_token_looks_like_none_too(desk: HttpDesk) -> None:
    async with (
        httpx2.AsyncClient(base_url=desk.url, headers=desk.bearer("trader"), timeout=GUARD) as http,
        http.stream("GET", "/sse") as stream,
    ):
        lines = stream.aiter_lines()
        address = ""
        while not address.startswith("data: "):
            address = await anext(lines)
        path = address.removeprefix("data: ")
        assert path.startswith("/messages/?session_id=")
        with desk.raw("auditor") as other:
            desk.refused(other.post(path, json=desk.rpc("ping")), 404, "session_not_found")
        assert (await http.post(path, json=desk.rpc("ping"))).status_code == 202
    assert [entry.agent for entry in desk.entries("permission.denied") if entry.agent == "auditor"] == [
        "auditor"
    ]


def test_two_tokens_of_one_agent_have_sessions_of_their_own(start_desk: StartDesk, tmp_path: Path) -> None:
    (tmp_path / "desk.toml").write_text(FILE_TOKENS)
    made = SimpleNamespace(config=tmp_path / "desk.toml", root=tmp_path / "root")
    one, _ = new_token(made, "trader")  # type: ignore[arg-type]
    two, _ = new_token(made, "trader")  # type: ignore[arg-type]
    desk = start_desk(FILE_TOKENS)
    session = desk.initialize(None, Authorization=f"Bearer {one}")
    with desk.raw(None, Authorization=f"Bearer {two}") as http:
        desk.refused(post(http, session, desk.rpc("tools/list")), 404, "session_not_found")


def test_a_revoked_token_stops_working_on_its_live_session_and_ends_its_streams(
    start_desk: StartDesk, tmp_path: Path
) -> None:
    (tmp_path / "desk.toml").write_text(FILE_TOKENS)
    made = SimpleNamespace(config=tmp_path / "desk.toml", root=tmp_path / "root")
    token, token_id = new_token(made, "trader")  # type: ignore[arg-type]
    other, _ = new_token(made, "researcher")  # type: ignore[arg-type]
    desk = start_desk(FILE_TOKENS)
    session = desk.initialize(None, Authorization=f"Bearer {token}")
    kept = desk.initialize(None, Authorization=f"Bearer {other}")
    listen, headers = desk.modern(
        "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://state"]}
    )
    with (
        desk.raw(None, Authorization=f"Bearer {token}") as http,
        desk.raw(None, Authorization=f"Bearer {other}") as another,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as standing,
        http.stream("POST", "/mcp", json=listen, headers=headers) as listening,
        http.stream("GET", "/sse") as legacy,
    ):
        assert [stream.status_code for stream in (standing, listening, legacy)] == [200, 200, 200]
        revoke(desk, token_id)
        desk.refused(post(http, session, desk.rpc("tools/list")), 401, "unauthorized")
        for stream in (standing, listening, legacy):
            for _ in stream.iter_raw():  # ends, because the server ends it
                pass
        assert "tools" in desk.answer(post(another, kept, desk.rpc("tools/list")))["result"]


def test_a_token_made_while_the_server_runs_is_taken_and_closes_an_open_server(start_desk: StartDesk) -> None:
    desk = start_desk('[agents.trader]\nprofile = "trader"\n')
    body, headers = desk.modern("tools/list")
    with desk.raw() as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200
        token, token_id = new_token(desk, "trader")
        desk.refused(http.post("/mcp", json=body, headers=headers), 401, "unauthorized")
        bearer = {"Authorization": f"Bearer {token}"}
        assert http.post("/mcp", json=body, headers={**headers, **bearer}).status_code == 200
        revoke(desk, token_id)
        desk.refused(http.post("/mcp", json=body, headers=headers), 401, "unauthorized")
        desk.refused(http.post("/mcp", json=body, headers={**headers, **bearer}), 401, "unauthorized")


def test_a_read_only_token_narrows_its_agent(start_desk: StartDesk) -> None:
    desk = start_desk('[agents.trader]\nprofile = "trader"\n')
    assert desk.url
    token, _ = new_token(desk, "trader", "--read-only")
    with desk.raw(None, Authorization=f"Bearer {token}") as http:
        body, headers = desk.modern("tools/list")
        tools = desk.answer(http.post("/mcp", json=body, headers=headers))["result"]["tools"]
        assert {tool["name"] for tool in tools} == {
            "search_memory",
            "get_memory",
            "get_memory_state",
            "list_unreconciled_orders",
        }


def test_an_idle_session_expires_and_one_with_an_open_stream_does_not(start_desk: StartDesk) -> None:
    desk = start_desk(ONE + "[http]\nsession_idle_timeout = 1\n")
    idle, held = desk.initialize("researcher"), desk.initialize("researcher")
    with (
        desk.raw("researcher") as http,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": held}) as stream,
    ):
        assert stream.status_code == 200
        desk.wait_for_log("it was idle")
        desk.refused(post(http, idle, desk.rpc("tools/list")), 404, "session_not_found")
        assert "tools" in desk.answer(post(http, held, desk.rpc("tools/list")))["result"]


def test_a_session_that_its_client_ended_is_gone(desk: HttpDesk) -> None:
    session = desk.initialize("trader")
    with desk.raw("trader") as http:
        assert http.delete("/mcp", headers={"Mcp-Session-Id": session}).status_code == 200
        desk.refused(post(http, session, desk.rpc("tools/list")), 404, "session_not_found")


# --- room


@dataclass
class Room:
    """Sessions with a clock set by hand; `ended` names what gave way."""

    sessions: Sessions
    ended: list[str] = field(default_factory=list)
    opened: int = 0

    async def open(self, agent: str, *, idle: float = 0.0) -> Session:
        who: Any = SimpleNamespace(owner=agent, identity=SimpleNamespace(agent=agent))
        self.opened += 1
        key = f"{agent}-{self.opened}"

        async def end() -> None:
            self.ended.append(key)

        async with self.sessions.opening(who) as hold:
            session = Session(key, who, "http", end)
            session.idle_since -= idle
            hold(session)
        return session


def room(most: int) -> Room:
    return Room(Sessions(most, 1_800, lambda _: True))


@pytest.mark.anyio
async def test_a_full_server_ends_the_longest_idle_session_of_the_agent_that_holds_most() -> None:
    found = room(4)
    await found.open("many", idle=1)
    await found.open("many", idle=3)
    await found.open("many", idle=2)
    await found.open("few", idle=1_000)
    await found.open("other")
    assert found.ended == ["many-2"]
    assert len(found.sessions) == 4


@pytest.mark.anyio
async def test_an_agent_that_leaves_sessions_behind_takes_the_place_of_its_own() -> None:
    found = room(3)
    await found.open("few", idle=1_000)
    await found.open("many", idle=OWN_IDLE_SECONDS + 1)
    await found.open("many", idle=OWN_IDLE_SECONDS + 2)
    await found.open("many")
    assert found.ended == ["many-3"]


@pytest.mark.anyio
async def test_a_session_in_use_never_gives_way() -> None:
    found = room(2)
    first, second = await found.open("a", idle=100), await found.open("a", idle=100)
    with first.in_use(), second.in_use():
        with pytest.raises(Refused) as refused:
            await found.open("b")
        assert (refused.value.status, refused.value.retryable) == (503, True)
        assert refused.value.headers["Retry-After"]
    assert found.ended == []


@pytest.mark.anyio
async def test_places_that_are_being_opened_count() -> None:
    found = room(1)
    who: Any = SimpleNamespace(owner="a", identity=SimpleNamespace(agent="a"))
    async with found.sessions.opening(who):
        with pytest.raises(Refused):
            await found.open("b")
    await found.open("b")


@pytest.mark.anyio
async def test_calls_without_a_session_are_taken_together_by_token_and_client() -> None:
    found = room(10).sessions
    who: Any = SimpleNamespace(owner="t1", identity=SimpleNamespace(agent="a"))
    other: Any = SimpleNamespace(owner="t2", identity=SimpleNamespace(agent="a"))
    first = found.visit(who, ("claude", "1"))
    assert found.visit(who, ("claude", "1")) == first
    assert len({first, found.visit(who, ("claude", "2")), found.visit(other, ("claude", "1"))}) == 3


def test_a_full_server_says_so_and_serves_what_is_open(start_desk: StartDesk) -> None:
    config = ONE + "[http]\nmax_sessions = 2\n"
    desk = start_desk(config)
    one, _two = desk.initialize("researcher"), desk.initialize("researcher")
    with desk.raw("researcher") as http:
        full = post(http, None, desk.rpc("initialize", protocolVersion="2025-11-25"))
        told = desk.refused(full, 503, "over_capacity")
        assert told["retryable"] is True
        assert full.headers["retry-after"]
        assert "tools" in desk.answer(post(http, one, desk.rpc("tools/list")))["result"]
        body, headers = desk.modern("tools/list")
        assert http.post("/mcp", json=body, headers=headers).status_code == 200


@pytest.mark.anyio
async def test_clients_that_never_say_goodbye_do_not_lock_others_out(start_desk: StartDesk) -> None:
    config = (
        '[agents.researcher]\nprofile = "researcher"\ntoken_env = "RESEARCHER_TOKEN"\n'
        '[agents.trader]\nprofile = "trader"\ntoken_env = "TRADER_TOKEN"\n[http]\nmax_sessions = 5\n'
    )
    desk = start_desk(config)
    for _ in range(5):
        desk.initialize("researcher")
    async with desk.client("trader", "http", "legacy") as client:
        assert (await client.list_tools()).tools
    with anyio.fail_after(GUARD):
        async with desk.client("trader", "sse", "legacy") as client:
            assert (await client.list_tools()).tools
