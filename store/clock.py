"""Instants as integer microseconds since 1970-01-01T00:00:00Z, and the clock that reads them.

Inside Deskbook a time is always an `int` of microseconds, UTC; ISO 8601 text with an offset exists only at
the edge. All arithmetic is in integers. RFC 8785 keeps integers exact up to 2**53 - 1, which bounds an instant
to the years 1684 to 2255.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Protocol

from .errors import InvalidInput

SECOND = 1_000_000
DAY = 86_400 * SECOND
LAST_INSTANT = 2**53 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?(Z|z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_EXAMPLE = "2026-03-02T14:30:00Z or 2026-03-02T09:30:00-05:00"


class Clock(Protocol):
    """Reads the machine's clock; tests inject their own."""

    def now(self) -> int:
        """Microseconds since the epoch, UTC, as read and never corrected."""
        ...


class WallClock:
    """The machine's UTC clock."""

    def now(self) -> int:
        return time.time_ns() // 1000


def parse_instant(text: str, *, field: str) -> int:
    """Read ISO 8601 with an offset into microseconds since the epoch, UTC.

    Raises InvalidInput naming `field` for a naive time, a leap second, more precision than a microsecond
    or an instant outside the years 1684 to 2255.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{field} is not a date and time.", field=field, hint=f"Write it as {_EXAMPLE}.")
    date, minute, second, fraction, offset = found.groups()
    if offset is None:
        raise InvalidInput(
            f"{field} has no offset from UTC, so it names no instant.",
            field=field,
            hint=f"Add Z or an offset: {_EXAMPLE}.",
        )
    if fraction and fraction[6:].strip("0"):
        raise InvalidInput(
            f"{field} is finer than a microsecond.",
            field=field,
            hint="Give at most six digits after the second.",
        )
    if second == "60":
        raise InvalidInput(
            f"{field} is a leap second, which no UTC clock here can show.",
            field=field,
            hint="Use the second before or after it.",
        )
    micros = int((fraction or "")[:6].ljust(6, "0"))
    try:
        local = datetime.fromisoformat(f"{date}T{minute}:{second or '00'}").replace(tzinfo=_offset(offset))
        since = local.replace(tzinfo=UTC) - _EPOCH - _shift(local)
        us = (since.days * 86_400 + since.seconds) * SECOND + micros
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{field} is no date and time of the calendar.", field=field, hint=f"Write it as {_EXAMPLE}."
        ) from None
    if abs(us) > LAST_INSTANT:
        raise InvalidInput(
            f"{field} lies outside {format_instant(-LAST_INSTANT)} to {format_instant(LAST_INSTANT)}.",
            field=field,
            hint="Times beyond that cannot be kept exactly in canonical JSON.",
        )
    return us


def later(us: int, age: int) -> int:
    """The instant an age after another, or the last one there is."""
    return min(us + age, LAST_INSTANT)


def format_instant(us: int, tz: tzinfo | None = None) -> str:
    """Write microseconds since the epoch as ISO 8601, in UTC (`Z`) or in `tz` with its offset.

    The fraction is left out when it is zero. Where a place's offset had seconds, as before standard time, UTC is
    used: ISO 8601 has no such offset.
    """
    moment = _EPOCH + timedelta(microseconds=us)
    if tz is not None:
        local = moment.astimezone(tz)
        if not _shift(local) % timedelta(minutes=1):
            return local.isoformat()
    return moment.replace(tzinfo=None).isoformat() + "Z"


def format_age(us: int) -> str:
    """Say a span of microseconds in its largest whole unit, such as `3d` or `45s`."""
    seconds = max(0, us // SECOND)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _offset(text: str) -> timezone:
    if text in "Zz":
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(-span if text[0] == "-" else span)


def _shift(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta(0)
