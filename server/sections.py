"""The sections of a config file as frozen models, one for each table, with every key they take.

A field's `description` says what is allowed in it, and is what an error shows. Ages are integer
microseconds once read. No field takes a secret: keys that end in `_env` name an environment variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from store.lifecycle import KINDS
from store.limits import TEXT_CHARS
from store.policy import Conflicts, Gate, Policy, Secrets
from store.search.trust import Ranking
from store.symbols import Symbols

from .aliases import Meaning, symbols_of, written
from .section_values import (
    AGE,
    HOSTS,
    HOUR_US,
    LOG_LEVELS,
    NAME,
    ORIGINS,
    URL,
    VARIABLE,
    LogLevel,
    check_aliases,
    check_host_name,
    check_name,
    check_origin,
    check_timezone,
    check_url,
    check_variable,
    read_age,
    read_alias,
    read_keep,
    read_log_level,
)

_RANKING: Final = Ranking()
Mode = Literal["live", "simulated"]
Inherit = Literal["none", "live"]
Settled = Literal["auto", "review"]


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


V = TypeVar("V")
_Frozen = (AfterValidator(lambda table: MappingProxyType(dict(table))), PlainSerializer(dict))
Name = Annotated[str, AfterValidator(check_name)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_tuple)]
HostNames = Annotated[tuple[Annotated[str, AfterValidator(check_host_name)], ...], BeforeValidator(_tuple)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(check_origin)], ...], BeforeValidator(_tuple)]
Table = Annotated[Mapping[Name, V], *_Frozen]
Aliases = Annotated[
    Mapping[Name, Annotated[Meaning, BeforeValidator(read_alias)]],
    AfterValidator(check_aliases),
    PlainSerializer(written),
]
Age = Annotated[int, BeforeValidator(read_age)]
Keep = Annotated[int | None, BeforeValidator(read_keep)]
Variable = Annotated[str, AfterValidator(check_variable)]
Url = Annotated[str, AfterValidator(check_url)]


def _count(default: int, low: int, high: int) -> Any:
    return Field(default=default, ge=low, le=high, description=f"a whole number from {low} to {high}")


def _switch(default: bool) -> Any:
    return Field(default=default, description="true or false")


def _optional(description: str) -> Any:
    return Field(default=None, description=description)


class Section(BaseModel):
    """A frozen table that refuses unknown keys and takes no value of another type."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, arbitrary_types_allowed=True
    )


class StoreSettings(Section):
    """`[store]`: where the ledgers lie (an absolute folder) and how durable a commit is."""

    root: Path = Field(description="the path of a folder")
    strategy: Name = Field(default="default", description=NAME)
    durability: Literal["full", "normal"] = Field(default="full", description='"full" or "normal"')


class ClockSettings(Section):
    """`[clock]`: the desk's clock; `timezone` is how times are shown, never how they are stored."""

    mode: Mode = Field(default="live", description='"live" or "simulated"')
    run: Name | None = _optional(NAME)
    inherit: Inherit = Field(default="none", description='"none" or "live"')
    timezone: Annotated[str, AfterValidator(check_timezone)] = Field(
        default="UTC", description="an IANA name such as UTC or America/New_York"
    )

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which times are shown."""
        return ZoneInfo(self.timezone)


class AgentClock(Section):
    """`agents.NAME.clock`: what differs from the desk's clock."""

    mode: Mode | None = _optional('"live" or "simulated"')
    run: Name | None = _optional(NAME)
    inherit: Inherit | None = _optional('"none" or "live"')


class DeskSettings(Section):
    """`[desk]`: what order references carry about the program that trades."""

    revision: Name | None = _optional(NAME)
    deployment: Name | None = _optional(NAME)


class AgentSettings(Section):
    """`[agents.NAME]`: one identity; `token_env` names the variable that holds its bearer token."""

    profile: Name = Field(description="the name of a profile")
    strategy: Name | None = _optional(NAME)
    read_only: bool = _switch(False)
    token_env: Variable | None = _optional(VARIABLE)
    clock: AgentClock = AgentClock()


