"""Refused and failed calls as entries: the first at once, repeats within a minute summed into one more."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from store.errors import DeskbookError

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60.0
KINDS = 1_000
LEDGERS = 256
_TOGETHER = "whatever comes on top"

Write = Callable[[int], None]
"""Appends the entry that stands for so many calls."""


@dataclass(slots=True)
class _Repeats:
    since: float
    count: int
    write: Write


class Refusals:
    """Counts repeats by ledger and key, and writes what is due; what cannot be written is kept and tried again.

    A ledger has at most `KINDS` open keys: whatever comes on top is counted together under one. Of more than
    `LEDGERS` ledgers the one that was longest without a refusal is told to the log and forgotten.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: OrderedDict[Hashable, dict[Hashable, _Repeats]] = OrderedDict()
        self._mutex = threading.Lock()

    def note(self, key: Hashable, write: Write, *, at_once: bool = True, ledger: Hashable = None) -> None:
        """Count one refusal of a ledger; the first of its kind is written at once unless `at_once` is false."""
        with self._mutex:
            kinds = self._kinds(ledger)
            if key not in kinds and len(kinds) >= KINDS:
                key = _TOGETHER
            first = key not in kinds
            if not first or not at_once:
                self._owe(kinds, key, write, 1)
                return
            self._owe(kinds, key, write, 0)
        if not _written(write, 1):
            with self._mutex:
                self._owe(self._kinds(ledger), key, write, 1)

    def flush(self, ledger: Hashable = None, *, everything: bool = False) -> None:
        """Write the sums of the windows that have ended, or of all of them; it may wait for the ledger.

        With `ledger` only that one's sums are written, so that no run waits for another's. A sum that cannot be
        written stays owed. At the end, with `everything`, it is told to the log instead.
        """
        for place, key, repeats in self._taken(ledger, everything=everything):
            if not repeats.count or _written(repeats.write, repeats.count):
                continue
            if everything:
                logger.error("%d refused or failed calls could not be recorded", repeats.count)
                continue
            with self._mutex:
                self._owe(self._kinds(place), key, repeats.write, repeats.count)

    def _taken(self, ledger: Hashable, *, everything: bool) -> list[tuple[Hashable, Hashable, _Repeats]]:
        """The windows that are due, taken out."""
        now = self._now()
        with self._mutex:
            due = [
                (place, key, repeats)
                for place, kinds in self._open.items()
                for key, repeats in kinds.items()
                if everything or (now - repeats.since >= WINDOW_SECONDS and _is_due(repeats, place, ledger))
            ]
            for place, key, _ in due:
                del self._open[place][key]
            for place in [place for place, kinds in self._open.items() if not kinds]:
                del self._open[place]
        return due

    def _kinds(self, ledger: Hashable) -> dict[Hashable, _Repeats]:
        kinds = self._open.setdefault(ledger, {})
        self._open.move_to_end(ledger)
        while len(self._open) > LEDGERS:
            _, forgotten = self._open.popitem(last=False)
            if lost := sum(repeats.count for repeats in forgotten.values()):
                logger.error(
                    "%d refused or failed calls could not be recorded: too many ledgers at once", lost
                )
        return kinds

    def _owe(self, kinds: dict[Hashable, _Repeats], key: Hashable, write: Write, count: int) -> None:
        repeats = kinds.get(key)
        if repeats is None:
            kinds[key] = _Repeats(self._now(), count, write)
            return
        repeats.count += count
        repeats.write = write


def _is_due(repeats: _Repeats, place: Hashable, ledger: Hashable) -> bool:
    """Whether an ended window can go now: for the ledger at hand, or because nothing is owed."""
    return ledger in (None, place) or not repeats.count


def _written(write: Write, count: int) -> bool:
    try:
        write(count)
    except DeskbookError as fault:
        logger.warning("a refused or failed call is not recorded yet: %s", fault.message)
        return False
    return True
