"""A flood of writes while no export is made: the ledger keeps all of it, and the exports catch up to exactly that."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from server import exporting
from server.exporting import Exports
from store.export.checking import check_exports
from store.export.manifest import read_manifest
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk
    from mcp import Client

GUARD = 120.0
CALLS, AT_ONCE, LATER = 5_000, 50, 20
CONFIG = """
[store]
durability = "normal"
[limits]
calls_per_minute = 1000000
[export]
interval_seconds = 86400
[agents.local]
profile = "solo"
"""

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Gate:
    """Keeps every pass from beginning while it is shut, and tells of those that are over."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.made = 0
        self._over = threading.Condition()

    def over(self, outcome: str, fault: str) -> None:
        assert outcome != "FAILED", fault
        with self._over:
            self.made += outcome == "MADE"
            self._over.notify_all()

    def wait_for(self, made: int) -> None:
        with self._over:
            assert self._over.wait_for(lambda: self.made >= made, GUARD), self.made


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate, made, settle = Gate(), Exports._made, Exports._settle

    def held(self: Exports, *where: Any) -> Any:
        while not (self._stopping or gate.opened.wait(0.01)):
            pass
        return exporting._Outcome.NOTHING if self._stopping else made(self, *where)

    def settled(self: Exports, key: Any, outcome: Any, fault: str, took: float) -> None:
        settle(self, key, outcome, fault, took)
        gate.over(outcome.name, fault)

    monkeypatch.setattr(Exports, "_made", held)
    monkeypatch.setattr(Exports, "_settle", settled)
    monkeypatch.setattr(exporting, "FIRST_SECONDS", 0.0)
    return gate


async def flood(desk: InMemoryDesk, client: Client, count: int) -> dict[str, str]:
    """So many notes, many at once; the text of each by the id that was acknowledged."""
    known: dict[str, str] = {}

    async def write(first: int) -> None:
        for number in range(first, count, AT_ONCE):
            text = f"note {number} 目标价"
            known[(await desk.call(client, "remember", text=text))["id"]] = text

    async with anyio.create_task_group() as tasks:
        for first in range(AT_ONCE):
            tasks.start_soon(write, first)
    assert len(known) == count
    return known


def check_all_there(desk: InMemoryDesk, known: dict[str, str]) -> int:
    """The ledger holds every acknowledged note once and nothing else; gives its last sequence."""
    entries = desk.entries()
    stored = [entry.subject_id for entry in entries if entry.event_type == "memory.recorded"]
    assert sorted(stored) == sorted(known)
    contents = dict(zip(stored, desk.contents("memory.recorded"), strict=True))
    assert {name: content["text"] for name, content in contents.items()} == known
    return entries[-1].sequence


async def test_a_flood_that_no_export_follows_loses_nothing_and_the_exports_catch_up(
    open_desk: OpenDesk, gate: Gate
) -> None:
    """P207: what is still to be exported is the ledger itself, so nothing is queued that could be lost."""
    desk = open_desk(CONFIG)
    path = ledger_path(desk.root, "default", None)
    folder = path.parent / "exports"
    async with desk.client() as client:
        known = await flood(desk, client, CALLS)
        head = check_all_there(desk, known)
        assert read_manifest(folder) is None
        gate.opened.set()
        gate.wait_for(made=1)
        manifest = read_manifest(folder)
        assert manifest is not None
        assert manifest.head.sequence == head
        assert check_exports(path) == []
        gate.opened.clear()
        known |= await flood(desk, client, LATER)
    desk.server.drain()  # ends with entries that no export shows yet
    gate.opened.set()

    again = open_desk(CONFIG)
    async with again.client() as client:
        await again.call(client, "get_memory_state")
        gate.wait_for(made=2)
    again.server.drain()
    assert check_exports(path) == []
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.head.sequence == check_all_there(again, known)
