"""The Parquet copies beside every ledger this process writes, kept up to date in the background.

One thread for all ledgers, off the path of every call: a call that ends only says that its ledger may have grown. A
pass follows two seconds after the first of them, and then at most one in each interval. pyarrow is imported by the
first pass that has something to do. A failed pass is logged once, kept for `status`, `doctor` and /healthz, and
tried again later and later; it never reaches a caller.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

from store.clock import WallClock
from store.engines.base import Snapshot
from store.errors import DeskbookError
from store.export.manifest import FOLDER, note_failure, read_manifest
from store.export.source import ledger_snapshot
from store.paths import ledger_path

from .settings import Settings

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 900.0
SHARE: Final = 20
"""After a pass at least so many times its own length goes by, so that a large one does not take a core for itself."""

Key = tuple[str, str | None]
OpenOne = Callable[[Key], "AbstractContextManager[Snapshot] | None"]


class _Outcome(Enum):
    """What came of a pass."""

    NOTHING = auto()
    """Nothing was due, or the ledger itself could not be read."""
    MADE = auto()
    BUSY = auto()
    """Another process was at it."""
    FAILED = auto()


@dataclass(slots=True)
class _Watched:
    """One ledger: when its next pass is due (None: nothing to do), and how the last one went."""

    due: float | None = None
    earliest: float = 0.0
    failures: int = 0
    failure: str | None = None


class Exports:
    """Makes the passes of this process; `open_one` gives a view of a ledger that it has open, or None."""

    def __init__(self, settings: Settings, open_one: OpenOne) -> None:
        self._settings = settings
        self._open_one = open_one
        self._first = FIRST_SECONDS
        self._watched: dict[Key, _Watched] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def touched(self, key: Key) -> None:
        """Say that a ledger may have grown: it is looked at soon, unless it already will be."""
        if not self._settings.export.enabled:
            return
        with self._changed:
            watched = self._watched.setdefault(key, _Watched())
            if self._stopping or watched.due is not None:
                return
            self._schedule(watched, max(time.monotonic() + self._first, watched.earliest))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="exports", daemon=True)
                self._thread.start()

    def ailing(self) -> bool:
        """Whether the last pass of any ledger failed."""
        with self._changed:
            return any(watched.failure is not None for watched in self._watched.values())

    def stop(self) -> None:
        """End within a second; a pass under way is given up, and leaves the exports as they were."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE_SECONDS)

    @property
    def _interval(self) -> float:
        return float(self._settings.export.interval_seconds)

    def _schedule(self, watched: _Watched, due: float) -> None:
        watched.due = due
        self._changed.notify_all()

    def _work(self) -> None:
        while (key := self._next()) is not None:
            began = time.monotonic()
            outcome, fault = self._pass(key)
            self._settle(key, outcome, fault, time.monotonic() - began)

    def _next(self) -> Key | None:
        """Wait for the next ledger that is due; None once this is to end."""
        with self._changed:
            while not self._stopping:
                waiting = [(each.due, key) for key, each in self._watched.items() if each.due is not None]
                due, key = min(waiting, key=lambda each: each[0]) if waiting else (None, None)
                left = None if due is None else due - time.monotonic()
                if key is not None and left is not None and left <= 0:
                    self._watched[key].due = None
                    return key
                self._changed.wait(left)
            return None

    def _settle(self, key: Key, outcome: _Outcome, fault: str, took: float) -> None:
        with self._changed:
            watched, now = self._watched[key], time.monotonic()
            if outcome is _Outcome.FAILED:
                if fault != watched.failure:
                    logger.warning("the export of ledger %s failed and is tried again: %s", _name(key), fault)
                watched.failure = fault
                watched.failures += 1
                wait = self._interval * 2 ** min(watched.failures - 1, 10)
                watched.earliest = now + max(min(wait, LONGEST_WAIT_SECONDS), self._first)
                self._schedule(watched, watched.earliest)
                return
            watched.failures, watched.failure = 0, None
            if outcome is _Outcome.BUSY:
                self._schedule(watched, now + self._first)
            elif outcome is _Outcome.MADE:
                watched.earliest = now + max(self._interval, SHARE * took)
                if watched.due is not None:  # touched during the pass: the interval counts from its end
                    self._schedule(watched, max(watched.due, watched.earliest))

    def _pass(self, key: Key) -> tuple[_Outcome, str]:
        """Bring one ledger's exports up to date; what came of it, and what went wrong."""
        root = self._settings.store.root
        path = ledger_path(root, *key)
        try:
            return self._made(key, root, path), ""
        except DeskbookError as fault:
            # What ails the ledger itself is told by the calls to it; a link in the exports' place is theirs.
            if fault.where is None or FOLDER not in fault.where.parts:
                return _Outcome.NOTHING, ""
            what = fault.message
        except ImportError as fault:
            what = f"pyarrow cannot be imported: {fault}"
        except Exception as fault:  # noqa: BLE001 - whatever goes wrong here must not reach a caller or end the thread
            what = f"{type(fault).__name__}: {fault}"
        note_failure(root, path, WallClock().now(), what)
        return _Outcome.FAILED, what

    def _made(self, key: Key, root: Path, path: Path) -> _Outcome:
        if not self._grew(key):
            return _Outcome.NOTHING
        # Half a second of imports that no handshake waits for.
        from store.export.exporter import bring_up_to_date  # noqa: PLC0415
        from store.export.segments import Abandoned, Work  # noqa: PLC0415

        try:
            done = bring_up_to_date(root, path, lambda: self._view(key), Work(stop=lambda: self._stopping))
        except Abandoned:
            return _Outcome.NOTHING
        return _Outcome.BUSY if done.busy else _Outcome.MADE

    def _grew(self, key: Key) -> bool:
        """Whether the ledger holds more than its exports, as far as their manifest says, or they failed last."""
        manifest = read_manifest(ledger_path(self._settings.store.root, *key).parent / FOLDER)
        if manifest is None or self._watched[key].failure is not None:
            return True
        with self._view(key) as snapshot:
            head = snapshot.head()
        return head is not None and head.sequence != manifest.head.sequence

    def _view(self, key: Key) -> AbstractContextManager[Snapshot]:
        return self._open_one(key) or ledger_snapshot(self._settings.store.root, *key)


def _name(key: Key) -> str:
    strategy, run = key
    return strategy if run is None else f"{strategy}/{run}"
