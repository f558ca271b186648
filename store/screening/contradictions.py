"""Tells whether a new memory says nearly the same as a standing one, or seems to contradict it, and in what.

It offers, and decides nothing: what it finds is likely, never sure. Words are compared, not meanings: a contradiction
in wholly other words passes. English alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from .sentences import apart
from .wording import COMPARED_CHARS, QUANTITY_STEMS, Amount, Statement, Wording, wording_of

Why = Literal["near_repeat", "direction", "target", "horizon", "number", "negation"]

_OPPOSITE = {"long": "short", "short": "long"}
_DAYS: Final = {
    "minute": 0.01, "min": 0.01, "hour": 0.1, "h": 0.1, "intraday": 1.0, "day": 1.0, "d": 1.0, "session": 1.0,
    "week": 7.0, "w": 7.0, "wk": 7.0, "month": 30.0, "m": 30.0, "mo": 30.0, "quarter": 90.0, "q": 90.0,
    "year": 365.0, "y": 365.0, "yr": 365.0,
}  # fmt: skip
_SPAN = re.compile(r"(\d+(?:\.\d+)?)?(?:\s?(?:-|–|to)\s?(\d+(?:\.\d+)?))?[\s-]?([a-z]+)")
_TARGET = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LONGER = 2.0
"""A horizon is another one when it is more than so many times as long."""
_CLOSE = 0.005
"""Two targets that differ by less than this share are one."""

_REPEAT = 0.8
_REPEAT_WORDS = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """What a memory says: its kind, instrument and text, and of a thesis its terms as typed."""

    kind: str
    symbol: str | None
    text: str
    direction: str | None = None
    target: str | None = None
    horizon: str | None = None

    @property
    def prepared(self) -> Wording:
        """Its text taken apart, once for each text."""
        return wording_of(self.text[:COMPARED_CHARS], self.symbol)


def compare(new: Claim, old: Claim) -> Why | None:
    """In what a new claim seems to contradict an old one, `near_repeat` when it says the same, None when neither."""
    if new.symbol is not None and old.symbol is not None and new.symbol != old.symbol:
        return None
    terms = _terms(new, old)
    if terms is not None:
        return terms
    mine, others = new.prepared, old.prepared
    same_symbol = new.symbol is not None and new.symbol == old.symbol
    if not mine.replaces:
        why = _stances(new, old, mine, others) if same_symbol else None
        why = why or _statements(mine, others, same_symbol)
        if why is not None:
            return why
    return "near_repeat" if _repeats(new, old, mine, others) else None


def _terms(new: Claim, old: Claim) -> Why | None:
    """The terms of two theses on one subject."""
    if new.symbol is None or new.symbol != old.symbol:
        return None
    if new.direction and old.direction and _OPPOSITE.get(new.direction) == old.direction:
        return "direction"
    one, other = _target(new.target), _target(old.target)
    if one is not None and other is not None and abs(one - other) > _CLOSE * max(abs(one), abs(other)):
        return "target"
    mine, others = _days(new.horizon), _days(old.horizon)
    if mine is not None and others is not None and max(mine, others) > _LONGER * min(mine, others):
        return "horizon"
    return None


def _target(text: str | None) -> float | None:
    found = _TARGET.findall(text or "")
    return float(found[0].replace(",", "")) if len(found) == 1 else None


def _days(text: str | None) -> float | None:
    """About how many days a horizon is; None when it does not say."""
    lowered = (text or "").lower()
    if "year end" in lowered or "year-end" in lowered:
        return _DAYS["quarter"]
    for low, high, unit in _SPAN.findall(lowered):
        length = _DAYS.get(unit, _DAYS.get(unit.removesuffix("s")))
        if length is not None:
            return float(high or low or 1) * length
    return None


def _stances(new: Claim, old: Claim, mine: Wording, others: Wording) -> Why | None:
    """Long against short on one instrument, whatever else is said."""
    one, other = _stance(new, mine), _stance(old, others)
    if not one or not other:
        return None
    opposed = one[0] * other[0] < 0
    together = one[1] is None or other[1] is None or not apart(one[1].sentence, other[1].sentence)
    return "direction" if opposed and together else None


def _stance(claim: Claim, wording: Wording) -> tuple[int, Statement | None] | None:
    if claim.direction in _OPPOSITE:
        return (1 if claim.direction == "long" else -1), None
    for each in wording.statements:
        if (
            each.stance
            and not each.observed
            and not each.sentence.reported
            and not each.negated
            and not each.sentence.conditions
        ):
            return each.stance, each
    return None


def _statements(mine: Wording, others: Wording, same_symbol: bool) -> Why | None:
    shared = mine.words & others.words
    if not shared:
        return None
    # What both say word for word they agree on, whatever else stands beside it.
    agreed = mine.said & others.said
    asserted, against = (
        [
            each
            for each in wording.statements
            if not each.sentence.reported and not shared.isdisjoint(each.words) and each.said not in agreed
        ]
        for wording in (mine, others)
    )
    for one in asserted:
        for other in against:
            negated = one.negated != other.negated
            # Asked first, because it costs least and most pairs end here.
            bound = one.sentence.conditions and other.sentence.conditions
            if (negated or bound or (one.sides and other.sides) or (one.amounts and other.amounts)) and not (
                one.observed and other.observed
            ):
                why = _pair(one, other, negated, same_symbol)
                if why is not None:
                    return why
    return None


def _pair(one: Statement, other: Statement, negated: bool, same_symbol: bool) -> Why | None:
    common = one.words & other.words
    shared = len(common)
    if not shared or (not same_symbol and shared < 2):
        return None
    held = shared / min(len(one.words), len(other.words))
    alike = shared / (len(one.words) + len(other.words) - shared)
    # A subject of two words, one of them another, is another subject: its backlog here, and its backlog there.
    if not (held >= 0.5 and (alike >= 0.4 or held == 1.0 or shared >= 2) if same_symbol else held >= 0.6):
        return None
    opposed = _opposed(one, other)
    why: Why | None = None
    if opposed % 2 == 1:
        why = None if negated else "direction"
    if why is None and not negated and alike >= 0.33 and _differ(one.amounts, other.amounts):
        measured = alike == 1.0 and any(each.unit for each in one.amounts)
        why = "number" if shared >= 2 or measured or not QUANTITY_STEMS.isdisjoint(common) else None
    if why is None and not negated and not opposed and _other_bound(one, other):
        return None if apart(one.sentence, other.sentence, condition=False) else "number"
    telling = len(common - one.sentence.conditions)
    if negated and not opposed and alike >= 0.6 and telling >= 2 and not _differ(one.amounts, other.amounts):
        why = "negation"
    return None if why is None or apart(one.sentence, other.sentence) else why


def _other_bound(one: Statement, other: Statement) -> bool:
    """Whether two rules differ in nothing but the number of their condition."""
    mine, others = one.sentence.conditions, other.sentence.conditions
    differ = mine ^ others
    return (
        bool(differ)
        and all(each[0].isdigit() for each in differ)
        and len(mine - others) == len(others - mine)
        and one.words - mine == other.words - others
        and len(one.words - mine) >= 2
    )


def _opposed(one: Statement, other: Statement) -> int:
    """On how many lines two statements stand at opposite ends."""
    return sum((axis, -sign) in other.sides and (axis, sign) not in other.sides for axis, sign in one.sides)


def _differ(mine: tuple[Amount, ...], others: tuple[Amount, ...]) -> bool:
    """Whether each says another number in the same unit: where the units meet once, so that it is one quantity."""
    if any(one.before and one.low == other.low for one in mine for other in others if not other.before):
        return False  # it says itself what it was before
    same = {(each.low, each.high, each.unit) for each in mine}
    same &= {(each.low, each.high, each.unit) for each in others}
    mine, others = (
        tuple(each for each in side if (each.low, each.high, each.unit) not in same)
        for side in (mine, others)
    )
    pairs = [
        (one, other)
        for one in mine
        for other in others
        if one.unit == other.unit and not one.before and not other.before
    ]
    if (
        not pairs
        or len(pairs) != len({one for one, _ in pairs})
        or len(pairs) != len({other for _, other in pairs})
    ):
        return False
    return all(one.high < other.low or other.high < one.low for one, other in pairs)


def _repeats(new: Claim, old: Claim, mine: Wording, others: Wording) -> bool:
    if (
        new.symbol != old.symbol
        or new.kind != old.kind
        or mine.numbers != others.numbers
        or mine.marks != others.marks
    ):
        return False
    if (new.direction, _target(new.target), _days(new.horizon)) != (
        old.direction,
        _target(old.target),
        _days(old.horizon),
    ):
        return False
    if mine.words == others.words:
        return bool(mine.words)
    shared = len(mine.words & others.words)
    return shared >= _REPEAT_WORDS and shared >= _REPEAT * len(mine.words | others.words)
