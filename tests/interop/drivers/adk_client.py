"""google-adk: the tools of its McpToolset, run as its flow would; it reads resources by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools.mcp_tool import (
    McpToolset,
    SseConnectionParams,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.adk.tools.tool_context import ToolContext
from mcp import StdioServerParameters
from story import Connection, joined, tell

NAMES = {"memory://state": "state"}


class Hands:
    def __init__(self, toolset: McpToolset, tools: list[Any], context: ToolContext) -> None:
        self.toolset = toolset
        self.offered = {tool.name: tool for tool in tools}
        self.context = context

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        shown = await self.offered[tool].run_async(args=arguments, tool_context=self.context)
        return "".join(block["text"] for block in shown["content"])

    async def read(self, uri: str) -> str:
        return joined(await self.toolset.read_resource(NAMES[uri]))


def parameters(to: Connection) -> Any:
    if to["transport"] == "stdio":
        server = StdioServerParameters(command=to["command"], args=to["args"])
        return StdioConnectionParams(server_params=server, timeout=60)
    kind = StreamableHTTPConnectionParams if to["transport"] == "http" else SseConnectionParams
    return kind(url=to["url"], headers=to["headers"])


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    service = InMemorySessionService()
    session = await service.create_session(app_name="desk", user_id="trader")
    invocation = InvocationContext(
        session_service=service, invocation_id="call-1", agent=LlmAgent(name="trader"), session=session
    )
    toolset = McpToolset(connection_params=parameters(to))
    try:
        yield Hands(toolset, await toolset.get_tools(), ToolContext(invocation))
    finally:
        await toolset.close()


if __name__ == "__main__":
    tell(connect)
