"""The first generation of the SDK, raw."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from story import Connection, joined, tell


class Hands:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return joined((await self.session.call_tool(tool, arguments)).content)

    async def read(self, uri: Any) -> str:
        return joined((await self.session.read_resource(uri)).contents)


def streams(to: Connection) -> Any:
    if to["transport"] == "stdio":
        return stdio_client(StdioServerParameters(command=to["command"], args=to["args"]))
    client = streamablehttp_client if to["transport"] == "http" else sse_client
    return client(to["url"], headers=to["headers"])


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    async with streams(to) as (incoming, outgoing, *_), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        yield Hands(session)


if __name__ == "__main__":
    tell(connect)
