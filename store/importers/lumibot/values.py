"""Values of a source that nobody checked, brought into the form that a ledger takes.

Whatever is changed on the way is named in `marks`, so that an entry says what stands in it for what.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ...canonical import MAX_DEPTH, MAX_SAFE_INTEGER
from ...clock import parse_instant
from ...errors import InvalidInput
from ...inputs import tag_list
from ...limits import TAGS, TEXT_CHARS
from ...symbols import normalise_symbol

JSON_BYTES = 2**20
NAME_CHARS = 256
RAW_CHARS = 64_000
NO_TEXT = "(no text in the source)"
BLANK = "text: blank in the source"
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")
_LONG_NUMBER = 16
Marks = list[str]


class Unreadable(ValueError):
    """The JSON text of a column cannot be read."""


def kept_text(text: str, marks: Marks, *, field: str, longest: int = TEXT_CHARS) -> str:
    """Text that a ledger takes: without NUL and lone surrogates, of at most `longest` characters."""
    plain = _UNKEEPABLE.sub("\ufffd", text)
    if plain != text:
        marks.append(f"{field}: characters that cannot be kept are written as U+FFFD")
    if len(plain) > longest:
        marks.append(f"{field}: the first {longest} of {len(plain)} characters")
        plain = plain[:longest]
    return plain


def required(text: str, marks: Marks) -> str:
    """The text of a memory, which is never blank here."""
    if text.strip():
        return text
    if BLANK not in marks:
        marks.append(BLANK)
    return NO_TEXT


def name_of(text: str | None, marks: Marks, *, field: str) -> str | None:
    """An id or name of the source as content; None when blank."""
    if text is None or not text.strip():
        return None
    return kept_text(text, marks, field=field, longest=NAME_CHARS)


def instant_of(text: str | None, marks: Marks, *, field: str) -> int | None:
    """Microseconds, UTC, of a time of the source; None when it is none. A time without a zone is read as UTC."""
    if text is None:
        return None
    try:
        return parse_instant(text, field=field)
    except InvalidInput:
        pass
    try:
        found = parse_instant(f"{text.strip()}Z", field=field)
    except InvalidInput:
        marks.append(f"{field}: {kept_text(text, [], field=field, longest=64)!r} is no time")
        return None
    marks.append(f"{field}: no zone in the source, read as UTC")
    return found


def symbol_of(text: str | None, marks: Marks) -> str | None:
    """A symbol in its normal form; one that cannot be is left out and named in the marks."""
    try:
        return normalise_symbol(text)
    except InvalidInput:
        marks.append(f"symbol: {kept_text(text or '', [], field='symbol', longest=NAME_CHARS)!r} is none")
        return None


def tags_of(given: Any, marks: Marks) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Tags in normal form, and as typed where that says more; those that cannot be kept are named in the marks."""
    if not isinstance(given, list):
        marks.append("tags: no list in the source")
        return (), None
    normal: dict[str, None] = {}
    typed: list[str] = []
    for tag in given:
        try:
            found = tag_list((tag,)) if isinstance(tag, str) else ()
        except InvalidInput:
            found = ()
        if not found or len(typed) >= TAGS:
            marks.append(f"tags: {kept_text(str(tag), [], field='tags', longest=NAME_CHARS)!r} is left out")
            continue
        normal[found[0]] = None
        typed.append(tag)
    return tuple(normal), tuple(typed) if typed != list(normal) else None


def json_of(text: str, marks: Marks, *, field: str, bounded: bool = True) -> Any:
    """The JSON value of a column as a ledger takes it; raises Unreadable.

    NaN, infinite and very long numbers become text. Anything nested too deep becomes its JSON text, and a value of
    more than 1 MiB, where it is `bounded`, the beginning of its text.
    """
    found: set[str] = set()

    def whole(digits: str) -> int | str:
        if len(digits) <= _LONG_NUMBER and abs(int(digits)) <= MAX_SAFE_INTEGER:
            return int(digits)
        found.add("numbers that JSON cannot carry are written as text")
        return digits

    def broken(digits: str) -> float | str:
        number = float(digits)
        return digits if number in (float("inf"), float("-inf")) else number

    def constant(word: str) -> str:
        found.add("numbers that JSON cannot carry are written as text")
        return word

    try:
        value = json.loads(text, parse_int=whole, parse_float=broken, parse_constant=constant)
        clean = _clean(value, found, 0)
    except (ValueError, RecursionError):
        raise Unreadable(field) from None
    marks += [f"{field}: {what}" for what in sorted(found)]
    if not bounded or len(json.dumps(clean, ensure_ascii=False).encode()) <= JSON_BYTES:
        return clean
    marks.append(f"{field}: the first {RAW_CHARS} characters of {len(text)} of its JSON text")
    return kept_text(text, [], field=field, longest=RAW_CHARS)


def _clean(value: Any, found: set[str], depth: int) -> Any:
    if isinstance(value, str):
        plain = _UNKEEPABLE.sub("\ufffd", value)
        if plain != value:
            found.add("characters that cannot be kept are written as U+FFFD")
        return plain
    if isinstance(value, dict | list) and depth >= MAX_DEPTH - 4:
        found.add("what is nested too deep is written as its JSON text")
        return _UNKEEPABLE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return {_clean(key, found, depth): _clean(item, found, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, found, depth + 1) for item in value]
    return value
