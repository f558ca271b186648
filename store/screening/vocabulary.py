"""The words of trading notes that turn a claim round or set its subject apart, as tables.

Stems are those of `wording.stem`; a phrase of two words is one word, joined by an underscore.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a an the of for to in on at by with from into over under as is are was were be been being am do does did
    doing has have had having will would shall should can could may might must it its this that these those
    there here i me my we our you your he she they them their his her who which what and or but so than then
    just also very more most much still again keep keeps kept always ever every each all any some about around
    near roughly circa per via vs against up_to it's i'm we're one's s t us let get gets got go goes going come
    comes came sit sits stand stands see seen sees look looks seem seems remain remains stay stays stayed
    continue_to expect expects expected think thinks want wants minus plus now while because since only too
    however though rather quite such both either own same other another if when
    """.split()
)

PHRASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "short interest": "shortinterest",
        "short covering": "shortcovering",
        "short sellers": "shortsellers",
        "short sale": "shortsale",
        "short selling": "shortselling",
        "short squeeze": "shortsqueeze",
        "short float": "shortinterest",
        "short term": "shortterm",
        "long term": "longterm",
        "near term": "shortterm",
        "short dated": "shortdated",
        "long dated": "longdated",
        "front month": "shortdated",
        "back month": "longdated",
        "long lunch": "lunch",
        "as long as": "if",
        "before long": "soon",
        "no longer": "not",
        "so long": "if",
        "buy side": "buyside",
        "sell side": "sellside",
        "selling pressure": "sellers",
        "buying pressure": "buyers",
        "buying interest": "buyers",
        "selling interest": "sellers",
        "sell off": "selloff",
        "pick up": "rise",
        "picked up": "rose",
        "picks up": "rises",
        "size up": "upsize",
        "size down": "downsize",
        "risk on": "riskon",
        "risk off": "riskoff",
        "data center": "datacenter",
        "data centre": "datacenter",
        "take profit": "takeprofit",
        "pays off": "payoff",
        "paid off": "payoff",
        "pay off": "payoff",
        "not just": "also",
        "not only": "also",
        "not merely": "also",
        "year end": "yearend",
        "cut off": "cutoff",
        "break even": "breakeven",
        "drop in": "falling",
        "interest rate": "rates",
        "stop loss": "stop",
        "first quarter": "q1",
        "second quarter": "q2",
        "third quarter": "q3",
        "fourth quarter": "q4",
        "first half": "h1",
        "second half": "h2",
    }
)
"""Phrases whose words mean something else alone."""

_AXES = """
stance: long bullish bull overweight upgrade upgraded outperform uptrend
  | short bearish bear underweight downgrade downgraded underperform downtrend
trade: buy accumulate | sell trim
move: rise rose risen rising up upside higher raise increase grow grew expand accelerat improv climb widen hike gain
    jump surge strengthen upsize rally recover expan better
  | fall fell fallen falling down downside lower cut decreas shrink shrank slow deteriorat declin drop narrow
    lose lost tumble weaken downsize slip shed fade reduc worsen worse
surprise: beat exceed | miss undershoot
tone: hawkish | dovish
sign: positive supportive tailwind favourable favorable good | negative headwind unfavourable unfavorable bad
profit: profitable profit | unprofitable loss
flow: buyers inflow inflows | sellers outflow outflows
price: cheap undervalued oversold | expensive overvalued overbought rich
force: strong tight scarce | weak loose soft ample plentiful
level: levelhigh elevated | levellow subdued
mood: riskon | riskoff
pace: ahead lead outpace | behind lag trail
degree: lot plenty greatly | little barely slightly
word: confirm approve resume | deny denied reject suspend
lasting: transitory temporary | sticky persistent permanent
risk: safe | risky dangerous
work: easy | hard difficult
liquid: liquid | illiquid
value: premium | discount
crowd: longs | shorts
"""
NEGATIONS: Final = frozenset(
    "not no never cannot rarely seldom hardly avoid neither nor none nobody without fail fails failed".split()
)

ASPECTS: Final = tuple(
    frozenset(line.split())
    for line in """
    entry stop target limit trigger takeprofit
    support resistance
    gross net operating ebitda
    intraday hourly daily weekly monthly quarterly yearly annual
    shortdated longdated shortterm longterm
    call put
    high low
    bid ask mid
    min max minimum maximum
    steep flat steepen flatten
    revenue earning eps margin capex cash debt dividend buyback backlog inventor
    us eu china japan europe asia india worldwide global
    desktop laptop server mobile cloud datacenter retail advertising
    bullside bearside
    buyside sellside
    first second third last
    small mid_cap large
    open_drive close_drive
    core headline
    spot future perpetual
    """.strip().splitlines()
)
"""Words of one line name different things: a stop is no entry, a gross margin no net one."""

OBSERVED: Final = frozenset(
    """
    closed traded opened printed settled sold bought covered trimmed added filled stopped shorted
    entered exited booked rolled hit made earned hired assigned expired
    took
    """.split()
)
"""A statement with one of these tells what was seen or done at one time, which another time does not contradict."""

TRADED: Final = frozenset("bought sold covered trimmed added shorted entered exited rolled booked".split())
"""With one of these a whole sentence tells of a trade, its stop and target too."""

MOVES: Final = frozenset("plus minus up down".split())
"""A number after one of these is how far something moved that day."""

QUANTITIES: Final = frozenset(
    """
    guidance guide target dividend stop weight size margin position yield allocation growth capex eps revenue earnings
    rate limit multiple exposure cap payout leverage threshold budget valuation probability tax fee commission
    occupancy
    """.split()
)
"""What a number can be of, so that this one word is subject enough."""

CONDITIONS: Final = frozenset(
    "if when whenever while once unless until after before during amid provided".split()
)
IN_STATE: Final = frozenset("in on with under at".split())
CLASSES: Final = frozenset(
    "call put straddle strangle condor spread vol volatility premium protection gamma option".split()
)
"""What is bought or sold here says nothing of the instrument's direction."""

NUMBER_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    dict(
        zip(
            "two three four five six seven eight nine ten eleven twelve".split(),
            "2 3 4 5 6 7 8 9 10 11 12".split(),
            strict=True,
        )
    )
)

MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {
        name: number
        for number, names in enumerate(
            "january jan|february feb|march mar|april apr|may_|june jun|july jul|august aug|september sep sept"
            "|october oct|november nov|december dec".split("|"),
            1,
        )
        for name in names.split()
    }
)
RELATIVE_TIMES: Final = frozenset("today yesterday tomorrow monday tuesday wednesday thursday friday".split())


def _axes() -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for line in _AXES.replace("\n  ", " ").strip().splitlines():
        axis, _, sides = line.partition(":")
        for sign, side in zip((1, -1), sides.split("|"), strict=True):
            found |= {word: (axis.strip(), sign) for word in side.split()}
    return found


AXES: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(_axes())
"""Words with an opposite: the line they lie on, and which end."""
