"""A desk that embeds behind an OpenAI-compatible address: end to end, when it is away, and never the key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store.errors import ConfigError

if TYPE_CHECKING:
    from conftest import OpenDesk, Senses

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-secret-0123456789"
GUARD = 60.0
MOST_SEARCHES = 2_000
RESTING = "by words only: the model failed and is tried again in some seconds"
pytestmark = pytest.mark.anyio


class Service(ThreadingHTTPServer):
    """Embeds with the made-up model for whoever has the key; `status` is what it answers with."""

    daemon_threads = True

    def __init__(self, senses: Senses) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.senses = senses
        self.status = 200
        self.models: set[str] = set()
        self.keys: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.models.add(asked["model"])
        self.server.keys.add(self.headers.get("Authorization", ""))
        vectors = self.server.senses.embed(asked["input"]).tolist()
        made = {"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]}
        body = json.dumps(made | {"you sent": self.headers.get("Authorization")}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def service(senses: Senses) -> Iterator[Service]:
    with Service(senses) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def config(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """The config of a desk with the endpoint; its key is in the environment."""
    monkeypatch.setenv("DESKBOOK_EMBEDDING", "openai")
    monkeypatch.setenv("DESKBOOK_EMBEDDING_KEY", KEY)
    return (
        f'[embedding]\nprovider = "openai"\nurl = "{service.url}"\nmodel = "small"\n'
        '[store]\ndurability = "normal"\n'
        '[limits]\ncalls_per_minute = 1000000\n[agents.a]\nprofile = "solo"\n'
    )


async def search_until(desk: Any, client: Any, query: str, memory_id: str) -> dict[str, Any]:
    """Search again and again until the memory is found; gives the body."""
    body: dict[str, Any] = {}
    for _ in range(MOST_SEARCHES):
        body = await desk.call(client, "search_memory", query=query)
        if memory_id in [hit["id"] for hit in body["hits"]]:
            return body
    pytest.fail(f"{query!r} never found the memory; the last reply was {body}")


async def test_a_paraphrase_is_found_by_what_the_endpoint_makes_of_it(
    open_desk: OpenDesk, config: str, service: Service
) -> None:
    desk = open_desk(config, "a")
    async with desk.client() as client:
        note = (await desk.call(client, "remember", text="turnover slid"))["id"]
        assert not service.models
        body = await search_until(desk, client, "sales dropped", note)
        assert "semantic" not in body
    desk.server.drain()
    said = desk.contents("memory.retrieved")[-1]
    assert (said["mode"], said["model"]) == ("hybrid", "small")
    assert service.models == {"small"}
    assert service.keys == {f"Bearer {KEY}"}
    for path in desk.root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


@pytest.mark.parametrize("how", ["refuses the key", "fails", "is not there"])
async def test_an_endpoint_that_is_away_leaves_search_by_words_with_a_notice(
    open_desk: OpenDesk, config: str, service: Service, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P234"""
    if how == "is not there":
        service.socket.close()
    service.status = {"refuses the key": 401, "fails": 500}.get(how, 200)
    desk = open_desk(config, "a")
    async with desk.client() as client:
        note = (await desk.call(client, "remember", text="turnover slid"))["id"]
        for query, hits in (("turnover", [note]), ("sales", [])):
            body = await desk.call(client, "search_memory", query=query)
            assert [hit["id"] for hit in body["hits"]] == hits
            assert body["semantic"] == RESTING
            assert KEY not in json.dumps(body)
    desk.server.drain()
    assert KEY not in caplog.text
    assert desk.contents("memory.retrieved")[-1]["mode"] == "terms"


async def test_texts_that_wait_are_embedded_once_the_endpoint_is_back(
    open_desk: OpenDesk, config: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.embedding.loading.REST_SECONDS", 0.0)
    service.status = 500
    desk = open_desk(config, "a")
    async with desk.client() as client:
        note = (await desk.call(client, "remember", text="turnover slid"))["id"]
        assert (await desk.call(client, "search_memory", query="sales"))["hits"] == []
        service.status = 200
        await search_until(desk, client, "sales dropped", note)


class Deskbook:
    """Commands as processes, on the config and the test's root."""

    def __init__(self, config: Path, root: Path) -> None:
        self._given = ["--config", str(config), "--root", str(root)]

    def __call__(self, command: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "server", command, *self._given, *words],
            env=own | {"PYTHONPATH": str(ROOT), "DESKBOOK_EMBEDDING_KEY": KEY} | environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD,
            check=False,
        )
        assert KEY not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
async def commands(
    open_desk: OpenDesk, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deskbook:
    """Commands on a desk that holds three notes without vectors."""
    with monkeypatch.context() as patched:
        patched.setenv("DESKBOOK_EMBEDDING", "none")
        desk = open_desk(config, "a")
        async with desk.client() as client:
            for text in ("turnover slid", "broker declined", "revenue rose"):
                await desk.call(client, "remember", text=text)
        desk.server.drain()
    path = tmp_path / "commands.toml"
    path.write_text(config)
    return Deskbook(path, desk.root)


def embedding(commands: Deskbook, **environ: str) -> str:
    done = commands("status", "--json", **environ)
    assert done.returncode == 0
    return str(json.loads(done.stdout)["embedding"])


async def test_embed_goes_through_the_endpoint_and_a_model_can_be_named(
    commands: Deskbook, service: Service
) -> None:
    assert embedding(commands) == "small; 3 texts wait"
    assert "3 texts embedded with small" in commands("embed").stdout
    assert "0 texts embedded with small" in commands("embed").stdout
    assert embedding(commands) == "small; every text has its vectors"
    assert service.models == {"small"}
    assert "3 texts embedded with large" in commands("embed", "--model", "large").stdout
    assert service.models == {"small", "large"}
    assert embedding(commands) == "small; every text has its vectors"
    assert "3 texts embedded with small" in commands("embed", "--again").stdout
    assert "small; every text has its vectors" in " ".join(commands("status").stdout.split())


async def test_embed_says_what_the_endpoint_refused_and_goes_on_the_next_time(
    commands: Deskbook, service: Service
) -> None:
    service.status = 401
    done = commands("embed")
    assert done.returncode != 0
    assert "asks for a key" in done.stderr
    assert "it goes on" in done.stderr
    service.status = 200
    assert "3 texts embedded" in commands("embed").stdout


async def test_vectors_of_another_length_under_the_same_name_are_made_anew(
    commands: Deskbook, service: Service
) -> None:
    """P219"""
    assert "3 texts embedded" in commands("embed").stdout
    service.senses.dimensions = 32
    assert "3 texts embedded" in commands("embed", "--again").stdout
    assert embedding(commands) == "small; every text has its vectors"


async def test_an_address_that_cannot_be_used_is_told_before_anything_is_served(
    open_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBOOK_EMBEDDING", "openai")
    for url in ("http://example.com/v1", "ftp://127.0.0.1/v1"):
        with pytest.raises(ConfigError) as fault:
            open_desk(f'[embedding]\nurl = "{url}"\nmodel = "small"\n[agents.a]\nprofile = "solo"\n', "a")
        assert fault.value.field == "embedding.url"
