"""One agent's desk: a real MCP client on a stdio server process of its own, under the demo's clock."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from mcp import MCPError, StdioServerParameters, stdio_client
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from store.errors import DeskbookError

from .place import DemoPlace
from .strategy import Reply, ToolCall

T = TypeVar("T")
Watcher: TypeAlias = Callable[[ToolCall, Reply], None]

CALL_SECONDS = 60.0
LOG_LINES_SHOWN = 12
_CLOSE = time(21, 0, tzinfo=UTC)  # 16:00 in New York, 17:00 in its summer: at the close or after it, all year
_PACKAGES = Path(__file__).resolve().parents[2]


class DemoFailed(DeskbookError):
    """A step of the demo went wrong; the message says which call, and what the server answered."""

    code = "demo_failed"


@dataclass(slots=True)
class DemoClock:
    """The time that calls carry: 21:00 UTC of the day and a second more for each call.

    Before `begin` and after `leave` calls carry none: a live desk reads the wall clock, a run its own clock.
    """

    _now: datetime | None = field(default=None)

    def begin(self, day: date) -> None:
        """Go to the close of `day`."""
        self._now = datetime.combine(day, _CLOSE)

    def leave(self) -> None:
        """Carry no time from here on."""
        self._now = None

    def tick(self) -> str | None:
        """The next call's time, ISO 8601; None when it carries none."""
        if self._now is None:
            return None
        self._now += timedelta(seconds=1)
        return self._now.isoformat()


@dataclass(slots=True)
class AgentDesk:
    """Calls tools as one agent and fails loudly on the first error; `calls` counts them, `told` hears of each."""

    agent: str
    name: str
    client: Client
    clock: DemoClock
    log: Path
    calls: int = 0
    told: Watcher | None = None

    async def play(self, turn: Generator[ToolCall, Reply, T], model_call: str) -> T:
        """Drive one turn of an agent to its end: make each call it asks for and send it the reply."""
        try:
            wanted = next(turn)
            while True:
                wanted = turn.send(await self.call(wanted.tool, wanted.arguments, model_call))
        except StopIteration as end:
            result: T = end.value
            return result

    async def call(self, tool: str, arguments: Mapping[str, Any], model_call: str) -> Reply:
        """Call one tool; DemoFailed when it is refused or fails, MCPError when the server is gone."""
        result, now = await self._send(tool, arguments, model_call)
        if result.is_error:
            sent = json.dumps(dict(arguments), ensure_ascii=False, default=str)[:400]
            raise DemoFailed(
                f"{self.agent}'s {tool} at {now or 'its own time'} failed: {_text(result)}\n  sent: {sent}",
                hint=f"The server's log is {self.log}.",
            )
        reply: Reply = result.structured_content or json.loads(_text(result))
        if self.told is not None:
            self.told(ToolCall(tool, arguments), reply)
        return reply

    async def refused(self, tool: str, arguments: Mapping[str, Any], model_call: str) -> Reply:
        """Call a tool that must refuse, and give the error it tells; DemoFailed when it serves the call."""
        result, now = await self._send(tool, arguments, model_call)
        if not result.is_error:
            raise DemoFailed(f"{self.agent}'s {tool} at {now} was served, and must not be: {_text(result)}")
        told: Reply = json.loads(_text(result))
        return told

    async def _send(
        self, tool: str, arguments: Mapping[str, Any], model_call: str
    ) -> tuple[CallToolResult, str | None]:
        self.calls += 1
        now = self.clock.tick()
        labels: Any = {
            "deskbook/session_id": f"{self.name}/{self.agent}",
            "deskbook/model_call_id": model_call,
        }
        if now is not None:
            labels["deskbook/now"] = now
        return await self.client.call_tool(tool, dict(arguments), CALL_SECONDS, meta=labels), now


@asynccontextmanager
async def open_desk(
    place: DemoPlace, agent: str, clock: DemoClock, told: Watcher | None = None
) -> AsyncGenerator[AgentDesk]:
    """Start `deskbook serve` for `agent` on stdio and connect to it; its stderr goes to the place's log.

    Raises DemoFailed (in an exception group, as the SDK's task groups do) when the server does not start or
    goes away.
    """
    server = StdioServerParameters(
        command=sys.executable,
        args=serve_arguments(place, agent),
        env=server_environment(),
        cwd=place.root,
    )
    log = place.log(agent)
    with os.fdopen(
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
    ) as errors:
        try:
            async with Client(stdio_client(server, errlog=errors)) as client:
                yield AgentDesk(agent, place.name, client, clock, log, told=told)
        except* MCPError as lost:
            raise DemoFailed(f"{agent}'s server is lost: {_first(lost)}\n{_tail(log)}") from lost


def command_arguments(place: DemoPlace, *words: str) -> list[str]:
    """The interpreter's arguments for a deskbook command on the demo's ledger.

    `-P` keeps a folder named `server` in the working directory from being run instead.
    """
    return ["-P", "-m", "server", *words, "--config", str(place.config)]


def serve_arguments(place: DemoPlace, agent: str) -> list[str]:
    """The interpreter's arguments for one agent's stdio server."""
    return [*command_arguments(place, "serve"), "--agent", agent]


def server_environment() -> dict[str, str]:
    """This process' environment without DESKBOOK_*, which would outrank the demo's config."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }
    paths = [str(_PACKAGES), own.get("PYTHONPATH", "")]
    return own | {"PYTHONPATH": os.pathsep.join(path for path in paths if path), "PYTHONUTF8": "1"}


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _first(group: BaseExceptionGroup[MCPError]) -> BaseException:
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n".join(f"  {line}" for line in (f"the end of {log}:", *lines))