class ProfileSettings(Section):
    """`[profiles.NAME]`: a profile of one's own."""

    extends: Name | None = _optional("the name of a profile")
    allow: Names = Field(default=(), description="a list of action names")
    deny: Names = Field(default=(), description="a list of action names")
    read_only: bool = _switch(False)


class HttpSettings(Section):
    """`[http]`: the HTTP transport; `session_idle_timeout` is in seconds."""

    host: Name = Field(default="127.0.0.1", description="a host name or address")
    port: int = _count(8765, 0, 65_535)
    allowed_hosts: HostNames = Field(default=(), description=HOSTS)
    allowed_origins: Origins = Field(default=(), description=ORIGINS)
    max_sessions: int = _count(1_000, 1, 100_000)
    session_idle_timeout: int = _count(1_800, 1, 604_800)
    max_body_bytes: int = _count(4_194_304, 1_024, 67_108_864)
    tls_cert: Path | None = _optional("the path of a PEM file with the certificate and its chain")
    tls_key: Path | None = _optional("the path of a PEM file with the private key")


class LimitSettings(Section):
    """`[limits]`: per agent and minute, and in characters."""

    calls_per_minute: int = _count(600, 1, 1_000_000)
    reply_chars: int = _count(32_000, 2_000, 1_000_000)
    state_chars: int = _count(16_000, 2_000, 200_000)
    text_chars: int = _count(TEXT_CHARS, 100, TEXT_CHARS)


class ExportSettings(Section):
    """`[export]`: Parquet copies beside each ledger."""

    enabled: bool = _switch(True)
    interval_seconds: int = _count(60, 1, 86_400)


class EmbeddingSettings(Section):
    """`[embedding]`: what turns text into vectors."""

    provider: Literal["local", "openai", "none"] = Field(
        default="local", description='"local" (offline), "openai" (any compatible address) or "none"'
    )
    model: Name | None = _optional(NAME)
    url: Url | None = _optional(URL)


def _factor(default: float, most: float) -> Any:
    return Field(default=default, ge=0, le=most, description=f"a number from 0 to {most:g}")


class RankingSettings(Section):
    """`[ranking]`: what standing and age count in the order of hits."""

    validated: float = _factor(_RANKING.validated, 2)
    contradicted: float = _factor(_RANKING.contradicted, 2)
    ended: float = _factor(_RANKING.ended, 2)
    stale: float = _factor(_RANKING.stale, 2)
    tally: float = _factor(_RANKING.tally, 1)
    age: float = _factor(_RANKING.age, 1)
    half_life_days: int = _count(_RANKING.half_life_days, 1, 36_500)

    @property
    def rules(self) -> Ranking:
        """The weights as the store applies them."""
        return Ranking(**self.model_dump())


def _gate(*words: str) -> Any:
    *first, last = (f'"{word}"' for word in words)
    return Field(default=None, description=f"{', '.join(first)} or {last}" if first else last)


class GateSettings(Section):
    """What happens before a memory of each kind counts: nothing, a reviewer approves, or the host's person does.

    Only notes may be asked for in the host, where a client program could answer by itself. An order is recorded
    whether anybody approves of it or not.
    """

    memory: Gate | None = _gate("auto", "review", "ask")
    proposal: Settled | None = _gate("auto", "review")
    risk_note: Gate | None = _gate("auto", "review", "ask")
    decision: Settled | None = _gate("auto", "review")
    lesson: Settled | None = _gate("auto", "review")
    thesis: Settled | None = _gate("auto", "review")
    order_action: Literal["auto"] | None = _gate("auto")

    @property
    def gates(self) -> Mapping[str, Gate]:
        """What is set, by kind."""
        return {kind: gate for kind in KINDS if (gate := getattr(self, kind)) is not None}


class ApprovalSettings(GateSettings):
    """`[approval]`: what happens before a memory of each kind counts, and how many may wait, and how long."""

    max_pending: int = _count(100, 1, 100_000)
    pending_lasts: Age = Field(default=30 * 24 * HOUR_US, description=AGE)
    profiles: Table[GateSettings] = Field(
        default_factory=_empty, description="tables [approval.profiles.NAME]"
    )


