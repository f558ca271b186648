"""Bearer tokens: which agent stands behind a request that carries one, and how they are made and ended.

A token is `dbk_<id>_<secret>`, in small letters and digits: an id of 80 bits, which is public, and a secret of 256.
The file (`token_file`) holds the SHA-256 of the whole token. A slow hash would protect nothing: it is for secrets
that people choose, and 256 random bits cannot be guessed at any speed. An agent's `token_env` names a variable
that holds a token of its owner's making; only its hash is kept in memory.

Where the file cannot be trusted (open to others, damaged, newer, gone under a running server), no token is
accepted, not even from a variable: the file might say that just this one was revoked.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from store.clock import SECOND
from store.errors import ConfigError, NotFound, StoreError

from .config_faults import dotted, shown
from .identity import LOCAL_AGENT, LOCAL_PROFILE
from .near_miss import did_you_mean
from .sections import AgentSettings
from .settings import Settings
from .token_file import FILE, Mark, TokenRecord, held, lock_path, mark_of, read_records, write_records

logger = logging.getLogger(__name__)

Now = Callable[[], float]
SHORTEST: Final = 20
LONGEST: Final = 1_024
ENVIRONMENT: Final = "env:"
"""How the id of a token from a variable begins; the agent's name follows."""

PREFIX: Final = "dbk_"
_ID_BYTES, _SECRET_BYTES = 10, 32
_TOKEN: Final = re.compile(r"dbk_(?P<id>[a-z2-7]{10,32})_[a-z2-7]{52}")
_POSSIBLE: Final = re.compile(rf"[!-~]{{{SHORTEST},{LONGEST}}}")
_NOBODY: Final = hashlib.sha256(secrets.token_bytes(_SECRET_BYTES)).hexdigest()


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who a token stands for.

    `token_id` may be logged; it is `env:<agent>` for a token from a variable. `read_only` narrows the agent's
    profile further and never widens it.
    """

    token_id: str
    agent: str
    read_only: bool


class TokenFault(StrEnum):
    """Why a token is not accepted. Only who holds the whole token learns EXPIRED or REVOKED."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"


