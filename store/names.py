"""What a strategy, run, agent, key or identifier may be called."""

from __future__ import annotations

import unicodedata

from .limits import IDENTIFIER_CHARS

_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def name_fault(text: str) -> str | None:
    """Say what keeps `text` from being a name or identifier, or None when nothing does."""
    if not text:
        return "is empty"
    if len(text) > IDENTIFIER_CHARS:
        return f"has {len(text)} characters, more than {IDENTIFIER_CHARS}"
    if any(unicodedata.category(character) in _UNPRINTABLE for character in text):
        return "holds a control character"
    return None
