"""Real server processes, helper processes and looks into a ledger's file for the fault tests.

Every wait ends at an event; the guard only turns a hang into a failure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book
from store.audit import Report, verify

REPOSITORY = Path(__file__).resolve().parents[2]
HAND = Path(__file__).with_name("hand.py")
GUARD = 60.0
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "faults", "version": "1"},
}
PROJECTIONS = {
    "memory_versions": "sequence_from",
    "memory_retrievals": "sequence",
    "memory_deliveries": "sequence",
    "memory_sessions": "sequence",
    "memory_flags": "sequence",
    "memory_clock": "effective_at",
}


def environment(**more: str) -> dict[str, str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }
    return own | {"PYTHONPATH": str(REPOSITORY), "PYTHONUTF8": "1"} | more


@dataclass(frozen=True)
class Answer:
    """A tool's or resource's answer: whether it is an error, its JSON body, and how long it took in seconds."""

    is_error: bool
    body: dict[str, Any]
    seconds: float


class Server:
    """One `deskbook serve` process, spoken to in raw frames; answers are kept as they arrive."""

    def __init__(self, command: list[str], log: Path, environ: dict[str, str], cwd: str) -> None:
        self.log_file = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=cwd,
                env=environ,
            )
        self.answers: dict[Any, tuple[dict[str, Any], float]] = {}
        self.ended = False
        self._sent: dict[Any, float] = {}
        self._next = 0
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):  # killed within a line
                break
            message = json.loads(line)
            with self._arrived:
                self.answers[message.get("id")] = (message, time.monotonic())
                self._arrived.notify_all()
        with self._arrived:
            self.ended = True
            self._arrived.notify_all()

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def send(self, *frames: dict[str, Any]) -> None:
        raw = b"".join(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n" for frame in frames)
        assert self.process.stdin is not None
        now = time.monotonic()
        self._sent |= {frame["id"]: now for frame in frames if "id" in frame}
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def frame(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        return {"id": self._next, "method": method, "params": params}

    def ask(self, method: str, **params: Any) -> int:
        """Send a request without waiting; gives its id."""
        frame = self.frame(method, **params)
        self.send(frame)
        return int(frame["id"])

    def begin(self, tool: str, **arguments: Any) -> int:
        """Send a tool call without waiting; gives its id."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def wait_for_answers(self, count: int, guard: float = GUARD) -> None:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.answers) >= count or self.ended, guard), self.log()

    def message(self, request_id: int, guard: float = GUARD) -> dict[str, Any]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: request_id in self.answers or self.ended, guard), self.log()
            assert request_id in self.answers, self.log()
            return self.answers[request_id][0]

    def seconds(self, request_id: int) -> float:
        return self.answers[request_id][1] - self._sent[request_id]

    def result(self, request_id: int, guard: float = GUARD) -> Answer:
        """The answer to a tool call, or to a read of a resource."""
        message = self.message(request_id, guard)
        taken = self.seconds(request_id)
        if "error" in message:
            return Answer(True, message["error"].get("data") or message["error"], taken)
        result = message["result"]
        if "contents" in result:
            return Answer(False, json.loads(result["contents"][0]["text"]), taken)
        return Answer(bool(result.get("isError")), json.loads(result["content"][0]["text"]), taken)

    def call(self, tool: str, **arguments: Any) -> Answer:
        return self.result(self.begin(tool, **arguments))

    def remember(self, text: str, **arguments: Any) -> dict[str, Any]:
        """Remember and expect success."""
        answer = self.call("remember", text=text, **arguments)
        assert not answer.is_error, answer.body
        return answer.body

    def open(self) -> Server:
        """Shake hands."""
        assert "result" in self.message(self.ask("initialize", **HELLO))
        self.send({"method": "notifications/initialized"})
        return self

    def stored(self) -> dict[int, dict[str, Any]]:
        """The successful tool answers so far by request id."""
        with self._arrived:
            kept = {key: message for key, (message, _) in self.answers.items()}
        bodies = {
            key: message["result"]["structuredContent"]
            for key, message in kept.items()
            if "structuredContent" in message.get("result", {}) and not message["result"].get("isError")
        }
        return {key: body for key, body in bodies.items() if "event_id" in body}

    def close_input(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def wait(self) -> int:
        code = self.process.wait(GUARD)
        self._reader.join(GUARD)
        return code

    def end(self) -> int:
        self.close_input()
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(GUARD)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


StartServer = Callable[..., Server]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def ledger(root: Path) -> Path:
    """Where the default strategy's ledger lies."""
    return root / "default" / "memory.sqlite"


@pytest.fixture
def start_server(tmp_path: Path, root: Path) -> Iterator[StartServer]:
    """Start servers on the test's root; whatever still runs at the end of the test is killed."""
    started: list[Server] = []

    def start(
        *arguments: str,
        prefix: tuple[str, ...] = (),
        at: Path | None = None,
        launch: tuple[str, ...] = ("-P", "-m", "server"),
        cwd: str = "/",
        environ: dict[str, str] | None = None,
        interpreter: str = sys.executable,
        rooted: bool = True,
    ) -> Server:
        place = ("--root", str(at or root)) if rooted else ()
        command = [*prefix, interpreter, *launch, "serve", *place, *arguments]
        log = tmp_path / f"server-{len(started)}.log"
        server = Server(command, log, environment(**(environ or {})), cwd)
        started.append(server)
        return server

    yield start
    for server in started:
        with suppress(ProcessLookupError):
            server.process.send_signal(signal.SIGCONT)
        server.kill()
        for stream in (server.process.stdin, server.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


@dataclass(frozen=True)
class Look:
    """What a ledger's file holds, read beside the servers that use it."""

    path: Path

    def rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(5_000)
            return list(connection.execute(sql, bindings))
        finally:
            connection.close()

    def event_ids(self) -> set[str]:
        return {str(event_id) for (event_id,) in self.rows("SELECT event_id FROM memory_events")}

    def sequences(self) -> list[int]:
        return [
            int(sequence) for (sequence,) in self.rows("SELECT sequence FROM memory_events ORDER BY sequence")
        ]

    def texts(self) -> list[str]:
        return [str(text) for (text,) in self.rows("SELECT text FROM memory_versions ORDER BY sequence_from")]

    def projections(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every projection, and every posting of the full-text index."""
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            found = {
                table: list(connection.execute(f"SELECT * FROM {table} ORDER BY {order}"))
                for table, order in PROJECTIONS.items()
            }
            connection.execute(
                "CREATE VIRTUAL TABLE temp.postings USING fts5vocab (main, memory_text, instance)"
            )
            postings = connection.execute("SELECT * FROM temp.postings ORDER BY doc, col, offset, term")
            return found | {"memory_text": list(postings)}
        finally:
            connection.close()

    def assert_sound(self, strategy: str = "default", run: str | None = None) -> Report:
        """Chain, content and projections verify, the file's structure is whole, and the sequence has no gap."""
        report = verify(self.path, strategy, run)
        assert report.findings == ()
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        assert self.sequences() == list(range(1, report.entries + 1))
        return report

    def assert_rebuild_changes_nothing(self, root: Path, strategy: str = "default") -> None:
        before = self.projections()
        book = Book.open(root, strategy, create=False)
        try:
            book.rebuild(lambda _sequence: None)
        finally:
            book.close()
        assert self.projections() == before


LookAt = Callable[[Path], Look]


@pytest.fixture
def look(ledger: Path) -> Look:
    """A look into the default strategy's ledger."""
    return Look(ledger)


@pytest.fixture
def look_at() -> LookAt:
    """A look into the ledger at any path."""
    return Look


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def deskbook(root: Path) -> Command:
    """Run a command of a person on the test's root to its end."""

    def run(*words: str, prefix: tuple[str, ...] = (), at: Path | None = None) -> Any:
        command = [*prefix, sys.executable, "-P", "-m", "server", *words, "--root", str(at or root)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd="/", env=environment(), timeout=GUARD, check=False
        )

    return run


@pytest.fixture
def powerless() -> tuple[str, ...]:
    """The command prefix under which file permissions hold, also for root."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@pytest.fixture
def desk_config(tmp_path: Path) -> Path:
    """A desk with a researcher and a trader, whose calls no limit cuts short."""
    path = tmp_path / "desk.toml"
    path.write_text(
        '[agents.researcher]\nprofile = "researcher"\n[agents.trader]\nprofile = "trader"\n'
        "[limits]\ncalls_per_minute = 1000000\n"
    )
    return path
