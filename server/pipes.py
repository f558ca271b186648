"""The two ends of the line transport at the operating system: descriptors, and a thread that writes.

Nothing here knows the protocol. The threads are daemons: one that is blocked never holds up the exit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio

if sys.platform != "win32":
    import fcntl

__all__ = ["LineWriter", "Pipes", "claim_standard_streams", "read_chunks"]

logger = logging.getLogger(__name__)

CHUNK_BYTES: Final = 65_536
BACKLOG_BYTES: Final = 4 * 2**20
"""Bytes that may wait for a client that does not read before calls are made to wait as well."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """The descriptors that carry protocol frames, out of reach of everything else in the process."""

    reads: int
    writes: int


def claim_standard_streams() -> Pipes:
    """Keep stdin and stdout for the protocol alone, from now to the end of the process.

    Descriptor 0 then reads the null device and descriptor 1 is stderr, for this process and its children, so
    that no print, warning, progress bar or C library reaches the wire. Call it once, as early as possible:
    what is printed before it may reach the client. Raises OSError when stdin or stdout is not open.
    """
    reads, writes = _duplicate(0), _duplicate(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(null, 1)
    if null > 2:  # else it has taken the place of a missing stderr, and better it than a ledger
        os.close(null)
    with suppress(AttributeError, OSError, ValueError):  # absent or closed under some launchers
        sys.stdout.flush()  # what was printed so far goes to stderr, too
    return Pipes(reads, writes)


def read_chunks(fd: int) -> Iterator[bytes]:
    """Yield what arrives on a descriptor, blocking for it, until end of input or the descriptor fails."""
    while True:
        try:
            chunk = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:  # the client left its end, and so ours, in non-blocking mode
            select.select([fd], [], [])
            continue
        except OSError as error:  # a terminal that hung up
            logger.debug("input ended: %s", error)
            return
        if not chunk:
            return
        yield chunk


class LineWriter:
    """Writes lines to a descriptor from a thread of its own, in order, and knows how much still waits.

    Call it from the event loop's thread only. When the reader at the other end is gone, `on_broken` is called
    once in the event loop and every further line is dropped.
    """

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._relief: anyio.Event | None = None
        self._broken = False
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Queue one line; never blocks."""
        if self._broken:
            return
        with self._lock:
            self._waiting += len(line)
        self._lines.put(line)

    async def room(self) -> None:
        """Wait until less than `BACKLOG_BYTES` wait to be written."""
        while self._waiting >= BACKLOG_BYTES:
            await self._less()

    async def flush(self, patience: float) -> bool:
        """Wait until all is written; False when nothing moved for `patience` seconds."""
        while (before := self._waiting) > 0:
            with anyio.move_on_after(patience):
                await self._less()
            if self._waiting >= before:
                return False
        return True

    def close(self) -> None:
        """Let the thread end once everything queued is written."""
        self._lines.put(None)

    async def _less(self) -> None:
        with self._lock:
            if self._waiting == 0:
                return
            if self._relief is None:
                self._relief = anyio.Event()
            relief = self._relief
        await relief.wait()

    def _run(self) -> None:
        line: bytes | None
        while (line := self._lines.get()) is not None:
            batch = [line]
            size = len(line)
            last = False
            while size < CHUNK_BYTES and not self._lines.empty():
                more = self._lines.get()
                if more is None:
                    last = True
                    break
                batch.append(more)
                size += len(more)
            self._write_out(b"".join(batch))
            if last:
                return

    def _write_out(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            try:
                written = len(rest) if self._broken else os.write(self._fd, rest[:CHUNK_BYTES])
            except BlockingIOError:
                select.select([], [self._fd], [])
                continue
            except OSError as error:
                logger.debug("output ended: %s", error)
                self._broken = True
                self._call(self._on_broken)
                continue
            rest = rest[written:]
            self._wrote(written)

    def _wrote(self, size: int) -> None:
        with self._lock:
            self._waiting -= size
            relief, self._relief = self._relief, None
        if relief is not None:
            self._call(relief.set)

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:  # the loop is closed: nobody waits any more
            logger.debug("output went on after the event loop had ended")


def _duplicate(fd: int) -> int:
    """A private duplicate above the three standard descriptors, not passed on to child processes."""
    if sys.platform == "win32":
        return os.dup(fd)
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
