"""The ledgers this process has open, one for each strategy and run, opened when first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path

from store import Book
from store.errors import NotFound, StoreClosed, StoreError, StoreVanished

from . import __version__
from .settings import Settings

MOST_OPEN = 16

_Key = tuple[str, str | None]


class OpenLedgers:
    """Opens each ledger once and shares it between calls; a failed opening is tried again by the next call.

    What was there once is never made anew: a root or ledger that vanished is StoreVanished.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._books: OrderedDict[_Key, Book] = OrderedDict()
        self._openings: dict[_Key, Future[Book]] = {}
        self._known: set[_Key] = set()
        self._root = _identity(settings.store.root)
        self._closed = False
        self._mutex = threading.Lock()

    def book(self, strategy: str, run: str | None, now: int | None) -> Book:
        """The open ledger of a strategy (live) or of one of its runs, which begins at `now` if it is new.

        `now` is the call's simulated time, None when it is live. Raises the StoreError that fits; calls that
        came while one of them was opening share its failure, so that they do not wait in a row.
        """
        key = (strategy, run)
        with self._mutex:
            found = self._books.get(key)
            if found is not None:
                self._books.move_to_end(key)
                return found
            shared = self._openings.get(key)
            opening = shared or self._openings.setdefault(key, Future())
        if shared is None:
            return self._open(key, now, opening)
        fault = shared.exception()
        if fault is None:
            return shared.result()
        if isinstance(fault, StoreError):
            raise fault
        return self.book(strategy, run, now)  # what was wrong was the other call's own

    def close(self) -> None:
        """Finish what is queued in every ledger and close it; a ledger that opens later is closed at once."""
        with self._mutex:
            self._closed = True
            books = list(self._books.values())
            self._books.clear()
        for book in books:
            book.close()

    def _open(self, key: _Key, now: int | None, opening: Future[Book]) -> Book:
        try:
            book = self._open_file(key, now)
        except BaseException as fault:
            with self._mutex:
                del self._openings[key]
            opening.set_exception(fault)
            raise
        with self._mutex:
            del self._openings[key]
            self._known.add(key)
            self._root = self._root or _identity(self._settings.store.root)
            self._books[key] = book
            late = self._books.pop(key) if self._closed else None
            spare = self._books.popitem(last=False)[1] if len(self._books) > MOST_OPEN else None
        if spare is not None:
            spare.close()
        if late is not None:
            late.close()
            closed = StoreClosed("The server is ending; nothing was stored.", hint="Start the server again.")
            opening.set_exception(closed)
            raise closed
        opening.set_result(book)
        return book

    def _open_file(self, key: _Key, now: int | None) -> Book:
        strategy, run = key
        store = self._settings.store
        if self._root is not None and _identity(store.root) != self._root:
            raise _vanished("root")
        try:
            return Book.open(
                store.root,
                strategy,
                run,
                create=key not in self._known,
                begins=now,
                durability=store.durability,
                zone=self._settings.clock.zone,
                product=f"deskbook {__version__}",
            )
        except NotFound:
            raise _vanished("ledger") from None


def _vanished(what: str) -> StoreVanished:
    return StoreVanished(
        f"The store's {what} was removed or replaced under the running server; nothing was stored.",
        hint="Restore it, then start the server again.",
    )


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
