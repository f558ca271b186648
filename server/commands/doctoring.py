"""doctor: what keeps a desk from being served, and what to do about it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from store.errors import ConfigError, DeskbookError

from ..identity import Identity, launch_identity
from ..settings import Settings, load_settings
from ..typed import place_words, with_place
from .installing import DEFAULT_NAME, Reach, check_name, host_named
from .launching import checked_url, checked_variable, stdio_launch
from .place import JsonOption
from .screen import one_line, say
from .wording import counted

if TYPE_CHECKING:
    from ..doctor.findings import Finding

LONGEST = 2_000


def doctor(
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST]",
            help="Look at the entry in this host's file, such as claude-desktop. The entry names config and agent.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A desk: its configuration file (desk.toml).")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="A desk: only this agent of the config.")] = None,
    root: Annotated[Path | None, typer.Option(help="A desk: the folder that holds the ledgers.")] = None,
    strategy: Annotated[str | None, typer.Option(help="A desk: the strategy whose ledger is meant.")] = None,
    run: Annotated[str | None, typer.Option(help="A desk: a run instead of the live ledger.")] = None,
    url: Annotated[
        str | None,
        typer.Option(help="Alone: a running HTTP server, such as http://127.0.0.1:8765/mcp."),
    ] = None,
    token_env: Annotated[
        str | None, typer.Option(help="With --url or HOST: the variable that holds the token.")
    ] = None,
    name: Annotated[str, typer.Option(help="With HOST: the entry's name in its file.")] = DEFAULT_NAME,
    scope: Annotated[
        Reach | None,
        typer.Option(help="With HOST: the user's own file, or the current folder's; else the user's."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="With HOST: this file instead of its usual one.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="A desk: make anew what is only derived from its ledgers.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the server as a host would, or call a running one, and explain what is wrong. Exit 1 when it is.

    It looks at a desk (--config, --agent, --root, --strategy, --run), at the entry of a HOST (--name, --scope,
    --file, --token-env), or at a running server (--url, --token-env). Nothing is changed and nothing recorded, but
    with --repair: then projections and caches that are wrong are made anew, never a ledger. The network is used with
    --url and for an HTTP entry alone.
    """
    of_desk: dict[str, object] = {
        "--config": config,
        "--agent": agent,
        "--root": root,
        "--strategy": strategy,
    }
    of_desk |= {"--run": run, "--repair": repair or None}
    of_entry = {"--scope": scope, "--file": file, "--name": None if name == DEFAULT_NAME else name}
    variable = None if token_env is None else checked_variable(token_env)
    _check_choice(url, host, variable, of_desk, of_entry)
    if url is not None:
        found = _of_url(checked_url(url), variable)
    elif host is not None:
        found = _of_host(host, name, scope, file, variable)
    else:
        flags = {"root": None if root is None else str(root), "strategy": strategy, "run": run}
        found = _of_desk(config, flags | {"agent": agent}, mend=repair)
    if not _tell(found, as_json=as_json):
        raise typer.Exit(1)


def _check_choice(
    url: str | None,
    host: str | None,
    variable: str | None,
    of_desk: Mapping[str, object],
    of_entry: Mapping[str, object],
) -> None:
    """Raise ConfigError for options of what was not asked about."""
    if url is not None:
        _refuse(
            {**of_desk, **of_entry, "HOST": host},
            "does not go with --url",
            "Leave {} away: --url names a running server.",
        )
    elif host is not None:
        _refuse(of_desk, "does not go with HOST", "Leave {} away: the entry of HOST names its own.")
    else:
        _refuse(of_entry, "goes with HOST", "Name a host too, such as `deskbook doctor cursor`.")
        _refuse(
            {"--token-env": variable}, "goes with --url or HOST", "Leave {} away, or name --url or a host."
        )


def _refuse(options: Mapping[str, object], why: str, hint: str) -> None:
    for option, given in options.items():
        if given is not None:
            raise ConfigError(f"{option} {why}.", field=option, hint=hint.format(option))


def _of_url(url: str, variable: str | None) -> Iterator[Finding]:
    from ..doctor.calling import check_url
    from ..doctor.web import Credential

    return check_url(url, Credential.from_variable(variable, os.environ))


