"""token: make, list and revoke the bearer tokens with which agents call over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from store.clock import format_instant
from store.errors import ConfigError, InvalidInput, NotFound
from store.names import name_fault

from ..config_faults import shown
from ..identity import Identity, launch_identity
from ..near_miss import did_you_mean
from ..section_values import AGE, NAME, read_age
from ..sections import AgentSettings
from ..token_file import TokenRecord, read_records
from ..tokens import ENVIRONMENT, agents_of, new_token, public_id, revoke, status_of, token_path
from ..typed import hints_with_place, place_words, with_place
from .place import ConfigOption, JsonOption, Place, RootOption, find_place
from .screen import aligned, one_line, plain, say
from .wording import counted

HEADING = ("id", "agent", "profile", "made", "expires", "standing", "rights", "label")
tokens = typer.Typer(
    name="token", help="Make, list or revoke the bearer tokens for HTTP.", no_args_is_help=True
)


@tokens.command()
def new(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent of the config it stands for.")],
    config: ConfigOption = None,
    root: RootOption = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it lasts, such as 12h, 90d or 8w; else for good.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="It may read and never write.")] = False,
    label: Annotated[str | None, typer.Option(help="A word of yours on where it is used.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a new token for an agent, once. Only a hash of it is kept.

    The token alone goes to standard output, everything else to standard error.
    """
    place = find_place(config, root, None, None)
    path = token_path(place.settings.store.root)
    with hints_with_place(place.settings):
        identity = launch_identity(place.settings, agent)
        _check_label(label)
        made = new_token(path, identity.agent, lasts=_age(expires), read_only=read_only, label=label)
    record = made.record
    if as_json:
        ends = None if record.expires is None else format_instant(record.expires)
        say(json.dumps({"token": made.token, "id": record.id, "agent": record.agent, "expires": ends}))
    else:
        say(made.token)
    _explain(record, identity, path, place)


@tokens.command("list")
def list_all(config: ConfigOption = None, root: RootOption = None, as_json: JsonOption = False) -> None:
    """List every token and how it stands, and the variables that hold one; never a token or its hash."""
    place = find_place(config, root, None, None)
    path = token_path(place.settings.store.root)
    agents = agents_of(place.settings)
    with hints_with_place(place.settings):
        records = read_records(path)
    variables = {name: agent for name, agent in agents.items() if agent.token_env}
    if as_json:
        listed = [_told(record, agents) for record in records]
        named = [_variable_told(name, agent) for name, agent in variables.items()]
        say(json.dumps({"file": str(path), "tokens": listed, "variables": named}))
        return
    if not records and not variables:
        made = with_place("`deskbook token new AGENT` makes one", place_words(place.settings))
        say(plain(f"no tokens in {path}; {made}"))
        return
    rows = [HEADING, *(_row(record, agents, place) for record in records)]
    for line in aligned([*rows, *(_variable_row(name, agent) for name, agent in variables.items())]):
        say(line)


@tokens.command("revoke")
def revoke_some(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The id of each token to end.")
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    agent: Annotated[str | None, typer.Option(help="Instead of ids: all tokens of this agent.")] = None,
) -> None:
    """End tokens at once, also for sessions that are open on a running server."""
    place = find_place(config, root, None, None)
    path = token_path(place.settings.store.root)
    agents = agents_of(place.settings)
    with hints_with_place(place.settings):
        if bool(ids) == (agent is not None):
            raise ConfigError(
                "revoke takes the ids of tokens, or --agent NAME for all tokens of an agent.",
                field="ID",
                hint="`deskbook token list` shows the id of every token.",
            )
        wanted = [_file_id(given, agents) for given in ids or ()]
        found = revoke(path, ids=wanted, agent=agent)
    if agent is not None and not found and agent not in agents:
        owners = {record.agent for record in read_records(path)}
        near = did_you_mean(agent, owners | agents.keys())
        raise NotFound(f"There is no agent {shown(agent)}{near}, and no token of one.", field="--agent")
    for record in found:
        if record.revoked is None:
            say(f"revoked {record.id} of agent {plain(record.agent)}")
        else:
            say(
                f"{record.id} of agent {plain(record.agent)} was revoked at {_time(record.revoked, place)} already"
            )
    ended = sum(record.revoked is None for record in found)
    now = "; running servers refuse them from now on" if ended else ""
    say(f"{counted(ended, 'token', 'tokens')} revoked{now}")
    owner = None if agent is None else agents.get(agent)
    if owner is not None and owner.token_env:
        say(f"the token in {owner.token_env} is not among them: take it out there and start the server anew")


