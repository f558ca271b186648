"""Commands in hints as a person has to type them: with the config and the root that this run had."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from store.errors import DeskbookError

from .settings import Settings

_COMMAND: Final = re.compile(r"`deskbook ([^`]+)`")
_WITHOUT_PLACE: Final = frozenset({"init", "demo", "uninstall"})


def place_words(settings: Settings) -> list[str]:
    """The options that lead another command to the same config and root."""
    words = [] if settings.config is None else ["--config", str(settings.config)]
    if settings.set_at_launch("store.root"):
        words += ["--root", str(settings.store.root)]
    return words


def with_place(text: str, place: Sequence[str]) -> str:
    """The text with each of our commands in it completed by these options, where it takes them and has none."""
    return _COMMAND.sub(lambda found: f"`deskbook {_completed(found[1], place)}`", text)


@contextmanager
def hints_with_place(settings: Settings) -> Iterator[None]:
    """Complete the commands in the hint of an error that is raised inside."""
    try:
        yield
    except DeskbookError as error:
        error.hint = error.hint and with_place(error.hint, place_words(settings))
        raise


def _completed(command: str, place: Sequence[str]) -> str:
    words = command.split()
    if words[0] in _WITHOUT_PLACE or "--help" in words or words == ["install"]:
        return command
    if words[0] == "doctor" and ("--url" in words or not all(word.startswith("--") for word in words[1:2])):
        return command
    pairs = zip(place[::2], place[1::2], strict=True)
    missing = [word for option, value in pairs if option not in words for word in (option, value)]
    return f"{command} {shlex.join(missing)}" if missing else command
