"""A tiny server for the stdio tests: run as a script with the repository root as its first argument."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

sys.path.insert(0, sys.argv[1])

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, Resource, TextContent, Tool

from server import exchange, sdk, stdio
from server.pipes import claim_standard_streams

TOOLS = ("echo", "bad_result", "bytes_result", "big", "hold", "stuck", "signal", "shout", "crash", "ask")


def text(value: str, **structured: Any) -> CallToolResult:
    content = [TextContent(type="text", text=value)]
    return CallToolResult(content=content, structured_content=structured or None)


def described(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!a}: {described(item)}" for key, item in value.items()) + "}"
    shown = ascii(value)
    return f"{type(value).__name__} {shown}" if len(shown) < 80 else f"{type(value).__name__} of {len(shown)}"


def read_fifo(path: str) -> str:
    """Blocks until the test opens the other end, then until it closes it."""
    return Path(path).read_text()


def signal_while_the_loop_waits(path: str, signum: int) -> str:
    """Takes a signal in a thread of its own, when the test says so, and goes on until the test closes the pipe."""
    with Path(path).open() as told:
        told.readline()
        signal.pthread_kill(threading.get_ident(), signum)
        return told.read()


class Desk(MCPServer[Any]):
    async def list_tools(self) -> list[Tool]:
        schema = {"type": "object", "properties": {}}
        return [Tool(name=name, input_schema=schema) for name in TOOLS]

    async def list_resources(self) -> list[Resource]:
        raise RuntimeError("secret in the exception")

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Sequence[Any] | CallToolResult | dict[str, Any]:
        if name == "echo":
            return text(described(arguments))
        if name == "bad_result":
            return text("lone \ud800 here", number=float("nan"), far=float("inf"), low=["\udfff"])
        if name == "bytes_result":
            return CallToolResult(content=[], _meta={"raw": b"\xff\xfe"})
        if name == "big":
            return text("x" * int(arguments["size"]))
        if name == "hold":
            return text(await anyio.to_thread.run_sync(read_fifo, arguments["fifo"], abandon_on_cancel=True))
        if name == "stuck":
            return text(await anyio.to_thread.run_sync(read_fifo, arguments["fifo"]))
        if name == "signal":
            work = signal_while_the_loop_waits, arguments["fifo"], arguments["signum"]
            return text(await anyio.to_thread.run_sync(*work, abandon_on_cancel=True))
        if name == "shout":
            shout()
            return text("done")
        if name == "ask":
            assert context is not None
            await context.session.send_ping()
            return text("answered")
        raise RuntimeError("secret in the exception")


def shout() -> None:
    print("a stray print", flush=True)  # noqa: T201
    sys.stdout.write("half a line")
    sys.stdout.flush()
    os.write(1, b"bytes straight to descriptor 1\n")
    os.system("echo a child process")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    logging.getLogger("noisy").debug("debug line")
    logging.getLogger("noisy").error("error line")


def tell(line: str) -> None:
    os.write(2, line.encode() + b"\n")


async def fail_at_first(
    server: MCPServer[Any], inbound: sdk.Inbound, outbound: sdk.Outbound, *, state: Any
) -> None:
    exchange.serve_streams = sdk.serve_streams
    await inbound.receive()
    raise RuntimeError("the loop broke")


@asynccontextmanager
async def lifespan(_desk: MCPServer[Any]) -> AsyncIterator[None]:
    tell("lifespan entered")
    yield
    tell("lifespan left")


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("root")
    asked.add_argument("--level", default="WARNING")
    asked.add_argument("--patience", type=float)
    asked.add_argument("--stop-patience", type=float)
    asked.add_argument("--fail-at-first", action="store_true")
    options = asked.parse_args()
    pipes = claim_standard_streams()
    sys.stdout.write("printed before serving\n")
    sdk.log_to_stderr(logging.getLevelNamesMapping()[options.level])
    if options.patience is not None:
        stdio.EOF_PATIENCE = stdio.STOP_PATIENCE = options.patience
    if options.stop_patience is not None:
        stdio.STOP_PATIENCE = options.stop_patience
    if options.fail_at_first:
        exchange.serve_streams = fail_at_first
    desk = Desk("desk", version="1", lifespan=lifespan)
    sdk.drop_idle_tracing(desk)

    async def serve() -> None:
        await stdio.serve_stdio(desk, on_drain=lambda: tell("drained"), max_frame_bytes=200_000, pipes=pipes)

    tell("ready")
    anyio.run(serve)
    tell("returned")
    stdio.exit_despite_threads()


if __name__ == "__main__":
    main()
