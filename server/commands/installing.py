"""install and uninstall: the entry that lets a host start or call the server."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from store.errors import ConfigError

from ..near_miss import did_you_mean
from ..settings import Settings, load_settings
from .launching import http_launch, http_steps, refuse_http_options, stdio_launch
from .place import ConfigOption, RootOption, StrategyOption
from .screen import plain, say
from .serving import Transport

if TYPE_CHECKING:
    from ..hosts.files import Changed
    from ..hosts.launch import Launch
    from ..hosts.table import Host, Scope

DEFAULT_NAME = "deskbook"


class Reach(StrEnum):
    """For whom an entry stands."""

    USER = "user"
    PROJECT = "project"


HostArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST",
        help="claude-desktop, claude-code, cursor, vscode or codex; with --print also gemini-cli, opencode,"
        " windsurf or zed.",
    ),
]
NameOption = Annotated[str, typer.Option(help="The entry's name in the host's file.")]
ScopeOption = Annotated[
    Reach | None, typer.Option(help="The user's own file, or the current folder's; else the user's.")
]
FileOption = Annotated[Path | None, typer.Option(help="This file instead of the host's usual one.")]


def install(
    host: HostArgument,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option(help="The agent of the config to serve.")] = None,
    transport: Annotated[
        Transport, typer.Option(help="The host starts a server (stdio) or calls one (http).")
    ] = Transport.STDIO,
    root: RootOption = None,
    strategy: StrategyOption = None,
    url: Annotated[
        str | None, typer.Option(help="With http: the server's address; else the config's.")
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option(
            help="With http: the variable with the token; else the agent's token_env, else one named after the"
            " agent, such as DESKBOOK_TRADER_TOKEN; without a config DESKBOOK_TOKEN."
        ),
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="With http: an open server.")] = False,
    name: NameOption = DEFAULT_NAME,
    scope: ScopeOption = None,
    file: FileOption = None,
    printed: Annotated[bool, typer.Option("--print", help="Print the entry and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace another entry of that name.")] = False,
) -> None:
    """Put the server into a host's file, and say what to do next. A token is referred to, never written.

    The file keeps everything else that stands in it, and a copy of the old one is left beside it.
    """
    from ..hosts.documents import snippet

    row = host_named(host)
    check_name(name)
    flags = {"root": None if root is None else str(root), "strategy": strategy, "agent": agent}
    settings = load_settings(config=config, flags=flags, environ=os.environ)
    if transport is Transport.HTTP:
        launch: Launch = http_launch(settings, url, token_env, open_server=no_token)
    else:
        refuse_http_options(url, token_env, open_server=no_token)
        launch = stdio_launch(settings)
    if printed:
        typer.echo(snippet(row, launch, name), nl=False)
        typer.echo(f"# for {_usual_place(row, scope, file)}", err=True)
        if row.note:
            typer.echo(f"# {row.note}", err=True)
        return
    by_hand = f"Print the entry with --print and put it into {_usual_place(row, scope, file)} yourself."
    target, wanted = _target(row, scope, file, by_hand)
    changed, shared = _write(row, launch, name, target, wanted, force=force)
    _tell_install(changed, row, launch, name, target, settings)
    _tell_shared(shared, launch)


def uninstall(
    host: HostArgument,
    name: NameOption = DEFAULT_NAME,
    scope: ScopeOption = None,
    file: FileOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also an entry that starts another program.")
    ] = False,
) -> None:
    """Take the entry out of a host's file again, and leave everything else in it alone."""
    from ..hosts.documents import standing, uninstalled
    from ..hosts.entries import is_ours
    from ..hosts.files import change

    row = host_named(host)
    check_name(name)
    place = ".".join(row.path)
    by_hand = f'Take "{name}" under {place} out of {_usual_place(row, scope, file)} yourself.'
    target, wanted = _target(row, scope, file, by_hand)

    def edit(text: str) -> str:
        found = standing(text, row, name)
        if found is None:
            return text
        if not force and not is_ours(found):
            raise ConfigError(
                f'The entry "{name}" in {target} does not look like one of deskbook.',
                field="--name",
                hint="Name another with --name, or remove it all the same with --force.",
            )
        return uninstalled(text, row, name)

    changed = change(target, edit, private=wanted == "user")
    if changed.written is None:
        say(f'{plain(str(target))} holds no entry "{name}": nothing to remove')
        return
    say(f'removed the entry "{name}" from {_place(changed.written, target)}')
    _tell_backup(changed)
    say(f"next: restart {row.title}")


