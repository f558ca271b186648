"""The bearer tokens for HTTP: whether the file can be trusted, and which tokens let nobody in."""

from __future__ import annotations

from collections.abc import Iterator

from store.errors import StoreError

from ..config_faults import dotted
from ..token_file import TokenRecord, lock_path, mark_of, read_records
from ..tokens import TokenStatus, agents_of, status_of, token_path
from .findings import Finding, fault, ok, warn
from .subject import Subject


def check_tokens(subject: Subject) -> Iterator[Finding]:
    """The token file, the tokens in it that are refused, and the variables that agents name."""
    path = token_path(subject.root)
    agents = agents_of(subject.settings)
    try:
        records = read_records(path)
    except StoreError as error:
        yield fault("tokens", error)
        return
    standing = {record.id: status_of(record, agents) for record in records}
    active = [record for record in records if standing[record.id] is TokenStatus.ACTIVE]
    yield _counted(subject, records, active)
    for record in records:
        if standing[record.id] is TokenStatus.NO_AGENT:
            yield warn(
                "tokens",
                f"token {record.id} is nobody's: the config has no agent {record.agent}, so it is refused (401)",
                f"Add the table [{dotted(('agents', record.agent))}], or end it: "
                f"`deskbook token revoke {record.id}`.",
            )
        elif standing[record.id] is TokenStatus.EXPIRED:
            yield warn(
                "tokens",
                f"token {record.id} of agent {record.agent} has expired, so it is refused (401)",
                f"Make another one: `deskbook token new {record.agent}`.",
            )
    for name, agent in agents.items():
        if agent.token_env and not subject.environ.get(agent.token_env):
            yield warn(
                "tokens",
                f"agent {name} takes its token from {agent.token_env}, which is not set in this shell",
                f"Set {agent.token_env} where `deskbook serve --transport http` is started, and for the client.",
            )


def _counted(subject: Subject, records: tuple[TokenRecord, ...], active: list[TokenRecord]) -> Finding:
    path = token_path(subject.root)
    agents = agents_of(subject.settings)
    if not records and not mark_of(lock_path(path)) and not any(a.token_env for a in agents.values()):
        return ok("tokens", "none was ever made; HTTP on this machine needs none")
    held = {record.agent for record in active} | {name for name, agent in agents.items() if agent.token_env}
    without = sorted(agents.keys() - held)
    told = f"{len(active)} of {len(records)} in force in {path}" if records else f"none in {path}"
    if without:
        told += f"; no token lets in {', '.join(without)} over HTTP"
    return ok("tokens", told)
