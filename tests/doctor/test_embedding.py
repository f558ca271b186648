"""What doctor says of search by meaning: ready, off, parts missing, an endpoint that is wrong; and never the key."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.doctor import embedding as check
from server.doctor.subject import Subject
from server.settings import load_settings
from store.embedding import bundled
from store.embedding.bundled import MODEL
from store.errors import EmbeddingFailed

if TYPE_CHECKING:
    from conftest import Doctor

    from server.doctor.findings import Finding

KEY = "sk-secret-0123456789"
MISSING = "there-is-no-such-package"


class Service(ThreadingHTTPServer):
    """An endpoint that gives vectors of three numbers to whoever has the key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        allowed = self.headers.get("Authorization") == f"Bearer {KEY}"
        made = [{"index": at, "embedding": [1.0, 2.0, 3.0]} for at, _ in enumerate(asked["input"])]
        body = json.dumps({"data": made, "you sent": self.headers.get("Authorization")}).encode()
        self.send_response(self.server.status if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def look(root: Path, provider: str, config: str = "", environ: dict[str, str] | None = None) -> Finding:
    path = root.parent / "looked.toml"
    path.write_text(config)
    settings = load_settings(config=path, flags={"root": str(root)}, environ={"DESKBOOK_EMBEDDING": provider})
    (found,) = check.check_embedding(Subject(settings, (), environ or {}))
    assert found.name == "embedding"
    assert KEY not in str(found)
    return found


def endpoint(url: str) -> str:
    return f'[embedding]\nprovider = "openai"\nurl = "{url}"\nmodel = "small"\n'


def test_the_bundled_model_is_loaded_and_asked(doctor: Doctor, root: Path) -> None:
    (found,) = doctor("--root", str(root), DESKBOOK_EMBEDDING="local").of("embedding")
    assert (found["mark"], found["next"]) == ("ok", None)
    assert found["found"] == f"{MODEL}, vectors of 384 numbers"


def test_off_by_the_settings_is_as_it_should_be(doctor: Doctor, root: Path) -> None:
    (found,) = doctor("--root", str(root), DESKBOOK_EMBEDDING="none").of("embedding")
    assert (found["mark"], found["next"]) == ("ok", None)
    assert found["found"] == "off, as the settings say: searches go by words"


def test_a_missing_part_is_named_and_looked_for_without_loading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P234"""
    monkeypatch.setattr(bundled, "_PACKAGE", MISSING)
    found = look(root, "local")
    assert (found.mark, found.found) == (
        "warn",
        f"the package {MISSING} is not installed: searches go by words",
    )
    assert found.next


def test_weights_that_are_not_the_ones_meant_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_WEIGHTS_SHA256", "0" * 64)
    found = look(root, "local")
    assert found.mark == "warn"
    assert found.found.endswith("is not the one that belongs to this version. Searches go by words.")
    assert found.next


def test_a_model_that_is_not_loaded_in_time_is_told_in_whole_sentences(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Event()
    monkeypatch.setattr("server.embedding._bundled", lambda: waiting.wait(60))
    monkeypatch.setattr(check, "LOAD_SECONDS", 0)
    try:
        found = look(root, "local")
    finally:
        waiting.set()
    assert (found.mark, found.found) == ("warn", "The model cannot be loaded in time. Searches go by words.")


def test_a_model_that_fails_when_it_is_asked_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        model = MODEL

        def embed(self, texts: list[str]) -> Any:
            raise EmbeddingFailed("It is out of order.", hint="Mend it.")

    monkeypatch.setattr("server.embedding._bundled", Failing)
    found = look(root, "local")
    assert (found.mark, found.found, found.next) == (
        "warn",
        "It is out of order. Searches go by words.",
        "Mend it.",
    )


def test_an_endpoint_is_asked_with_the_key_of_the_shell_that_asks(root: Path, service: Service) -> None:
    config = endpoint(service.url)
    found = look(root, "openai", config, {"DESKBOOK_EMBEDDING_KEY": KEY})
    assert (found.mark, found.found) == ("ok", "small, vectors of 3 numbers")
    found = look(root, "openai", config)
    assert found.mark == "warn"
    assert "asks for a key" in found.found
    assert "DESKBOOK_EMBEDDING_KEY" in str(found.next)


def test_doctor_as_a_process_takes_the_key_from_its_environment_and_never_shows_it(
    doctor: Doctor, root: Path, tmp_path: Path, service: Service
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text(endpoint(service.url))
    for key, mark in ((KEY, "ok"), (KEY + "x", "warn")):
        told = doctor("--config", str(config), "--root", str(root), DESKBOOK_EMBEDDING_KEY=key)
        (found,) = told.of("embedding")
        assert found["mark"] == mark
        assert KEY not in told.out + told.err


@pytest.mark.parametrize("status", [404, 429, 500, 301])
def test_an_endpoint_that_refuses_is_told_with_what_to_do(root: Path, service: Service, status: int) -> None:
    service.status = status
    found = look(root, "openai", endpoint(service.url), {"DESKBOOK_EMBEDDING_KEY": KEY})
    assert found.mark == "warn"
    assert found.found.endswith(" Searches go by words.")
    assert found.next


def test_an_endpoint_that_is_not_there_is_told(root: Path, service: Service) -> None:
    url = service.url
    service.server_close()
    found = look(root, "openai", endpoint(url), {"DESKBOOK_EMBEDDING_KEY": KEY})
    assert found.mark == "warn"
    assert "cannot be reached" in found.found


@pytest.mark.parametrize(
    ("url", "key"), [("http://example.com/v1", KEY), ("http://127.0.0.1:9/v1", f"{KEY} with blanks")]
)
def test_an_address_or_key_that_cannot_be_used_is_a_fault(root: Path, url: str, key: str) -> None:
    found = look(root, "openai", endpoint(url), {"DESKBOOK_EMBEDDING_KEY": key})
    assert found.mark == "FAIL"
    assert found.next


def test_looking_changes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(root, "local")
    assert not root.exists()