def _of_host(
    host: str, name: str, scope: Reach | None, file: Path | None, variable: str | None
) -> Iterator[Finding]:
    from ..doctor.entries import Looked, check_entry
    from ..hosts.places import file_of

    row = host_named(host)
    check_name(name)
    if file is not None and scope is not None:
        raise ConfigError("--scope and --file exclude each other.", field="--scope")
    wanted = row.scopes[0] if scope is None else scope.value
    place = file_of(row, wanted, os.environ, Path.cwd()) if file is None else file.expanduser().absolute()
    chosen: list[str] = [] if name == DEFAULT_NAME else ["--name", name]
    chosen += [] if scope is None else ["--scope", scope.value]
    chosen += [] if file is None else ["--file", str(place)]
    return check_entry(Looked(row, name, place, variable, tuple(chosen)), os.environ)


def _of_desk(config: Path | None, flags: dict[str, str | None], *, mend: bool) -> Iterator[Finding]:
    from ..doctor.configured import check_python
    from ..doctor.findings import Mark, fault
    from ..doctor.local import examine
    from ..doctor.subject import Subject

    try:
        settings = load_settings(config=config, flags=flags, environ=os.environ)
    except DeskbookError as error:
        yield fault("config", error)
        yield from check_python()
        return
    place = place_words(settings)
    identities: tuple[Identity, ...] = ()
    try:
        identities = _identities(settings)
    except DeskbookError as error:
        yield fault("agent", error)
    subject, no_root = Subject(settings, identities, os.environ), False
    if mend:
        from ..doctor.repairing import repair

        yield from (_placed(finding, place) for finding in repair(subject))
    for finding in examine(subject):
        no_root = no_root or (finding.name == "root" and finding.mark is Mark.FAIL)
        yield _placed(finding, place)
    # A server starts without its root and fails at the first call, so that it starts would say too much.
    for identity in () if no_root else identities:
        for finding in _started(settings, identity):
            yield _placed(finding, place)


def _placed(finding: Finding, place: Sequence[str]) -> Finding:
    return finding if finding.next is None else replace(finding, next=with_place(finding.next, place))


def _identities(settings: Settings) -> tuple[Identity, ...]:
    """The agent asked for, else every agent there is."""
    if settings.agent is not None or not settings.agents:
        return (launch_identity(settings),)
    return tuple(launch_identity(settings, agent) for agent in settings.agents)


def _started(settings: Settings, identity: Identity) -> Iterator[Finding]:
    """The agent's server, started by the words that `install` writes into a host's file."""
    from ..doctor.launching import bare_environment, check_launch

    launch = stdio_launch(settings.model_copy(update={"agent": identity.agent}))
    words = [launch.command, *launch.arguments]
    if settings.run is not None and settings.set_at_launch("run") == "flag":
        words += ["--run", settings.run]
    return check_launch(identity.agent, words, bare_environment(os.environ))


def _tell(findings: Iterable[Finding], *, as_json: bool) -> bool:
    """Print what was found, as it is found; gives whether nothing is wrong."""
    from ..doctor.findings import Mark

    seen: list[Finding] = []
    for finding in findings:
        seen.append(finding)
        if not as_json:
            _say(finding)
    count = {mark: sum(finding.mark is mark for finding in seen) for mark in Mark}
    if as_json:
        # In ASCII: control characters above it would drive a terminal that the JSON is printed on.
        say(json.dumps([finding.record() for finding in seen]))
    else:
        wrong, doubtful = count[Mark.FAIL], count[Mark.WARN]
        say(
            f"{counted(len(seen), 'check', 'checks')}: {counted(wrong, 'fault', 'faults')}, "
            f"{counted(doubtful, 'warning', 'warnings')}"
        )
    return not count[Mark.FAIL]


def _say(finding: Finding) -> None:
    say(f"{finding.mark:<4}  {one_line(finding.name)}: {one_line(finding.found, LONGEST)}")
    for line in finding.lines:
        say(f"        | {one_line(line, LONGEST)}")
    if finding.next is not None:
        say(f"        what to do: {one_line(finding.next, LONGEST)}")
