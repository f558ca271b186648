"""A Lumibot agent's tools, made by its own agent manager for a strategy that is only a name."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from lumibot.components.agents import MCPServer
from lumibot.components.agents.manager import AgentManager, _iter_timestamp_candidates
from lumibot.components.agents.runtime import _tool_error_payload


class Desk:
    """The tools that an agent with this server is given, Lumibot's own among them."""

    def __init__(self, server: MCPServer, *, backtesting: bool = False) -> None:
        strategy = SimpleNamespace(
            is_backtesting=backtesting, parameters={}, logger=None, log_message=lambda *_words, **_how: None
        )
        manager = AgentManager(strategy)
        # A runtime is what calls the model. There is none here.
        agent = manager.create(name="trader", mcp_servers=[server], _runtime=object())
        self.bound = agent._ensure_bound_tools()

    def offered(self) -> list[str]:
        """The tools that came from a server."""
        return [tool.name for tool in self.bound if tool.source == "mcp"]

    def own(self) -> list[str]:
        """The tools that Lumibot brought itself."""
        return [tool.name for tool in self.bound if tool.source != "mcp"]

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text that the model would be shown."""
        try:
            result = await asyncio.to_thread(self._bound(tool).function, **arguments)
        except Exception as refusal:  # noqa: BLE001 - what the model is shown, whatever was raised
            return json.dumps(_tool_error_payload(tool, arguments, refusal))
        return "".join(block["text"] for block in result["content"])

    async def late(self, tool: str, arguments: dict[str, Any], now: datetime) -> list[str]:
        """What in a reply Lumibot would warn of as coming from after the simulated time."""
        result = await asyncio.to_thread(self._bound(tool).function, **arguments)
        return [f"{tool}: {path}" for path, _raw, time in _iter_timestamp_candidates(result) if time > now]

    def _bound(self, name: str) -> Any:
        (bound,) = [tool for tool in self.bound if tool.name == name]
        return bound
