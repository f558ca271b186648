"""The aliases of `[symbols]`: what the config file says about a spelling, as the store applies it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from store.clock import format_instant, parse_instant
from store.errors import ConfigError, InvalidInput
from store.symbols import Alias, Symbols

ALIAS: Final = (
    'text, or a table such as { to = "META", until = "2022-06-09" }, which takes to, from and until'
)
DATE: Final = "a date such as 2022-06-09, or one with a time and an offset from UTC"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a spelling stands for from `from_us` up to, not including, `until_us`.

    Both are in microseconds UTC; None is no bound.
    """

    to: str
    until_us: int | None = None
    from_us: int | None = None


def read_meaning(value: object) -> Meaning:
    """Read one value of the table: text, or a table of to, from and until.

    A date without a time is its first instant, UTC. Raises ConfigError, whose message goes on after the key's name.
    """
    if isinstance(value, str):
        return Meaning(value)
    if not isinstance(value, Mapping):
        raise ConfigError(f"is neither text nor a table; allowed: {ALIAS}")
    unknown = sorted(str(key) for key in value if key not in {"to", "from", "until"})
    if unknown:
        raise ConfigError(f'has the key "{unknown[0][:64]}"; allowed: {ALIAS}')
    to = value.get("to")
    if not isinstance(to, str):
        raise ConfigError(f"has no text as its to; allowed: {ALIAS}")
    return Meaning(to, _instant(value, "until"), _instant(value, "from"))


def symbols_of(table: Mapping[str, Meaning]) -> Symbols:
    """The table as the store applies it; raises ConfigError where its aliases contradict each other."""
    return Symbols(
        tuple(Alias(name, means.to, means.until_us, means.from_us) for name, means in table.items())
    )


def written(table: Mapping[str, Meaning]) -> dict[str, Any]:
    """The table as the file has it."""
    found: dict[str, Any] = {}
    for name, means in table.items():
        dates = {"from": means.from_us, "until": means.until_us}
        told = {key: format_instant(us) for key, us in dates.items() if us is not None}
        found[name] = {"to": means.to, **told} if told else means.to
    return found


def _instant(table: Mapping[str, object], key: str) -> int | None:
    if key not in table:
        return None
    value = table[key]
    text = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str):
        raise ConfigError(f"has no date as its {key}; allowed: {DATE}")
    day = re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip())
    try:
        return parse_instant(f"{day[0]}T00:00:00Z" if day else text, field=key)
    except InvalidInput:
        raise ConfigError(f'has "{text[:64]}" as its {key}; allowed: {DATE}') from None
