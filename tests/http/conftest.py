"""A real HTTP server process with tokens from its environment, and real clients on each of its transports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from store import Book
from store.entry import Entry
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import MakeCertificate

ROOT = Path(__file__).resolve().parents[2]
HAND = ROOT / "tests" / "faults" / "hand.py"
GUARD = 60.0
ERAS = {"legacy": "legacy", "modern": "2026-07-28"}
TRANSPORTS = ("http", "sse")
DESK = """
[agents.researcher]
profile = "researcher"
token_env = "RESEARCHER_TOKEN"
[agents.trader]
profile = "trader"
token_env = "TRADER_TOKEN"
[agents.auditor]
profile = "auditor"
token_env = "AUDITOR_TOKEN"
"""
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = "application/json, text/event-stream"


def token_of(agent: str) -> str:
    return f"{agent}-token-of-at-least-twenty-characters"


class HttpDesk:
    """One server process; `url` is its address, `root` where its ledgers lie."""

    def __init__(
        self, folder: Path, config: str | None, args: tuple[str, ...], environ: Mapping[str, str]
    ) -> None:
        self.root = folder / "root"
        self.config = folder / "desk.toml"
        command = [sys.executable, "-m", "server", "serve", "--transport", "http", "--root", str(self.root)]
        if config is not None:
            self.config.write_text(config, encoding="utf-8")
            command += ["--config", str(self.config)]
        if "--port" not in args:
            command += ["--port", "0"]
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
        }
        tokens = {
            variable: token_of(variable.removesuffix("_TOKEN").lower())
            for variable in re.findall(r'token_env = "([A-Z]+_TOKEN)"', config or "")
        }
        self.process = subprocess.Popen(
            [*command, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**own, "PYTHONPATH": str(ROOT), **tokens, **environ},
        )
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
        with self._grown:
            self._logged.append("")
            self._grown.notify_all()

    def log(self) -> str:
        """What the server has said on stderr, all of it once it has ended."""
        if self.process.poll() is not None:
            self._collector.join(GUARD)
        return "".join(self._logged)

    def wait_for_log(self, words: str) -> str:
        """Wait until the server has said so; gives the whole log."""
        with self._grown:
            found = self._grown.wait_for(
                lambda: words in "".join(self._logged) or not self._collector.is_alive(), GUARD
            )
        assert found, self._logged
        assert words in self.log(), self.log()
        return self.log()

    @property
    def url(self) -> str:
        """The server's address, once it listens."""
        found = re.search(r"listening on (\S+)", self.wait_for_log("listening on"))
        assert found is not None
        return found[1]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    @staticmethod
    def bearer(agent: str) -> dict[str, str]:
        """The header that makes a request the agent's."""
        return {"Authorization": f"Bearer {token_of(agent)}"}

    @asynccontextmanager
    async def client(
        self,
        agent: str | None,
        transport: str = "http",
        era: str = "modern",
        *,
        options: Mapping[str, Any] | None = None,
        **headers: str,
    ) -> AsyncIterator[Client]:
        """A connected client of the SDK on one transport ("stdio" starts a server of its own) and in one era."""
        sent = headers if agent is None else {**self.bearer(agent), **headers}
        known: dict[str, Any] = {"mode": ERAS.get(era, era), **(options or {})}
        async with AsyncExitStack() as stack:
            if transport == "stdio":
                source: Any = StdioServerParameters(
                    command=sys.executable,
                    args=["-m", "server", "serve", *self.place, *(("--agent", agent) if agent else ())],
                    env={"PYTHONPATH": str(ROOT)},
                )
            elif transport == "sse":
                source = sse_client(f"{self.url}/sse", headers=sent)
            else:
                http = await stack.enter_async_context(httpx2.AsyncClient(headers=sent, timeout=GUARD))
                source = streamable_http_client(f"{self.url}/mcp", http_client=http)
            yield await stack.enter_async_context(Client(source, **known))

    @property
    def place(self) -> list[str]:
        """The options that name this desk to another process."""
        config = ["--config", str(self.config)] if self.config.exists() else []
        return [*config, "--root", str(self.root)]

    def raw(self, agent: str | None = None, **headers: str) -> httpx2.Client:
        """A plain HTTP client with the agent's token."""
        sent = {} if agent is None else self.bearer(agent)
        return httpx2.Client(base_url=self.url, headers={"Accept": ACCEPT, **sent, **headers}, timeout=GUARD)

    def initialize(self, agent: str | None, able: dict[str, Any] | None = None, **headers: str) -> str:
        """Open a session of the older protocol by hand, as a client that is able to do so much; gives its id."""
        hello = {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": able or {}}}
        with self.raw(agent, **headers) as http:
            answer = http.post("/mcp", json=hello)
            assert answer.status_code == 200, answer.text
            session = answer.headers["mcp-session-id"]
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            http.post("/mcp", json=note, headers={"Mcp-Session-Id": session})
        return session

    @staticmethod
    def rpc(method: str, request_id: Any = 2, **params: Any) -> dict[str, Any]:
        """A request of the older protocols."""
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    @staticmethod
    def modern(method: str, request_id: Any = 2, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """A request of protocol 2026-07-28, which stands alone: body and headers."""
        meta = {**ENVELOPE, **params.pop("_meta", {})}
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = str(params["name"])
        elif "uri" in params:
            headers["Mcp-Name"] = str(params["uri"])
        return body, headers

    @staticmethod
    def answer(response: httpx2.Response) -> dict[str, Any]:
        """The JSON-RPC message of an answer, whether it came as JSON or as a stream of events."""
        if response.headers["content-type"].startswith("text/event-stream"):
            (data,) = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
            return dict(json.loads(data))
        return dict(response.json())

    @staticmethod
    def refused(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
        """What a refused request was told, its shape checked."""
        assert response.status_code == status, response.text
        told = response.json()["error"]["data"]
        assert told["code"] == code
        assert told["stored"] == "no"
        assert told["message"]
        assert told["hint"]
        for leak in ("Traceback", 'File "', "/tmp", "/root", ".sqlite", "token-of-at-least"):
            assert leak not in response.text
        return dict(told)

    def entries(
        self, event_type: str | None = None, *, strategy: str = "default", run: str | None = None
    ) -> list[Entry]:
        """The entries of a ledger below the root (of one type), in order."""
        with closing(Book.open(self.root, strategy, run, create=False)) as book:
            return book.log(EntryFilter(event_type=event_type, limit=1_000_000))

    def stop(self) -> int:
        """Ask it to end, and give its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(GUARD)

    def end(self) -> None:
        """Whatever happened, leave no process behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(GUARD)
        self._collector.join(GUARD)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


StartDesk = Callable[..., HttpDesk]


@pytest.fixture
def start_desk(tmp_path: Path) -> Iterator[StartDesk]:
    """Start server processes on one root; they are gone when the test is."""
    desks: list[HttpDesk] = []

    def start(config: str | None = DESK, *args: str, **environ: str) -> HttpDesk:
        desk = HttpDesk(tmp_path, config, args, environ)
        desks.append(desk)
        return desk

    yield start
    for desk in desks:
        desk.end()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpDesk]:
    """One server for the tests of a module that leave nothing another could trip over."""
    found = HttpDesk(tmp_path_factory.mktemp("desk"), DESK, (), {})
    yield found
    found.end()


@pytest.fixture(scope="module")
def start_for_module() -> Iterator[Callable[[Path, str], HttpDesk]]:
    """Start server processes, each on a root below a folder, that are gone when the module is done."""
    desks: list[HttpDesk] = []

    def start(folder: Path, config: str) -> HttpDesk:
        desk = HttpDesk(folder, config, (), {})
        desks.append(desk)
        return desk

    yield start
    for desk in desks:
        desk.end()


@pytest.fixture
def held_ledger() -> Callable[[Path], AbstractContextManager[None]]:
    """Keep every writer of a live ledger waiting, from another process, for as long as the context lasts."""

    @contextmanager
    def hold(root: Path) -> Iterator[None]:
        command = [sys.executable, str(HAND), "hold-transaction", str(ledger_path(root, "default", None))]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as hand:
            assert hand.stdin is not None
            assert hand.stdout is not None
            assert b"held" in hand.stdout.readline()
            try:
                yield
            finally:
                hand.stdin.write(b"\n")
                hand.stdin.close()
                hand.wait(GUARD)

    return hold


@pytest.fixture
def certificate(make_certificate: MakeCertificate) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, `desk.pem`, with its key `desk.key` beside it."""
    return make_certificate()[0]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
