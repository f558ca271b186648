"""autogen-ext: its McpWorkbench."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_ext.tools.mcp import (
    McpWorkbench,
    SseServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
)
from story import Connection, joined, tell


class Hands:
    def __init__(self, bench: McpWorkbench) -> None:
        self.bench = bench

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in await self.bench.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return str((await self.bench.call_tool(tool, arguments)).to_text())

    async def read(self, uri: str) -> str:
        return joined((await self.bench.read_resource(uri)).contents)


def parameters(to: Connection) -> Any:
    if to["transport"] == "stdio":
        return StdioServerParams(command=to["command"], args=to["args"], read_timeout_seconds=60)
    kind = StreamableHttpServerParams if to["transport"] == "http" else SseServerParams
    return kind(url=to["url"], headers=to["headers"])


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with McpWorkbench(parameters(to)) as bench:
        yield Hands(bench)


if __name__ == "__main__":
    tell(connect)
