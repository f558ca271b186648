"""How text becomes index terms, the same for what is stored and for what is asked.

Scripts written without spaces (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) are cut into single characters
and overlapping pairs, so that a two-character word is found; symbols such as emoji become terms of their own.
Everything else is left to the full-text tokenizer, which folds case and diacritics and stems English.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_TERM = re.compile(r"\w+")

MAX_QUERY_TERMS = 32
_MOST_MARKS = 30

_STOPWORDS = frozenset(
    "a an and are as at be been but by did do does for from had has have how if in into is it its my not of "
    "on or our so than that the their them then there these they this to was we were what when where which "
    "who why will with you your about any can could give he her his just know me please she should show tell "
    "us would".split()
)


def index_text(text: str) -> str:
    """The form of `text` that the full-text index holds."""
    return _spread(text, lambda run: " ".join((*run, *_pairs(run))))


def count_terms(indexed: str) -> int:
    """How many terms an indexed text has, for length normalisation."""
    return len(_TERM.findall(indexed))


def query_terms(query: str) -> tuple[str, ...]:
    """The distinct terms of a query, in order, at most 32; empty when it holds no letter, digit or symbol.

    English function words are dropped when something else remains, unless they are typed in capitals, since
    they may be tickers (IT, ON, ALL).
    """
    pieces = _spread(query, lambda run: " ".join(_pairs(run) or run)).split()
    found = tuple(dict.fromkeys(piece for piece in pieces if _TERM.search(piece.replace("_", " "))))
    telling = tuple(piece for piece in found if piece.strip(".,;:!?'\"()") not in _STOPWORDS)
    return (telling or found)[:MAX_QUERY_TERMS]


def is_stopword(word: str) -> bool:
    """Whether a word in small letters is an English function word."""
    return word in _STOPWORDS


@lru_cache(maxsize=4_096)
def facet(name: str, value: str) -> str:
    """An index term that stands for one filter condition: digits only, so that no tokenizer bends it."""
    digest = hashlib.blake2b(f"{name}\0{value}".encode(), digest_size=8).digest()
    return f"7{int.from_bytes(digest):020d}"


def same_mark(agent: str, kind: str, symbol: str | None, text: str) -> str:
    """An index term that exact repeats share: the same agent, kind, symbol and text. Not kept, as texts are long."""
    return facet.__wrapped__("same", f"{agent}\0{kind}\0{symbol or ''}\0{text}")


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[at : at + 2] for at in range(len(run) - 1))


def _without_mark_floods(text: str) -> str:
    """The text with at most 30 combining marks in a row, as in Unicode's stream-safe form (UAX 15).

    NFKC takes quadratic time on longer runs, and no writing has them.
    """
    kept, run = [], 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _spread(text: str, cut_run: Callable[[str], str]) -> str:
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", _without_mark_floods(text))
    parts = []
    for character in plain:
        if unicodedata.category(character) == "So":
            parts.append(f" e{ord(character)} ")
        else:
            parts.append(character)
    return _RUN.sub(lambda match: f" {cut_run(match.group())} ", "".join(parts))
