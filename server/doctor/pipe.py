"""A server as a child of this process, spoken to in raw frames on its standard streams, under a guard."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final, Self, cast

from .seen import Reply, RequestRefused

GUARD_SECONDS: Final = 30.0
"""How long a server may take for any one answer, and to end."""

LINES_KEPT: Final = 8
_LONGEST_FRAME: Final = 16 * 2**20
_LONGEST_LINE: Final = 400


class NoAnswer(Exception):
    """The server gave no answer: it ended (`code`, None while it still runs) or took too long."""

    def __init__(self, code: int | None, seconds: float) -> None:
        super().__init__()
        self.code = code
        self.seconds = seconds


class StrayOutput(Exception):
    """The server wrote something else than frames of the protocol on its standard output: the text's beginning."""


class Child:
    """One server process; leaving the context ends it, by force where it does not end at the end of its input."""

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], folder: str, guard: float = GUARD_SECONDS
    ) -> None:
        """Start it; raises OSError where the command cannot be run."""
        self._guard = guard
        self._process = subprocess.Popen(  # noqa: S603 - the command is the one that the person asks about
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(environ),
            start_new_session=True,
        )
        self._input, self._output, self._log = (
            cast("IO[bytes]", pipe)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._frames: queue.Queue[bytes | None] = queue.Queue()
        self._said: deque[str] = deque(maxlen=LINES_KEPT)
        self._asked = 0
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read_frames, self._read_log)
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()

    def said(self) -> tuple[str, ...]:
        """The last lines that the server wrote to its standard error; all there are once it has ended."""
        return tuple(self._said)

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def ask(self, method: str, parameters: Mapping[str, Any]) -> Reply:
        """Send a request and wait for its result; raises NoAnswer, StrayOutput and RequestRefused."""
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": dict(parameters)})
        deadline = time.monotonic() + self._guard
        while True:
            message = _message(self._next_frame(deadline))
            if message.get("id") != self._asked or "method" in message:
                continue
            if "error" in message:
                told = message["error"]
                raise RequestRefused(str(told.get("message") if isinstance(told, Mapping) else told))
            result = message.get("result")
            return result if isinstance(result, Mapping) else {}

    def end(self) -> int | None:
        """Close its input and wait for its end; gives its exit code, None when it had to be killed."""
        with suppress(OSError):
            self._input.close()
        code: int | None = None
        try:
            code = self._process.wait(self._guard)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for reader in self._readers:
            # What it started may still hold the pipe; nobody waits for that.
            reader.join(1.0)
        return code

    def _send(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError):  # one that has ended is told by its missing answer
            self._input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._input.flush()

    def _next_frame(self, deadline: float) -> bytes:
        try:
            line = self._frames.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise NoAnswer(None, self._guard) from None
        if line is None:
            raise NoAnswer(self.end(), 0.0)
        return line

    def _read_frames(self) -> None:
        with self._output:
            while line := self._output.readline(_LONGEST_FRAME):
                self._frames.put(line)
        self._frames.put(None)

    def _read_log(self) -> None:
        with self._log:
            while line := self._log.readline(_LONGEST_LINE):
                text = line.decode("utf-8", "backslashreplace").rstrip()
                if text:
                    self._said.append(text)


def _message(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise StrayOutput(line[:_LONGEST_LINE].decode("utf-8", "backslashreplace").strip())
    return message
