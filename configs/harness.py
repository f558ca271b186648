# ruff: noqa: INP001 - an example beside the configs, not a package
"""Run one strategy against Deskbook, as a backtest or live, without a change to the strategy. An example to copy.

A strategy is a callable that is given a desk at each of its times. It never says what time it is or which run it
is in; that is said for it, beside each call, where the model that makes the calls cannot reach:

    async def strategy(desk: Desk) -> None:
        found = await desk.call("search_memory", query="AAPL earnings", symbol="AAPL")
        await desk.call("remember_decision", text=f"Skip AAPL on {desk.now:%Y-%m-%d}.", action="skip",
                        symbol="AAPL", retrieval_id=found["retrieval_id"])

    closes = [datetime(2026, 3, day, 16, tzinfo=ZoneInfo("America/New_York")) for day in (2, 3, 4)]
    anyio.run(backtest, strategy, Server(Path("backtest.toml"), "trader"), "run-1", closes)
    anyio.run(live, strategy, Server(Path("desk.toml"), "trader"), closes)

What a strategy raises, Refused too, leaves `backtest` and `live` in an exception group, as task groups do: catch
it with `except*`. A server that does not start, as with a wrong config or agent, is one plain NotStarted with the
server's own message. Needed are the packages `mcp` and `anyio`, and `deskbook` on the PATH or in `Server.command`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from mcp import StdioServerParameters, stdio_client
from mcp.client import Client
from mcp.client.stdio import get_default_environment
from mcp_types import TextContent

CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """How to start `deskbook serve` for one agent of a config; `environment` is added to a bare one."""

    config: Path
    agent: str
    command: tuple[str, ...] = ("deskbook",)
    environment: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """A call that Deskbook refused: `code`, `message`, `hint`, whether anything was `stored`, if `retryable`.

    `field` names what was wrong with the call, where it was something about the call.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(f"{told['code']}: {told['message']} {told['hint']}")
        self.code: str = told["code"]
        self.message: str = told["message"]
        self.hint: str = told["hint"]
        self.stored: str = told["stored"]
        self.retryable: bool = told["retryable"]
        self.field: str | None = told.get("field")


class NotStarted(Exception):
    """A server that ended before it answered; the message is the server's own."""


@dataclass(slots=True)
class Desk:
    """What a strategy is given: its time, and Deskbook's tools as one agent."""

    client: Client
    labels: dict[str, str]
    now: datetime = field(init=False)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its reply; raises Refused."""
        # The SDK's type of `meta` names only its own keys.
        labels: Any = dict(self.labels)
        result = await self.client.call_tool(tool, arguments, CALL_SECONDS, meta=labels)
        text = "".join(block.text for block in result.content if isinstance(block, TextContent))
        reply: dict[str, Any] = json.loads(text)
        if result.is_error:
            raise Refused(reply)
        return reply


Strategy: TypeAlias = Callable[[Desk], Awaitable[None]]


async def backtest(
    strategy: Strategy, server: Server, run: str, times: Iterable[datetime], harness: Server | None = None
) -> None:
    """Play the strategy at each time, all its calls taking that time, in a run of their own.

    Each call carries its time; with `harness`, an agent of profile harness, that one moves the run's clock and
    the strategy's calls carry none. The agents' clock must be simulated. Times rise and have an offset from UTC.
    """
    labels = {"deskbook/run": run}
    async with open_desk(server, labels) as desk:
        if harness is None:
            for now in _instants(times):
                desk.labels["deskbook/now"] = now.isoformat()
                await _turn(strategy, desk, now, server.agent)
            return
        async with open_desk(harness, labels) as clock:
            for now in _instants(times):
                await clock.call("advance_clock", now=now.isoformat())
                await _turn(strategy, desk, now, server.agent)


async def wait_until(now: datetime) -> None:
    """Sleep until a time; one that has passed is not waited for."""
    await anyio.sleep(max(0.0, (now - datetime.now(UTC)).total_seconds()))


async def live(
    strategy: Strategy,
    server: Server,
    times: Iterable[datetime],
    wait: Callable[[datetime], Awaitable[None]] = wait_until,
) -> None:
    """Play the strategy when each time has come, under the machine's clock; the agent's clock must be live.

    `wait` returns when a time has come: by default it sleeps, a test moves the clock on instead.
    """
    async with open_desk(server, {}) as desk:
        for now in _instants(times):
            await wait(now)
            await _turn(strategy, desk, now, server.agent)


@asynccontextmanager
async def open_desk(server: Server, labels: Mapping[str, str]) -> AsyncGenerator[Desk]:
    """Start the agent's server on stdio; every call carries the labels (`_meta` keys). Its stderr is ours.

    Raises NotStarted, alone and in no group, when this server, or one opened inside this one, does not start.
    """
    program, *words = server.command
    started = StdioServerParameters(
        command=program,
        args=[*words, "serve", "--config", str(server.config), "--agent", server.agent],
        env=dict(server.environment),
    )
    answered = False
    try:
        async with Client(stdio_client(started)) as client:
            answered = True
            yield Desk(client, dict(labels))
    except Exception as fault:
        told = _only(fault) if answered else await _ask_why(started)
        if isinstance(told, NotStarted):
            raise told from None
        raise


def _only(fault: BaseException) -> BaseException:
    """The one error that task groups wrapped, else the group."""
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    return fault


async def _ask_why(started: StdioServerParameters) -> NotStarted | None:
    """Start the server again for nobody, to hear why it did not start; None when this time it did."""
    environment = get_default_environment() | (started.env or {})
    try:
        done = await anyio.run_process([started.command, *started.args], check=False, env=environment)
    except OSError as fault:
        return NotStarted(f"{started.command} cannot be started: {fault.strerror}")
    said = done.stderr.decode(errors="replace").strip()
    return (
        NotStarted(said or f"{started.command} ended with code {done.returncode}")
        if done.returncode
        else None
    )


def _instants(times: Iterable[datetime]) -> Iterator[datetime]:
    for now in times:
        if now.utcoffset() is None:
            raise ValueError(f"{now} names no instant; write {now.isoformat()}+00:00, or with your offset.")
        yield now


async def _turn(strategy: Strategy, desk: Desk, now: datetime, agent: str) -> None:
    """One turn of the strategy, labelled as one model call, so that the ledger tells turns apart."""
    desk.now = now
    desk.labels["deskbook/model_call_id"] = f"{agent}/{now.astimezone(UTC).isoformat()}"
    await strategy(desk)
