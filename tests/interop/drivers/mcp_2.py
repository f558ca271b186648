"""The second generation of the SDK, in the era it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from story import Connection, joined, tell


class Hands:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return joined((await self.client.call_tool(tool, arguments)).content)

    async def read(self, uri: str) -> str:
        return joined((await self.client.read_resource(uri)).contents)


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with AsyncExitStack() as stack:
        streams: Any
        if to["transport"] == "stdio":
            streams = stdio_client(StdioServerParameters(command=to["command"], args=to["args"]))
        elif to["transport"] == "http":
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=to["headers"]))
            streams = streamable_http_client(to["url"], http_client=http)
        else:
            streams = sse_client(to["url"], headers=to["headers"])
        client = await stack.enter_async_context(Client(streams, mode=to["mode"]))
        yield Hands(client)


if __name__ == "__main__":
    tell(connect)
