"""What every client does once it is connected, whoever wrote it, and how it tells what it saw.

Imported by the drivers beside it, which run in environments of their own: nothing but the standard library here,
and nothing of Deskbook.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Connection = dict[str, Any]


class Hands(Protocol):
    """One connected client: what a framework would do for a model, without the model."""

    async def tools(self) -> list[str]:
        """The names of the tools, as the framework offers them."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """What a model would be shown of a call, whether it worked or not."""

    async def read(self, uri: str) -> str | None:
        """The text of a resource; None where the client reads none."""


async def play(hands: Hands) -> dict[str, Any]:
    """List, write, search, read the state, and be told of two mistakes."""
    seen: dict[str, Any] = {"tools": await hands.tools()}
    note = {"text": "Unicorn margins rise 目标价", "symbol": "aapl", "tags": ["margin", "unicorn"]}
    seen["written"] = await hands.call("remember", note)
    thesis = {"text": "Unicorns keep their margin", "symbol": "AAPL", "direction": "long"}
    seen["opened"] = await hands.call("open_thesis", thesis)
    seen["found"] = await hands.call("search_memory", {"query": "unicorn margins", "limit": 5})
    seen["read"] = await hands.read("memory://state")
    seen["state"] = await hands.call("get_memory_state", {})
    seen["missing"] = await hands.call("close_thesis", {"thesis_id": "ths_none", "result": "win"})
    seen["unknown"] = await hands.call("remember_risk_note", {"text": "A risk", "ticker": "AAPL"})
    return seen


def tell(connect: Callable[[Connection], AbstractAsyncContextManager[Hands]]) -> None:
    """Connect as the JSON on stdin says, play, and print what was seen as one line of JSON, the last."""

    async def visit() -> dict[str, Any]:
        async with connect(json.load(sys.stdin)) as hands:
            return await play(hands)

    print("\n" + json.dumps(asyncio.run(visit())))  # noqa: T201 - what a driver is run for


def joined(blocks: Any) -> str:
    """The text of content blocks."""
    return "".join(block.text for block in blocks)
