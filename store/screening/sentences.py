"""What a whole sentence says: of when, of whom, under which condition and in whose view."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .vocabulary import (
    ASPECTS,
    AXES,
    CONDITIONS,
    IN_STATE,
    MONTHS,
    PHRASES,
    RELATIVE_TIMES,
    STOP_WORDS,
    TRADED,
)

Times = frozenset[tuple[str, str]]
_NOWHERE: Times = frozenset()


@dataclass(frozen=True, slots=True)
class Sentence:
    """What holds for each of its parts; `rest` is what it says apart from times and conditions, in small letters."""

    rest: str
    times: Times
    conditions: frozenset[str]
    aspects: frozenset[str]
    names: frozenset[str]
    reported: bool
    traded: bool
    past: frozenset[float]
    """Numbers that something was before, as 180 in "from 180 to 195"."""


_SUM = r"[$€£¥]?\d[\d.,]*\s?[a-z%]{0,4}(?:\s?[-–]\s?[$€£¥]?\d[\d.,]*\s?[a-z%]{0,4})?"
_FROM = re.compile(rf"\bfrom\s({_SUM})\sto\s|\bto\s{_SUM},?\sfrom\s({_SUM})")
_DATE = re.compile(r"\b(20\d\d)-(\d\d)(?:-(\d\d))?\b")
_PERIOD = re.compile(
    r"\b(?:(q[1-4]|[1-4]q|h[12])|fy ?(?:20)?(\d\d)|((?:19|20)\d\d)|cy(?:20)?(\d\d))(?![\d.%])(?:e\b)?"
)
_MONTH = "|".join(MONTHS)
_DAY_OF = re.compile(rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)? ({_MONTH})|({_MONTH}) (\d{{1,2}})(?!\d))\b")
_TIMELY = re.compile(rf"\d|\b(?:this|last|next)\s|\b(?:{'|'.join((*MONTHS, *RELATIVE_TIMES))})\b")
_WHICH = re.compile(
    r"\b(this|last|next)\s(?:week|month|quarter|year|half|session|season|spring|summer|autumn|fall|winter)\b"
)
_REPORTED = re.compile(
    r"\b(?:says?|said|thinks?|believes?|argues?|argued|claims?|claimed|according to|(?:their"
    r"|his|her|street|consensus"
    r"|analyst|sell-side) views?|street view|consensus is|calls for|devil's advocate|for the"
    r" record|not my view)\b"
    r"|^\W{0,2}(?:risk|upside|downside|bull case|bear case|scenario|question|hypothesis)s?\s?:|\?\s{0,2}$"
)
_OWN = re.compile(
    r"\b(?:i|we|management|company|ceo|cfo|guidance|filing|8-k"
    r"|10-[qk])\b[^.;]{0,20}\b(?:says?|said|thinks?|believes?|claims?)"
)
_NAME = re.compile(r"\b[A-Z]{2,5}(?:\.[A-Z])?\b")
_NO_NAMES: Final = frozenset(
    "CEO CFO COO EPS FY PE GAAP ROE DTE ATM OTM ITM IV RSI MA EMA YTD QOQ YOY EOD EU US UK"
    " USA AI GDP CPI PPI PCE ETF IPO"
    " AM PM ET UTC MAX MIN NOT AND OR IF ALL NEVER DO NO".split()
)
_SAID_OF = re.compile(
    r"\b((?:is|are|was|were|stays?|remains?|looks?|seems?)\s(?:very\s|too\s|still\s)?)(high|low)\b"
)
_PHRASE = re.compile(
    r"\b(?:"
    + "|".join(sorted((re.escape(each).replace(r"\ ", "[ -]") for each in PHRASES), key=len, reverse=True))
    + r")\b"
)

_ENDINGS = (
    ("'s", 1), ("’s", 1), ("ations", 4), ("ation", 4), ("ings", 3), ("ing", 3), ("ised", 4), ("ied", 3),
    ("ies", 3), ("ely", 3), ("ed", 3), ("es", 3), ("ly", 4), ("e", 3), ("s", 3),
)  # fmt: skip

_CONDITION = re.compile(rf"\b(?:{'|'.join(sorted(CONDITIONS))})\b[^,;:.]*(?:\.\d[^,;:.]*)*")
_LEVEL = re.compile(r"\b(?:above|below|over|under|beyond)\s[$€£¥]?\d+(?:[.,]\d+)*(?![\d.,]*\s?%)")
_BENT = "|".join(sorted(word for word in AXES if len(word) > 2))
_STATE = re.compile(
    rf"\b(?:{'|'.join(sorted(IN_STATE))})\s(?:an?\s|the\s)?"
    rf"((?:{_BENT}|high|low|steep|flat|quiet|calm|volatile|thin|trending|choppy)\w{{0,3}})"
    r"\s([a-z]+(?:\s(?:regimes?|markets?|environments?|phases?))?)"
)


def read_sentence(sentence: str, own: frozenset[str]) -> Sentence:
    """A sentence with what holds for all of it; `own` are the names of the note's own instrument."""
    lowered = _phrased(sentence.lower())
    times = _times(lowered) if _TIMELY.search(lowered) else _NOWHERE
    plain = _DAY_OF.sub(" ", _PERIOD.sub(" ", _DATE.sub(" ", lowered))) if times else lowered
    conditions, rest = _conditions(plain)
    before = "".join("".join(found) + " " for found in _FROM.findall(plain))
    return Sentence(
        rest=rest,
        times=times,
        conditions=conditions,
        aspects=_ASPECT_WORDS.intersection(map(stem, re.findall(r"[a-z]+", rest))),
        names=frozenset(_NAME.findall(sentence)) - own - _NO_NAMES,
        reported=_REPORTED.search(lowered) is not None and _OWN.search(lowered) is None,
        traded=not TRADED.isdisjoint(lowered.split()),
        past=frozenset(map(number, re.findall(r"\d[\d.,]*", before))),
    )


