"""serve: one MCP server for one agent on stdio."""

from __future__ import annotations

import logging
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..identity import launch_identity
from ..settings import load_settings
from .place import ConfigOption, RootOption, RunOption, StrategyOption


class Transport(StrEnum):
    """The transports a server can speak."""

    STDIO = "stdio"


def serve(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option(help="The agent of the config to serve.")] = None,
    transport: Annotated[Transport, typer.Option(help="How clients connect.")] = Transport.STDIO,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error or critical.")] = None,
) -> None:
    """Serve one agent over MCP. A host starts this; stdout carries protocol frames only."""
    flags = {
        "root": None if root is None else str(root),
        "strategy": strategy,
        "run": run,
        "agent": agent,
        "log_level": log_level,
    }
    settings = load_settings(config=_absolute(config), flags=flags, environ=os.environ)
    identity = launch_identity(settings)
    if sys.stdin.isatty():
        typer.echo(
            "deskbook: waiting for an MCP client on stdin; a host starts this command. Ctrl-C ends it.",
            err=True,
        )
    # The SDK takes half a second to import, which no other command should pay.
    from ..sdk import drop_idle_tracing, log_to_stderr

    log_to_stderr(logging.getLevelNamesMapping()[settings.log.level])
    import anyio

    from ..app import DeskServer
    from ..stdio import serve_stdio

    server = DeskServer(settings, identity, transport=transport.value)
    drop_idle_tracing(server)

    async def run_server() -> None:
        await serve_stdio(server, on_drain=server.drain)

    anyio.run(run_server)


def _absolute(config: Path | None) -> Path | None:
    return None if config is None else config.absolute()