def _explain(record: TokenRecord, identity: Identity, path: Path, place: Place) -> None:
    """Say on stderr what a new token is and how it is used."""
    until = "never expires" if record.expires is None else f"expires at {_time(record.expires, place)}"
    rights = ", read-only" if record.read_only or identity.read_only else ""
    standing = f"profile {identity.profile.name}, strategy {identity.strategy}, {identity.mode}{rights}"
    for line in (
        f"token {record.id} stands for agent {shown(record.agent)} ({standing}) and {until}",
        f"It is shown this once: {path} keeps only a hash of it.",
        "Send it in the header `Authorization: Bearer TOKEN`, and never in a URL.",
        with_place(f"`deskbook token revoke {record.id}` ends it.", place_words(place.settings)),
    ):
        typer.echo(plain(line), err=True)


def _age(expires: str | None) -> int | None:
    """The microseconds of --expires."""
    if expires is None:
        return None
    try:
        return read_age(expires)
    except ValueError:
        raise InvalidInput(
            f"--expires is {shown(expires)}; allowed: {AGE}.",
            field="--expires",
            hint="Leave it away for no end.",
        ) from None


def _check_label(label: str | None) -> None:
    fault = None if label is None else name_fault(label)
    if fault:
        raise InvalidInput(f"--label {fault}.", field="--label", hint=f"Allowed: {NAME}.")


def _file_id(given: str, agents: Mapping[str, AgentSettings]) -> str:
    """The id meant. Who gives a whole token means it too: it is in the shell's history now, and shall end."""
    variable = next(
        (a.token_env for name, a in agents.items() if a.token_env and f"{ENVIRONMENT}{name}" == given), None
    )
    if variable is not None:
        raise InvalidInput(
            f"{shown(given)} is the token in the variable {variable}, which no command can revoke.",
            field="ID",
            hint="Take it out of the variable and start the server anew.",
        )
    return public_id(given)


def _row(record: TokenRecord, agents: Mapping[str, AgentSettings], place: Place) -> tuple[str, ...]:
    """A token under the columns of the heading."""
    owner = agents.get(record.agent)
    return (
        record.id,
        one_line(record.agent),
        one_line(owner.profile) if owner else "-",
        _time(record.created, place),
        "never" if record.expires is None else _time(record.expires, place),
        _standing(record, agents, place),
        "read-only" if record.read_only else "-",
        one_line(record.label or "-"),
    )


def _variable_row(name: str, agent: AgentSettings) -> tuple[str, ...]:
    state = "set" if os.environ.get(agent.token_env or "") else "not set"
    about = f"from {agent.token_env}, {state} in this shell"
    return (
        one_line(f"{ENVIRONMENT}{name}"),
        one_line(name),
        one_line(agent.profile),
        "-",
        "-",
        about,
        "-",
        "-",
    )


def _standing(record: TokenRecord, agents: Mapping[str, AgentSettings], place: Place) -> str:
    status = status_of(record, agents)
    if record.revoked is not None:
        return f"{status} {_time(record.revoked, place)}"
    return status if record.agent in agents else f"{status} in this config"


def _told(record: TokenRecord, agents: Mapping[str, AgentSettings]) -> dict[str, Any]:
    """A token for programs: everything but its hash, times as ISO 8601 in UTC."""
    owner = agents.get(record.agent)
    times = {"created": record.created, "expires": record.expires, "revoked": record.revoked}
    return {
        "id": record.id,
        "agent": record.agent,
        "profile": owner.profile if owner else None,
        "status": str(status_of(record, agents)),
        **{name: None if us is None else format_instant(us) for name, us in times.items()},
        "read_only": record.read_only,
        "label": record.label,
    }


def _variable_told(name: str, agent: AgentSettings) -> dict[str, Any]:
    return {
        "id": f"{ENVIRONMENT}{name}",
        "agent": name,
        "profile": agent.profile,
        "variable": agent.token_env,
        "set": bool(os.environ.get(agent.token_env or "")),
    }


def _time(us: int, place: Place) -> str:
    return format_instant(us, place.zone)
