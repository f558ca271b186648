"""smolagents with mcpadapt: its tools, called as its agents call them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import StdioServerParameters
from smolagents import MCPClient
from story import Connection, tell


class Hands:
    def __init__(self, tools: list[Any]) -> None:
        self.offered = {tool.name: tool for tool in tools}

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        try:
            shown = await asyncio.to_thread(self.offered[tool], **arguments)
        except Exception as refusal:  # noqa: BLE001 - what the model is shown, whatever was raised
            return str(refusal)
        return shown if isinstance(shown, str) else json.dumps(shown)

    async def read(self, _uri: str) -> None:
        return None


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    server: Any
    if to["transport"] == "stdio":
        server = StdioServerParameters(command=to["command"], args=to["args"])
    else:
        kind = {"http": "streamable-http", "sse": "sse"}[to["transport"]]
        server = {"url": to["url"], "headers": to["headers"], "transport": kind}
    with MCPClient(server, structured_output=True) as tools:
        yield Hands(tools)


if __name__ == "__main__":
    tell(connect)
