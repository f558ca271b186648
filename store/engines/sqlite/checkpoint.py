"""Moves the write-ahead log into the file in the background: inline, it makes the slowest commits."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from .connection import connect

PAGES = 1_000


class Checkpointer:
    """Runs PASSIVE checkpoints on a connection and thread of its own whenever the log has grown enough."""

    def __init__(self, path: Path, watched: apsw.Connection) -> None:
        self._path = path
        self._due = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="deskbook-checkpoint", daemon=True)
        watched.set_wal_hook(self._after_commit)
        self._thread.start()

    def _after_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        if pages >= PAGES:
            self._due.set()
        return apsw.SQLITE_OK

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        while True:
            self._due.wait()
            self._due.clear()
            if self._closed:
                break
            try:
                connection = connection or connect(self._path, "write")
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error:
                # A checkpoint is only housekeeping: the next commit asks again, and what is wrong with the
                # file meets that commit itself.
                continue
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Stop after the checkpoint under way."""
        self._closed = True
        self._due.set()
        self._thread.join()
