"""langchain-mcp-adapters: its LangChain tools, invoked as an agent's tool node would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.resources import get_mcp_resource
from langchain_mcp_adapters.tools import load_mcp_tools
from story import Connection, tell


class Hands:
    def __init__(self, session: Any, tools: list[BaseTool]) -> None:
        self.session = session
        self.offered = {tool.name: tool for tool in tools}

    async def tools(self) -> list[str]:
        return list(self.offered)

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        call = {"name": tool, "args": arguments, "id": "call-1", "type": "tool_call"}
        message = await self.offered[tool].ainvoke(call)
        return str(message.text)

    async def read(self, uri: str) -> str:
        (blob,) = await get_mcp_resource(self.session, uri)
        return str(blob.as_string())


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    how: dict[str, Any] = {"transport": {"http": "streamable_http"}.get(to["transport"], to["transport"])}
    keys = ("command", "args") if to["transport"] == "stdio" else ("url", "headers")
    how |= {key: to[key] for key in keys}
    async with MultiServerMCPClient({"deskbook": how}).session("deskbook") as session:
        yield Hands(session, await load_mcp_tools(session))


if __name__ == "__main__":
    tell(connect)
