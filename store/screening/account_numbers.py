"""Numbers of accounts and cards: those whose check digits fit, and those that a label names.

IBANs are checked by ISO 13616 (length for each country, ISO 7064 mod 97-10), cards by ISO/IEC 7812 (Luhn), routing
numbers by the checksum of the ABA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

_LENGTHS = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21
LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22
RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""
IBAN_LENGTHS: Final = MappingProxyType({word[:2]: int(word[2:]) for word in _LENGTHS.split()})

_DIGITS = re.compile(r"\d{4}|\d\d-\d\d-\d\d")
"""Every number below has such a run; most notes have none."""

# These begin with a digit, which a search finds at once, and only then look back.
_IBAN_CHECK = re.compile(
    r"\d\d(?<=[A-Za-z]{2}\d\d)(?<![A-Za-z0-9][A-Za-z]{2}\d\d)(?=[ -]?[A-Za-z0-9]{4})", re.ASCII
)
_CARD = re.compile(
    r"\d(?<![\w.,$€£¥+-]\d)(?:\d{12,15}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}|\d{3}([ -])\d{6}\2\d{5})(?![\w]|[.,-]\d)"
)
_CARD_START = re.compile(r"4|5[1-5]|2(?:2[2-9]|[3-6]|7[01])|3[47]|6(?:011|5|4[4-9])")
_CARD_SIZES = (13, 15, 16)
_NAMES_ANOTHER_THING = re.compile(
    r"(?:order|trade|exec(?:ution)?|fill|client|ref(?:erence)?|id|no|number|volume|vol|shares"
    r"|txn?|nonce|epoch|#)\W{0,3}$",
    re.IGNORECASE,
)
_NOT_LONGER = r"(?![\w]|[.,:/-]?\d|\s?(?:%|shares|usd|eur|dollars))"
_ACCOUNT = re.compile(
    r"\b(?:account|acct|a/c|konto|kontonummer)\b\.?\s{0,2}"
    r"(?:(?P<numbered>(?:number|num|nr|no|id)\b\.?|#)\s{0,2})?(?:(?:is|was|[:=#])\s{0,2}){0,2}"
    rf"(?P<number>(?:[A-Za-z]{{1,4}}-?)?\d{{4,20}}(?:-\d{{1,6}})?){_NOT_LONGER}",
    re.IGNORECASE | re.ASCII,
)
_ACCOUNT_LABEL = re.compile(r"account|acct|a/c|konto")
_PLAIN = re.compile(r"\b(?:is|was)\b|=", re.IGNORECASE)
_ROUTING = re.compile(
    r"\b(?:routing|aba|rtn)\b(?:\s{1,2}(?:transit\s)?(?:number|num|no)\b\.?)?\s{0,2}(?:is\b|[:=#])?\s{0,2}"
    rf"(?P<number>\d{{9}}){_NOT_LONGER}",
    re.IGNORECASE | re.ASCII,
)
_SORT_CODE = re.compile(r"\bsort[ -]?code\W{0,3}(?P<number>\d{2}-?\d{2}-?\d{2})\b", re.IGNORECASE | re.ASCII)
_SOCIAL = re.compile(
    r"\b(?:ssn|social security(?: (?:number|no\.?))?)\W{0,3}(?:is\s)?(?P<number>\d{3}-?\d{2}-?\d{4})\b",
    re.IGNORECASE | re.ASCII,
)


def account_numbers(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """What each number is and where it stands; `lowered` is the same text in small letters."""
    if _DIGITS.search(text) is None:
        return
    yield from _ibans(text)
    yield from _cards(text)
    yield from _accounts(text, lowered)
    for what, marks, pattern, fits in _LABELLED:
        if any(mark in lowered for mark in marks):
            for found in pattern.finditer(text):
                if fits is None or fits(found["number"]):
                    yield what, *found.span("number")


def _ibans(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _IBAN_CHECK.finditer(text):
        start = found.start() - 2
        length = IBAN_LENGTHS.get(text[start : start + 2].upper())
        end = start if length is None else _end_of(text, start, length)
        plain = text[start:end].replace(" ", "").replace("-", "").upper()
        if plain and int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1:
            yield "an IBAN", start, end


def _end_of(text: str, start: int, length: int) -> int:
    """Where so many letters and digits end, single spaces or hyphens between them; `start` when they are no word."""
    place, taken, gap = start, 0, False
    while taken < length and place < len(text):
        character = text[place]
        if character.isascii() and character.isalnum():
            taken, gap = taken + 1, False
        elif character in " -" and not gap:
            gap = True
        else:
            return start
        place += 1
    goes_on = place < len(text) and text[place].isalnum()
    return start if taken < length or goes_on else place


def _cards(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _CARD.finditer(text):
        digits = found[0].replace(" ", "").replace("-", "")
        if len(digits) not in _CARD_SIZES or not _CARD_START.match(digits) or not _luhn(digits):
            continue
        before = text[max(0, found.start() - 24) : found.start()]
        grouped = len(digits) != len(found[0])
        if grouped or "card" in before.lower() or not _NAMES_ANOTHER_THING.search(before):
            yield "a card number", *found.span()


def _luhn(digits: str) -> bool:
    total = sum(sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(reversed(digits)))
    return total % 10 == 0


def _accounts(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    for label in _ACCOUNT_LABEL.finditer(lowered):
        found = _ACCOUNT.match(text, label.start())
        if found is None:
            continue
        digits = sum(map(str.isdigit, found["number"]))
        said_plainly = _PLAIN.search(found[0][: found.start("number") - found.start()]) is not None
        # "account 250000" is a sum more often than a number, "account is 1250000" too.
        least = 4 if found["numbered"] else 7 if found["number"][0].isdigit() else 5
        if digits >= least and (found["numbered"] or not said_plainly):
            yield "an account number", *found.span("number")


def _routes(digits: str) -> bool:
    weights = (3, 7, 1) * 3
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 10 == 0


_LABELLED = (
    ("a routing number", ("routing", "aba", "rtn"), _ROUTING, _routes),
    ("a sort code", ("sort",), _SORT_CODE, None),
    ("a social security number", ("ssn", "social security"), _SOCIAL, None),
)
