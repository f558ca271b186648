"""serve: one MCP server for one agent on stdio."""

from __future__ import annotations

import gc
import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from ..identity import launch_identity
from ..pipes import claim_standard_streams
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
    watched = sys.stdin.isatty()
    # From here on a stray print of any library, also while it is imported, cannot reach the client.
    pipes = claim_standard_streams()
    settings = load_settings(config=config, flags=flags, environ=os.environ)
    identity = launch_identity(settings)
    if watched:
        typer.echo(
            "deskbook: waiting for an MCP client on stdin; a host starts this command. Ctrl-C ends it.",
            err=True,
        )
    # Half a second of imports that no other command should pay, and no garbage to collect in them.
    gc.disable()
    from ..hosting import host_stdio

    gc.enable()
    host_stdio(settings, identity, pipes)