class AgeSettings(Section):
    """An age for each kind of memory, in microseconds."""

    memory: Age | None = _optional(AGE)
    proposal: Age | None = _optional(AGE)
    risk_note: Age | None = _optional(AGE)
    decision: Age | None = _optional(AGE)
    lesson: Age | None = _optional(AGE)
    thesis: Age | None = _optional(AGE)
    order_action: Age | None = _optional(AGE)

    @property
    def ages(self) -> Mapping[str, int]:
        """What is set, by kind."""
        return {kind: age for kind in KINDS if (age := getattr(self, kind)) is not None}


class ReviewSettings(AgeSettings):
    """`[review]`: when a memory of each kind is due for review, and when it expires, unless its author says so."""

    expires: AgeSettings = AgeSettings()
    conflicts: Conflicts = Field(default="ask", description='"ask", "newest" or "newest_validated"')


class ScreeningSettings(Section):
    """`[screening]`: what becomes of keys, tokens and account numbers in what agents write and search."""

    secrets: Secrets = Field(default="refuse", description='"refuse", "mask" or "keep"')


class SymbolSettings(Section):
    """`[symbols]`: other spellings of an instrument, each to the one it stands for, and on which dates."""

    aliases: Aliases = Field(
        default_factory=_empty, description="a table of text to text, or to { to, from, until } with dates"
    )

    @property
    def rules(self) -> Symbols:
        """The aliases as the store applies them."""
        return symbols_of(self.aliases)


class LogSettings(Section):
    """`[log]`: how much goes to stderr."""

    level: Annotated[LogLevel, BeforeValidator(read_log_level)] = Field(
        default="INFO", description=", ".join(LOG_LEVELS).lower()
    )


class PublishSettings(Section):
    """`[publish]`: where `deskbook publish` posts; `key_env` names the variable that holds its dedicated key."""

    endpoint: Url | None = _optional(URL)
    key_env: Variable | None = _optional(VARIABLE)
    timeout_seconds: int = _count(20, 1, 120)


class CheckpointSettings(Section):
    """`[checkpoint]`: where notes go too; `key_env` names the variable that holds the key that signs them."""

    endpoint: Url | None = _optional(URL)
    key_env: Variable | None = _optional(VARIABLE)


class RetentionSettings(Section):
    """`[retention]`: from what age content may be redacted as past its time, in microseconds (None: never), and
    whether a hold forbids every redaction."""

    keep: Keep = _optional(f'{AGE}, or "forever"')
    legal_hold: bool = _switch(False)


class Sections(Section):
    """A whole config file."""

    store: StoreSettings
    clock: ClockSettings = Field(default_factory=ClockSettings)
    desk: DeskSettings = Field(default_factory=DeskSettings)
    agents: Table[AgentSettings] = Field(default_factory=_empty, description="tables [agents.NAME]")
    profiles: Table[ProfileSettings] = Field(default_factory=_empty, description="tables [profiles.NAME]")
    http: HttpSettings = Field(default_factory=HttpSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    export: ExportSettings = Field(default_factory=ExportSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    ranking: RankingSettings = Field(default_factory=RankingSettings)
    approval: ApprovalSettings = Field(default_factory=ApprovalSettings)
    review: ReviewSettings = Field(default_factory=ReviewSettings)
    screening: ScreeningSettings = Field(default_factory=ScreeningSettings)
    symbols: SymbolSettings = Field(default_factory=SymbolSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    publish: PublishSettings = Field(default_factory=PublishSettings)
    checkpoint: CheckpointSettings = Field(default_factory=CheckpointSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)

    @property
    def policy(self) -> Policy:
        """What the desk asks of new memories, as the store applies it."""
        return Policy(
            gates=self.approval.gates,
            gates_of={name: table.gates for name, table in self.approval.profiles.items()},
            max_pending=self.approval.max_pending,
            pending_lasts=self.approval.pending_lasts,
            review_after=self.review.ages,
            expires_after=self.review.expires.ages,
            conflicts=self.review.conflicts,
            secrets=self.screening.secrets,
        )
