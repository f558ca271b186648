"""What a check found: how it stands, in words for a person, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from store.errors import DeskbookError


class Mark(StrEnum):
    """How a thing stands: as it should, worth a look, or wrong."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    `next` is what to do, None where there is nothing to; `lines` are what another program said of it. Texts may
    hold what others wrote, so whoever prints them takes care of control characters.
    """

    name: str
    mark: Mark
    found: str
    next: str | None = None
    lines: tuple[str, ...] = ()

    def record(self) -> Mapping[str, Any]:
        """The finding as JSON values."""
        return {
            "check": self.name,
            "mark": self.mark.value.lower(),
            "found": self.found,
            "lines": list(self.lines),
            "next": self.next,
        }


def ok(name: str, found: str) -> Finding:
    """As it should be."""
    return Finding(name, Mark.OK, found)


def warn(name: str, found: str, todo: str) -> Finding:
    """Worth a look: it works, or may be meant so."""
    return Finding(name, Mark.WARN, found, todo)


def fail(name: str, found: str, todo: str | None, lines: tuple[str, ...] = ()) -> Finding:
    """Wrong: something will not work; without `todo` where what was found says all."""
    return Finding(name, Mark.FAIL, found, todo, lines)


def fault(name: str, error: DeskbookError) -> Finding:
    """An error of ours as what was found, with its place and its hint."""
    where = "" if error.where is None or str(error.where) in error.message else f" ({error.where})"
    return fail(name, f"{error.message}{where}", error.hint)
