"""What becomes of calls that find no place: told at once, and on record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from server.fairness import Turns

if TYPE_CHECKING:
    from conftest import InMemoryDesk

pytestmark = pytest.mark.anyio


async def test_a_change_that_finds_no_place_is_told_so_and_recorded(desk: InMemoryDesk) -> None:
    places = desk.server._dispatch._waiters = Turns(1, most_waiting=1)
    async with desk.client() as client:
        await desk.call(client, "remember", text="first")
        async with anyio.create_task_group() as tasks, places.turn("somebody else"):
            tasks.start_soon(desk.call, client, "remember")
            while not places._waiting:
                await anyio.lowlevel.checkpoint()
            told = await desk.refused(client, "remember", text="second")
            assert (told["code"], told["stored"], told["retryable"]) == ("too_many_waiting", "no", True)
            tasks.cancel_scope.cancel()
    desk.server._dispatch.drain()
    (entry,) = desk.entries("call.failed")
    assert json.loads(entry.content) == {"tool": "remember", "code": "too_many_waiting", "count": 1}
    assert not places.busy()
