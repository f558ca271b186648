"""What an entry in a host's file says of the server: its command, or its address and the variable of its token."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from store.errors import ConfigError

from ..addresses import served_at, with_scheme
from ..identity import launch_identity
from ..settings import Settings
from ..token_variables import agent_word, token_variable
from ..typed import place_words
from .own_command import own_command

if TYPE_CHECKING:
    from ..hosts.launch import Http, Launch, Stdio
    from ..hosts.table import Host


def stdio_launch(settings: Settings) -> Stdio:
    """The command that serves what this shell would serve, whole: a host hands on none of its variables.

    Raises ConfigError for an agent that `serve` would refuse.
    """
    from ..hosts.launch import Stdio

    identity = launch_identity(settings)
    program, *words = own_command()
    config, root = _by_option(settings)
    words += ["serve", *config]
    if settings.config is not None or settings.agent is not None:
        words += ["--agent", identity.agent]
    words += root
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
    agent = agent_word(settings, identity.agent)
    if open_server:
        if token_env is not None:
            raise ConfigError("--no-token and --token-env exclude each other.", field="--no-token")
        return Http(address, None, agent)
    if token_env is not None:
        return Http(address, checked_variable(token_env), agent)
    return Http(address, token_variable(settings, identity.agent), agent)


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
    at = place_words(settings)
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


def _by_option(settings: Settings) -> tuple[list[str], list[str]]:
    """The words of --config and those of --root."""
    words = place_words(settings)
    split = 0 if settings.config is None else 2
    return words[:split], words[split:]


def _served_at(settings: Settings) -> str:
    address = served_at(settings.http)
    if address is None:
        raise ConfigError(
            "The config leaves the port open.", field="http.port", hint="Name the address with --url."
        )
    return address


def checked_url(url: str) -> str:
    """An address that holds no secret, as it was given; raises ConfigError."""
    from pydantic import TypeAdapter, ValidationError

    from ..section_values import URL
    from ..sections import Url

    try:
        told: str = TypeAdapter(Url).validate_python(url)
    except ValidationError:
        meant = with_scheme(url)
        if meant is not None:
            raise ConfigError(
                "--url does not begin with http:// or https://.",
                field="--url",
                hint=f"Write http:// in front: --url {meant}",
            ) from None
        raise ConfigError(f"--url is not {URL}.", field="--url") from None
    if "?" in told or "#" in told:
        # Where a query stands, so may a token, and none is ever written.
        raise ConfigError("--url has a query or fragment; allowed: an address without.", field="--url")
    return told


def checked_variable(variable: str) -> str:
    """The name of a variable, as it was given; raises ConfigError."""
    from pydantic import TypeAdapter, ValidationError

    from ..section_values import VARIABLE
    from ..sections import Variable

    try:
        told: str = TypeAdapter(Variable).validate_python(variable)
    except ValidationError:
        # What was given may be the token itself, so it is not repeated.
        raise ConfigError(f"--token-env is not {VARIABLE}.", field="--token-env") from None
    return told
