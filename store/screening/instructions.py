"""Tells text that instructs its reader, an AI agent, from text that records; it marks and never refuses.

A lesson as an imperative is normal here ("Never buy before earnings"). What stands out is an order about the reader's
own instructions, tools, roles or silence, and text that hides. It knows wordings, not intentions: an order in
other words passes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from .folding import fold
from .foreign_signs import FOREIGN
from .instruction_signs import ENGLISH
from .signs import ENCODED, INVISIBLE, ROLE

_SIGNS: Final = (*ENGLISH, *FOREIGN)

_MARKED: Final = {
    mark: tuple(place for place, sign in enumerate(_SIGNS) if mark in sign.marks)
    for mark in {mark: None for sign in _SIGNS for mark in sign.marks}
}

_TAGS = re.compile("(?<!\U0001f3f4)[\U000e0000-\U000e007f]{2}")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]{1,7}")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]{2}|[\ufe00-\ufe0f]{3}")
_INSIDE_WORDS = re.compile("[A-Za-z][\u200b-\u200d\u2060-\u2064\ufeff]{1,8}[A-Za-z]")
_OVERRIDE = re.compile("[\u202d\u202e]")
_DIRECTION = re.compile("[\u202a\u202b\u2066-\u2068]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

_RUN = re.compile(r"[A-Za-z0-9+/]{24,4000}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){16,2000}")
_RUNS = 20
_WORDS = re.compile(r"[\w'.,:;!?-]{1,60}(?: [\w'.,:;!?-]{1,60}){2,600}\s{0,4}")

_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z])|[_./:|+~=^\\-]{1,300}")
_GLUED_CHARS = 300
"""Ids, symbols and short terms are no longer; what glues words in a longer text is part of its prose."""

_REMEMBERED_CHARS = 1_000
_MAX_DEPTH = 64


def instructs(text: str) -> tuple[str, ...]:
    """Why the text seems to instruct its reader, each reason once; empty for what merely records."""
    found = dict.fromkeys(_hidden(text))
    lines = fold(text)
    flat = " ".join(lines.split())
    marked = {place for mark, places in _MARKED.items() if mark in lines for place in places}
    for sign in (_SIGNS[place] for place in sorted(marked)):
        if sign.why not in found and sign.pattern.search(lines if sign.why == ROLE else flat):
            found[sign.why] = None
    return tuple(found)


def reads_as_order(text: str) -> bool:
    """Whether a text that is shown seems to instruct, also by words that only signs or capitals hold apart."""
    return _judged(text) if len(text) <= _REMEMBERED_CHARS else bool(instructs(text))


@lru_cache(maxsize=4_096)
def _judged(text: str) -> bool:
    if instructs(text):
        return True
    apart = _GLUED.sub(" ", text) if len(text) <= _GLUED_CHARS else text
    return apart != text and bool(instructs(apart))


def texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in a value, the names in its objects too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        for key, item in value.items():
            yield from texts_in(key, depth + 1)
            yield from texts_in(item, depth + 1)
    elif isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        for item in value:
            yield from texts_in(item, depth + 1)


def _hidden(text: str) -> Iterator[str]:
    if not text.isascii():
        bidi = _OVERRIDE.search(text) or (_DIRECTION.search(text) and not _RIGHT_TO_LEFT.search(text))
        unflagged = _FLAG.sub("", text)
        if bidi or _TAGS.search(unflagged) or _SELECTORS.search(text) or _INSIDE_WORDS.search(text):
            yield INVISIBLE
    if any(_reads(run) for run in _decoded(text)):
        yield ENCODED


def _decoded(text: str) -> Iterator[bytes]:
    """What runs of base64 or hex stand for, of the first few."""
    for _, found in zip(range(_RUNS), _RUN.finditer(text), strict=False):
        run = found[0].rstrip("=")
        try:
            yield base64.b64decode(run + "=" * (-len(run) % 4), validate=True)
        except (binascii.Error, ValueError):
            continue
    for _, found in zip(range(_RUNS), _HEX.finditer(text), strict=False):
        yield bytes.fromhex(found[0])


def _reads(content: bytes) -> bool:
    """Whether bytes are words with spaces between them."""
    try:
        return _WORDS.fullmatch(content.decode("ascii")) is not None
    except UnicodeDecodeError:
        return False
