"""A file lock between processes under which no writer starves.

Two advisory locks are taken in order: the turnstile, then the lock proper, and the turnstile is let go as
soon as the lock is held. A process that releases the lock and wants it back must pass the turnstile behind
whoever waits there, so writers alternate. (SQLite's own busy handler polls: with it alone, waits reached
0.9 s.)
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import StoreBusy
from ...files import lock_at_once
from .faults import BUSY_HINT

_POLL_SECONDS = 0.01


class FairLock:
    """Exclusive between processes; the kernel lets go of it when its holder dies."""

    def __init__(self, database: str) -> None:
        self._turnstile = _open(database + ".turn")
        try:
            self._lock = _open(database + ".lock")
        except OSError:
            os.close(self._turnstile)
            raise

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the lock without a deadline and hold it; one thread of a process at a time."""
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    @contextmanager
    def hold_within(self, seconds: float) -> Iterator[None]:
        """Hold the lock, or raise StoreBusy after so many seconds. It asks again and again, so it is no place
        for writers in turn, only for the rare work before a file is served."""
        deadline = time.monotonic() + seconds
        while not lock_at_once(self._lock):
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"Another process held the ledger for {seconds:g} s; nothing was stored.", hint=BUSY_HINT
                )
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files."""
        os.close(self._turnstile)
        os.close(self._lock)


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
