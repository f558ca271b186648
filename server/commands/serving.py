"""serve: an MCP server, for one agent on stdio or for many over HTTP."""

from __future__ import annotations

import gc
import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from store.errors import ConfigError

from ..addresses import is_loopback
from ..identity import Identity, launch_identity
from ..pipes import claim_standard_streams
from ..reviewers import refuse_in_server
from ..settings import Settings, load_settings
from ..tokens import Tokens, agents_of, token_path
from ..typed import hints_with_place
from .place import ConfigOption, RootOption, RunOption, StrategyOption


class Transport(StrEnum):
    """The transports a server can speak."""

    STDIO = "stdio"
    HTTP = "http"


def serve(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option(help="The agent of the config to serve.")] = None,
    transport: Annotated[Transport, typer.Option(help="How clients connect.")] = Transport.STDIO,
    host: Annotated[str | None, typer.Option(help="HTTP: the address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="HTTP: the port; 0 takes a free one.")] = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning, error or critical.")] = None,
) -> None:
    """Serve agents over MCP: one on stdio, where a host starts this, or many over HTTP, each by its token."""
    flags = {
        "root": None if root is None else str(root),
        "strategy": strategy,
        "run": run,
        "agent": agent,
        "log_level": log_level,
        "host": host,
        "port": port,
    }
    if transport is Transport.HTTP:
        over_http = load_settings(config=config, flags=flags, environ=os.environ)
        with hints_with_place(over_http):
            refuse_in_server(over_http, os.environ)
            _serve_http(over_http)
        return
    for option, given in (("--host", host), ("--port", port)):
        if given is not None:
            raise ConfigError(
                f"{option} is for --transport http.", field=option, hint="Leave it away for stdio."
            )
    watched = sys.stdin.isatty()
    # From here on a stray print of any library, also while it is imported, cannot reach the client.
    pipes = claim_standard_streams()
    settings = load_settings(config=config, flags=flags, environ=os.environ)
    with hints_with_place(settings):
        refuse_in_server(settings, os.environ)
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


def _serve_http(settings: Settings) -> None:
    agents = agents_of(settings)
    tokens = Tokens(token_path(settings.store.root), agents, os.environ)
    identities = {name: launch_identity(settings, name) for name in agents}
    launched = _launched(settings, identities, tokens)
    for name, agent in agents.items():
        if agent.token_env in tokens.missing_variables():
            typer.echo(f"deskbook: {agent.token_env} is not set: agent {name} has no token from it", err=True)
    gc.disable()
    from ..http.hosting import host_http
    from ..http.serving import Listening

    gc.enable()

    def announce(address: str) -> None:
        typer.echo(f"deskbook: listening on {address}", err=True)
        if tokens.required:
            typer.echo("deskbook: every request needs a bearer token", err=True)
            if without := [name for name in identities if not tokens.lets_in(name)]:
                typer.echo(f"deskbook: no token lets in {', '.join(without)}", err=True)
            if not is_loopback(settings.http.host) and settings.http.tls_cert is None:
                typer.echo("deskbook: without TLS, tokens can be read on the way", err=True)
        elif launched is not None:
            typer.echo(
                f"deskbook: no token was ever made: everybody on this machine is {launched.agent}", err=True
            )

    host_http(settings, Listening(settings.http, tokens, identities, launched), announce=announce)


def _launched(settings: Settings, identities: dict[str, Identity], tokens: Tokens) -> Identity | None:
    """Who was named at the launch, or is the only one there is."""
    if settings.agent is not None or settings.config is None or len(identities) == 1:
        return launch_identity(settings)
    if not tokens.required:
        raise ConfigError(
            f"The config {settings.config} names several agents, and no token tells them apart.",
            field="agent",
            hint="Make one for each with `deskbook token new AGENT`, or serve one of them: --agent NAME.",
        )
    return None
