"""Refused and failed calls as entries: the first at once, repeats within a minute summed into one more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from store.errors import DeskbookError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60.0
MOST_OPEN = 1_000

Write = Callable[[int], None]
"""Appends the entry that stands for so many calls."""


@dataclass(slots=True)
class _Repeats:
    since: float
    count: int
    write: Write


class Refusals:
    """Counts repeats by key and writes what is due; what cannot be written is kept and tried again."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[Hashable, _Repeats] = {}
        self._mutex = threading.Lock()

    def note(self, key: Hashable, write: Write) -> None:
        """Count one refusal; the first of its kind is written before this returns."""
        with self._mutex:
            repeats = self._open.get(key)
            if repeats is not None:
                repeats.count += 1
                repeats.write = write
                return
            repeats = _Repeats(self._now(), 0, write)
            if len(self._open) < MOST_OPEN:
                self._open[key] = repeats
        if not _written(write, 1):
            repeats.count += 1

    def flush(self, *, everything: bool = False) -> None:
        """Write the sums of the windows that have ended, or of all of them."""
        now = self._now()
        with self._mutex:
            ended = [
                key
                for key, repeats in self._open.items()
                if everything or now - repeats.since >= WINDOW_SECONDS
            ]
            due = [self._open.pop(key) for key in ended]
        for repeats in due:
            if repeats.count and not _written(repeats.write, repeats.count):
                logger.warning("%d refused or failed calls could not be recorded", repeats.count)


def _written(write: Write, count: int) -> bool:
    try:
        write(count)
    except DeskbookError as fault:
        logger.warning("a refused or failed call is not recorded yet: %s", fault.message)
        return False
    return True
