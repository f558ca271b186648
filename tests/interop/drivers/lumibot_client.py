"""lumibot: an agent's tools over MCP, each call with a session of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lumibot.components.agents import MCPServer
from lumibot_desk import Desk
from story import Connection, tell


class Hands:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def tools(self) -> list[str]:
        return self.desk.offered()

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return await self.desk.call(tool, arguments)

    async def read(self, _uri: str) -> None:
        return None


@asynccontextmanager
async def connect(to: Connection) -> AsyncIterator[Hands]:
    how: dict[str, Any] = {"name": "deskbook", "exposed_tools": to["expected"]}
    if to["transport"] == "stdio":
        how |= {"command": to["command"], "args": to["args"]}
    else:
        how |= {"url": to["url"], "headers": to["headers"], "transport": "streamable_http"}
    yield Hands(Desk(MCPServer(**how)))


if __name__ == "__main__":
    tell(connect)
