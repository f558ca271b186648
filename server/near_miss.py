"""The nearest known word to a mistyped one, for every message that refuses a name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most like `word` (case aside), or None when none is close."""
    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(word[:128].casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for a close known word, else the empty string."""
    close = near_miss(word, known)
    return f' (did you mean "{close}"?)' if close else ""
