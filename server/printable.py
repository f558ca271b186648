"""Text that others wrote, made fit to be shown to a person: nothing in it drives a terminal or hides from the eye."""

from __future__ import annotations

_KEPT = {"\n", "\t"}


def plain(text: str) -> str:
    """Text without control and formatting characters, which are shown as escapes."""
    return "".join(
        character if character.isprintable() or character in _KEPT else _escape(ord(character))
        for character in text
    )


def _escape(point: int) -> str:
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
