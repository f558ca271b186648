"""lumibot through the example that a user copies: its own tools replaced, and a clock that travels by headers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from datetime import datetime, timedelta
from typing import Any

from lumibot_desk import Desk


def example(path: str) -> Any:
    """The example as a user's copy of it: a module of its own."""
    spec = importlib.util.spec_from_file_location("lumibot_deskbook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def play(to: dict[str, Any]) -> dict[str, Any]:
    copied = example(to["example"])
    server = copied.deskbook(to["url"])
    first = datetime.fromisoformat(to["first"])
    copied.stamp(server, to["run"], first)
    desk = Desk(server, backtesting=True)
    seen: dict[str, Any] = {"tools": desk.offered(), "own": desk.own()}
    seen["early"] = await desk.call("remember", {"text": "Written early", "symbol": "AAPL"})
    now = first + timedelta(days=1)
    copied.stamp(server, to["run"], now)
    seen["later"] = await desk.call("remember", {"text": "Written a day later", "symbol": "AAPL"})
    seen["found"] = await desk.call("search_memory", {"query": "written", "symbol": "AAPL"})
    whole = {"response_format": "detailed"}
    seen["late"] = [
        *await desk.late("search_memory", {"query": "written", **whole}, now),
        *await desk.late("get_memory", {"memory_id": json.loads(seen["early"])["id"], **whole}, now),
        *await desk.late("get_memory_state", {}, now),
    ]
    seen["late_for_the_first"] = await desk.late("get_memory_state", {}, first)
    copied.stamp(server, to["run"], first)
    seen["back"] = await desk.call("remember", {"text": "Written in the past", "symbol": "AAPL"})
    return seen


if __name__ == "__main__":
    print("\n" + json.dumps(asyncio.run(play(json.load(sys.stdin)))))  # noqa: T201 - what a driver is run for
