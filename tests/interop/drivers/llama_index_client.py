"""llama-index-tools-mcp: the function tools of its McpToolSpec."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from llama_index.core.tools import FunctionTool
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from story import Connection, joined, tell


class Hands:
    def __init__(self, client: BasicMCPClient, tools: list[FunctionTool]) -> None:
        self.client = client
        self.offered = {str(tool.metadata.name): tool for tool in tools}

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return joined((await self.offered[tool].acall(**arguments)).raw_output.content)

    async def read(self, uri: Any) -> str:
        return joined((await self.client.read_resource(uri)).contents)


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    if to["transport"] == "stdio":
        client = BasicMCPClient(to["command"], args=to["args"])
    else:
        client = BasicMCPClient(to["url"], headers=to["headers"])
    yield Hands(client, await McpToolSpec(client=client).to_tool_list_async())


if __name__ == "__main__":
    tell(connect)
