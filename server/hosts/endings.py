"""Which line ending a text has, so that what is added has the same."""

from __future__ import annotations


def newline_of(text: str) -> str:
    """The line ending of the first line, or a line feed where there is none."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
