"""pydantic-ai: the tools of its MCPToolset, called as its agent would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp.client.transports import SSETransport, StdioTransport
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from story import Connection, tell


class Hands:
    def __init__(self, toolset: MCPToolset[None]) -> None:
        self.toolset = toolset
        self.context = RunContext(deps=None, model=TestModel(), usage=RunUsage())

    async def tools(self) -> list[str]:
        return list(await self.toolset.get_tools(self.context))

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        offered = (await self.toolset.get_tools(self.context))[tool]
        checked = offered.args_validator.validate_python(arguments)
        try:
            shown = await self.toolset.call_tool(tool, checked, self.context, offered)
        except ModelRetry as refusal:
            return refusal.message
        return shown if isinstance(shown, str) else json.dumps(shown)

    async def read(self, uri: str) -> str:
        return str(await self.toolset.read_resource(uri))


def toolset(to: Connection) -> MCPToolset[None]:
    if to["transport"] == "stdio":
        return MCPToolset(StdioTransport(command=to["command"], args=to["args"], keep_alive=False))
    if to["transport"] == "sse":
        return MCPToolset(SSETransport(to["url"], headers=to["headers"]))
    return MCPToolset(to["url"], headers=to["headers"])


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with toolset(to) as opened:
        yield Hands(opened)


if __name__ == "__main__":
    tell(connect)
