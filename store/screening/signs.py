"""What a sign of text that instructs its reader is, and the reasons that one can give."""

from __future__ import annotations

import re
from dataclasses import dataclass

OVERRIDES = "overrides earlier instructions"
ROLE = "imitates a chat role or tool result"
ADDRESSES = "addresses its reader as an AI agent"
CLAIMS = "claims authority or trust for itself"
TOOL = "orders a tool call"
HIDES = "asks to hide something from the user"
INVISIBLE = "hides text"
ENCODED = "holds an encoded text"


@dataclass(frozen=True, slots=True)
class Sign:
    """One pattern; it is tried only where one of the marks stands, which most notes have none of."""

    why: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def sign(why: str, marks: str, pattern: str) -> Sign:
    """A sign whose marks are words between spaces; `~` in one is a space."""
    return Sign(
        why, tuple(mark.replace("~", " ") for mark in marks.split()), re.compile(pattern, re.MULTILINE)
    )