class TokenStatus(StrEnum):
    """How a token in the file stands, as a person is told."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    NO_AGENT = "no such agent"


@dataclass(frozen=True, slots=True)
class Minted:
    """A new token, which nothing else holds, and what the file keeps of it."""

    token: str = field(repr=False)
    record: TokenRecord


@dataclass(frozen=True, slots=True, repr=False)
class _Variable:
    """A token from a variable: whose it is, and the hash of it."""

    agent: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True, repr=False)
class _Known:
    """The file as it was read last; without a record where a fault keeps it from being used."""

    mark: Mark
    records: Mapping[str, TokenRecord] = field(default_factory=dict)
    fault: StoreError | None = None

    @property
    def hashes(self) -> frozenset[str]:
        return frozenset(record.sha256 for record in self.records.values())


class Tokens:
    """Every token that a server takes: those of the file, read anew whenever it changes, and of variables.

    `agents` are the agents that may be served (`agents_of`), `environ` is read once, `now` gives seconds since the
    epoch. May be used from several threads. Raises ConfigError for a file that cannot be trusted, for a variable
    with a weak token, and for one token that stands for two agents.
    """

    def __init__(
        self,
        path: Path,
        agents: Mapping[str, AgentSettings],
        environ: Mapping[str, str],
        now: Now = time.time,
    ) -> None:
        self._path, self._agents, self._now = path, agents, now
        self._variables, self._missing = _read_variables(agents, environ)
        self._required = any(agent.token_env for agent in agents.values())
        self._lock = threading.Lock()
        self._seen = False
        self._known: _Known | None = None
        known = self._current()
        if known.fault is not None:
            fault = known.fault
            raise ConfigError(fault.message, hint=fault.hint, where=fault.where)
        _refuse_shared(self._variables, known.records.values())

    @property
    def required(self) -> bool:
        """Whether requests need a token: one was ever made, or an agent names a variable. Never false again."""
        self._current()
        return self._required

    @property
    def usable(self) -> bool:
        """Whether some token would be accepted now."""
        return any(self.lets_in(agent) for agent in self._agents)

    def lets_in(self, agent: str) -> bool:
        """Whether some token of the agent would be accepted now."""
        known = self._current()
        held = (record for record in known.records.values() if record.agent == agent)
        return any(self._refusal(record) is None for record in held) or any(
            self._counts(variable, known) for variable in self._variables.values() if variable.agent == agent
        )

    def check(self, secret: str | None) -> Bearer | TokenFault:
        """Say who the bearer of `secret` is, or why nobody is. Raises nothing, and its time tells nothing."""
        if secret is None:
            return TokenFault.MISSING
        known = self._current()
        if not _POSSIBLE.fullmatch(secret):
            return TokenFault.MALFORMED
        sha256 = _hash(secret)
        shape = _TOKEN.fullmatch(secret)
        record = known.records.get(shape["id"]) if shape else None
        # An id that is not there is compared as well, so that time does not tell which ids are.
        matches = hmac.compare_digest(sha256, record.sha256 if record else _NOBODY)
        of_variable = [v for v in self._variables.values() if hmac.compare_digest(sha256, v.sha256)]
        if record is not None and matches:
            return self._refusal(record) or Bearer(record.id, record.agent, record.read_only)
        for variable in of_variable:
            if self._counts(variable, known):
                return Bearer(f"{ENVIRONMENT}{variable.agent}", variable.agent, read_only=False)
        if secret.startswith(PREFIX) and not shape and not of_variable:
            return TokenFault.MALFORMED
        return TokenFault.UNKNOWN

    def alive(self, token_id: str) -> bool:
        """Whether the token with this id (`Bearer.token_id`) would still be accepted now."""
        known = self._current()
        variable = self._variables.get(token_id)
        if variable is not None:
            return self._counts(variable, known)
        record = known.records.get(token_id)
        return record is not None and self._refusal(record) is None

    def missing_variables(self) -> list[str]:
        """The variables that agents name in `token_env` and that were unset or empty at the start."""
        return list(self._missing)

    def _refusal(self, record: TokenRecord) -> TokenFault | None:
        if record.agent not in self._agents:
            return TokenFault.UNKNOWN
        if record.revoked is not None:
            return TokenFault.REVOKED
        return TokenFault.EXPIRED if _expired(record, self._now) else None

    def _counts(self, variable: _Variable, known: _Known) -> bool:
        """Whether a variable's token is judged by the variable: where the file knows it too, the file decides."""
        return known.fault is None and variable.sha256 not in known.hashes

    def _current(self) -> _Known:
        with self._lock:
            # Taken before the file is read: if it changes in between, the next look reads it again.
            mark = mark_of(self._path)
            if self._known is None or mark != self._known.mark:
                before, self._known = self._known, self._read(mark)
                self._seen = self._seen or bool(mark)
                if before is not None:
                    self._tell(before, self._known)
            self._required = self._required or self._seen or bool(mark_of(lock_path(self._path)))
            return self._known

    def _read(self, mark: Mark) -> _Known:
        try:
            records = {record.id: record for record in read_records(self._path)}
        except StoreError as fault:
            return _Known(mark, fault=fault)
        if (mark or self._seen) and not mark_of(self._path):
            return _Known(mark, fault=_gone(self._path))
        return _Known(mark, records)

    def _tell(self, before: _Known, now: _Known) -> None:
        if now.fault is None and before.fault is not None:
            logger.warning("The token file %s can be used again.", self._path)
        elif now.fault is not None and (before.fault is None or before.fault.message != now.fault.message):
            logger.error("%s %s", now.fault.message, now.fault.hint)


def token_path(root: Path) -> Path:
    """The token file below a root. No strategy's folder has its name: a "." in one is encoded."""
    return root / FILE


def agents_of(settings: Settings) -> Mapping[str, AgentSettings]:
    """The agents that may be served: those of the config, and without a config the one person's."""
    if settings.config is None:
        return {LOCAL_AGENT: AgentSettings(profile=LOCAL_PROFILE)}
    return settings.agents


def new_token(
    path: Path,
    agent: str,
    *,
    lasts: int | None = None,
    read_only: bool = False,
    label: str | None = None,
    now: Now = time.time,
) -> Minted:
    """Make a token for an agent; `lasts` is in microseconds, None is for good.

    It is in the file when this returns. Raises StoreError where the file cannot be trusted or written.
    """
    token_id, secret = _random(_ID_BYTES), _random(_SECRET_BYTES)
    token = f"{PREFIX}{token_id}_{secret}"
    created = int(now()) * SECOND
    record = TokenRecord(
        id=token_id,
        agent=agent,
        sha256=_hash(token),
        created=created,
        expires=None if lasts is None else created + lasts,
        revoked=None,
        read_only=read_only,
        label=label,
    )
    with held(path):
        write_records(path, (*read_records(path), record))
    return Minted(token, record)


