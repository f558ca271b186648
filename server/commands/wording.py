"""Words for people: numbers with their noun, and values that Python would spell its own way."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun, such as `1 memory` or `3 memories`."""
    return f"{number} {one if number == 1 else many}"


def worded(value: object) -> str:
    """A value as a person says it: none, yes, no, or as it stands."""
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
