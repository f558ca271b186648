"""crewai-tools: the tools of its MCPServerAdapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters
from story import Connection, tell


class Hands:
    def __init__(self, tools: Any) -> None:
        self.offered = {tool.name: tool for tool in tools}

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        try:
            return str(await asyncio.to_thread(self.offered[tool].run, **arguments))
        except Exception as refusal:  # noqa: BLE001 - what the model is shown, whatever was raised
            return str(refusal)

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
    with MCPServerAdapter(server, connect_timeout=60) as tools:
        yield Hands(tools)


if __name__ == "__main__":
    tell(connect)
