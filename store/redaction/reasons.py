"""Whether the reason of a redaction, which stays, says what the redaction takes away.

Words are runs of letters and digits, capitals or not. A reason tells too much when it shares two words in a row with
what goes, other than words that hold sentences together, or one word that seems to be a name or a number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ..entry import Entry
from ..screening.vocabulary import STOP_WORDS
from .kept import kept_of

NAME_CHARS: Final = 5
"""A shorter word stands in many a reason by chance."""

_WORD: Final = re.compile(r"[^\W_]+")
_OF_THE_SYSTEM: Final = frozenset({"notices", "rendered", "message"})
"""Fields that the system writes; where they repeat a text, it goes from where it was written too."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The words of what goes: those that follow each other, all, and those that seem to be names or numbers."""

    pairs: frozenset[tuple[str, str]] = frozenset()
    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    """Words that stay in the entries' columns, such as the instrument and the author, or that anybody writes."""


def gone_with(entries: Iterable[Entry], texts: Iterable[str] = (), *, in_a_row: bool = True) -> Gone:
    """The words that go with entries' contents, and those of some texts; without `in_a_row` each for itself."""
    pairs: set[tuple[str, str]] = set()
    words: set[str] = set()
    names: set[str] = set()
    common = set(STOP_WORDS)

    def add(text: str) -> None:
        found = _words(text)
        plain = list(map(str.casefold, found))
        words.update(plain)
        names.update(word.casefold() for word in found if _is_name(word))
        if in_a_row:
            pairs.update(pairwise(plain))

    for entry in entries:
        for column in (entry.kind, entry.symbol, entry.agent):
            common.update(map(str.casefold, _words(column or "")))
        content = json.loads(entry.content)
        stays = frozenset(_leaves(kept_of(entry.event_type, content)))
        for leaf in _leaves(content):
            if leaf not in stays:
                add(leaf)
    for text in texts:
        add(text)
    return Gone(frozenset(pairs), frozenset(words), frozenset(names), frozenset(common))


def telling(reason: str, gone: Gone) -> str | None:
    """Which words of a reason say what goes, by their places and never by themselves; None where none do."""
    found = _words(reason)
    plain = list(map(str.casefold, found))
    for place, pair in enumerate(pairwise(plain), start=1):
        if pair in gone.pairs and not gone.common.issuperset(pair):
            return f"its words {place} and {place + 1} stand there in a row"
    for place, (word, written) in enumerate(zip(plain, found, strict=True), start=1):
        # A sentence's first word has its capital from there.
        named = word in gone.names or (word in gone.words and place > 1 and _is_name(written))
        if named and word not in gone.common:
            return f"its word {place}, which seems to be a name or a number, stands there"
    return None


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def _is_name(word: str) -> bool:
    return len(word) >= NAME_CHARS and any(sign.isupper() or sign.isdigit() for sign in word)


def _leaves(value: Any) -> Iterator[str]:
    """Every text and number in a content, and the names in an author's own JSON."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in _OF_THE_SYSTEM:
                yield from _leaves(each)
                if isinstance(each, Mapping):
                    yield from map(str, each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
