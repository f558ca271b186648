"""Servers of a backtest and of a live desk spoken to in raw frames, commands, and hands on ledgers' rows."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from server import cli
from store import Book, Caller
from store.ledger import Draft
from store.paths import ledger_path

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60.0
"""Seconds; it only turns a hang into a failure."""

BACKTEST = """
[clock]
mode = "simulated"
[agents.harness]
profile = "harness"
[agents.researcher]
profile = "researcher"
[agents.trader]
profile = "trader"
[agents.solo]
profile = "solo"
"""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "backtest", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """One `deskbook serve` process and the one client it talks to."""

    def __init__(self, era: str, command: list[str], environ: dict[str, str], log: Path) -> None:
        self.era = era
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environ, cwd="/"
            )
        self._rest = b""
        self._asked = 0
        self.heard: list[str] = []
        """Every answer since a test asked for this server."""
        if era == "modern":
            self.ask("server/discover")
        else:
            who = {"name": "backtest", "version": "1"}
            self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
            self._send({"method": "notifications/initialized"})

    def _send(self, frame: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([descriptor], [], [], GUARD)
            chunk = os.read(descriptor, 1 << 20) if ready else b""
            assert chunk, self._log.read_text(errors="replace")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def ask(self, method: str, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """One request and its answer, whole."""
        self._asked += 1
        sent = dict(meta or {}) | (ENVELOPE if self.era == "modern" else {})
        self._send(
            {"id": self._asked, "method": method, "params": params | ({"_meta": sent} if sent else {})}
        )
        while True:
            line = self._line()
            message = json.loads(line)
            if message.get("id") == self._asked:
                self.heard.append(line)
                return dict(message)

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["result"]["tools"]]

    def call(self, tool: str, now: str | None = None, run: str | None = None, /, **arguments: Any) -> Any:
        """A call that must be served; its body."""
        result = self._result(tool, now, run, arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def refused(self, tool: str, now: str | None = None, run: str | None = None, /, **arguments: Any) -> Any:
        """A call that must be refused; the error it is told."""
        result = self._result(tool, now, run, arguments)
        assert result.get("isError"), result
        return json.loads(result["content"][0]["text"])

    def _result(self, tool: str, now: str | None, run: str | None, arguments: dict[str, Any]) -> Any:
        meta = {"deskbook/now": now, "deskbook/run": run}
        sent = {key: value for key, value in meta.items() if value is not None}
        return self.ask("tools/call", sent, name=tool, arguments=arguments)["result"]

    def read(self, uri: str, now: str | None = None, run: str | None = None) -> dict[str, Any]:
        """The answer to a read of a resource, an error or a result."""
        meta = {"deskbook/now": now, "deskbook/run": run}
        sent = {key: value for key, value in meta.items() if value is not None}
        return self.ask("resources/read", sent, uri=uri)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    """Both protocol eras, one after the other."""
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture(scope="module")
def desk_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root that the servers of a test file share; every test has runs of its own there."""
    return tmp_path_factory.mktemp("desk") / "root"


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory, desk_root: Path) -> Iterator[Callable[..., Server]]:
    """Servers, simulated unless `config` says otherwise; each is started once for the tests of a file."""
    started: dict[object, Server] = {}
    folder = tmp_path_factory.mktemp("configs")
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }

    def start(
        era: str, agent: str | None = "trader", config: str | None = BACKTEST, **environ: str
    ) -> Server:
        key = (era, agent, config, *sorted(environ.items()))
        if key not in started:
            words = ["--root", str(desk_root)]
            if config is not None:
                path = folder / f"desk{len(started)}.toml"
                path.write_text(config)
                words += ["--config", str(path), "--agent", str(agent)]
            command = [sys.executable, "-P", "-m", "server", "serve", *words]
            given = own | {"PYTHONPATH": str(REPOSITORY)} | environ
            started[key] = Server(era, command, given, folder / f"server-{len(started)}.log")
        started[key].heard.clear()
        return started[key]

    yield start
    for server in started.values():
        server.end()


@pytest.fixture
def run(request: pytest.FixtureRequest) -> str:
    """The name of a run that no other test uses."""
    return str(request.node.name)[:128]


class Ran:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


@pytest.fixture
def deskbook(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run a command of a person in this process, on the test's root."""

    def run(*words: str) -> Ran:
        monkeypatch.setattr("sys.argv", ["deskbook", *words, "--root", str(root)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Ran(int(ended.value.code or 0), said.out, said.err)

    return run


class Hands:
    """What a test does to ledgers behind the store's back."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, run: str | None = None, strategy: str = "default") -> Path:
        return ledger_path(self.root, strategy, run)

    def rows(self, run: str | None, sql: str, *bindings: Any) -> list[Any]:
        with closing(apsw.Connection(str(self.path(run)))) as connection:
            return list(connection.execute(sql, bindings))

    def change(self, run: str | None, sql: str, *bindings: Any) -> None:
        """Change rows of the ledger with its guards taken away; the chain may break."""
        with closing(apsw.Connection(str(self.path(run)))) as connection:
            for (name,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(sql, bindings)

    @staticmethod
    def append(book: Book, caller: Caller, draft: Draft) -> int:
        """Place an entry as the ledger places it, whatever it says; gives its sequence."""
        return book._engine.write(
            lambda transaction: book._ledger.append(transaction, caller, [draft])[-1].sequence, timeout=GUARD
        )

    @contextmanager
    def hold(self, run: str | None) -> Iterator[None]:
        """Somebody else is in the middle of a write: the database's lock and the lock between processes."""
        path = self.path(run)
        with (
            closing(apsw.Connection(str(path))) as connection,
            path.with_name(path.name + ".lock").open() as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")


@pytest.fixture
def hands(root: Path) -> Hands:
    return Hands(root)


@pytest.fixture
def desk_hands(desk_root: Path) -> Hands:
    return Hands(desk_root)
