"""The ledgers this process has open, one for each strategy and run, opened when first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict

from store import Book

from . import __version__
from .settings import Settings

MOST_OPEN = 16


class OpenLedgers:
    """Opens each ledger once and shares it between calls; a failed opening is tried again by the next call."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._books: OrderedDict[tuple[str, str | None], Book] = OrderedDict()
        self._mutex = threading.Lock()

    def book(self, strategy: str, run: str | None, now: int | None) -> Book:
        """The open ledger of a strategy (live) or of one of its runs, which begins at `now` if it is new.

        `now` is the call's simulated time, None when it is live. Raises the StoreError that fits.
        """
        key = (strategy, run)
        with self._mutex:
            found = self._books.get(key)
            if found is None:
                found = self._open(strategy, run, now)
                self._books[key] = found
            self._books.move_to_end(key)
            spare = self._books.popitem(last=False)[1] if len(self._books) > MOST_OPEN else None
        if spare is not None:
            spare.close()
        return found

    def close(self) -> None:
        """Finish what is queued in every ledger and close it."""
        with self._mutex:
            books = list(self._books.values())
            self._books.clear()
        for book in books:
            book.close()

    def _open(self, strategy: str, run: str | None, now: int | None) -> Book:
        store = self._settings.store
        return Book.open(
            store.root,
            strategy,
            run,
            begins=now,
            durability=store.durability,
            zone=self._settings.clock.zone,
            product=f"deskbook {__version__}",
        )
