"""A community, played by a real TLS server on this machine, and a desk whose owner publishes to it by command."""

from __future__ import annotations

import json
import os
import queue
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from server.publishing.request import build_request
from server.publishing.sending import Sender, told
from server.publishing.target import Target
from server.reviewer_file import reviewer_path
from server.reviewers import VARIABLE, add_token
from store import Book, Caller
from store.commands import IntendOrder
from store.publications import Publication
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import MakeCertificate

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60
KEY = "community-key-0123456789abcdef"
KEY_VARIABLE = "DESK_PUBLISH_KEY"
PUBLIC = "Trimmed on strength; “stop” at 181.20.\nNäher dran: 目标价 210 😀"
PRIVATE = "only-the-desk-may-read-this"
Reply = Callable[["Handler"], None]
Done = subprocess.CompletedProcess[str]


class Community(ThreadingHTTPServer):
    """Notes what it is asked, says that it took it, and then replies as the test wants."""

    daemon_threads = True

    def __init__(self, tls: tuple[Path, Path] | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()
        self.reply: Reply = self.answering(201, {"post": {"id": "post-1", "body": "…"}})
        self.released = threading.Event()
        self.scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/community/agent/posts"

    def taken(self) -> tuple[str, dict[str, str], bytes]:
        """The next request that it took whole."""
        return self.asked.get(timeout=GUARD)

    @staticmethod
    def answering(status: int, body: Any = b"", **headers: str) -> Reply:
        """A reply of this status, with JSON unless the body is bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        def reply(handler: Handler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(content)

        return reply

    @staticmethod
    def silent(handler: Handler) -> None:
        """No reply until the test ends."""
        handler.server.released.wait(GUARD)

    @staticmethod
    def cut(handler: Handler) -> None:
        """The connection ends without a reply."""
        handler.connection.close()
        handler.close_connection = True

    @staticmethod
    def chattering(handler: Handler) -> None:
        """Interim answers without end, so that something arrives all the time and never the answer."""
        while not handler.server.released.is_set():
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")

    def handle_error(self, *_: Any) -> None:
        """Stay silent where the client went away."""


class Handler(BaseHTTPRequestHandler):
    """Reads a request whole before it replies."""

    protocol_version = "HTTP/1.1"
    server: Community

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.put((self.path, headers, content))
        self.server.reply(self)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def start_community() -> Iterator[Callable[..., Community]]:
    """Starts such servers, with TLS where a certificate and its key are given."""
    running: list[tuple[Community, threading.Thread]] = []

    def start(tls: tuple[Path, Path] | None = None) -> Community:
        community = Community(tls)
        thread = threading.Thread(target=community.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        running.append((community, thread))
        return community

    yield start
    for community, thread in running:
        community.released.set()
        community.shutdown()
        community.server_close()
        thread.join()


@pytest.fixture
def certificate(make_certificate: MakeCertificate) -> tuple[Path, Path]:
    return make_certificate()


@pytest.fixture
def community(start_community: Callable[..., Community], certificate: tuple[Path, Path]) -> Community:
    return start_community(certificate)


@pytest.fixture
def send(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Sends a request from this process, which trusts the certificate unless told otherwise; what is known then."""

    def sent(url: str, *, seconds: float = GUARD, trusted: Path | None = certificate[0]) -> dict[str, Any]:
        if trusted is None:
            monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        else:
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        target = Target(url, urlsplit(url).netloc, KEY, seconds)
        request = build_request(target, Publication(endpoint=url, body=PUBLIC))
        with closing(Sender(tls=url.startswith("https:"), seconds=seconds)) as sender:
            ended = sender.send(request)
        assert ended.error_type is None or told(ended)
        return ended.model_dump(exclude_none=True, exclude={"type"})

    return sent


class Owner:
    """A desk with one order action in its ledger, and a reviewer who publishes with a token."""

    key = KEY
    key_variable = KEY_VARIABLE
    token_variable = VARIABLE
    public = PUBLIC
    private = PRIVATE

    def __init__(self, folder: Path, url: str, environ: Mapping[str, str]) -> None:
        self.root = folder / "root"
        self.config = folder / "desk.toml"
        self.folder = folder
        self.configure(url)
        self.action = self.intend(PUBLIC)
        self.environ = {
            **environ, KEY_VARIABLE: KEY, VARIABLE: add_token(reviewer_path(self.root), "pat"),
        }  # fmt: skip
        self.processes: list[subprocess.Popen[str]] = []

    def configure(self, url: str, more: str = "", timeout: int = 30) -> None:
        self.config.write_text(
            f'[agents.ann]\nprofile = "trader"\n[publish]\nendpoint = "{url}"\nkey_env = "{KEY_VARIABLE}"\n'
            f"timeout_seconds = {timeout}\n{more}"
        )

    def intend(self, public_reason: str | None = None, reason: str = f"{PRIVATE} " * 10) -> str:
        """Journal an order action; its id."""
        with self.opened() as book:
            command = IntendOrder(
                operation="submit", symbol="AAPL", side="buy", quantity="10", reason=reason,
                public_reason=public_reason,
            )  # fmt: skip
            return book.execute(Caller("ann", "trader", "ses_ann", "record_order_intent"), command).id

    def opened(self) -> Any:
        return closing(Book.open(self.root, "default"))

    def write(self, text: str | bytes, name: str = "post.txt") -> str:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def words(self, *words: str, yes: bool = True) -> list[str]:
        return [
            sys.executable, "-m", "server", "publish", *words, *(["--yes"] if yes else []),
            "--config", str(self.config), "--root", str(self.root),
        ]  # fmt: skip

    def publish(self, *words: str, yes: bool = True, said: str = "", **environ: str | None) -> Done:
        """Run the command to its end; variables that are None are taken away."""
        variables = {**self.environ, **environ}
        return subprocess.run(
            self.words(*words, yes=yes), input=said, capture_output=True, text=True, check=False, cwd="/",
            env={name: value for name, value in variables.items() if value is not None}, timeout=GUARD,
        )  # fmt: skip

    def run(self, *words: str) -> Done:
        """Run another command on the ledger."""
        place = ["--config", str(self.config)]
        place += [] if "--root" in words else ["--root", str(self.root)]
        return subprocess.run(
            [sys.executable, "-m", "server", *words, *place], capture_output=True, text=True, check=False, cwd="/",
            env=self.environ, timeout=GUARD, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command and let it run."""
        process = subprocess.Popen(
            self.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd="/", env=self.environ,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def entries(self) -> list[tuple[str, dict[str, Any]]]:
        """What the ledger has of publications: type and content."""
        with self.opened() as book:
            found = book.log(EntryFilter(limit=1_000_000))
        return [
            (entry.event_type, json.loads(entry.content))
            for entry in found
            if entry.event_type.startswith("publication.")
        ]

    def outcomes(self) -> list[Any]:
        """The outcome of each publication, None for one without an end."""
        outcomes: list[Any] = []
        for kind, content in self.entries():
            if kind == "publication.begun":
                outcomes.append(None)
            else:
                outcomes[-1] = content["outcome"]
        return outcomes

    def kept(self) -> bytes:
        """Every byte that the desk keeps."""
        return b"".join(path.read_bytes() for path in self.root.rglob("*") if path.is_file())


@pytest.fixture
def owner(tmp_path: Path, community: Community, certificate: tuple[Path, Path]) -> Iterator[Owner]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}
    environ |= {"PYTHONPATH": str(REPOSITORY), "PYTHONUTF8": "1", "SSL_CERT_FILE": str(certificate[0])}
    made = Owner(tmp_path, community.url, environ)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()
