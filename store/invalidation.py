"""What a thesis' `invalidation` asks to be watched: one price, with the side from which it is reached, or one date.

Anything less plain is left to its reader: a wrong alarm before an order is worse than none, and its author is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Literal

Side = Literal["below", "above"]

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PRICE = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?")
_CURRENCY = "$€£¥"
_WORD = re.compile(rf"[\w{_CURRENCY}%](?:[\w{_CURRENCY}%.,'’-]*[\w{_CURRENCY}%])?|[<>≤≥]=?|-(?=[0-9])")
_BELOW = frozenset(
    "below under beneath less lower fall falls falling fell drop drops dropping lose loses losing breakdown"
    " undercut undercuts < <= ≤".split()
)
_ABOVE = frozenset("above over exceed exceeds exceeding greater more higher breakout > >= ≥".split())
_BREAK = frozenset({"break", "breaks", "breaking"})
_NOT = frozenset(
    "no not never without unless until fail fails failing cannot can't doesn't won't isn't".split()
)
_BEFORE = _BREAK | frozenset(
    "stop stopped loss stop-loss stoploss sl at price level exit close closes hit hits touch touches reach reaches"
    " to is trades".split()
)
"""Words that leave a number after them a price though no side is said."""
_MONEY = frozenset("usd eur gbp chf jpy cad aud usdt usdc dollar dollars euro euros".split())
_AFTER = _MONEY | frozenset("stop level or on in at".split())
_UNITS = frozenset(
    "percent pct bp bps basis x times minute minutes hour hours day days session sessions bar bars week weeks month"
    " months quarter quarters year years point points million billion share shares contracts day's ma sma ema"
    " consecutive straight closes".split()
)
_MONTHS = frozenset(
    "jan feb mar apr jun jul aug sep sept oct nov dec january february march april may june july august september"
    " october november december".split()
)
_TIMES = _MONTHS | frozenset("in by of before after since until year fy through end during".split())
_GAUGES = frozenset(
    "rsi adx vix macd pe p/e eps margin margins yield ratio growth beta volume sma ema ma revenue score".split()
)


@dataclass(frozen=True, slots=True)
class Watched:
    """A date (ISO 8601), or a price and the side from which it is reached; None leaves that to the thesis."""

    day: str | None = None
    price: Decimal | None = None
    side: Side | None = None
    said: str = ""
    """The price as it was written."""


def read_invalidation(terms: str | None, written: str) -> Watched | None:
    """What can be watched of an invalidation that was worded on the day `written` (ISO 8601), None when nothing can.

    A date inside a text counts when it lies after that day: an earlier one tells of something that has happened.
    """
    plain = (terms or "").strip()
    if _is_date(plain):
        return Watched(day=plain)
    try:
        price = Decimal(plain.lstrip("$"))
    except InvalidOperation:
        return _read_text(plain, written)
    return Watched(price=price, said=plain) if price.is_finite() else None


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _read_text(text: str, written: str) -> Watched | None:
    words = _WORD.findall(text.lower())
    numbers = [at for at, word in enumerate(words) if any(digit.isdigit() for digit in word)]
    if len(numbers) != 1:
        return None
    at = numbers[0]
    said = words[at]
    if _is_date(said):
        return Watched(day=said) if said > written else None
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    if not _is_price(said, before, after) or not _GAUGES.isdisjoint(words) or not _NOT.isdisjoint(words):
        return None
    sides = _sides(words)
    if len(sides) > 1:
        return None
    if not sides and not ((not before or before in _BEFORE) and (not after or after in _AFTER)):
        return None
    number = said.strip(_CURRENCY)
    return Watched(price=Decimal(number.replace(",", "")), side=next(iter(sides), None), said=number)


def _is_price(said: str, before: str, after: str) -> bool:
    """Whether a number is written as a price, and is no percentage, span, count or year."""
    number = said.strip(_CURRENCY)
    if not _PRICE.fullmatch(number) or before == "-" or after in _UNITS | _MONTHS or before in _MONTHS:
        return False
    is_year = len(number) == 4 and number.isdigit() and number[:2] in ("19", "20")
    return not (is_year and before in _TIMES)


def _sides(words: list[str]) -> set[Side]:
    found: set[Side] = set()
    for at, word in enumerate(words):
        following = words[at + 1 : at + 2]
        if word in _BELOW or (word in _BREAK and following == ["down"]):
            found.add("below")
        if word in _ABOVE or (word in _BREAK and following == ["out"]):
            found.add("above")
    return found
