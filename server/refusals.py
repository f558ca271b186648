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
    ledger: Hashable


class Refusals:
    """Counts repeats by key and writes what is due; what cannot be written is kept and tried again."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[Hashable, _Repeats] = {}
        self._mutex = threading.Lock()

    def note(self, key: Hashable, write: Write, *, at_once: bool = True, ledger: Hashable = None) -> None:
        """Count one refusal of a ledger; the first of its kind is written at once unless `at_once` is false."""
        with self._mutex:
            first = key not in self._open
            if not first or not at_once:
                self._owe(key, write, 1, ledger)
                return
            self._owe(key, write, 0, ledger)
        if not _written(write, 1):
            with self._mutex:
                self._owe(key, write, 1, ledger)

    def flush(self, ledger: Hashable = None, *, everything: bool = False) -> None:
        """Write the sums of the windows that have ended, or of all of them; it may wait for the ledger.

        With `ledger` only that one's sums are written, so that no run waits for another's. A sum that cannot be
        written stays owed. At the end, with `everything`, it is told to the log instead.
        """
        now = self._now()
        with self._mutex:
            ended = [
                key
                for key, repeats in self._open.items()
                if everything or (now - repeats.since >= WINDOW_SECONDS and _is_due(repeats, ledger))
            ]
            due = [(key, self._open.pop(key)) for key in ended]
        for key, repeats in due:
            if not repeats.count or _written(repeats.write, repeats.count):
                continue
            if everything:
                logger.error("%d refused or failed calls could not be recorded", repeats.count)
                continue
            with self._mutex:
                self._owe(key, repeats.write, repeats.count, repeats.ledger)

    def _owe(self, key: Hashable, write: Write, count: int, ledger: Hashable) -> None:
        repeats = self._open.get(key)
        if repeats is not None:
            repeats.count += count
            repeats.write = write
        elif len(self._open) < MOST_OPEN:
            self._open[key] = _Repeats(self._now(), count, write, ledger)
        elif count:
            logger.error("%d refused or failed calls could not be recorded: too many kinds at once", count)


def _is_due(repeats: _Repeats, ledger: Hashable) -> bool:
    """Whether an ended window can go now: for the ledger at hand, or because nothing is owed."""
    return ledger in (None, repeats.ledger) or not repeats.count


def _written(write: Write, count: int) -> bool:
    try:
        write(count)
    except DeskbookError as fault:
        logger.warning("a refused or failed call is not recorded yet: %s", fault.message)
        return False
    return True
