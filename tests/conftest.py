"""What every tier shares: how hard hypothesis tries, a clock set by hand, a seat at a ledger, a desk in memory."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from hypothesis import settings

from store import Book, Caller, Filter, SearchRequest, Written
from store.commands import Command
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

    from store.entry import Entry

# No deadline: a shared machine is slow now and then, and no test asserts a wall-clock time. A plain run tries
# the same examples every time; `explore` looks for new ones.
settings.register_profile("local", deadline=None, derandomize=True)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "local"))

# Most tests are not about meaning, and each of their many processes would load the model: those that are say so.
os.environ.setdefault("DESKBOOK_EMBEDDING", "none")

HAND_SECONDS = 120.0
ERA_MODES = {"handshake": "legacy", "modern": "2026-07-28"}
ERROR_KEYS = {"code", "message", "stored", "retryable", "hint"}
MakeCertificate = Callable[..., tuple[Path, Path]]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def strict_json(text: str) -> Any:
    """Parse as a strict reader does: no NaN, no infinity, no key twice, nothing that UTF-8 cannot carry."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"a key twice in {pairs}"
        return dict(pairs)

    text.encode("utf-8")
    return json.loads(text, parse_constant=pytest.fail, object_pairs_hook=once)


class InMemoryDesk:
    """One agent's server in this process, over a root on disk, with its ledger at hand."""

    def __init__(self, config: Path | None, agent: str | None, flags: dict[str, Any]) -> None:
        # Here and not above: tests of the store alone should not pay half a second for the SDK.
        from server.app import DeskServer, launched
        from server.identity import launch_identity
        from server.settings import load_settings

        self.settings = load_settings(
            config=config, flags=flags, environ={"DESKBOOK_EMBEDDING": os.environ["DESKBOOK_EMBEDDING"]}
        )
        self.identity = launch_identity(self.settings, agent)
        self.server = DeskServer(self.settings, launched(self.identity, "memory"))
        self.root = self.settings.store.root

    def client(self, era: str = "modern", **options: Any) -> Client:
        """A client in one era; "auto" asks the server which it speaks."""
        from mcp import Client

        return Client(self.server, mode=ERA_MODES.get(era, era), **options)

    @staticmethod
    def body(result: CallToolResult) -> dict[str, Any]:
        """The body of a good reply, its text and structured content checked to say the same."""
        assert result.is_error is False, result.content
        (content,) = result.content
        body = strict_json(content.text)  # type: ignore[union-attr]
        assert body == result.structured_content
        return dict(body)

    @staticmethod
    def error(result: CallToolResult) -> dict[str, Any]:
        """The described error of a refused call, its shape checked."""
        assert result.is_error is True, result.content
        assert result.structured_content is None
        (content,) = result.content
        told = strict_json(content.text)  # type: ignore[union-attr]
        assert told.keys() - {"field"} == ERROR_KEYS
        assert all(isinstance(told[key], str) for key in ("code", "message", "hint"))
        assert told["stored"] in ("no", "yes", "unknown")
        assert isinstance(told["retryable"], bool)
        for leak in ("Traceback", 'File "', "/tmp", "/root", ".sqlite", ".py", "apsw", "pydantic"):
            assert leak not in content.text  # type: ignore[union-attr]
        return dict(told)

    async def call(
        self, client: Client, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """A call that must be served."""
        return self.body(await client.call_tool(tool, arguments, meta=meta))  # type: ignore[arg-type]

    async def refused(
        self, client: Client, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """A call that must be refused."""
        return self.error(await client.call_tool(tool, arguments, meta=meta))  # type: ignore[arg-type]

    def entries(self, event_type: str | None = None, *, run: str | None = None) -> list[Entry]:
        """The entries of the ledger (of one type), in order; none when there is no ledger yet."""
        from store.errors import NotFound

        try:
            book = Book.open(self.root, self.identity.strategy, run, create=False)
        except NotFound:
            return []
        try:
            return book.log(EntryFilter(event_type=event_type, limit=1_000_000))
        finally:
            book.close()

    def contents(self, event_type: str, *, run: str | None = None) -> list[dict[str, Any]]:
        """The contents of the entries of one type."""
        return [json.loads(entry.content) for entry in self.entries(event_type, run=run)]


OpenDesk = Callable[..., InMemoryDesk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[OpenDesk]:
    """Open servers: `config` is the text of a file, without it one person's server; all share one root."""
    opened: list[InMemoryDesk] = []

    def start(config: str | None = None, agent: str | None = None, **flags: Any) -> InMemoryDesk:
        path = None
        if config is not None:
            path = tmp_path / f"desk{len(opened)}.toml"
            path.write_text(config, encoding="utf-8")
        desk = InMemoryDesk(path, agent, {"root": str(tmp_path / "root"), **flags})
        opened.append(desk)
        return desk

    yield start
    for desk in opened:
        desk.server.drain()


@pytest.fixture
def desk(open_desk: OpenDesk) -> InMemoryDesk:
    """The server of one person without a config file, who may do everything."""
    return open_desk()


@pytest.fixture
def hurried_desk(open_desk: OpenDesk) -> InMemoryDesk:
    """The same server for a test that makes more calls than one person may in a minute."""
    return open_desk('[limits]\ncalls_per_minute = 1000000\n[agents.local]\nprofile = "solo"\n')


@pytest.fixture(params=tuple(ERA_MODES))
def era(request: pytest.FixtureRequest) -> str:
    """Both protocol eras, one after the other."""
    return str(request.param)


# 2026-03-02T14:30:00Z, and how far the clock moves on at each look; both in microseconds.
START = 1_772_461_800_000_000
STEP = 1_000


class HandClock:
    """A clock that shows what it was set to and moves on by one millisecond at each look."""

    def __init__(self) -> None:
        self.us = START

    def now(self) -> int:
        self.us += STEP
        return self.us


class Seat:
    """Someone who writes and reads in one open ledger, under one name unless another is given."""

    def __init__(self, book: Book, path: Path, clock: HandClock, agent: str) -> None:
        self.book = book
        self.path = path
        self.clock = clock
        self.agent = agent

    def caller(
        self,
        agent: str | None = None,
        *,
        session: str = "ses-1",
        tool: str | None = "tool",
        call: str | None = None,
        now: int | None = None,
    ) -> Caller:
        """Who calls; `now` is a run's time, microseconds, UTC."""
        return Caller(agent or self.agent, "solo", session, tool, model_call_id=call, now=now)

    def do(
        self, command: Command, agent: str | None = None, *, key: str | None = None, **who: Any
    ) -> Written:
        return self.book.execute(self.caller(agent, **who), command, idempotency_key=key)

    def find(self, query: str = "", *, who: Caller | None = None, **wanted: Any) -> dict[str, Any]:
        """The body of a search; conditions and the request's own fields are both given by name."""
        conditions = {name: wanted.pop(name) for name in Filter.__slots__ if name in wanted}
        request = SearchRequest(query=query, conditions=Filter(**conditions), **wanted)
        return self.book.search(who or self.caller(), request).body

    def ids(self, query: str = "", **wanted: Any) -> list[str]:
        """The ids that a search hands over, in order."""
        return [hit["id"] for hit in self.find(query, **wanted)["hits"]]

    def state(self, who: Caller | None = None, **wanted: Any) -> dict[str, Any]:
        return self.book.state(who or self.caller(), **wanted).body

    def get(self, memory_id: str, who: Caller | None = None, **wanted: Any) -> dict[str, Any]:
        return self.book.get(who or self.caller(), memory_id, **wanted).body

    def entries(self, event_type: str | None = None) -> list[Entry]:
        return self.book.log(EntryFilter(event_type=event_type, limit=1_000_000))

    def last_content(self, event_type: str) -> dict[str, Any]:
        return dict(json.loads(self.entries(event_type)[-1].content))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_seat(tmp_path: Path, clock: HandClock) -> Iterator[Callable[..., Seat]]:
    """Open ledgers, below the test's own root unless another is given; all are closed when the test ends."""
    books: list[Book] = []

    def take(
        strategy: str = "default", run: str | None = None, *, agent: str = "ann", **options: Any
    ) -> Seat:
        root = options.pop("root", tmp_path)
        options = {"begins": START if run else None, "durability": "normal", "clock": clock, **options}
        book = Book.open(root, strategy, run, **options)
        books.append(book)
        return Seat(book, ledger_path(root, strategy, run), clock, agent)

    yield take
    for book in books:
        book.close()


@pytest.fixture
def seat(open_seat: Callable[..., Seat]) -> Seat:
    """A seat at a live ledger."""
    return open_seat()


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of committed fixtures."""
    return Path(__file__).with_name("fixtures")


@pytest.fixture
def make_certificate(tmp_path: Path) -> MakeCertificate:
    """Makes a certificate that is signed by itself, for one address; gives its file and that of its key."""
    # Here and not above: few tests need it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def make(address: str = "127.0.0.1", days: int = 1) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "desk")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=10))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        cert_file, key_file = tmp_path / "desk.pem", tmp_path / "desk.key"
        plain = serialization.NoEncryption()
        key_file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        cert_file.write_bytes(made.public_bytes(pem))
        return cert_file, key_file

    return make


@dataclass
class Work:  # statements that were run, and steps that SQLite's machine took in them
    statements: int = 0
    steps: int = 0


@contextmanager
def count_work() -> Iterator[Work]:
    """The work of every connection that is made meanwhile, but for what the full-text index asks of itself."""
    work, of_full_text = Work(), ("SELECT pgno FROM", "PRAGMA 'main'.data_version")

    def told(event: dict[str, Any]) -> None:
        if not event["sql"].startswith(of_full_text):
            work.statements += 1
            work.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def watch(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, told)

    apsw.connection_hooks.append(watch)
    try:
        yield work
    finally:
        apsw.connection_hooks.remove(watch)


CountWork = Callable[[], AbstractContextManager[Work]]


@pytest.fixture(scope="session")
def counted() -> CountWork:
    return count_work


class Hand:
    """A helper process, the hand.py beside a test: it says lines on stdout and goes on when it is sent one."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}
        own |= {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONUTF8": "1", **environ}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=own, cwd="/")

    def says(self) -> Any:
        """The next line it says, as JSON; None once it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def waits(self) -> bool:
        """Whether there is a line to read, or it has ended."""
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def wait(self) -> int:
        return self.process.wait(HAND_SECONDS)


StartHand = Callable[..., Hand]


@pytest.fixture
def start_hand(request: pytest.FixtureRequest) -> Iterator[StartHand]:
    """Start helper processes; whatever still runs at the end of the test is killed."""
    started: list[Hand] = []
    command = [sys.executable, str(request.path.with_name("hand.py"))]

    def start(what: str, *arguments: object, prefix: tuple[str, ...] = (), **environ: str) -> Hand:
        started.append(Hand([*prefix, *command, what, *map(str, arguments)], environ))
        return started[-1]

    yield start
    for hand in started:
        with suppress(ProcessLookupError):
            hand.process.send_signal(signal.SIGCONT)
        hand.process.kill()
        hand.process.wait()
        with suppress(BrokenPipeError):
            hand.process.__exit__(None, None, None)
