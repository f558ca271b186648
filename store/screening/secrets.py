"""Finds secrets in text: keys, tokens, passwords, numbers of accounts and cards; and masks them.

It is a net with known meshes: a secret without a shape or a label of its own passes. Prices, times, instruments, ids
and hashes are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from .account_numbers import account_numbers
from .labelled import labelled
from .shapes import BESIDE_KEY, BY_SIGN, KEY, PEM, PEM_BEGIN, PEM_END, Shape

_ONE_WORD = re.compile(r"[\w.+%-]{0,11}")
"""A number or a name, as JSON is full of: shorter than any secret that no label gives away."""
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Secret:
    """What it seems to be, such as "an API key", and where it stands."""

    what: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every secret in the text, in order and without overlap; of two that overlap, the one that begins first."""
    if _ONE_WORD.fullmatch(text):
        return ()
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters become two; places have to stay what they are
        lowered = text.translate(_SMALL)
    found = sorted(_all_of(text, lowered), key=lambda each: (each[1], -each[2]))
    kept: list[Secret] = []
    for what, start, end in found:
        if not kept or start >= kept[-1].end:
            kept.append(Secret(what, start, end))
        elif end > kept[-1].end:
            # Nothing of the second may stay behind the first.
            kept[-1] = Secret(kept[-1].what, kept[-1].start, end)
    return tuple(kept)


def mask(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with `[masked: an API key]` in the place of each secret, and what was masked."""
    found = find_secrets(text)
    pieces, place = [], 0
    for secret in found:
        pieces += [text[place : secret.start], masked_as(secret.what)]
        place = secret.end
    return "".join((*pieces, text[place:])), tuple(secret.what for secret in found)


def masked_as(what: str) -> str:
    """What stands in the place of a secret."""
    return f"[masked: {what}]"


def _all_of(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    for sign, shapes in BY_SIGN:
        if sign in text:
            for shape in shapes:
                if shape.head in text:
                    yield from _of_shape(text, shape)
    if "-----begin" in lowered:
        yield from _private_keys(text)
    yield from labelled(text, lowered)
    yield from account_numbers(text, lowered)


def _of_shape(text: str, shape: Shape) -> Iterator[tuple[str, int, int]]:
    for found in shape.pattern.finditer(text):
        if shape.fits is None or shape.fits(found[0]):
            yield shape.what, *found.span()
            if shape.what == KEY and (second := BESIDE_KEY.match(text, found.end())):
                yield "a secret key", *second.span(1)


def _private_keys(text: str) -> Iterator[tuple[str, int, int]]:
    """Whole blocks; one that never ends takes the rest of the text."""
    place = 0
    while begun := PEM_BEGIN.search(text, place):
        ended = PEM_END.search(text, begun.end())
        place = ended.end() if ended else len(text)
        yield PEM, begun.start(), place