def revoke(
    path: Path, *, ids: Sequence[str] = (), agent: str | None = None, now: Now = time.time
) -> list[TokenRecord]:
    """Revoke the tokens with these ids and all of an agent; return each as it was before, in the file's order.

    One that was revoked before stays as it is. Raises NotFound for an id that no token has, and then revokes
    none; StoreError where the file cannot be trusted or written.
    """
    if not mark_of(path):  # a look at nothing makes no folder and no lock
        _refuse_unknown(ids, ())
        return []
    with held(path):
        records = read_records(path)
        _refuse_unknown(ids, records)
        chosen = [record for record in records if record.id in ids or record.agent == agent]
        ended = {record.id for record in chosen if record.revoked is None}
        if ended:
            at = int(now()) * SECOND
            write_records(
                path, tuple(r.model_copy(update={"revoked": at}) if r.id in ended else r for r in records)
            )
    return chosen


def status_of(record: TokenRecord, agents: Mapping[str, AgentSettings], now: Now = time.time) -> TokenStatus:
    """How a token stands; what ended it for good comes first."""
    if record.revoked is not None:
        return TokenStatus.REVOKED
    if _expired(record, now):
        return TokenStatus.EXPIRED
    return TokenStatus.ACTIVE if record.agent in agents else TokenStatus.NO_AGENT


def public_id(text: str) -> str:
    """The id in what someone gave for one, which may be a whole token: nothing of its secret is left."""
    return text.removeprefix(PREFIX).partition("_")[0]


def _random(size: int) -> str:
    return base64.b32encode(secrets.token_bytes(size)).decode("ascii").rstrip("=").lower()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("ascii")).hexdigest()


def _expired(record: TokenRecord, now: Now) -> bool:
    return record.expires is not None and record.expires <= now() * SECOND


def _gone(path: Path) -> StoreError:
    return StoreError(
        f"The token file {path} is gone, so no token is accepted.",
        hint="Put it back, or make new tokens with `deskbook token new AGENT`.",
    )


def _read_variables(
    agents: Mapping[str, AgentSettings], environ: Mapping[str, str]
) -> tuple[dict[str, _Variable], list[str]]:
    """The tokens from variables by id, and the variables without one."""
    found: dict[str, _Variable] = {}
    missing: list[str] = []
    for agent, settings in agents.items():
        name = settings.token_env
        if name is None:
            continue
        value = environ.get(name)
        if not value:
            missing.append(name)
            continue
        if not _POSSIBLE.fullmatch(value):
            raise ConfigError(
                f"The variable {name} holds no token that can be used: one has {SHORTEST} to {LONGEST:,} "
                "visible ASCII characters and no blank.",
                field=dotted(("agents", agent, "token_env")),
                hint="Put a long random one into it; `openssl rand -hex 32` prints one.",
            )
        found[f"{ENVIRONMENT}{agent}"] = _Variable(agent, name, _hash(value))
    return found, missing


def _refuse_shared(variables: Mapping[str, _Variable], records: Iterable[TokenRecord]) -> None:
    owners = {record.sha256: record.agent for record in records}
    for variable in variables.values():
        other = owners.setdefault(variable.sha256, variable.agent)
        if other != variable.agent:
            raise ConfigError(
                f"The variable {variable.name} of agent {shown(variable.agent)} holds the token of another "
                f"agent, {shown(other)}.",
                field=dotted(("agents", variable.agent, "token_env")),
                hint="A token stands for one agent; put another one into the variable.",
            )


def _refuse_unknown(ids: Sequence[str], records: Sequence[TokenRecord]) -> None:
    known = [record.id for record in records]
    for number, wanted in enumerate(ids, 1):
        if wanted not in known:
            # What was given may be a secret that was meant for elsewhere, so it is not shown.
            which = "this id" if len(ids) == 1 else f"id number {number} of the {len(ids)} given"
            raise NotFound(
                f"No token has {which}{did_you_mean(wanted, known)}. Nothing was revoked.",
                field="ID",
                hint="`deskbook token list` shows the id of every token.",
            )
