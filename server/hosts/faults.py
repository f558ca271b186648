"""Why the text of a host's file cannot be edited; the one who knows the file's name turns it into an error."""

from __future__ import annotations


class UnreadableText(Exception):
    """The text does not parse; `line` and `column` count from 1, or are 0 where the parser names none."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


class UneditableText(Exception):
    """The text parses, but there is no safe place for the change in it."""
