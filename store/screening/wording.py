"""Takes a note apart into statements that can be held against those of another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .sentences import Sentence, number, read_sentence, stem
from .vocabulary import AXES, CLASSES, MOVES, NEGATIONS, NUMBER_WORDS, OBSERVED, QUANTITIES, STOP_WORDS

COMPARED_CHARS: Final = 4_000
"""What stands later in a very long note is not compared."""
_STATEMENTS = 24

Sides = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or a range of them, and its unit."""

    low: float
    high: float
    unit: str
    before: bool = False
    """Whether it is what something was, as the first number of "from 180 to 195"."""


Said = tuple[frozenset[str], Sides, bool, tuple[Amount, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    """One part of a sentence: its subject, which ends of which lines it names, its numbers."""

    sentence: Sentence
    words: frozenset[str]
    sides: Sides
    negated: bool
    amounts: tuple[Amount, ...]
    observed: bool
    stance: int
    """Long or bullish 1, short or bearish -1, else 0."""

    @property
    def said(self) -> Said:
        """What it says, apart from when and under which condition."""
        return self.words, self.sides, self.negated, self.amounts


@dataclass(frozen=True, slots=True)
class Wording:
    """A whole note: its statements, its telling words and numbers, and whether it says that it replaces another."""

    statements: tuple[Statement, ...]
    said: frozenset[Said]
    words: frozenset[str]
    numbers: tuple[str, ...]
    marks: frozenset[object]
    """Every time, condition, side and negation in it."""
    replaces: bool


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])|\n+|\.$")
_PART = re.compile(r"[,;]\s+|:\s+|\s[-–—]\s|\s\(|\)")
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{6,400}[\"”“»]")
_TOKEN = re.compile(
    r"[$€£¥]?\d[\d,]*(?:\.\d+)?(?:\s?(?:%|percent|pct|bps|bp|bn|mn|[kmbxr](?![a-z])|usd|eur"
    r"|dollars|days?|weeks?|months?|years?|minutes?|hours?))?"
    r"|[a-z][a-z'’]*[a-z]|[a-z]"
)
_AMOUNT = re.compile(r"([$€£¥]?)(\d[\d,]*(?:\.\d+)?)\s?(\D*)")
_RANGE = re.compile(r"(\d[\d.,]*)\s?(?:%|bn|m|k)?\s?(?:-|–|to)\s?([$€£¥]?\d[\d.,]*)")
_REPLACES = re.compile(
    r"\b(?:update[ds]?\b|supersed\w+|replac(?:e|es|ed|ing) (?:the|my|our|an?) (?:earlier"
    r"|previous|old|prior|note|view)"
    r"|revis(?:e|es|ed|ing) (?:the|my|our|down|up)|correct(?:ion|ed|s|ing)\b|previously"
    r"|formerly|instead of|changed my (?:mind|view)"
    r"|replacing the\b|moved\b[^.;]{0,40}\bfrom\b|changed\b[^.;]{0,40}\bfrom\b|was wrong)"
)
_AXIS_UNITS = {
    "percent": "%",
    "pct": "%",
    "bp": "bps",
    "usd": "$",
    "dollars": "$",
    "eur": "€",
    "mn": "m",
    "b": "bn",
}
QUANTITY_STEMS: Final = frozenset(map(stem, QUANTITIES))


@lru_cache(maxsize=1_024)
def wording_of(text: str, symbol: str | None) -> Wording:
    """The note taken apart; its own instrument is no telling word."""
    own = frozenset(re.split(r"[^A-Z0-9]+", symbol.upper())) - {""} if symbol else frozenset()
    quoted = _QUOTED.sub(" ", text)
    statements: list[Statement] = []
    for sentence in _SENTENCE.split(quoted):
        if sentence and sentence.strip() and len(statements) < _STATEMENTS:
            read = read_sentence(sentence, own)
            statements += [each for part in _PART.split(read.rest) if (each := _statement(part, own, read))]
    marks: set[object] = set()
    for each in statements:
        marks.update(each.sentence.times, each.sides, each.sentence.conditions, (each.negated,))
    return Wording(
        statements=tuple(statements),
        said=frozenset(each.said for each in statements),
        words=frozenset(word for each in statements for word in each.words),
        numbers=tuple(sorted(re.findall(r"\d+(?:[.,]\d+)*", " ".join(_spelled(text.lower()))))),
        marks=frozenset(marks),
        replaces=_REPLACES.search(text.lower()) is not None,
    )


