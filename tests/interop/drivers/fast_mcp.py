"""fastmcp's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from story import Connection, joined, tell


class Hands:
    def __init__(self, client: Client[Any]) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        try:
            return joined((await self.client.call_tool(tool, arguments)).content)
        except ToolError as refusal:
            return str(refusal)

    async def read(self, uri: str) -> str:
        return joined(await self.client.read_resource(uri))


def transport(to: Connection) -> Any:
    if to["transport"] == "stdio":
        return StdioTransport(command=to["command"], args=to["args"], keep_alive=False)
    kind = StreamableHttpTransport if to["transport"] == "http" else SSETransport
    return kind(to["url"], headers=to["headers"])


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with Client(transport(to)) as client:
        yield Hands(client)


if __name__ == "__main__":
    tell(connect)
