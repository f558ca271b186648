"""An OpenAI-compatible endpoint, played by a real server on this machine."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from store.embedding.endpoint import Endpoint
from store.errors import EmbeddingFailed

KEY = "sk-secret-0123456789"
TEXT = "the text that nobody may see"
Reply = Callable[[Any, bytes], None]


class Service(ThreadingHTTPServer):
    """Remembers what it was asked. `answer` makes the JSON from the texts, `reply` sends something for it."""

    daemon_threads = True
    request_queue_size = 64
    key = KEY
    text = TEXT

    def __init__(self, tls: tuple[Path, Path] | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.clients: set[Any] = set()
        self.answer: Callable[[list[str]], Any] = self.listed
        self.reply: Reply = self.answering(200)
        self.released = threading.Event()
        self.scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/v1"

    @staticmethod
    def numbers(text: str) -> list[float]:
        """A vector that tells texts apart."""
        return [float(len(text)), float(ord(text[0])), float(sum(map(ord, text)) % 97), -1.0]

    @classmethod
    def listed(cls, texts: list[str]) -> Any:
        """The usual answer."""
        return {"data": [{"index": at, "embedding": cls.numbers(text)} for at, text in enumerate(texts)]}

    @staticmethod
    def answering(status: int, body: bytes | None = None, **headers: str) -> Reply:
        """A reply of this status; without a body, of what `answer` made."""

        def reply(handler: Handler, made: bytes) -> None:
            content = made if body is None else body
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(content)

        return reply

    @staticmethod
    def silent(handler: Handler, made: bytes) -> None:
        """No reply until the test ends."""
        handler.server.released.wait(30)

    def handle_error(self, *_: Any) -> None:
        """Stay silent where the client went away."""


class Handler(BaseHTTPRequestHandler):
    """Notes each request, then replies as the service is told to."""

    protocol_version = "HTTP/1.1"
    server: Service

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.clients.add(self.client_address)
        self.server.reply(self, json.dumps(self.server.answer(asked["input"])).encode())

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def start_service() -> Iterator[Callable[..., Service]]:
    """Starts such servers, with TLS where a certificate and its key are given."""
    running: list[tuple[Service, threading.Thread]] = []

    def start(tls: tuple[Path, Path] | None = None) -> Service:
        service = Service(tls)
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        running.append((service, thread))
        return service

    yield start
    for service, thread in running:
        service.released.set()
        service.shutdown()
        service.server_close()
        thread.join()


@pytest.fixture
def service(start_service: Callable[..., Service]) -> Service:
    return start_service()


@pytest.fixture
def connect() -> Iterator[Callable[..., Endpoint]]:
    """Makes what is tested, for an address; with the key unless another is given."""
    opened: list[Endpoint] = []

    def start(url: str, **options: Any) -> Endpoint:
        endpoint = Endpoint(url, "small-model", **{"key": KEY, **options})
        opened.append(endpoint)
        return endpoint

    yield start
    for endpoint in opened:
        endpoint.close()


@pytest.fixture
def endpoint(service: Service, connect: Callable[..., Endpoint]) -> Endpoint:
    """What is tested, with a query in its address."""
    return connect(f"{service.url}?api-version=hush")


@pytest.fixture
def failure() -> Callable[..., EmbeddingFailed]:
    """The error of texts; it tells neither key, address, text nor what the endpoint said."""

    def fail(endpoint: Endpoint, *texts: str) -> EmbeddingFailed:
        with pytest.raises(EmbeddingFailed) as caught:
            endpoint.embed(texts or (TEXT,))
        fault = caught.value
        assert fault.__cause__ is None
        assert fault.__suppress_context__ or fault.__context__ is None
        told = f"{fault.message} {fault.hint} {fault!r} {fault.args}"
        for secret in (KEY, "hush", TEXT, "127.0.0.1:", "Traceback", "Error("):
            assert secret not in told.replace("http://127.0.0.1:11434/v1", "")
        assert fault.hint
        assert fault.stored == "no"
        return fault

    return fail
