"""The ledgers this process has open, one for each strategy and run, opened when first needed."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from store import Book
from store.engines.base import Snapshot
from store.errors import NotFound, StoreClosed, StoreError, StoreVanished
from store.paths import ledger_path

from . import __version__
from .embedding import Embeddings, encoder_of
from .exporting import Exports
from .identity import Identity
from .settings import Settings

logger = logging.getLogger(__name__)

MOST_OPEN = 16
LEAST_FREE_BYTES = 64 * 2**20

_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Slot:
    """One ledger's place: the opening that its calls share, how many use it, how many background threads hold it."""

    key: _Key
    opening: Future[Book] = field(default_factory=Future)
    users: int = 0
    views: int = 0


class OpenLedgers:
    """Opens each ledger once and shares it between calls; opening one never holds up another.

    A failed opening is tried again by the next call. What was there once is never made anew: a root or ledger
    that vanished is StoreVanished. Of the ledgers that no call is using, those unused longest are closed beyond 16.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots: OrderedDict[_Key, _Slot] = OrderedDict()
        self._known: set[_Key] = set()
        self._root = _identity(settings.store.root)
        self._closed = False
        self._mutex = threading.Lock()
        self._exports = Exports(settings, self._view)
        self._embeddings = Embeddings(encoder_of(settings, os.environ), self._hold)

    @contextmanager
    def use(self, identity: Identity, run: str | None, now: int | None) -> Iterator[Book]:
        """The live ledger of the identity's strategy, or one of its runs, which begins at `now` if it is new.

        `now` is the call's simulated time, None when it is live. Raises the StoreError that fits; calls that
        came while one of them was opening share its failure, so that they do not wait in a row.
        """
        slot = self._claim(identity, run, now)
        try:
            yield slot.opening.result()
        finally:
            self._leave(slot)
            self._exports.touched(slot.key)
            self._embeddings.touched(slot.key)

    def begun(self, identity: Identity, run: str | None) -> bool:
        """Whether a refusal has a ledger to stand in: no refused call begins a run."""
        if run is None or ledger_path(self._settings.store.root, identity.strategy, run).exists():
            return True
        logger.warning("a refused call of %s named a run that was never begun", identity.agent)
        return False

    def ailing(self) -> list[str]:
        """What of the store cannot serve now, by name and never by place: `store`, `ledger`, `disk`, `export`."""
        return [*self._store_ailing(), *(["export"] if self._exports.ailing() else [])]

    def _store_ailing(self) -> list[str]:
        root = self._settings.store.root
        known = self._root is not None
        place = root if known else next(folder for folder in (root, *root.parents) if folder.exists())
        if (known and _identity(root) != self._root) or not os.access(place, os.W_OK | os.X_OK):
            return ["store"]
        with self._mutex:
            served = [key for key, slot in self._slots.items() if slot.opening.done()]
        if not all(ledger_path(root, *key).exists() for key in served):
            return ["ledger"]
        return ["disk"] if shutil.disk_usage(place).free < LEAST_FREE_BYTES else []

    def close(self) -> None:
        """Finish what is queued in every ledger and close it; a ledger that opens later is closed at once."""
        self._exports.stop()
        self._embeddings.stop()
        with self._mutex:
            self._closed = True
            opened = [slot for slot in self._slots.values() if slot.opening.done()]
            self._slots.clear()
        for slot in opened:
            slot.opening.result().close()

    def _hold(self, key: _Key) -> AbstractContextManager[Book] | None:
        """A ledger that stands open, which stays open as long as it is held; None where none does."""
        with self._mutex:
            slot = self._slots.get(key)
            if slot is None or not slot.opening.done() or slot.opening.exception() is not None:
                return None
            slot.views += 1
        return self._held(slot)

    def _view(self, key: _Key) -> AbstractContextManager[Snapshot] | None:
        """A view of a ledger that stands open; None where none does."""
        held = self._hold(key)
        return None if held is None else _viewed(held)

    @contextmanager
    def _held(self, slot: _Slot) -> Iterator[Book]:
        try:
            yield slot.opening.result()
        finally:
            with self._mutex:
                slot.views -= 1
            self._close_surplus()

    def _claim(self, identity: Identity, run: str | None, now: int | None) -> _Slot:
        key = (identity.strategy, run)
        while True:
            with self._mutex:
                found = self._slots.get(key)
                slot = found or self._slots.setdefault(key, _Slot(key))
                self._slots.move_to_end(key)
                slot.users += 1
            if found is None:
                self._open(slot, identity, now)
                return slot
            fault = slot.opening.exception()
            if fault is None:
                return slot
            if isinstance(fault, StoreError):
                raise fault
            # What was wrong was the other call's own, such as its time: this call tries for itself.

    def _leave(self, slot: _Slot) -> None:
        with self._mutex:
            slot.users -= 1
        self._close_surplus()

    def _close_surplus(self) -> None:
        with self._mutex:
            surplus = len(self._slots) - MOST_OPEN
            unused = [slot for slot in self._slots.values() if slot.users == slot.views == 0]
            idle = unused[: max(0, surplus)]
            for slot in idle:
                del self._slots[slot.key]
        for slot in idle:
            slot.opening.result().close()

    def _open(self, slot: _Slot, identity: Identity, now: int | None) -> None:
        try:
            book = self._open_file(slot.key, identity, now)
            self._keep(slot.key, book)
        except BaseException as fault:
            with self._mutex:
                self._slots.pop(slot.key, None)
            slot.opening.set_exception(fault)
            raise
        slot.opening.set_result(book)

    def _keep(self, key: _Key, book: Book) -> None:
        with self._mutex:
            self._known.add(key)
            self._root = self._root or _identity(self._settings.store.root)
            late = self._closed
        if late:
            book.close()
            raise StoreClosed("The server is ending; nothing was stored.", hint="Start the server again.")

    def _open_file(self, key: _Key, identity: Identity, now: int | None) -> Book:
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
                inherit=None if run is None else identity.inherit,
                durability=store.durability,
                zone=self._settings.clock.zone,
                symbols=self._settings.symbols.rules,
                encoder=self._embeddings.encoder,
                policy=self._settings.policy,
                ranking=self._settings.ranking.rules,
                product=f"deskbook {__version__}",
            )
        except NotFound:
            raise _vanished("ledger") from None


@contextmanager
def _viewed(held: AbstractContextManager[Book]) -> Iterator[Snapshot]:
    with held as book, book.snapshot() as snapshot:
        yield snapshot


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
