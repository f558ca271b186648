"""Checks that every written value passes: trimmed, bounded, exact; each error names its field."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from .canonical import canonical, check_json, check_text
from .errors import InvalidInput
from .lifecycle import ALL_STATUSES, KINDS
from .limits import IDENTIFIER_CHARS, JSON_TEXT_CHARS, TAG_CHARS, TAGS, TEXT_CHARS
from .rows import Filter
from .symbols import normalise_symbol

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def required_text(text: str, *, field: str = "text", longest: int = TEXT_CHARS) -> str:
    """Text kept exactly as given; blank, too long or unkeepable text is refused."""
    check_text(text, field=field)
    if len(text) > longest:
        raise InvalidInput(
            f"{field} has {len(text)} characters; at most {longest} are allowed.",
            field=field,
            hint="Shorten it, or split it into several memories.",
        )
    if not text.strip():
        raise InvalidInput(f"{field} is blank.", field=field, hint="Say it in words.")
    return text


def short_text(text: str | None, *, field: str, longest: int) -> str | None:
    """A trimmed optional text; None when blank."""
    if text is None or not text.strip():
        return None
    return required_text(text, field=field, longest=longest).strip()


def identifier(value: str, *, field: str) -> str:
    """A trimmed identifier of 1 to 128 characters without control characters."""
    check_text(value, field=field)
    trimmed = value.strip()
    if not trimmed or len(trimmed) > IDENTIFIER_CHARS or _CONTROL.search(trimmed):
        raise InvalidInput(
            f"{field} must have 1 to {IDENTIFIER_CHARS} characters and no control characters.",
            field=field,
            hint="Use the id as a reply gave it.",
        )
    return trimmed


def tag_list(given: tuple[str, ...], *, field: str = "tags") -> tuple[str, ...]:
    """Tags in one normal form (NFKC, trimmed, inner spaces single, lower case), each once, in order."""
    if len(given) > TAGS:
        raise InvalidInput(
            f"{field} holds {len(given)} tags; at most {TAGS} are allowed.",
            field=field,
            hint="Keep the telling ones.",
        )
    found: dict[str, None] = {}
    for index, tag in enumerate(given):
        check_text(tag, field=f"{field}[{index}]")
        # As typed it is kept too, so that is bounded as well, and before normalising: NFKC is quadratic on marks.
        short = len(tag) <= 2 * TAG_CHARS + 1
        plain = " ".join(unicodedata.normalize("NFKC", tag).split()).lower() if short else ""
        if not plain or len(plain) > TAG_CHARS or _CONTROL.search(plain):
            raise InvalidInput(
                f"{field}[{index}] must have 1 to {TAG_CHARS} characters and no control characters.",
                field=f"{field}[{index}]",
                hint='For example ["earnings", "momentum"].',
            )
        found[plain] = None
    return tuple(found)


def as_given(given: tuple[str, ...], normal: tuple[str, ...]) -> tuple[str, ...] | None:
    """The tags as typed when that says more than their normal form."""
    return given if given != normal else None


def known_conditions(given: Filter) -> Filter:
    """The conditions of a search in their normal form; a word that no memory can have is refused."""
    return replace(
        given,
        kind=_known(given.kind, KINDS, field="kind"),
        status=_known(given.status, ALL_STATUSES, field="status"),
        symbol=normalise_symbol(given.symbol),
        tags=tag_list(given.tags),
        agent=None
        if given.agent is None or not given.agent.strip()
        else identifier(given.agent, field="agent"),
    )


def _known(given: str | None, words: tuple[str, ...], *, field: str) -> str | None:
    if given is None or not given.strip():
        return None
    plain = given.strip().lower()
    if plain not in words:
        raise InvalidInput(f"{field} is not a known value.", field=field, hint=f"One of {', '.join(words)}.")
    return plain


def json_value(value: Any, *, field: str, most: int = JSON_TEXT_CHARS) -> Any:
    """A JSON object or list within its bounds; None stays None."""
    if value is None:
        return None
    check_json(value, field=field)
    if not isinstance(value, dict | list):
        raise InvalidInput(
            f"{field} must be a JSON object or list.", field=field, hint='For example {"close": "187.30"}.'
        )
    size = len(canonical(value))
    if size > most:
        raise InvalidInput(
            f"{field} has {size} bytes of JSON; at most {most} are allowed.",
            field=field,
            hint="Keep what the decision rests on.",
        )
    return value


def decimal_text(value: str | None, *, field: str, percent: bool = True) -> str | None:
    """A finite decimal number in plain notation, exactly as precise as given; None when blank.

    A sign of percent is taken off, or refused where `percent` says that the number is none: 50% are not 50 shares.
    """
    if value is None or not value.strip():
        return None
    check_text(value, field=field)
    try:
        number = Decimal(value.strip().removesuffix("%" if percent else ""))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or len(value) > 64 or abs(number.adjusted()) > 30:
        raise InvalidInput(
            f"{field} is not a finite decimal number.", field=field, hint='For example "-12.50" or "3.4".'
        )
    return format(number, "f")
