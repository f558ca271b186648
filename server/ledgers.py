"""The ledgers this process has open, one for each strategy and run, opened when first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store import Book
from store.errors import NotFound, StoreClosed, StoreError, StoreVanished

from . import __version__
from .settings import Settings

MOST_OPEN = 16

_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Shared:
    book: Book
    users: int


class OpenLedgers:
    """Opens each ledger once and shares it between calls; a failed opening is tried again by the next call.

    Beyond 16 the one longest out of use is closed, never one that a call is using. What was there once is never
    made anew: a root or ledger that vanished is StoreVanished.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._books: OrderedDict[_Key, _Shared] = OrderedDict()
        self._openings: dict[_Key, Future[None]] = {}
        self._known: set[_Key] = set()
        self._root = _identity(settings.store.root)
        self._closed = False
        self._mutex = threading.Lock()

    @contextmanager
    def using(self, strategy: str, run: str | None, now: int | None) -> Iterator[Book]:
        """The open ledger of a strategy (live) or of one of its runs, which begins at `now` if it is new.

        `now` is the call's simulated time, None when it is live. Raises the StoreError that fits; calls that
        came while one of them was opening share its failure, so that they do not wait in a row.
        """
        key = (strategy, run)
        book = self._take(key, now)
        try:
            yield book
        finally:
            self._give_back(key, book)

    def close(self) -> None:
        """Finish what is queued in every ledger and close it; a ledger that opens later is closed at once."""
        with self._mutex:
            self._closed = True
            books = [shared.book for shared in self._books.values()]
            self._books.clear()
        for book in books:
            book.close()

    def _take(self, key: _Key, now: int | None) -> Book:
        while True:
            with self._mutex:
                found = self._books.get(key)
                if found is not None:
                    found.users += 1
                    self._books.move_to_end(key)
                    return found.book
                under_way = self._openings.get(key)
                opening = under_way or self._openings.setdefault(key, Future())
            if under_way is None:
                return self._open(key, now, opening)
            fault = under_way.exception()
            if isinstance(fault, StoreError):
                raise fault
            # Open now; or what was wrong was the other call's own.

    def _give_back(self, key: _Key, book: Book) -> None:
        with self._mutex:
            shared = self._books.get(key)
            if shared is not None and shared.book is book:
                shared.users -= 1
            spare = self._spare()
        if spare is not None:
            spare.close()

    def _spare(self) -> Book | None:
        """Take out the ledger that is to be closed; the caller holds the mutex."""
        if len(self._books) <= MOST_OPEN:
            return None
        idle = next((key for key, shared in self._books.items() if not shared.users), None)
        return None if idle is None else self._books.pop(idle).book

    def _open(self, key: _Key, now: int | None, opening: Future[None]) -> Book:
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
            late = self._closed
            if not late:
                self._books[key] = _Shared(book, users=1)
        if late:
            book.close()
            closed = StoreClosed("The server is ending; nothing was stored.", hint="Start the server again.")
            opening.set_exception(closed)
            raise closed
        opening.set_result(None)
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