def _spelled(lowered: str) -> list[str]:
    return [NUMBER_WORDS.get(word, word) for word in re.findall(r"[\w.,']+", lowered)]


def _statement(part: str, own: frozenset[str], sentence: Sentence) -> Statement | None:
    words: set[str] = set()
    sides: set[tuple[str, int]] = set()
    negations, observed = 0, sentence.traded
    tokens = _TOKEN.findall(part)
    amounts = _amounts(part, tokens, sentence.past)
    for place, token in enumerate(tokens):
        if token in NEGATIONS:
            negations += 1
            continue
        root = stem(token)
        if (
            token.upper() in own
            or STOP_WORDS.intersection((token, root))
            or len(token) < 2
            or _is_number(token)
        ):
            continue
        observed = observed or token in OBSERVED
        side = AXES.get(token) or AXES.get(root)
        if side is not None and not _of_options(tokens, place):
            sides.add(side)
        else:
            words.add(root)
    if not words and not sides and not amounts:
        return None
    held = frozenset(words) | sentence.conditions
    # "Buy NVDA" alone is a view; "buy dips" is one of the dips.
    views = ("stance",) if held or amounts else ("stance", "trade")
    stance = sum(sign for axis, sign in sides if axis in views)
    return Statement(sentence, held, frozenset(sides), negations % 2 == 1, amounts, observed, stance)


def _is_number(token: str) -> bool:
    return token[0] in "0123456789$€£¥" or token in NUMBER_WORDS


def _of_options(tokens: list[str], place: int) -> bool:
    """Whether what is bought or sold is an option or volatility, which is a view of something else."""
    return tokens[place] in ("buy", "sell") and not CLASSES.isdisjoint(
        map(stem, tokens[place + 1 : place + 4])
    )


def _amounts(part: str, tokens: list[str], past: frozenset[float]) -> tuple[Amount, ...]:
    found = []
    for place, token in enumerate(tokens):
        if _is_number(token) and not (place and tokens[place - 1] in MOVES):
            spoken = NUMBER_WORDS.get(token, token)
            following = tokens[place + 1] if place + 1 < len(tokens) else ""
            found.append(_amount(spoken, following if spoken != token else "", past))
    return _ranges(part, tuple(found)) if len(found) > 1 else tuple(found)


def _amount(token: str, following: str, past: frozenset[float]) -> Amount:
    found = _AMOUNT.fullmatch(token)
    if found is None:
        return Amount(0.0, 0.0, "?")
    money, digits, unit = found.groups()
    unit = unit.strip()
    value = number(digits)
    scale = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9}.get(unit)
    if scale is not None:
        value, unit = value * scale, ""
    unit = _AXIS_UNITS.get(unit, unit.rstrip("s") if len(unit) > 3 else unit)
    return Amount(value, value, unit or money or stem(following), number(digits) in past)


def _ranges(part: str, amounts: tuple[Amount, ...]) -> tuple[Amount, ...]:
    """Two numbers that are the ends of one range become one amount."""
    ends = [(number(low), number(high.lstrip("$€£¥"))) for low, high in _RANGE.findall(part)]
    found, skip = [], False
    for place, amount in enumerate(amounts):
        if skip:
            skip = False
            continue
        after = amounts[place + 1] if place + 1 < len(amounts) else None
        if (
            after is not None
            and not amount.before
            and (amount.low, after.low) in ends
            and amount.low < after.low
        ):
            found.append(Amount(amount.low, after.low, after.unit or amount.unit))
            skip = True
        else:
            found.append(amount)
    return tuple(found)
