"""openai-agents: its function tools in strict mode, called as its runner would call them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.mcp import MCPServer, MCPServerSse, MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext
from story import Connection, joined, tell


class Hands:
    def __init__(self, server: MCPServer, tools: dict[str, FunctionTool]) -> None:
        self.server = server
        self.offered = tools

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        text = json.dumps(arguments)
        context = ToolContext(None, tool_name=tool, tool_call_id="call-1", tool_arguments=text)
        shown = await self.offered[tool].on_invoke_tool(context, text)
        return str(shown["text"] if isinstance(shown, dict) else shown)

    async def read(self, uri: str) -> str:
        return joined((await self.server.read_resource(uri)).contents)


def server(to: Connection) -> MCPServer:
    if to["transport"] == "stdio":
        return MCPServerStdio(params={"command": to["command"], "args": to["args"]})
    kind = MCPServerStreamableHttp if to["transport"] == "http" else MCPServerSse
    return kind(params={"url": to["url"], "headers": to["headers"]})


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with server(to) as opened:
        tools = await MCPUtil.get_function_tools(opened, True, RunContextWrapper(None), Agent("trader"))
        yield Hands(opened, {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)})


if __name__ == "__main__":
    tell(connect)
