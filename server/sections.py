"""The sections of a config file as frozen models, one for each table, with every key they take.

Accepted and checked, so that a config stays valid when the feature arrives: approval, review, retention.

A field's `description` says what is allowed in it, and is what an error shows. Ages are integer
microseconds once read. No field takes a secret: keys that end in `_env` name an environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from store.errors import ConfigError
from store.limits import IDENTIFIER_CHARS, TEXT_CHARS
from store.names import name_fault
from store.search.trust import Ranking
from store.symbols import Symbols

from .aliases import Meaning, read_meaning, symbols_of, written
from .near_miss import did_you_mean

FAULT: Final = "deskbook_fault"
"""The type of a validation error whose message is meant for the reader as it stands."""

_RANKING: Final = Ranking()
NAME: Final = f"text of 1 to {IDENTIFIER_CHARS} characters without control characters"
AGE: Final = 'an age such as "12h", "30d" or "8w" (hours, days, weeks), at most 100 years'
VARIABLE: Final = "the NAME of an environment variable in capitals, such as DESKBOOK_TRADER_TOKEN"
URL: Final = "an http or https address without a user name or password in it"
HOSTS: Final = 'a list of host names such as "desk.example", with or without a port'
ORIGINS: Final = 'a list of origins such as "https://desk.example"'
HOUR_US: Final = 3_600_000_000
_AGE_UNITS = {"h": HOUR_US, "d": 24 * HOUR_US, "w": 7 * 24 * HOUR_US}
_LONGEST_AGE_US = 36_525 * 24 * HOUR_US

Mode = Literal["live", "simulated"]
Inherit = Literal["none", "live"]
Gate = Literal["auto", "review", "ask"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_LEVELS: Final[tuple[LogLevel, ...]] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _fault(message: str) -> PydanticCustomError:
    return PydanticCustomError(FAULT, "{message}", {"message": message})


def _name(text: str) -> str:
    fault = name_fault(text)
    if fault:
        raise _fault(f"{fault}; allowed: {NAME}")
    return text


def read_age(value: object) -> int:
    """Read an age such as "30d" into microseconds; raises ValueError that says what is allowed."""
    found = re.fullmatch(r"([0-9]{1,7})([hdw])", value.strip()) if isinstance(value, str) else None
    age = int(found[1]) * _AGE_UNITS[found[2]] if found else 0
    if not 0 < age <= _LONGEST_AGE_US:
        raise ValueError(AGE)
    return age


def _keep(value: object) -> int | None:
    return None if value == "forever" else read_age(value)


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", text) or len(text) > IDENTIFIER_CHARS:
        raise ValueError(VARIABLE)
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    usable = (
        parts.scheme in {"http", "https"} and parts.hostname and not re.search(r"[\s\x00-\x1f\x7f]", text)
    )
    if not usable or "@" in parts.netloc or parts.port == 0:
        raise ValueError(URL)
    return text


def _host_name(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        whole = parts.hostname and not (parts.path or parts.query or parts.fragment or parts.port == 0)
    except ValueError:
        whole = None
    if not whole or "@" in text or "*" in text or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(HOSTS)
    return text


def _origin(text: str) -> str:
    parts = urlsplit(_url(text))
    if parts.path.strip("/") or parts.query or parts.fragment or "*" in text:
        raise ValueError(ORIGINS)
    return text


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        near = did_you_mean(name, available_timezones())
        raise _fault(
            f'is "{name[:64]}", which this machine does not know as a time zone{near}; '
            "allowed: an IANA name such as UTC or America/New_York"
        ) from None
    return name


def _log_level(value: object) -> object:
    if not isinstance(value, str):
        return value
    # Only ASCII is folded: the dotless i in upper case would be an I.
    wanted = value.strip().upper() if value.isascii() else value
    if wanted and wanted not in LOG_LEVELS:
        near = did_you_mean(value, [level.lower() for level in LOG_LEVELS])
        raise _fault(
            f'is "{value[:64]}", which is no log level{near}; allowed: {", ".join(LOG_LEVELS).lower()} '
            "in upper or lower case"
        )
    return wanted or "INFO"


def _meaning(value: object) -> Meaning:
    try:
        return read_meaning(value)
    except ConfigError as fault:
        raise _fault(fault.message) from None


def _known(table: Mapping[str, Meaning]) -> Mapping[str, Meaning]:
    try:
        symbols_of(table)
    except ConfigError as fault:
        raise _fault(f"cannot be used: {fault.message} {fault.hint or ''}".rstrip(" .")) from None
    return MappingProxyType(dict(table))


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


V = TypeVar("V")
_Frozen = (AfterValidator(lambda table: MappingProxyType(dict(table))), PlainSerializer(dict))
Name = Annotated[str, AfterValidator(_name)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_tuple)]
HostNames = Annotated[tuple[Annotated[str, AfterValidator(_host_name)], ...], BeforeValidator(_tuple)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_tuple)]
Table = Annotated[Mapping[Name, V], *_Frozen]
Aliases = Annotated[
    Mapping[Name, Annotated[Meaning, BeforeValidator(_meaning)]],
    AfterValidator(_known),
    PlainSerializer(written),
]
Age = Annotated[int, BeforeValidator(read_age)]
Keep = Annotated[int | None, BeforeValidator(_keep)]
Variable = Annotated[str, AfterValidator(_variable)]
Url = Annotated[str, AfterValidator(_url)]


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
    timezone: Annotated[str, AfterValidator(_timezone)] = Field(
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


def _gate() -> Any:
    return Field(default="auto", description='"auto", "review" or "ask"')


class ApprovalSettings(Section):
    """`[approval]`: what happens before a memory of each kind counts, and how many may wait."""

    memory: Gate = _gate()
    proposal: Gate = _gate()
    risk_note: Gate = _gate()
    decision: Gate = _gate()
    lesson: Gate = _gate()
    thesis: Gate = _gate()
    order_action: Gate = _gate()
    max_pending: int = _count(100, 1, 100_000)


class ReviewSettings(Section):
    """`[review]`: the default age, in microseconds, at which a memory of each kind is due for review."""

    memory: Age | None = _optional(AGE)
    proposal: Age | None = _optional(AGE)
    risk_note: Age | None = _optional(AGE)
    decision: Age | None = _optional(AGE)
    lesson: Age | None = _optional(AGE)
    thesis: Age | None = _optional(AGE)
    order_action: Age | None = _optional(AGE)


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

    level: Annotated[LogLevel, BeforeValidator(_log_level)] = Field(
        default="INFO", description=", ".join(LOG_LEVELS).lower()
    )


class PublishSettings(Section):
    """`[publish]`: where checkpoints go; `key_env` names the variable that holds the key."""

    endpoint: Url | None = _optional(URL)
    key_env: Variable | None = _optional(VARIABLE)


class RetentionSettings(Section):
    """`[retention]`: how long content stays, in microseconds (None: forever), and whether a hold forbids
    removing any."""

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
    symbols: SymbolSettings = Field(default_factory=SymbolSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    publish: PublishSettings = Field(default_factory=PublishSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
