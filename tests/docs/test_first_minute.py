"""The first minute of the README, followed to the letter with the SDK's client in the place of a host."""

from __future__ import annotations

import json
import subprocess
import tomllib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

pytestmark = pytest.mark.anyio
GUARD = 60
HOSTS = ("claude-code.json", "claude-desktop.json", "codex.toml", "cursor.json", "vscode.json")
THESIS = "Long AAPL: services margin keeps rising."
Entry = dict[str, Any]


def entry_of(text: str) -> Entry:
    """The server entry in a host's file, whatever the host calls its table."""
    table = tomllib.loads(text) if text.lstrip().startswith("[") else json.loads(text)
    (servers,) = table.values()
    (entry,) = servers.values()
    return dict(entry)


def shown_entries(readme: Any) -> list[Entry]:
    blocks = [*readme.blocks("json"), *readme.blocks("toml")]
    return [entry_of(block) for block in blocks if "deskbook/.venv/bin/deskbook" in block]


def client_of(entry: Entry, home: Path, command: Path) -> AbstractAsyncContextManager[Client]:
    """A client that starts the server as a host would: from another folder, with hardly an environment."""
    assert entry["command"] == "/home/you/deskbook/.venv/bin/deskbook"
    arguments = [str(home / "desk.toml") if word == "/home/you/desk.toml" else word for word in entry["args"]]
    assert arguments != entry["args"]
    return Client(StdioServerParameters(command=str(command), args=arguments, env=entry.get("env"), cwd="/"))


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    reply: dict[str, Any] = json.loads(content.text)
    return reply


def deskbook(command: Path, home: Path, *words: str) -> str:
    done = subprocess.run(
        [str(command), *words],
        env={"HOME": str(home)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=GUARD,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def desk(home: Path, command: Path) -> Path:
    """A home in which `deskbook init` was run as the README says."""
    said = deskbook(command, home, "init", "--config", "~/desk.toml")
    assert f"{command} serve --config {home / 'desk.toml'} --agent NAME" in said
    return home


def test_the_readme_shows_three_entries_that_stand_as_files_too(readme: Any, root: Path) -> None:
    files = {name: entry_of((root / "configs" / "hosts" / name).read_text()) for name in HOSTS}
    shown = shown_entries(readme)
    assert shown == [files["claude-code.json"], files["vscode.json"], files["codex.toml"]]
    assert files["cursor.json"] == files["claude-desktop.json"]


@pytest.mark.parametrize("host", HOSTS)
async def test_every_host_file_starts_a_server(host: str, desk: Path, command: Path, root: Path) -> None:
    entry = entry_of((root / "configs" / "hosts" / host).read_text())
    with anyio.fail_after(GUARD):
        async with client_of(entry, desk, command) as client:
            assert (await call(client, "get_memory_state"))["agent"] == "trader"


@pytest.mark.parametrize("number", range(3))
async def test_a_thesis_opened_today_is_found_tomorrow_and_stands_in_the_log(
    number: int, readme: Any, desk: Path, command: Path
) -> None:
    entry = shown_entries(readme)[number]
    with anyio.fail_after(GUARD):
        async with client_of(entry, desk, command) as today:
            assert (await call(today, "search_memory", query="AAPL"))["hits"] == []
            opened = await call(
                today,
                "open_thesis",
                text=THESIS,
                symbol="AAPL",
                direction="long",
                target="250",
                invalidation="below 205",
            )
        async with client_of(entry, desk, command) as tomorrow:
            (held,) = (await call(tomorrow, "get_memory_state"))["open_theses"]
            (found,) = (await call(tomorrow, "search_memory", query="AAPL"))["hits"]
    assert held["id"] == found["id"] == opened["id"]
    assert held["target"] == "250"
    assert found["text"] == THESIS
    config = ("--config", "~/desk.toml")
    lines = deskbook(command, desk, "log", *config).splitlines()
    events = [line.split("  ", 3) for line in (line.strip() for line in lines)]
    assert [event[2] for event in events] == ["deskbook"] + ["trader"] * (len(events) - 1)
    told = [event[3] for event in events]
    assert f"thesis.opened  {opened['id']}  AAPL  {THESIS}" in told
    searches = [line for line in told if line.startswith("memory.retrieved")]
    assert [line.rpartition("  ")[2] for line in searches] == [
        "0 of 0 handed over for: AAPL",
        "1 of 1 handed over for: AAPL",
    ]
    assert sum(line.startswith("session.started") for line in told) == 2
    assert deskbook(command, desk, "verify", *config).startswith(f"sound: {len(events)} entries, chain ")
    assert THESIS in deskbook(command, desk, "show", opened["id"], *config)


async def test_the_server_starts_for_one_person_without_a_config(home: Path, command: Path) -> None:
    with anyio.fail_after(GUARD):
        async with Client(StdioServerParameters(command=str(command), args=["serve"], cwd="/")) as client:
            state = await call(client, "get_memory_state")
    assert (state["agent"], state["strategy"], state["run"]) == ("local", "default", None)
    assert "local" in deskbook(command, home, "log")
