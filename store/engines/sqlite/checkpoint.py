"""Moves the write-ahead log into the file in the background: inline, it makes the slowest commits.

In the background alone it would never be done: while commits follow each other, each pass ends behind the
newest one, and a log that is never moved whole is never begun anew (measured: 224 MiB after 3,000 writes). So
once the log is long, the writer moves the small rest itself, when nobody else can add to it.
"""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from .connection import connect

PAGES = 1_000
LONG_PAGES = 8_000


class Checkpointer:
    """Runs PASSIVE checkpoints on a connection and thread of its own whenever the log has grown enough."""

    def __init__(self, path: Path, watched: apsw.Connection) -> None:
        self._path = path
        self._watched = watched
        self._log = 0
        self._moved = 0
        self._due = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="deskbook-checkpoint", daemon=True)
        watched.set_wal_hook(self._after_commit)
        self._thread.start()

    def move_rest(self) -> None:
        """Move what is left of a long log; for the writer alone, after a commit, while it holds the lock."""
        if self._log < LONG_PAGES or not self._one_at_a_time.acquire(blocking=False):
            return
        try:
            self._move(self._watched)
        finally:
            self._one_at_a_time.release()

    def close(self) -> None:
        """Stop after the checkpoint under way."""
        self._closed = True
        self._due.set()
        self._thread.join()

    def _after_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        if pages < self._log:  # the log was begun anew
            self._moved = 0
        self._log = pages
        if pages - self._moved >= PAGES:
            self._due.set()
        return apsw.SQLITE_OK

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        while True:
            self._due.wait()
            self._due.clear()
            if self._closed:
                break
            with self._one_at_a_time:
                try:
                    connection = connection or connect(self._path, "write")
                except apsw.Error:  # as in _move
                    continue
                self._move(connection)
        if connection is not None:
            connection.close()

    def _move(self, connection: apsw.Connection) -> None:
        try:
            _, self._moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            # A checkpoint is only housekeeping: the next commit asks again, and what is wrong with the
            # file meets that commit itself.
            return
