"""The bearer tokens for HTTP: whether the file can be trusted, and which tokens let nobody in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from store.errors import ConfigError, StoreError

from ..addresses import is_loopback
from ..config_faults import dotted
from ..token_file import TokenRecord, read_records
from ..tokens import ENVIRONMENT, Tokens, TokenStatus, agents_of, status_of, token_path
from .findings import Finding, fault, ok, warn
from .subject import Subject

NAME = "tokens"
_MOST_NAMED = 5


def check_tokens(subject: Subject) -> Iterator[Finding]:
    """The token file, the tokens in it that are refused, the variables that agents name, and who has none."""
    path = token_path(subject.root)
    agents = agents_of(subject.settings)
    try:
        records = read_records(path)
        tokens = Tokens(path, agents, subject.environ)
    except (ConfigError, StoreError) as error:
        yield fault(NAME, error)
        return
    standing = {record.id: status_of(record, agents) for record in records}
    foreign = [record for record in records if standing[record.id] is TokenStatus.NO_AGENT]
    if tokens.required:
        active = sum(status is TokenStatus.ACTIVE for status in standing.values())
        yield _counted(subject, tokens, active, len(records))
        if not foreign or subject.settings.config is not None:
            yield from _shut_out(subject, tokens)
    else:
        yield _of_none(subject)
    yield from _foreign(subject, foreign)
    for record in records:
        if standing[record.id] is TokenStatus.EXPIRED:
            yield warn(
                NAME,
                f"token {record.id} of agent {record.agent} has expired, so it is refused (401)",
                f"Make another one: `deskbook token new {shlex.quote(record.agent)}`.",
            )
    for name in _unset(subject):
        variable = agents[name].token_env
        yield warn(
            NAME,
            f"agent {name} takes its token from {variable}, which is not set in this shell",
            f"Set {variable} where `deskbook serve --transport http` is started, and for the client.",
        )


def _counted(subject: Subject, tokens: Tokens, active: int, made: int) -> Finding:
    agents = agents_of(subject.settings)
    variables = sum(tokens.alive(f"{ENVIRONMENT}{name}") for name, agent in agents.items() if agent.token_env)
    told = f"in force: {active} of {made} in {token_path(subject.root)}"
    return ok(NAME, f"{told}, {variables} in variables" if variables else told)


def _of_none(subject: Subject) -> Finding:
    """What it means that no token was ever made and no agent names a variable."""
    settings = subject.settings
    agents = list(agents_of(settings))
    if not is_loopback(settings.http.host):
        return warn(
            NAME,
            f"none was ever made, and HTTP on {settings.http.host}, which others can reach, needs one",
            _make(agents),
        )
    if settings.agent is None and len(agents) > 1:
        return warn(
            NAME,
            f"none was ever made, and HTTP needs one for each of the {len(agents)} agents",
            _make(agents),
        )
    return ok(NAME, "none was ever made; HTTP on this machine needs none")


def _shut_out(subject: Subject, tokens: Tokens) -> Iterator[Finding]:
    settings = subject.settings
    unset = _unset(subject)
    names = [
        name
        for name in agents_of(settings)
        if settings.agent in (None, name) and name not in unset and not tokens.lets_in(name)
    ]
    if names:
        yield warn(NAME, f"no token lets in {', '.join(names)} over HTTP", _make(names))


def _foreign(subject: Subject, records: Sequence[TokenRecord]) -> Iterator[Finding]:
    """Tokens of agents that are not known here; another config with this root may know them."""
    if not records:
        return
    if subject.settings.config is None:
        names = ", ".join(sorted({record.agent for record in records}))
        yield warn(
            NAME,
            f"{'one was' if len(records) == 1 else f'{len(records)} were'} made for agents of a config: {names}",
            "Name it with --config: `deskbook doctor --config FILE`.",
        )
        return
    for record in records:
        yield warn(
            NAME,
            f"token {record.id} is nobody's: the config has no agent {record.agent}, so it is refused (401)",
            f"Add the table [{dotted(('agents', record.agent))}]. If another config with this root has the agent, "
            "all is well.",
        )


def _unset(subject: Subject) -> list[str]:
    agents = agents_of(subject.settings)
    return [
        name for name, agent in agents.items() if agent.token_env and not subject.environ.get(agent.token_env)
    ]


def _make(agents: Sequence[str]) -> str:
    if len(agents) > _MOST_NAMED:
        return "Make one for each: `deskbook token new AGENT`."
    commands = ", ".join(f"`deskbook token new {shlex.quote(name)}`" for name in agents)
    return f"Make {'one' if len(agents) == 1 else 'one for each'}: {commands}."
