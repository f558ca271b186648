"""Serving one client over stdin and stdout: what the SDK's own stdio transport leaves open is closed here.

A frame goes from the reader thread through `Exchange` to the SDK, and an answer goes back through `Exchange`
to the writer thread. This module is the life of that path: start, end of input, signals. It needs asyncio.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.mcpserver import MCPServer
from mcp_types import INTERNAL_ERROR

from .exchange import Exchange
from .frames import Frame, LineSplitter, Oversize, Refusal, read_line
from .pipes import LineWriter, Pipes, claim_standard_streams, read_chunks
from .sdk import lifespan

__all__ = ["MAX_FRAME_BYTES", "exit_despite_threads", "serve_stdio"]

logger = logging.getLogger(__name__)

MAX_FRAME_BYTES: Final = 8 * 2**20

EOF_PATIENCE: Final = 10.0
"""Seconds without any progress after which calls are given up once the input has ended."""

STOP_PATIENCE: Final = 3.0
"""Seconds that calls in flight have to finish after a signal or after the client stopped listening."""

FLUSH_PATIENCE: Final = 2.0  # seconds without any progress
THREAD_PATIENCE: Final = 1.0


async def serve_stdio(
    server: MCPServer[Any],
    *,
    on_drain: Callable[[], None] | None = None,
    max_frame_bytes: int = MAX_FRAME_BYTES,
    pipes: Pipes | None = None,
) -> None:
    """Serve one MCP client on stdin and stdout until the input ends or a signal asks to stop.

    Returns after the calls already read are answered (bounded: 10 s without progress at end of input, 3 s
    after SIGTERM, SIGINT or SIGHUP; a second signal exits at once) and `on_drain` was called. When a handler
    cannot be stopped, `on_drain` is called and the process exits with code 0 from here. `pipes` is what
    `claim_standard_streams` returned, where that was called earlier. stdin and stdout stay claimed.
    """
    pipes = pipes or claim_standard_streams()
    loop = asyncio.get_running_loop()
    ending = _Ending()
    writer = LineWriter(pipes.writes, on_broken=ending.hurry)
    with _heeded_signals(ending, loop):
        async with lifespan(server) as state, anyio.create_task_group() as tasks:
            exchange = Exchange(server, state, tasks, writer)
            ending.changed = exchange.wake
            frames_in, frames = anyio.create_memory_object_stream[list[Frame]](0)
            reader = partial(_read_frames, pipes.reads, max_frame_bytes, frames_in, loop, ending)
            threading.Thread(target=reader, name="stdin", daemon=True).start()
            tasks.start_soon(exchange.pump, frames)
            await ending.begun.wait()
            await _finish_calls(exchange, ending)
            await exchange.close()
            if not await writer.flush(FLUSH_PATIENCE):
                logger.warning("the client did not read the last answers")
            if exchange.open_eras():
                _leave_now(on_drain)
            tasks.cancel_scope.cancel()
        writer.close()
        if on_drain is not None:
            on_drain()


class _Ending:
    """Whether and how fast this server is coming to its end; touched in the event loop only."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.changed: Callable[[], None] = lambda: None
        self._deadline: float | None = None

    def at_end_of_input(self) -> None:
        """Every call that was read is still answered."""
        self.begun.set()

    def hurry(self) -> None:
        """Nothing more is read; calls in flight have a short while."""
        if self._deadline is None:
            self._deadline = time.monotonic() + STOP_PATIENCE
            logger.info("stopping; calls in flight have %s s", STOP_PATIENCE)
        self.begun.set()
        self.changed()

    @property
    def hurried(self) -> bool:
        return self._deadline is not None

    def patience(self) -> float:
        """Seconds to wait for the next sign of progress."""
        return EOF_PATIENCE if self._deadline is None else max(0.0, self._deadline - time.monotonic())


async def _finish_calls(exchange: Exchange, ending: _Ending) -> None:
    while exchange.busy():
        if ending.hurried:
            exchange.stop_reading()
        with anyio.move_on_after(ending.patience()) as waited:
            await exchange.next_change()
        if waited.cancelled_caught:
            exchange.give_up()
            return


def _read_frames(
    fd: int,
    limit: int,
    frames: MemoryObjectSendStream[list[Frame]],
    loop: asyncio.AbstractEventLoop,
    ending: _Ending,
) -> None:
    """The body of the reader thread: it waits while the event loop has not taken the last batch."""
    lines = LineSplitter(limit)

    def hand_over(batch: Iterable[bytes | Oversize]) -> None:
        if read := [frame for line in batch if (frame := _read_safely(line, limit)) is not None]:
            asyncio.run_coroutine_threadsafe(frames.send(read), loop).result()

    try:
        for chunk in read_chunks(fd):
            hand_over(lines.feed(chunk))
        hand_over(lines.finish())
        loop.call_soon_threadsafe(frames.close)
        loop.call_soon_threadsafe(ending.at_end_of_input)
    except (anyio.BrokenResourceError, CancelledError, RuntimeError):
        logger.debug("input was still arriving when the server ended")


def _read_safely(line: bytes | Oversize, limit: int) -> Frame | None:
    try:
        return read_line(line, limit)
    except Exception:
        logger.exception("a line could not be read")
        return Refusal(INTERNAL_ERROR, "the message could not be read")


@contextmanager
def _heeded_signals(ending: _Ending, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """End on the first signal that asks for it; exit at once on the second, even with a blocked loop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = threading.Event()

    def heed(signum: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(128 + signum)
        asked.set()
        loop.call_soon_threadsafe(ending.hurry)

    heeded = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        heeded.append(signal.SIGHUP)
    before = {signum: signal.signal(signum, heed) for signum in heeded}
    try:
        with _woken_by_signals(loop):
            yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let a signal wake the loop also when it interrupts no wait: taken by another thread, or just before the wait.

    Without it `heed` would run only once something else wakes the loop.
    """
    hears, tells = socket.socketpair()
    with hears, tells:
        hears.setblocking(False)
        tells.setblocking(False)
        loop.add_reader(hears, hears.recv, 4_096)
        before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(hears)


def exit_despite_threads(code: int = 0) -> None:
    """Call this once the event loop has ended: it exits the process if a call given up still has its thread.

    Python would wait for such a thread without end. Returns when there is none, after at most 1 s.
    """
    patience_ends = time.monotonic() + THREAD_PATIENCE
    others = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    for thread in others:
        thread.join(max(0.0, patience_ends - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        logger.warning("exiting although a call given up still runs")
        _exit_now(code)


def _leave_now(on_drain: Callable[[], None] | None) -> None:
    """Exit although a handler runs on in a thread that the event loop itself waits for."""
    logger.warning("exiting although a call could not be stopped")
    try:
        if on_drain is not None:
            on_drain()
    finally:
        _exit_now(0)


def _exit_now(code: int) -> None:
    logging.shutdown()
    os._exit(code)
