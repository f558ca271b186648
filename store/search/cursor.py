"""The opaque place where a search goes on: its cut and instant, how far it got, and what it asked."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ..canonical import canonical
from ..clock import LAST_INSTANT
from ..errors import InvalidInput
from ..rows import Filter


@dataclass(frozen=True, slots=True)
class Place:
    """Cut in the sequence, instant for expiry in microseconds UTC, and hits already given.

    `watermarks` say how far the vectors of each layer reached on the first page; none: it went by words alone.
    """

    cut: int
    at: int
    offset: int
    watermarks: tuple[int, ...] | None = None


def encode(place: Place, query: str, conditions: Filter) -> str:
    """The cursor text that stands for a place in one search."""
    fields: list[Any] = [place.cut, place.at, place.offset, _digest(query, conditions)]
    if place.watermarks:
        fields.append(list(place.watermarks))
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(text: str, query: str, conditions: Filter) -> Place:
    """Read a cursor; raises InvalidInput when it is not ours or belongs to another search."""
    try:
        padded = text + "=" * (-len(text) % 4)
        fields = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        cut, at, offset, digest, *more = fields
        place = Place(int(cut), int(at), int(offset), _watermarks(*more))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidInput(
            "cursor is not one that a search returned.", field="cursor", hint="Leave it out to start again."
        ) from None
    if digest != _digest(query, conditions) or not _possible(place):
        raise InvalidInput(
            "cursor belongs to another query or other filters.",
            field="cursor",
            hint="Repeat the query and filters it came from, or leave it out to start again.",
        )
    return place


def _watermarks(told: object = ()) -> tuple[int, ...]:
    if not isinstance(told, list | tuple) or len(told) > 2:
        raise ValueError
    if not all(type(each) is int and 0 <= each < 2**53 for each in told):
        raise ValueError
    return tuple(told)


def _possible(place: Place) -> bool:
    return place.cut >= 0 and 0 <= place.offset <= 2**31 and abs(place.at) <= LAST_INSTANT


def _digest(query: str, conditions: Filter) -> str:
    return hashlib.sha256(canonical([query, conditions.as_content()])).hexdigest()[:16]