def apart(one: Sentence, other: Sentence, *, condition: bool = True) -> bool:
    """Whether two sentences are about different times, things or conditions, so that neither speaks of the other."""
    if condition and one.conditions != other.conditions:
        return True
    if (one.names - other.names) and (other.names - one.names):
        return True
    for each in _EXCLUSIVE:
        mine = one.aspects & each
        if mine:
            others = other.aspects & each
            if others and not mine & others:
                return True
    if one.times and other.times:
        for scale in ("year", "part", "month", "day", "relative", "which"):
            mine_at = {value for at, value in one.times if at == scale}
            others_at = {value for at, value in other.times if at == scale}
            if mine_at and others_at and not mine_at & others_at:
                return True
    return False


@lru_cache(maxsize=8_192)
def stem(word: str) -> str:
    """The word without its commonest endings: enough to meet its own other forms."""
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def number(text: str) -> float:
    """The value of digits with their signs of thousands; 0 for what is none."""
    try:
        return float(text.strip(".,").replace(",", ""))
    except ValueError:
        return 0.0


_EXCLUSIVE: Final = tuple(frozenset(map(stem, words)) for words in ASPECTS)
_ASPECT_WORDS: Final = frozenset().union(*_EXCLUSIVE)


def _phrased(lowered: str) -> str:
    plain = lowered.replace("’", "'")
    if "n't" in plain:
        plain = re.sub(r"(\w)n't\b", r"\1 not", plain)
    plain = _SAID_OF.sub(r"\1level\2", plain)
    return _PHRASE.sub(lambda found: PHRASES[found[0].replace("-", " ")], plain)


def _times(lowered: str) -> Times:
    found: set[tuple[str, str]] = set()
    for year, month, day in _DATE.findall(lowered):
        found |= {("year", year), ("month", month)} | ({("day", f"{month}-{day}")} if day else set())
    for part, fiscal, year, calendar in _PERIOD.findall(_DATE.sub(" ", lowered)):
        if part:
            found.add(("part", part if part[0] in "qh" else part[::-1]))
        else:
            found.add(("year", year or f"20{fiscal or calendar}"))
    for day, month, month_before, day_after in _DAY_OF.findall(lowered):
        found.add(("day", f"{MONTHS[month or month_before]:02}-{int(day or day_after):02}"))
    words = re.findall(r"[a-z]+", lowered)
    found |= {("month", f"{MONTHS[word]:02}") for word in words if word in MONTHS}
    found |= {("relative", word) for word in words if word in RELATIVE_TIMES}
    found |= {("which", word) for word in _WHICH.findall(lowered)}
    return frozenset(found)


def _conditions(lowered: str) -> tuple[frozenset[str], str]:
    """The words of every condition, and the sentence without them."""
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        found.extend(
            stem(word) if not word[0].isdigit() else word for word in re.findall(r"\d[\d.]*|[a-z]+", match[0])
        )
        return ", "

    rest = _LEVEL.sub(take, _CONDITION.sub(take, _STATE.sub(take, lowered)))
    return frozenset(found) - STOP_WORDS, rest
