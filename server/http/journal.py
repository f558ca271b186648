"""The log of a server that must not wait for whoever reads it: lines go out from a thread of their own.

A stderr that nobody reads would otherwise hold up every agent at the next line. What does not fit is counted.
"""

from __future__ import annotations

import logging
import queue
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from typing import Final

LINES_KEPT: Final = 10_000
CLOSE_SECONDS: Final = 0.2


class Journal:
    """Takes the place of the root logger's handlers until it is closed."""

    def __init__(self) -> None:
        self._root = logging.getLogger()
        self._before = list(self._root.handlers)
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(LINES_KEPT)
        self._listener = QueueListener(self._lines, *self._before)
        self._root.handlers = [_Handler(self._lines)]
        self._listener.start()

    def close(self) -> None:
        """Let what was said go out, if somebody reads it, and put the handlers back."""
        thread = self._listener._thread  # noqa: SLF001 - its own `stop` waits without end for a reader
        if self._lines.full():  # room for the word that it is over
            with suppress(queue.Empty):
                self._lines.get_nowait()
        self._listener.enqueue_sentinel()
        if thread is not None:
            thread.join(CLOSE_SECONDS)
        self._root.handlers = self._before if thread is None or not thread.is_alive() else []


class _Handler(QueueHandler):
    """Hands lines over, and counts those for which there is no room."""

    def __init__(self, lines: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self._queued = lines
        self._lost = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue one line; never blocks."""
        try:
            if self._lost:
                message = f"{self._lost} lines were lost: nobody read them"
                self._queued.put_nowait(
                    logging.LogRecord(record.name, logging.WARNING, "", 0, message, None, None)
                )
                self._lost = 0
            self._queued.put_nowait(record)
        except queue.Full:
            self._lost += 1
