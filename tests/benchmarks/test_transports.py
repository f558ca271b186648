"""A no-op-sized call over each transport beside a no-op tool on the least server of the same SDK.

Spoken to in raw frames, so that no client's own time is in the figures: what is compared is what the servers take.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from conftest import Print

pytestmark = pytest.mark.bench

ROUNDS = 400
WARM = 50
REPOSITORY = Path(__file__).resolve().parents[2]
BARE = str(Path(__file__).with_name("bare_server.py"))
TOKEN = "benchmark-token-of-at-least-twenty-characters"
CONFIG = """
[limits]
calls_per_minute = 1_000_000
[log]
level = "warning"
[agents.bench]
profile = "solo"
token_env = "BENCH_TOKEN"
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "Authorization": f"Bearer {TOKEN}",
}


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class Wire(Protocol):
    """One way to a server."""

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send a tool call and give its answer."""


class Stdio:
    """Frames on the pipes of a process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._out, self._in = process.stdin, process.stdout
        let_go_of(process)
        self._send(request("initialize", **HELLO))
        self._in.readline()
        self._send(INITIALIZED)

    def _send(self, body: dict[str, Any]) -> None:
        self._out.write(json.dumps(body).encode() + b"\n")
        self._out.flush()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._send(request("tools/call", name=tool, arguments=arguments))
        return dict(json.loads(self._in.readline()))


class Legacy:
    """A session of Streamable HTTP on one connection."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = dict(HEADERS)
        self._headers["Mcp-Session-Id"] = self._post(request("initialize", **HELLO), HEADERS)[0]
        self._post(INITIALIZED, self._headers)

    def _post(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[str, str]:
        self._http.request("POST", "/mcp", json.dumps(body), headers)
        answer = self._http.getresponse()
        content = answer.read().decode()
        assert answer.status in (200, 202), content
        return answer.headers.get("mcp-session-id", ""), content

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        _, content = self._post(request("tools/call", name=tool, arguments=arguments), self._headers)
        return message_in(content)

    def close(self) -> None:
        self._http.close()


class Modern(Legacy):
    """Requests of protocol 2026-07-28 on one connection."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port)

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        own = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
        body = request("tools/call", name=tool, arguments=arguments, _meta=ENVELOPE)
        return message_in(self._post(body, {**HEADERS, **own})[1])


class Sse:
    """A stream of answers, and a connection to post on."""

    def __init__(self, port: int) -> None:
        self._stream = http.client.HTTPConnection("127.0.0.1", port)
        self._stream.request("GET", "/sse", headers=HEADERS)
        self._answers = self._stream.getresponse()
        self._address = self._next()
        self._http = http.client.HTTPConnection("127.0.0.1", port)
        self._post(request("initialize", **HELLO))
        self._next()
        self._post(INITIALIZED)

    def _next(self) -> str:
        while not (line := self._answers.readline()).startswith(b"data: "):
            assert line
        return line[6:].decode().strip()

    def _post(self, body: dict[str, Any]) -> None:
        self._http.request("POST", self._address, json.dumps(body), HEADERS)
        answer = self._http.getresponse()
        answer.read()
        assert answer.status == 202

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._post(request("tools/call", name=tool, arguments=arguments))
        return dict(json.loads(self._next()))

    def close(self) -> None:
        self._http.close()
        self._stream.close()


def message_in(content: str) -> dict[str, Any]:
    """The message of an answer that came as JSON or as a stream of events."""
    lines = [line[6:] for line in content.splitlines() if line.startswith("data: {")] or [content]
    return dict(json.loads(lines[0]))


Start = Callable[[list[str]], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers; they are gone when the test is."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}
    environ |= {"PYTHONPATH": str(REPOSITORY), "BENCH_TOKEN": TOKEN}
    with ExitStack() as stack:

        def run(command: list[str]) -> subprocess.Popen[bytes]:
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                [sys.executable, "-P", *command], stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", env=environ
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield run


def let_go_of(process: subprocess.Popen[bytes]) -> None:
    """Read what a server says on stderr, so that it never waits for a reader."""
    assert process.stderr is not None
    threading.Thread(target=process.stderr.read, daemon=True).start()


def port_of(process: subprocess.Popen[bytes]) -> int:
    """The port that a server names on stderr."""
    assert process.stderr is not None
    for line in process.stderr:
        if b"listening on" in line:
            let_go_of(process)
            return int(line.split(b":")[-1])
    pytest.fail("the server ended before it listened")


def test_a_call_over_each_transport(
    show: Print,
    percentile: Callable[[Sequence[float], float], float],
    start: Start,
    tmp_path: Path,
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text(CONFIG, encoding="utf-8")
    serve = ["-m", "server", "serve", "--config", str(config), "--root", str(tmp_path / "root")]
    bare, ours = (
        port_of(start([BARE, "http"])),
        port_of(start([*serve, "--transport", "http", "--port", "0"])),
    )
    wires: dict[str, tuple[Wire, Wire]] = {
        "stdio": (Stdio(start([BARE])), Stdio(start([*serve, "--agent", "bench"]))),
        "http, 2025-11-25": (Legacy(bare), Legacy(ours)),
        "http, 2026-07-28": (Modern(bare), Modern(ours)),
        "sse": (Sse(bare), Sse(ours)),
    }
    noted = wires["stdio"][1].call("remember", {"text": "a note to read again and again"})
    memory_id = noted["result"]["structuredContent"]["id"]
    calls = (("echo", {"text": "a note"}), ("get_memory", {"memory_id": memory_id}))
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in wires}
    for number in range(-WARM, ROUNDS):
        for name, pair in wires.items():
            for wire, (tool, arguments), found in zip(pair, calls, times[name], strict=True):
                began = time.perf_counter()
                answer = wire.call(tool, arguments)
                taken = time.perf_counter() - began
                assert answer["result"]["isError"] is False, answer
                if number >= 0:
                    found.append(taken)
    for pair in list(wires.values())[1:]:
        for wire in pair:
            wire.close()  # type: ignore[attr-defined]
    rows = []
    for name, (base, found) in times.items():
        figures = [percentile(taken, share) for share in (0.5, 0.95) for taken in (base, found)]
        ratio, late = figures[1] / figures[0], figures[3] / figures[2]
        rows.append((name, *(f"{figure:.2f}" for figure in figures[:2]), f"{ratio:.2f}",
                     *(f"{figure:.2f}" for figure in figures[2:]), f"{late:.2f}"))  # fmt: skip
    show(
        f"get_memory beside a no-op tool on a bare MCPServer, {ROUNDS} interleaved calls, milliseconds"
        " (goal: 1.5 times)",
        ("", "bare p50", "deskbook", "times", "bare p95", "deskbook", "times"),
        rows,
    )
