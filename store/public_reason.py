"""Screens what an order may say in public: an unsafe text is left out, and why is said; no order is blocked.

It looks for account data, secrets and identifiers. It is a net with known meshes, not a proof: what it lets pass
still needs its author's judgement before it is published.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from .ids import MEMORY_ID
from .limits import PUBLIC_REASON_BYTES

_MONEY = (
    r"(?:[$€£¥]\s?\d[\d,.]*(?![\d,.]|\s?(?:[bmt]|bn|mn|[bmtr]+illion)\b)"
    r"|\d[\d,.]*\s?(?:k|usd|eur|gbp|jpy|chf|dollars?|euros?)\b)"
)
"""A sum as an account has it: a company's millions are no account's."""
_IS = r"\W{0,3}(?:(?:is|was|of|at|now|stands at|has)\b\W{0,2})?"

_UNSAFE: Final = (
    ("a memory id", MEMORY_ID),
    ("an id of this ledger", re.compile(r"\b(?:ev|ret|ses|store)_[0-9a-z]{13}\b")),
    (
        "a UUID",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
    ),
    ("an e-mail address", re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[^\W\d_]{2,}")),
    ("a private key", re.compile(r"-----BEGIN")),
    (
        "a secret",
        re.compile(
            r"\b(?:sk|pk|rk|ghp|gho|github_pat|xox[abp]|glpat)[-_][A-Za-z0-9_\-]{12,}|\b(?:AKIA|ASIA|AIza)[A-Za-z0-9_\-]{12,}"
        ),
    ),
    ("a secret", re.compile(r"\bBearer [A-Za-z0-9_\-.]*\d[A-Za-z0-9_\-.]*", re.IGNORECASE)),
    (
        "a secret",
        re.compile(
            r"\b(?:api[ _-]?(?:key|secret)|secret(?:[ _-]key)?|password|passphrase)\b\s*(?:[:=]|is\b)"
            r"|\b(?:access |auth )?token\b\s*(?:[:=]|is\b)\s*(?=\S*\d)\S{6,}",
            re.IGNORECASE,
        ),
    ),
    (
        "account data",
        re.compile(
            r"\b(?:account|acct|a/c|iban|routing)\b\W{0,3}(?:(?:number|no|nr|num|id)\b)?"
            rf"{_IS}[#:]?\s?[a-z]{{0,3}}-?\d{{4,}}",
            re.IGNORECASE,
        ),
    ),
    (
        "account data",
        re.compile(
            rf"\b(?:portfolio (?:value|size)|buying power|net liquidation(?: value)?|net worth|account (?:value|size)"
            rf"|(?:account|cash|margin) balance|account equity|balance){_IS}[$€£¥]?\s?\d"
            rf"|\b(?:account|equity|portfolio|cash){_IS}{_MONEY}"
            rf"|\bequity{_IS}\d[\d,]{{4,}}",
            re.IGNORECASE,
        ),
    ),
    ("an IBAN", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b")),
    ("a long number", re.compile(r"(?<![\d.])\d(?:[ -]?\d){8,}(?![\d.])")),
    (
        "a long random text",
        re.compile(
            r"\b(?=[A-Za-z0-9_\-]{24})[A-Za-z0-9_\-]*(?=[A-Za-z0-9]*\d)(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{8,}"
        ),
    ),
)
_MASKED: Final = re.compile(r"\[masked: (an? [A-Za-z -]{2,30})\]")
"""What the screening of every write leaves where a secret was."""

_ALLOWED: Final = frozenset("\n\r\t\u200d")
_CONTROL: Final = "control characters"
_PIECE, _OVERLAP = 1_000, 200
_TIMES: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?\b")
"""Dates and times, whose digits are no account's."""


def screen(text: str | None) -> tuple[str | None, str | None]:
    """The text when it may stand, and why not when it may not; both None when there was none."""
    if text is None or not text.strip():
        return None, None
    size = len(text.strip().encode("utf-8", "surrogatepass"))
    if size > PUBLIC_REASON_BYTES:
        return (
            None,
            f"public_reason was left out: it has {size} bytes, at most {PUBLIC_REASON_BYTES} are allowed.",
        )
    found = next(_found_in(text), None)
    if found == _CONTROL:
        return None, f"public_reason was left out: it holds {found}."
    if found is not None:
        return None, f"public_reason was left out: it seems to hold {found}."
    return text.strip(), None


def findings(text: str) -> tuple[str, ...]:
    """What a text of any length seems to hold that should not be public, each once."""
    return tuple(dict.fromkeys(what for piece in _pieces(text) for what in _found_in(piece)))


def _found_in(text: str) -> Iterator[str]:
    if any(
        unicodedata.category(character).startswith("C") and character not in _ALLOWED for character in text
    ):
        yield _CONTROL
    yield from (found[1] for found in _MASKED.finditer(text))
    undated = _TIMES.sub("(date)", text)
    for what, pattern in _UNSAFE:
        if pattern.search(undated):
            yield what


def _pieces(text: str) -> Iterator[str]:
    """The text in overlapping pieces, cut between words where it can be: the patterns are slow on one long word."""
    start = 0
    while len(text) - start > _PIECE:
        stop = _between_words(text, start + _PIECE - _OVERLAP, start + _PIECE)
        yield text[start:stop]
        start = _between_words(text, stop - 2 * _OVERLAP, stop - _OVERLAP)
    yield text[start:]


def _between_words(text: str, first: int, last: int) -> int:
    """The last place from `first` to `last` that begins a word, else `last`."""
    return next((at for at in range(last, first, -1) if text[at - 1].isspace()), last)
