"""A real server with the bundled model: it answers before the model is loaded, and finds by meaning soon after."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import PipedDesk, StartDesk

ROOT = Path(__file__).resolve().parents[2]
ERAS = ("handshake", "modern")
LIBRARIES = ("onnxruntime", "numpy", "tokenizers")
NOTES = {
    "Our broker rejected the order because margin was insufficient.": (
        "brokerage refused a trade for lack of collateral"
    ),
    "Earnings beat estimates but the shares fell on weak guidance.": (
        "stock dropped although profits topped forecasts"
    ),
    "Gold rises when real yields fall.": "bullion climbs as inflation-adjusted interest goes down",
}
MOST_SEARCHES = 2_000
"""Searches until a text must be found by its meaning: it only turns a hang into a failure."""

WATCHER = """
import os, sys

def watch(event, given):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"):
        with open(os.environ["SEEN_ON_THE_NETWORK"], "a") as file:
            file.write(f"{event} {given}\\n")

sys.addaudithook(watch)
"""


class Session:
    """One server process that embeds with the bundled model, and its client."""

    def __init__(self, desk: PipedDesk, era: str) -> None:
        self.desk = desk
        self.era = era
        self._asked = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call that must be served; its body."""
        self._asked += 1
        self.desk.send(self.desk.tool(self.era, self._asked, tool, **arguments))
        result = self.desk.reply(self._asked)["result"]
        assert not result.get("isError"), result
        return dict(json.loads(result["content"][0]["text"]))

    def tools(self) -> list[str]:
        self.desk.send(self.desk.request(self.era, "tools", "tools/list"))
        return [tool["name"] for tool in self.desk.reply("tools")["result"]["tools"]]

    def search_until(self, query: str, memory_id: str) -> dict[str, Any]:
        """Search again and again until the memory is found; gives the body."""
        body: dict[str, Any] = {}
        for _ in range(MOST_SEARCHES):
            body = self.call("search_memory", query=query, response_format="detailed")
            if memory_id in [hit["id"] for hit in body["hits"]]:
                return body
        pytest.fail(f"{query!r} never found the memory; the last reply was {body}")

    def loaded(self) -> set[str]:
        """The libraries of the model that the process has mapped."""
        maps = Path(f"/proc/{self.desk.process.pid}/maps").read_text()
        return {name for name in LIBRARIES if f"/{name}" in maps}


@pytest.fixture
def open_session(start_serve: StartDesk, tmp_path: Path) -> Callable[..., Session]:
    config = tmp_path / "desk.toml"
    config.write_text(
        '[store]\ndurability = "normal"\n[limits]\ncalls_per_minute = 1000000\n[agents.a]\nprofile = "solo"\n'
    )

    def start(era: str = "modern", **environ: str) -> Session:
        environ = {"DESKBOOK_EMBEDDING": "local"} | environ
        desk = start_serve("--config", str(config), "--agent", "a", **environ)
        desk.open(era)
        return Session(desk, era)

    return start


@pytest.mark.parametrize("era", ERAS)
def test_the_handshake_and_the_tools_come_before_the_model(
    open_session: Callable[..., Session], era: str
) -> None:
    """P217"""
    session = open_session(era)
    assert "search_memory" in session.tools()
    assert session.loaded() == set()
    session.call("get_memory_state")
    note = session.call("remember", text=next(iter(NOTES)))["id"]
    session.search_until(NOTES[next(iter(NOTES))], note)
    assert session.loaded() == set(LIBRARIES)


@pytest.mark.parametrize("era", ERAS)
def test_what_was_written_is_found_by_its_meaning_soon_after(
    open_session: Callable[..., Session], era: str
) -> None:
    session = open_session(era)
    ids = {text: session.call("remember", text=text)["id"] for text in NOTES}
    for text, query in NOTES.items():
        body = session.search_until(query, ids[text])
        assert body["hits"][0]["id"] == ids[text]
        assert body["hits"][0]["provenance"]["vector_rank"] == 1
        assert "semantic" not in body
    body = session.call("search_memory", query="sourdough starter feeding ratio")
    assert body["total"] == 0
    assert body["message"].startswith("Nothing relevant is recorded.")


def test_what_another_process_writes_is_found_by_meaning_too(open_session: Callable[..., Session]) -> None:
    reader, writer = open_session(), open_session("handshake", DESKBOOK_EMBEDDING="none")
    reader.call("get_memory_state")
    (text, query), *_ = NOTES.items()
    note = writer.call("remember", text=text)["id"]
    assert reader.search_until(query, note)["hits"][0]["id"] == note
    assert writer.loaded() == set()
    both = open_session("handshake")
    (_, (text, query), *_) = NOTES.items()
    note = both.call("remember", text=text)["id"]
    assert reader.search_until(query, note)["hits"][0]["id"] == note
    assert both.search_until(query, note)["hits"][0]["id"] == note


def test_a_first_search_by_words_finds_what_was_just_written_and_says_what_is_missing(
    open_session: Callable[..., Session],
) -> None:
    """P217, P234"""
    session = open_session()
    note = session.call("remember", text="Zinc shipment delayed again")["id"]
    body = session.call("search_memory", query="zinc shipment")
    assert [hit["id"] for hit in body["hits"]] == [note]
    if body.get("semantic") is not None:
        assert "by words only" in body["semantic"]


def test_nothing_goes_over_the_network(open_session: Callable[..., Session], tmp_path: Path) -> None:
    """P217"""
    (tmp_path / "sitecustomize.py").write_text(WATCHER)
    seen = tmp_path / "seen"
    seen.touch()
    session = open_session(
        PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))), SEEN_ON_THE_NETWORK=str(seen)
    )
    session.tools()
    (text, query), *_ = NOTES.items()
    note = session.call("remember", text=text)["id"]
    session.search_until(query, note)
    assert seen.read_text() == ""
    assert not sockets(session.desk.process.pid)


def test_the_watcher_sees_what_goes_over_the_network(
    open_session: Callable[..., Session], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        WATCHER
        + 'import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 9))\n'
    )
    seen = tmp_path / "seen"
    open_session(PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))), SEEN_ON_THE_NETWORK=str(seen))
    assert "socket.connect" in seen.read_text()


def sockets(process: int) -> list[str]:
    """The internet sockets that a process holds."""
    held = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            held.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:
            continue
    lines = [
        line
        for name in ("tcp", "tcp6", "udp", "udp6")
        if (table := Path(f"/proc/{process}/net/{name}")).exists()
        for line in table.read_text().splitlines()[1:]
    ]
    return [line for line in lines if line.split()[9] in held]
