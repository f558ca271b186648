"""What an entry in a host's file says of the server: its command, or its address and the variable of its token."""

from __future__ import annotations

import ipaddress
import shlex
from typing import TYPE_CHECKING

from store.errors import ConfigError

from ..identity import launch_identity
from ..settings import Settings
from .own_command import own_command

if TYPE_CHECKING:
    from ..hosts.launch import Http, Launch, Stdio
    from ..hosts.table import Host

DEFAULT_VARIABLE = "DESKBOOK_TOKEN"
"""The variable that a host reads its token from, unless the config or the command line names one."""


def stdio_launch(settings: Settings) -> Stdio:
    """The command that serves what this shell would serve, whole: a host hands on none of its variables.

    Raises ConfigError for an agent that `serve` would refuse.
    """
    from ..hosts.launch import Stdio

    identity = launch_identity(settings)
    program, *words = own_command()
    words += ["serve", *_config(settings)]
    if settings.config is not None or settings.agent is not None:
        words += ["--agent", identity.agent]
    words += _root(settings)
    if settings.set_at_launch("store.strategy"):
        words += ["--strategy", settings.store.strategy]
    for word in (program, *words):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise ConfigError(f"{word!r} is no text that a file can hold.", field="install") from None
    return Stdio(program, tuple(words))


def http_launch(settings: Settings, url: str | None, token_env: str | None, *, open_server: bool) -> Http:
    """The address of the config's server, and where the agent's token is; raises ConfigError."""
    from ..hosts.launch import Http

    identity = launch_identity(settings)
    address = _served_at(settings) if url is None else checked_url(url)
    if open_server:
        if token_env is not None:
            raise ConfigError("--no-token and --token-env exclude each other.", field="--no-token")
        return Http(address, None)
    if token_env is not None:
        return Http(address, checked_variable(token_env))
    configured = settings.agents.get(identity.agent)
    return Http(address, (configured and configured.token_env) or DEFAULT_VARIABLE)


def refuse_http_options(url: str | None, token_env: str | None, *, open_server: bool) -> None:
    """Raise ConfigError for an option that says nothing of a server on stdio."""
    for option, given in (("--url", url), ("--token-env", token_env), ("--no-token", open_server or None)):
        if given is not None:
            raise ConfigError(f"{option} goes with --transport http.", field=option)


def http_steps(row: Host, launch: Launch, settings: Settings) -> list[str]:
    """What has to be done before the host's first call over HTTP; nothing for stdio."""
    from ..hosts.launch import Http

    if not isinstance(launch, Http):
        return []
    agent = launch_identity(settings).agent
    at = [*_config(settings), *_root(settings)]
    program = own_command()
    serve = [*program, "serve", *at, "--transport", "http"]
    if launch.variable is None:
        # Without tokens the server has to be told whom everybody is.
        named = ["--agent", agent] if settings.config is not None else []
        return [f"start the server: {shlex.join([*serve, *named])}"]
    start = f"start the server: {shlex.join(serve)}"
    configured = settings.agents.get(agent)
    take = (
        f"paste it when {row.title} asks for it"
        if row.inputs
        else f"set {launch.variable} to it for {row.title}"
    )
    if configured is not None and configured.token_env == launch.variable:
        return [f"set {launch.variable} to a token for the server, and {take}", start]
    return [f"make a token: {shlex.join([*program, 'token', 'new', agent, *at])}", take, start]


def _config(settings: Settings) -> list[str]:
    return [] if settings.config is None else ["--config", str(settings.config)]


def _root(settings: Settings) -> list[str]:
    return ["--root", str(settings.store.root)] if settings.set_at_launch("store.root") else []


def _served_at(settings: Settings) -> str:
    """The address under which a client on this machine reaches the server of the config."""
    host, port = settings.http.host, settings.http.port
    if port == 0:
        raise ConfigError(
            "The config leaves the port open.", field="http.port", hint="Name the address with --url."
        )
    scheme = "http" if settings.http.tls_cert is None else "https"
    try:
        numeric = ipaddress.ip_address(host)
    except ValueError:
        return f"{scheme}://{host}:{port}/mcp"
    if numeric.is_unspecified:
        numeric = ipaddress.ip_address("127.0.0.1" if numeric.version == 4 else "::1")
    return f"{scheme}://{f'[{numeric}]' if numeric.version == 6 else numeric}:{port}/mcp"


def checked_url(url: str) -> str:
    """An address that holds no secret, as it was given; raises ConfigError."""
    from pydantic import TypeAdapter, ValidationError

    from ..sections import URL, Url

    try:
        told: str = TypeAdapter(Url).validate_python(url)
    except ValidationError:
        raise ConfigError(f"--url is not {URL}.", field="--url") from None
    if "?" in told or "#" in told:
        # Where a query stands, so may a token, and none is ever written.
        raise ConfigError("--url has a query or fragment; allowed: an address without.", field="--url")
    return told


def checked_variable(variable: str) -> str:
    """The name of a variable, as it was given; raises ConfigError."""
    from pydantic import TypeAdapter, ValidationError

    from ..sections import VARIABLE, Variable

    try:
        told: str = TypeAdapter(Variable).validate_python(variable)
    except ValidationError:
        # What was given may be the token itself, so it is not repeated.
        raise ConfigError(f"--token-env is not {VARIABLE}.", field="--token-env") from None
    return told
