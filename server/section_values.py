"""The values that a config takes: what is allowed in each, and how one is read or refused in a reader's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic_core import PydanticCustomError

from store.errors import ConfigError
from store.limits import IDENTIFIER_CHARS
from store.names import name_fault

from .aliases import Meaning, read_meaning, symbols_of
from .near_miss import did_you_mean

FAULT: Final = "deskbook_fault"
"""The type of a validation error whose message is meant for the reader as it stands."""

NAME: Final = f"text of 1 to {IDENTIFIER_CHARS} characters without control characters"
AGE: Final = 'an age such as "12h", "30d" or "8w" (hours, days, weeks), at most 100 years'
VARIABLE: Final = "the NAME of an environment variable in capitals, such as DESKBOOK_TRADER_TOKEN"
URL: Final = "an http or https address without a user name or password in it"
HOSTS: Final = 'a list of host names such as "desk.example", with or without a port'
ORIGINS: Final = 'a list of origins such as "https://desk.example"'
HOUR_US: Final = 3_600_000_000
_AGE_UNITS = {"h": HOUR_US, "d": 24 * HOUR_US, "w": 7 * 24 * HOUR_US}
_LONGEST_AGE_US = 36_525 * 24 * HOUR_US

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_LEVELS: Final[tuple[LogLevel, ...]] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _fault(message: str) -> PydanticCustomError:
    return PydanticCustomError(FAULT, "{message}", {"message": message})


def check_name(text: str) -> str:
    """Take a name as it is; raises the fault that says what is allowed."""
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


def read_keep(value: object) -> int | None:
    """Read "forever" (None) or an age into microseconds; raises ValueError that says what is allowed."""
    return None if value == "forever" else read_age(value)


def check_variable(text: str) -> str:
    """Take the name of an environment variable; raises ValueError that says what is allowed."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", text) or len(text) > IDENTIFIER_CHARS:
        raise ValueError(VARIABLE)
    return text


def check_url(text: str) -> str:
    """Take an http or https address; raises ValueError that says what is allowed."""
    parts = urlsplit(text)
    usable = (
        parts.scheme in {"http", "https"} and parts.hostname and not re.search(r"[\s\x00-\x1f\x7f]", text)
    )
    if not usable or "@" in parts.netloc or parts.port == 0:
        raise ValueError(URL)
    return text


def check_host_name(text: str) -> str:
    """Take a host name, with or without a port; raises ValueError that says what is allowed."""
    try:
        parts = urlsplit(f"//{text}")
        whole = parts.hostname and not (parts.path or parts.query or parts.fragment or parts.port == 0)
    except ValueError:
        whole = None
    if not whole or "@" in text or "*" in text or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(HOSTS)
    return text


def check_origin(text: str) -> str:
    """Take the origin of a web page; raises ValueError that says what is allowed."""
    parts = urlsplit(check_url(text))
    if parts.path.strip("/") or parts.query or parts.fragment or "*" in text:
        raise ValueError(ORIGINS)
    return text


def check_timezone(name: str) -> str:
    """Take a time zone that this machine knows; raises the fault that names a near one."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        near = did_you_mean(name, available_timezones())
        raise _fault(
            f'is "{name[:64]}", which this machine does not know as a time zone{near}; '
            "allowed: an IANA name such as UTC or America/New_York"
        ) from None
    return name


def read_log_level(value: object) -> object:
    """Read a log level in upper or lower case; raises the fault that names a near one."""
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


def read_alias(value: object) -> Meaning:
    """Read what an alias stands for; raises the fault that says what is wrong with it."""
    try:
        return read_meaning(value)
    except ConfigError as fault:
        raise _fault(fault.message) from None


def check_aliases(table: Mapping[str, Meaning]) -> Mapping[str, Meaning]:
    """Take aliases that fit together, frozen; raises the fault that says which do not."""
    try:
        symbols_of(table)
    except ConfigError as fault:
        raise _fault(f"cannot be used: {fault.message} {fault.hint or ''}".rstrip(" .")) from None
    return MappingProxyType(dict(table))
