"""A real server process for the transport tests, spoken to in raw frames. Timeouts here are guards only."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESK = Path(__file__).with_name("stdio_desk.py")
GUARD = 60.0
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class PipedDesk:
    """One server process; `send` writes raw frames, `reply` waits for the answer to an id."""

    def __init__(
        self,
        args: tuple[str, ...],
        stdin: Any = subprocess.PIPE,
        *,
        program: tuple[str, ...] = (str(DESK), str(ROOT)),
        environ: dict[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-W", "always", *program, *args]
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=environ
        )
        assert self.process.stdout is not None
        self.out = self.process.stdout.fileno()
        self.lines: list[bytes] = []
        self.unclaimed: list[dict[str, Any]] = []
        self._rest = b""
        self._logged: list[str] = []
        self._grown = threading.Condition()
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def _collect(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self._logged.append(line.decode("utf-8", "backslashreplace"))
                self._grown.notify_all()

    def log(self) -> str:
        """What the server has said on stderr, all of it once it has ended."""
        if self.process.poll() is not None:
            self._collector.join(GUARD)
        return "".join(self._logged)

    def wait_for_log(self, words: str) -> None:
        with self._grown:
            assert self._grown.wait_for(lambda: words in "".join(self._logged), GUARD), self._logged

    def send(self, *frames: dict[str, Any] | bytes) -> None:
        raw = b"".join(f if isinstance(f, bytes) else json.dumps(f).encode() + b"\n" for f in frames)
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(raw)
        stdin.flush()

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def request(self, era: str, request_id: Any, method: str, **params: Any) -> dict[str, Any]:
        """The frame of one request, with the envelope where the era has one."""
        if era == "modern":
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    def tool(self, era: str, request_id: Any, name: str, **arguments: Any) -> dict[str, Any]:
        return self.request(era, request_id, "tools/call", name=name, arguments=arguments)

    def open(self, era: str, **able: Any) -> None:
        """Say hello in the way of an era, as a client that is able to do so much, and wait for the answer."""
        if era == "modern":
            self.send(self.request(era, "hello", "server/discover"))
            assert self.reply("hello")["result"]["supportedVersions"] == ["2026-07-28"]
            return
        who = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": who}
        self.send({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
        assert self.reply("hello")["result"]["protocolVersion"] == "2025-11-25"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def next_message(self) -> dict[str, Any] | None:
        """The next line, parsed strictly; None at the end of the output."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.out], [], [], GUARD)
            assert ready, f"no answer within the guard; stderr: {self.log()}"
            chunk = os.read(self.out, 1 << 20)
            if not chunk:
                assert self._rest == b"", "the output ended within a line"
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        self.lines.append(line)
        assert line.startswith(b"{")
        message = json.loads(line.decode("utf-8"), parse_constant=pytest.fail)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def reply(self, request_id: Any) -> dict[str, Any]:
        for known in self.unclaimed:
            if "method" not in known and known.get("id") == request_id:
                self.unclaimed.remove(known)
                return known
        while (message := self.next_message()) is not None:
            if "method" not in message and message.get("id") == request_id:
                return message
            self.unclaimed.append(message)
        pytest.fail(f"the output ended without an answer to {request_id!r}: {self.log()}")

    def text(self, request_id: Any) -> str:
        """The text a tool answered with."""
        return str(self.reply(request_id)["result"]["content"][0]["text"])

    def rest(self) -> list[dict[str, Any]]:
        """Everything up to the end of the output."""
        while (message := self.next_message()) is not None:
            self.unclaimed.append(message)
        return self.unclaimed

    def wait(self) -> int:
        return self.process.wait(GUARD)


StartDesk = Callable[..., PipedDesk]


@pytest.fixture
def start_desk() -> Iterator[StartDesk]:
    """Start servers with the given arguments; whatever still runs at the end of the test is killed."""
    started: list[PipedDesk] = []

    def start(*args: str, stdin: Any = subprocess.PIPE) -> PipedDesk:
        desk = PipedDesk(args, stdin)
        started.append(desk)
        return desk

    yield start
    _end(started)


@pytest.fixture
def start_serve(tmp_path: Path) -> Iterator[StartDesk]:
    """Start `deskbook serve` processes with the given arguments, all on one root below the test's folder."""
    started: list[PipedDesk] = []
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }

    def start(*args: str, **environ: str) -> PipedDesk:
        desk = PipedDesk(
            ("serve", "--root", str(tmp_path / "root"), *args),
            program=("-m", "server"),
            environ=own | {"PYTHONPATH": str(ROOT)} | environ,
        )
        started.append(desk)
        return desk

    yield start
    _end(started)


def _end(started: list[PipedDesk]) -> None:
    for desk in started:
        desk.process.kill()
        desk.process.wait()
        desk.log()
        for stream in (desk.process.stdin, desk.process.stdout, desk.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # what was still buffered has no reader any more
                    continue


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A pipe in the file system: a call that holds on it blocks until the test has opened and closed it."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def desk_command() -> list[str]:
    """The command line of the test server, for clients that start it themselves."""
    return [sys.executable, str(DESK), str(ROOT)]
