"""One agent cannot take the server from the others: floods, clients that do not read, and the rate of calls."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from store import Book
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

    from store.entry import Entry

pytestmark = pytest.mark.slow

AGENTS = ("ann", "ben", "cid")
DESK = "".join(
    f'[agents.{name}]\nprofile = "trader"\ntoken_env = "{name.upper()}_TOKEN"\n' for name in AGENTS
)
UNBOUND = "[limits]\ncalls_per_minute = 1_000_000\n"
FIVE = "[limits]\ncalls_per_minute = 5\n"
FLOOD = 400
SESSIONS = 200
STUCK = 60  # answers of 200 kB each, far more than the system holds back for a client
FULL = 100_000
GUARD = 120.0
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def entries_of(desk: HttpDesk, event_type: str) -> list[Entry]:
    book = Book.open(desk.root, "default", create=False)
    try:
        return book.log(EntryFilter(event_type=event_type, limit=1_000_000))
    finally:
        book.close()


@contextmanager
def held_write_lock(desk: HttpDesk) -> Iterator[None]:
    """Hold the lock that writers of all processes take, so that every place for a write is taken and kept."""
    path = ledger_path(desk.root, "default", None)
    with path.with_name(f"{path.name}.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Posted:
    """A request on a connection of its own, written at once and read when asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def send(cls, desk: HttpDesk, body: dict[str, Any], headers: dict[str, str]) -> Posted:
        content = json.dumps(body).encode()
        lines = {"Host": "127.0.0.1", "Connection": "close", "Content-Length": str(len(content))}
        lines |= {**ACCEPT, **headers}
        head = "\r\n".join(["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
        posted = cls(*await asyncio.open_connection("127.0.0.1", desk.port))
        posted._writer.write(f"{head}\r\n\r\n".encode() + content)
        await posted._writer.drain()
        return posted

    async def answer(self) -> dict[str, Any]:
        """The body of what was served, or what was told instead."""
        content = (await self._reader.read()).decode()
        self._writer.close()
        await self._writer.wait_closed()
        (line,) = [line for line in content.splitlines() if line.startswith(("data: {", "{"))]
        result = json.loads(line.removeprefix("data: "))["result"]
        return dict(json.loads(result["content"][0]["text"]))


def request_of(
    desk: HttpDesk, era: str, agent: str, session: str, tool: str, **arguments: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    if era == "modern":
        body, headers = desk.modern("tools/call", name=tool, arguments=arguments)
        return body, {**headers, **desk.bearer(agent)}
    body = desk.rpc("tools/call", os.urandom(8).hex(), name=tool, arguments=arguments)
    return body, {"Mcp-Session-Id": session, **desk.bearer(agent)}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_single_call_is_served_in_its_turn_while_another_agent_floods(
    start_desk: StartDesk, era: str
) -> None:
    """Ordered by answers: the flood is under way before the call is sent, and is not over when it is answered.

    In the older era it comes through many sessions, which brings the agent nothing.
    """
    desk = start_desk(UNBOUND + DESK)
    sessions = {agent: desk.initialize(agent) for agent in AGENTS}
    floods = [desk.initialize("ann") for _ in range(SESSIONS)] if era == "legacy" else [""] * SESSIONS

    async def flood() -> tuple[list[str], list[dict[str, Any]]]:
        order: list[str] = []

        async def take(agent: str, posted: Posted) -> dict[str, Any]:
            answer = await posted.answer()
            order.append(agent)
            return answer

        async def send(agent: str, session: str, tool: str, **arguments: Any) -> Posted:
            return await Posted.send(desk, *request_of(desk, era, agent, session, tool, **arguments))

        async with asyncio.timeout(GUARD), asyncio.TaskGroup() as tasks:
            answers = [await (await send("cid", sessions["cid"], "remember", text="cid")).answer()]
            taken = []
            with held_write_lock(desk):
                for number in range(FLOOD):
                    session = floods[number % SESSIONS]
                    posted = await send("ann", session, "remember", text=f"ann {number}")
                    taken.append(tasks.create_task(take("ann", posted)))
                posted = await send("ben", sessions["ben"], "remember", text="ben")
                taken.append(tasks.create_task(take("ben", posted)))
                # A reading, which waits for no writer, is answered when what was sent before it has arrived.
                state = await (await send("cid", sessions["cid"], "get_memory_state")).answer()
                assert state["recorded"] is False
                assert order == []
            answers += [await task for task in taken]
        return order, answers

    order, answers = asyncio.run(flood())
    assert len(order) == FLOOD + 1
    # A place for each write that runs at once, and as many again that were let in with ben's.
    assert order.index("ben") < FLOOD / 2
    assert desk.stop() == 0
    stored = {entry.event_id: entry for entry in entries_of(desk, "memory.recorded")}
    assert {answer["event_id"] for answer in answers} == stored.keys()
    assert len(stored) == FLOOD + 2


DATA = b"data: {"
EVENT_END = b"\r\n\r\n\r\n"  # of the event, then of the chunk that carries it


class Unread:
    """A legacy stream whose client takes what it is sent only when asked to; its calls are posted elsewhere."""

    def __init__(self, desk: HttpDesk, agent: str) -> None:
        self._desk, self._agent = desk, agent
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._sock.settimeout(GUARD)
        self._sock.connect(("127.0.0.1", desk.port))
        lines = {"Host": "127.0.0.1", "Accept": "text/event-stream", **desk.bearer(agent)}
        head = "\r\n".join(["GET /sse HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
        self._sock.sendall(f"{head}\r\n\r\n".encode())
        self.taken = b""
        while (found := re.search(rb"data: (/messages/\S+)", self.taken)) is None:
            self.taken += self._sock.recv(4_096)
        self._address = found[1].decode()

    def post(self, *bodies: dict[str, Any]) -> None:
        with self._desk.raw(self._agent) as http:
            for body in bodies:
                assert http.post(self._address, json=body).status_code == 202

    def queued(self) -> int:
        """Bytes that the server has sent and that nobody takes, as the kernel tells."""
        ends = f":{self._desk.port:04X}", f":{self._sock.getsockname()[1]:04X}"
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, _, queues, *_ = line.split()
            if local.endswith(ends[0]) and remote.endswith(ends[1]):
                return int(queues.partition(":")[0], 16)
        return 0

    def take_until(self, count: int) -> list[dict[str, Any]]:
        """Read until so many answers have come."""
        parts = [self.taken]
        begun = self.taken.count(DATA)
        while begun < count or not b"".join(parts[-len(EVENT_END) :]).endswith(EVENT_END):
            parts.append(self._sock.recv(1 << 20))
            assert parts[-1], "the server ended the stream"
            seam = parts[-2][1 - len(DATA) :]
            begun += (seam + parts[-1]).count(DATA) - seam.count(DATA)
        self.taken = b"".join(parts)
        return [json.loads(line[6:]) for line in self.taken.splitlines() if line.startswith(DATA)]

    def close(self) -> None:
        self._sock.close()


def test_a_client_that_does_not_read_its_stream_keeps_nobody_from_being_served(
    start_desk: StartDesk,
) -> None:
    desk = start_desk(UNBOUND + "reply_chars = 1_000_000\n" + DESK)
    https = {agent: desk.raw(agent, **{"Mcp-Session-Id": desk.initialize(agent)}) for agent in AGENTS}

    def call(agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
        request = desk.rpc("tools/call", name=tool, arguments=arguments)
        result = desk.answer(https[agent].post("/mcp", json=request))["result"]
        assert result["isError"] is False, result
        return dict(result["structuredContent"])

    long = call("ann", "remember", text="long " * 20_000)
    stuck = Unread(desk, "ann")
    stuck.post(desk.rpc("initialize", "hello", **HELLO), INITIALIZED)
    asked = [f"ask {number}" for number in range(STUCK)]
    get = {"name": "get_memory", "arguments": {"memory_id": long["id"]}}
    stuck.post(*(desk.rpc("tools/call", request_id, **get) for request_id in asked))
    served = 0
    queued = 0
    while served < 40 or queued < FULL:  # others go on while the stream fills up, and when it is full
        queued = stuck.queued()
        for agent in AGENTS:  # the same agent's other session too
            assert call(agent, "remember", text=f"{agent} {served}")["kind"] == "memory"
            assert call(agent, "get_memory_state")["counts"]["memories"] == served + 2
            served += 1
    answers = stuck.take_until(STUCK + 1)
    assert [answer["id"] for answer in answers[:1]] == ["hello"]
    assert {answer["id"] for answer in answers[1:]} == set(asked)  # nothing was lost meanwhile
    assert {answer["result"]["structuredContent"]["memory"]["id"] for answer in answers[1:]} == {long["id"]}
    assert len(stuck.taken) > 2 * len("long " * 20_000) * STUCK
    stuck.close()
    for http in https.values():
        http.close()
    assert desk.stop() == 0


def desk_client(desk: HttpDesk, agent: str, transport: str, era: str) -> Client:
    if transport != "stdio":
        return desk.client(agent, transport, era)
    place = ["--root", str(desk.root), "--config", str(desk.config), "--agent", agent]
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "server", "serve", *place],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd="/",
    )
    return Client(command, mode="legacy" if era == "legacy" else "2026-07-28")


async def told_by(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    return {"isError": result.is_error, **json.loads(result.content[0].text)}  # type: ignore[union-attr]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_the_sixth_of_five_calls_a_minute_is_refused_and_may_be_sent_again_later(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    desk = start_desk(FIVE + DESK)
    async with (
        desk_client(desk, "ann", transport, era) as ann,
        desk_client(desk, "ben", transport, era) as ben,
    ):
        for number in range(5):
            assert (await told_by(ann, "remember", text=f"note {number}"))["isError"] is False
        for tool, arguments in (("remember", {"text": "note 5"}), ("get_memory_state", {})):
            told = await told_by(ann, tool, **arguments)
            assert (told["isError"], told["code"]) == (True, "rate_limited")
            assert (told["stored"], told["retryable"]) == ("no", True)
            assert re.search(r"^Wait \d+ s and send the call again", told["hint"])
        for ask in (ann.read_resource("memory://state"), ann.get_prompt("decision_journal", {"symbol": "X"})):
            with pytest.raises(MCPError) as refused:
                await ask
            assert refused.value.error.data["code"] == "rate_limited"
        assert (await ann.list_tools()).tools  # costs nothing
        for number in range(5):
            assert (await told_by(ben, "remember", text=f"of ben {number}"))["isError"] is False
    (failed,) = entries_of(desk, "call.failed")
    assert (failed.agent, failed.tool) == ("ann", "remember")
    assert json.loads(failed.content)["code"] == "rate_limited"
    assert [entry.agent for entry in entries_of(desk, "memory.recorded")] == ["ann"] * 5 + ["ben"] * 5


@pytest.mark.anyio
async def test_more_sessions_and_other_transports_bring_an_agent_no_more_calls(start_desk: StartDesk) -> None:
    desk = start_desk(FIVE + DESK)
    ways = [(transport, era) for transport in ("http", "sse") for era in ("legacy", "modern")]
    codes = []
    for transport, era in (*ways, *ways):
        async with desk.client("ann", transport, era) as client:
            codes.append((await told_by(client, "remember", text="note")).get("code"))
    assert codes == [None] * 5 + ["rate_limited"] * 3
