"""Many sessions on one server, and what happens to them when one client is killed."""

from __future__ import annotations

import asyncio
import fcntl
import json
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from store import Book
from store.audit import verify
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

    from store.entry import Entry

AGENTS = ("ann", "ben", "cid")
THREE = "[limits]\ncalls_per_minute = 1_000_000\n" + "".join(
    f'[agents.{name}]\nprofile = "trader"\ntoken_env = "{name.upper()}_TOKEN"\n' for name in AGENTS
)
SESSIONS = 1_000
CONNECTIONS = 40
# Connections are let go of before the server would close them, or both may do so at once.
LIMITS = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=2)
LAST_CHUNK = b"0\r\n\r\n"
GROWTH = 1.2
GUARD = 300.0


def entries_of(desk: HttpDesk) -> list[Entry]:
    book = Book.open(desk.root, "default", create=False)
    try:
        return book.log(EntryFilter(limit=1_000_000))
    finally:
        book.close()


def resident(desk: HttpDesk) -> int:
    """The server's resident memory, KiB."""
    status = Path(f"/proc/{desk.process.pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def body(answer: dict[str, Any]) -> dict[str, Any]:
    """The body of a served call."""
    result = answer["result"]
    assert result["isError"] is False, result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return dict(result["structuredContent"])


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """The described error of a refused call."""
    result = answer["result"]
    assert result["isError"] is True, result
    return dict(json.loads(result["content"][0]["text"]))


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process hold a socket for every session."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * SESSIONS
    assert hard == resource.RLIM_INFINITY or hard >= wanted, "the system allows too few open files"
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class Held:
    """One session of the older protocol with its stream held open on a socket of its own."""

    desk: HttpDesk
    http: httpx2.AsyncClient
    agent: str
    number: int
    headers: dict[str, str] = field(default_factory=dict)
    stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    written: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)

    async def open(self) -> None:
        opened = await self.http.post("/mcp", json=self.desk.rpc("initialize", **HELLO))
        assert opened.status_code == 200, opened.text
        self.headers = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.http.post("/mcp", json=note, headers=self.headers)).status_code == 202
        reader, writer = self.stream = await asyncio.open_connection("127.0.0.1", self.desk.port)
        lines = {"Host": "127.0.0.1", "Accept": "text/event-stream", **self.headers}
        lines |= self.desk.bearer(self.agent)
        head = "\r\n".join(["GET /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
        writer.write(f"{head}\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == b"200"
        await reader.readuntil(b"\r\n\r\n")

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        request = self.desk.rpc("tools/call", f"{self.number}", name=tool, arguments=arguments)
        answer = self.desk.answer(await self.http.post("/mcp", json=request, headers=self.headers))
        assert answer["id"] == f"{self.number}"
        return body(answer)

    async def write_and_search(self) -> None:
        word = f"word{self.number}x"
        self.written = await self.call("remember", text=f"{self.agent} writes {word}")
        self.found = await self.call("search_memory", query=word)

    async def close(self) -> None:
        """End the session; its stream ends with it."""
        assert (await self.http.delete("/mcp", headers=self.headers)).status_code == 200
        assert self.stream is not None
        reader, writer = self.stream
        await reader.readuntil(LAST_CHUNK)
        writer.close()
        await writer.wait_closed()
        assert (await self.http.post("/mcp", json=PING, headers=self.headers)).status_code == 404


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


async def all_of(sessions: list[Held], step: str, at_once: int) -> None:
    places = asyncio.Semaphore(at_once)

    async def one(session: Held) -> None:
        async with places:
            await getattr(session, step)()

    async with asyncio.TaskGroup() as tasks:
        for session in sessions:
            tasks.create_task(one(session))


async def thousand(desk: HttpDesk, first: int) -> list[Held]:
    """Open so many sessions, have all of them write and search while all are open, and close them."""
    async with asyncio.timeout(GUARD), AsyncExitStack() as stack:
        https = {
            agent: await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=desk.url,
                    headers={"Accept": "application/json, text/event-stream", **desk.bearer(agent)},
                    timeout=GUARD,
                    limits=LIMITS,
                )
            )
            for agent in AGENTS
        }
        sessions = [
            Held(desk, https[agent], agent, number)
            for number in range(first, first + SESSIONS)
            for agent in [AGENTS[number % len(AGENTS)]]
        ]
        await all_of(sessions, "open", len(AGENTS) * CONNECTIONS)
        await all_of(sessions, "write_and_search", SESSIONS)
        await all_of(sessions, "close", len(AGENTS) * CONNECTIONS)
    return sessions


@pytest.mark.faults
def test_a_thousand_sessions_of_three_agents_write_and_search_and_leave_no_memory_behind(
    start_desk: StartDesk, many_files: None
) -> None:
    desk = start_desk(THREE)
    sessions = asyncio.run(thousand(desk, 0))
    after_one = resident(desk)
    sessions += asyncio.run(thousand(desk, SESSIONS))
    after_two = resident(desk)
    print(f"resident after one thousand {after_one} KiB, after two {after_two} KiB")  # noqa: T201
    assert after_two <= GROWTH * after_one
    assert desk.stop() == 0

    assert len({session.headers["Mcp-Session-Id"] for session in sessions}) == len(sessions)
    written = {entry.event_id: entry for entry in entries_of(desk) if entry.event_type == "memory.recorded"}
    searched = {entry.event_id: entry for entry in entries_of(desk) if entry.event_type == "memory.retrieved"}
    assert len(written) == len(searched) == len(sessions)
    assert len({session.written["id"] for session in sessions}) == len(sessions)
    for session in sessions:
        text = f"{session.agent} writes word{session.number}x"
        entry = written[session.written["event_id"]]
        assert (entry.agent, entry.subject_id) == (session.agent, session.written["id"])
        assert json.loads(entry.content)["text"] == text
        (hit,) = session.found["hits"]
        assert (hit["id"], hit["text"], hit["agent"]) == (session.written["id"], text, session.agent)
    owners = {entry.session_id: entry.agent for entry in written.values()}
    assert len(owners) == len(sessions)  # to each session of the transport one of the ledger
    assert {entry.session_id: entry.agent for entry in searched.values()} == owners
    assert verify(ledger_path(desk.root, "default", None), "default", None).sound


# Opens whatever has to be open, sends one call on each transport once told to, and waits to be killed.
DOOMED = """
import http.client, json, sys

port, bearer, hello, calls, modern = json.loads(sys.stdin.readline())
kept = []

def send(method, path, body=None, **headers):
    kept.append(http.client.HTTPConnection("127.0.0.1", port))
    content = None if body is None else json.dumps(body)
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    kept[-1].request(method, path, content, {**accept, **bearer, **headers})
    return kept[-1]

def post(path, body, **headers):
    answer = send("POST", path, body, **headers).getresponse()
    answer.read()
    return answer

note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
own = {"Mcp-Session-Id": post("/mcp", hello).headers["mcp-session-id"]}
post("/mcp", note, **own)
send("GET", "/mcp", **own).getresponse()
stream = send("GET", "/sse").getresponse()
while not (line := stream.readline()).startswith(b"data: "):
    pass
messages = line[6:].decode().strip()
post(messages, hello)
post(messages, note)
print("open", flush=True)
sys.stdin.readline()
send("POST", "/mcp", calls[0], **own)
post(messages, calls[1])
send("POST", "/mcp", calls[2], **modern)
print("sent", flush=True)
sys.stdin.readline()
"""


@contextmanager
def held_write_lock(desk: HttpDesk) -> Iterator[None]:
    """Hold the lock that writers of all processes take, so that a call is under way until it is let go."""
    path = ledger_path(desk.root, "default", None)
    with path.with_name(f"{path.name}.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_a_client_killed_in_its_calls_and_streams_changes_nothing_for_others(start_desk: StartDesk) -> None:
    desk = start_desk(THREE)
    others = {agent: desk.initialize(agent) for agent in AGENTS}

    def write(agent: str, text: str) -> httpx2.Response:
        request = desk.rpc("tools/call", text, name="remember", arguments={"text": text})
        with desk.raw(agent) as http:
            return http.post("/mcp", json=request, headers={"Mcp-Session-Id": others[agent]})

    expected = {("ann", "before"): body(desk.answer(write("ann", "before")))}
    doomed = ["killed over http", "killed over sse", "killed in the newer era"]
    modern, headers = desk.modern("tools/call", 3, name="remember", arguments={"text": doomed[2]})
    calls = [desk.rpc("tools/call", 3, name="remember", arguments={"text": text}) for text in doomed[:2]]
    client = subprocess.Popen(
        [sys.executable, "-c", DOOMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert client.stdin is not None
    assert client.stdout is not None
    hello = desk.rpc("initialize", 1, **HELLO)
    plan = (desk.port, desk.bearer("cid"), hello, [*calls, modern], headers)
    print(json.dumps(plan), file=client.stdin, flush=True)
    assert client.stdout.readline() == "open\n"
    with ThreadPoolExecutor(30) as threads:
        with held_write_lock(desk):
            print(file=client.stdin, flush=True)
            assert client.stdout.readline() == "sent\n"
            under_way = {
                (agent, f"{agent} {number}"): threads.submit(write, agent, f"{agent} {number}")
                for agent in AGENTS
                for number in range(10)
            }
            # Served while every write waits, so the killed client's calls have begun by then.
            state = desk.rpc("tools/call", 9, name="get_memory_state", arguments={})
            with desk.raw("ben") as http:
                told_state = http.post("/mcp", json=state, headers={"Mcp-Session-Id": others["ben"]})
            assert body(desk.answer(told_state))["recorded"] is False
            client.send_signal(signal.SIGKILL)
            assert client.wait(GUARD) == -signal.SIGKILL
        for name, answer in under_way.items():
            reply = desk.answer(answer.result(GUARD))
            assert reply["id"] == name[1]
            expected[name] = body(reply)
    client.stdin.close()
    client.stdout.close()
    expected["ben", "after"] = body(desk.answer(write("ben", "after")))
    with desk.raw() as http:
        assert http.get("/healthz").json() == {"status": "ok", "degraded": []}
    assert desk.stop() == 0

    stored = {entry.event_id: entry for entry in entries_of(desk) if entry.event_type == "memory.recorded"}
    for (agent, text), reply in expected.items():
        entry = stored.pop(reply["event_id"])
        assert (entry.agent, json.loads(entry.content)["text"]) == (agent, text)
    # What had begun was written to its end, once, and nothing else is left.
    left = sorted((entry.agent, json.loads(entry.content)["text"]) for entry in stored.values())
    assert left == sorted(("cid", text) for text in doomed)


def test_a_client_that_dies_within_a_body_changes_nothing_for_others(start_desk: StartDesk) -> None:
    desk = start_desk(THREE)
    request, headers = desk.modern("tools/call", name="remember", arguments={"text": "never whole"})
    content = json.dumps(request).encode()
    lines = {
        "Host": "127.0.0.1",
        "Accept": "application/json, text/event-stream",
        **desk.bearer("cid"),
        **headers,
    }
    lines |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    head = "\r\n".join(["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())])
    for size in (0, 1, len(content) // 2, len(content) - 1):
        with socket.create_connection(("127.0.0.1", desk.port), GUARD) as sock:
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # as a kill: a reset
            sock.sendall(f"{head}\r\n\r\n".encode() + content[:size])
    whole, headers = desk.modern("tools/call", name="remember", arguments={"text": "whole"})
    with desk.raw("ann") as http:
        body(desk.answer(http.post("/mcp", json=whole, headers=headers)))
    assert desk.stop() == 0
    texts = [json.loads(e.content)["text"] for e in entries_of(desk) if e.event_type == "memory.recorded"]
    assert texts == ["whole"]