def _write(
    row: Host, launch: Launch, name: str, target: Path, scope: Scope, *, force: bool
) -> tuple[Changed, list[str]]:
    """Write the entry; gives what became of the file, and the other entries with the same variable."""
    from ..hosts.documents import installed, sharing, standing
    from ..hosts.entries import entry_of
    from ..hosts.files import change
    from ..hosts.launch import Http

    entry = entry_of(row, launch, name)
    variable = launch.variable if isinstance(launch, Http) and row.inputs is None else None
    shared: list[str] = []

    def edit(text: str) -> str:
        if variable is not None:
            shared[:] = sharing(text, row, variable, name)
        found = standing(text, row, name)
        if found == entry:
            return text
        if found is not None and not force:
            raise ConfigError(
                f'{target} holds another entry "{name}" already.',
                field="--name",
                hint="Give this one another --name, or replace that one with --force.",
            )
        return installed(text, row, launch, name)

    return change(target, edit, private=scope == "user"), shared


def host_named(name: str) -> Host:
    """The host of that name; raises ConfigError."""
    from ..hosts.table import HOSTS

    if name not in HOSTS:
        raise ConfigError(
            f'There is no host "{name[:64]}"{did_you_mean(name, HOSTS)}.',
            field="HOST",
            hint=f"Known: {', '.join(HOSTS)}.",
        )
    return HOSTS[name]


def check_name(name: str) -> None:
    """Raise ConfigError for a name that an entry cannot have."""
    # What every host takes; Codex and Claude Code refuse anything else.
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ConfigError(
            f"--name is {name[:80]!r}; allowed: 1 to 64 letters, digits, hyphens and underscores of ASCII.",
            field="--name",
        )


def _scope(row: Host, scope: Reach | None) -> Scope:
    return row.scopes[0] if scope is None else scope.value


def _target(row: Host, scope: Reach | None, file: Path | None, by_hand: str) -> tuple[Path, Scope]:
    """The file to write, and for whom; raises ConfigError with `by_hand` for a host that is only printed."""
    from ..hosts.places import file_of

    if not row.writable:
        raise ConfigError(
            f"The file of {row.title} is not written by deskbook.",
            field="HOST",
            hint=by_hand,
        )
    if file is not None:
        if scope is not None:
            raise ConfigError("--scope and --file exclude each other.", field="--scope")
        return file.expanduser().absolute(), row.scopes[0]
    wanted = _scope(row, scope)
    return file_of(row, wanted, os.environ, Path.cwd()), wanted


def _usual_place(row: Host, scope: Reach | None, file: Path | None) -> str:
    from ..hosts.places import file_of

    if file is not None:
        return plain(str(file))
    return plain(str(file_of(row, _scope(row, scope), os.environ, Path.cwd())))


def _place(written: Path, target: Path) -> str:
    linked = "" if written == target else f" (where {target} leads)"
    return plain(f"{written}{linked}")


def _tell_install(
    changed: Changed, row: Host, launch: Launch, name: str, target: Path, settings: Settings
) -> None:
    if changed.written is None:
        say(f'already installed: {plain(str(target))} holds this entry "{name}"')
        return
    for folder in changed.made:
        say(f"made folder {plain(str(folder))}")
    say(f'wrote the entry "{name}" under {".".join(row.path)} in {_place(changed.written, target)}')
    _tell_backup(changed)
    for step in (*http_steps(row, launch, settings), f"restart {row.title}"):
        say(f"next: {plain(step)}")


def _tell_shared(shared: list[str], launch: Launch) -> None:
    from ..hosts.launch import Http

    if not shared or not isinstance(launch, Http):
        return
    others = ", ".join(f'"{plain(other)}"' for other in shared)
    say(
        f"warning: {others} in this file takes its token from {launch.variable} too, so both call as the same "
        "agent. Give this entry a variable of its own: --token-env NAME --force."
    )


def _tell_backup(changed: Changed) -> None:
    if changed.backup is not None:
        say(f"the file as it was: {plain(str(changed.backup))}")
