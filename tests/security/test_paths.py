"""No agent reaches the file system: tools take no path, names make no path, errors tell none."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.arguments import published_schema
from server.tools import TOOLS

if TYPE_CHECKING:
    from conftest import OpenDesk

pytestmark = pytest.mark.anyio

SIMULATED = '[clock]\nmode = "simulated"\n[agents.a]\nprofile = "trader"'
NAMES = (
    "../../escape", "/etc/cron.d/x", "..", ".", "a/b", "a b", "a\\b", "C:\\x", "~", "$HOME", "日本", "Ä", "a\u0308",
    "A", "a", "nul", "CON", "x" * 128, "目" * 128, "-rf", "%2e%2e", "runs", "memory.sqlite", "a.", "a ",
)  # fmt: skip


def everything_under(folder: Path) -> list[Path]:
    return [Path(at) / name for at, folders, files in os.walk(folder) for name in (*folders, *files)]


async def test_no_tool_of_an_agent_takes_a_path_p149() -> None:
    for tool in TOOLS.values():
        shape = json.dumps(published_schema(tool.arguments)).lower()
        for word in ("path", "file", "folder", "directory", "url", "uri"):
            assert word not in shape, f"{tool.name} speaks of a {word}"


async def test_every_run_name_is_a_folder_of_its_own_below_the_root(
    open_desk: OpenDesk, era: str, tmp_path: Path
) -> None:
    desk = open_desk(SIMULATED, "a")
    outside = set(everything_under(tmp_path))
    async with desk.client(era) as client:
        for name in NAMES:
            meta = {"deskbook/now": "2026-03-02T21:00:00Z", "deskbook/run": name}
            await desk.call(client, "remember", meta=meta, text=f"in {name}")
    made = set(everything_under(tmp_path)) - outside
    assert all(path.is_relative_to(desk.root) or path == desk.root for path in made)
    ledgers = [path for path in made if path.name == "memory.sqlite"]
    assert len(ledgers) == len(NAMES)
    assert len({str(path).casefold() for path in ledgers}) == len(NAMES)
    assert not [path for path in made if path.is_symlink()]
    for name in NAMES:
        assert [content["text"] for content in desk.contents("memory.recorded", run=name)] == [f"in {name}"]


async def test_the_store_is_for_its_owner_alone(open_desk: OpenDesk, era: str) -> None:
    desk = open_desk()
    async with desk.client(era) as client:
        await desk.call(client, "remember", text="private")
        for path in (desk.root, *everything_under(desk.root)):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("obstacle", ["file", "link", "foreign", "empty folder"])
async def test_an_obstacle_in_the_store_is_refused_and_its_place_not_told(
    open_desk: OpenDesk, era: str, tmp_path: Path, obstacle: str
) -> None:
    desk = open_desk()
    strategy = desk.root / "default"
    desk.root.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if obstacle == "file":
        strategy.write_text("in the way")
    elif obstacle == "link":
        strategy.symlink_to(elsewhere)
    else:
        strategy.mkdir()
        if obstacle == "foreign":
            (strategy / "memory.sqlite").write_bytes(b"not a ledger" * 500)
        else:
            (strategy / "memory.sqlite").mkdir()
    async with desk.client(era) as client:
        for tool, arguments in (("remember", {"text": "x"}), ("search_memory", {}), ("get_memory_state", {})):
            told = await desk.refused(client, tool, **arguments)
            assert told["stored"] == "no"
            assert told["code"] != "internal_error"
            assert str(tmp_path) not in json.dumps(told)
        await client.list_tools()
    assert list(elsewhere.iterdir()) == []


async def test_an_unexpected_failure_tells_nothing_of_its_cause(
    open_desk: OpenDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk()
    secret = "sk-live-0123456789"

    def broken(*_: object, **__: object) -> None:
        raise OSError(5, f"Input/output error: {secret}", "/home/someone/.ssh/id_ed25519")

    async with desk.client(era) as client:
        await desk.call(client, "remember", text="x")
        monkeypatch.setattr("store.readings.recall", broken)
        monkeypatch.setattr("store.readings.build_state", broken)
        for tool in ("search_memory", "get_memory_state"):
            told = await desk.refused(client, tool)
            assert told["code"] == "internal_error"
            assert secret not in json.dumps(told)
        from mcp.shared.exceptions import MCPError

        with pytest.raises(MCPError) as refusal:
            await client.read_resource("memory://state")
        assert secret not in str(refusal.value)
        assert refusal.value.error.data["code"] == "internal_error"
