"""The single writer of a process: callers queue, one transaction takes all that wait.

One caller's error undoes only that caller, and each caller is answered after the commit. Nearly every error comes
before the job has written anything, and then there is nothing to undo. When one comes later, the whole transaction
is undone and run again with a savepoint around each job: savepoints around all jobs cost every one of them, as
pages are copied for them and the full-text index writes itself out at each. A job whose deadline passes before its
turn is withdrawn by its caller.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Any, TypeVar

import apsw

from ...errors import OutcomeUnknown, StoreBusy, StoreClosed
from ..base import Transaction
from .faults import BUSY_HINT, translate
from .lock import FairLock
from .transaction import savepoint

T = TypeVar("T")

MAX_BATCH = 256
GRACE_SECONDS = 5.0
_ATTEMPT_MS = 100


class Writer:
    """Owns the write connection and its thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        transaction: Transaction,
        lock: FairLock,
        before_batch: Callable[[], None],
        in_transaction: Callable[[], None],
        after_batch: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._transaction = transaction
        self._lock = lock
        self._before_batch = before_batch
        self._in_transaction = in_transaction
        self._after_batch = after_batch
        self._connection.set_busy_timeout(_ATTEMPT_MS)
        self._known_version: int | None = None
        self._shared = False
        self._queue: deque[_Job] = deque()
        self._arrived = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="deskbook-writer", daemon=True)
        self._thread.start()

    def run(self, job: Callable[[Transaction], T], timeout: float, grace: float) -> T:
        """Queue a job and wait for its commit; see `Engine.write`."""
        queued = _Job(job)
        with self._arrived:
            if self._closed:
                raise StoreClosed("The ledger is closed; nothing was stored.", hint="Start the server again.")
            self._queue.append(queued)
            self._arrived.notify()
        result: T = queued.wait(timeout, grace)
        return result

    def close(self) -> bool:
        """Finish what is queued; False when the thread still waits for another process's lock."""
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._thread.join(GRACE_SECONDS)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while batch := self._next_batch():
            try:
                with self._lock.hold():
                    self._before_batch()
                    self._commit_together(batch)
                    self._after_batch()
            except BaseException as fault:  # noqa: BLE001 - the thread must live on; the fault goes to the callers
                self._leave_transaction()
                for job in batch:
                    job.fail(translate(fault))

    def _leave_transaction(self) -> None:
        """What broke off a batch must not leave it open for the next one."""
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _next_batch(self) -> list[_Job]:
        if self._shared:
            # Whoever has just been answered together comes again together, given one turn of the interpreter:
            # measured with 4 callers, 3.9 to a transaction instead of 2.2.
            time.sleep(0)
        with self._arrived:
            while not self._queue and not self._closed:
                self._arrived.wait()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
        self._shared = len(batch) > 1
        return batch

    def _commit_together(self, batch: list[_Job]) -> None:
        if not self._begin(batch):
            return
        done: list[_Job] = []
        for job in batch:
            if not job.start():
                continue
            changes = self._connection.total_changes()
            try:
                job.result = job.work(self._transaction)
            except BaseException as fault:  # noqa: BLE001 - whatever the job raised belongs to its caller
                untouched = self._untouched(changes)
                if untouched or len(batch) == 1:
                    job.fail(translate(fault))
                if not untouched:
                    self._leave_transaction()
                    self._commit_in_savepoints([other for other in batch if not other.answered])
                    return
            else:
                done.append(job)
        self._commit(done)

    def _untouched(self, changes: int) -> bool:
        """Whether the transaction stands as it stood when so many rows were changed on the connection."""
        return self._connection.in_transaction and self._connection.total_changes() == changes

    def _commit_in_savepoints(self, batch: list[_Job]) -> None:
        if not self._begin(batch):
            return
        done: list[_Job] = []
        for at, job in enumerate(batch):
            if not job.start():
                continue
            if self._run_one(job):
                done.append(job)
            elif not self._connection.in_transaction:
                # SQLite gave up the whole transaction: the ones before lost their work and run again, alone.
                self._commit_apart(done)
                self._commit_apart(batch[at + 1 :])
                return
        self._commit(done)

    def _commit_apart(self, jobs: list[_Job]) -> None:
        for job in jobs:
            if self._begin([job]):
                self._commit([job] if job.start() and self._run_one(job) else [])

    def _begin(self, batch: list[_Job]) -> bool:
        """Open the transaction; False when every caller has gone away waiting."""
        while any(job.wanted() for job in batch):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                continue
            if self._connection.data_version() != self._known_version:  # somebody else has written
                self._in_transaction()
            return True
        return False

    def _run_one(self, job: _Job) -> bool:
        try:
            with savepoint(self._connection):
                job.result = job.work(self._transaction)
        except BaseException as fault:  # noqa: BLE001 - whatever the job raised belongs to its caller
            job.fail(translate(fault))
            return False
        return True

    def _commit(self, done: list[_Job]) -> None:
        if not self._connection.in_transaction:
            return
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as fault:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for job in done:
                job.fail(translate(fault, committing=True))
            return
        self._known_version = self._connection.data_version()
        for job in done:
            job.succeed()


class _State(Enum):
    QUEUED = auto()
    STARTED = auto()
    WITHDRAWN = auto()
    ANSWERED = auto()


class _Job:
    """One caller's work, from queued over started to answered; or withdrawn before it started."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self._fault: BaseException | None = None
        self._state = _State.QUEUED
        self._mutex = threading.Lock()
        # Held until the answer is there: a bare lock is the lightest thing that two threads can wait by.
        self._unanswered = threading.Lock()
        self._unanswered.acquire()

    @property
    def answered(self) -> bool:
        return self._state is _State.ANSWERED

    def wanted(self) -> bool:
        return self._state is not _State.WITHDRAWN

    def start(self) -> bool:
        """Claim the job for running; False once its caller has withdrawn it."""
        with self._mutex:
            if self._state is _State.QUEUED:
                self._state = _State.STARTED
            return self._state is not _State.WITHDRAWN

    def succeed(self) -> None:
        if not self.answered:
            self._state = _State.ANSWERED
            self._unanswered.release()

    def fail(self, fault: BaseException) -> None:
        if self.start() and not self.answered:
            self._fault = fault
            self._state = _State.ANSWERED
            self._unanswered.release()

    def wait(self, timeout: float, grace: float) -> Any:
        if not self._unanswered.acquire(timeout=timeout):
            if self._withdraw():
                raise StoreBusy(
                    f"Another writer held the ledger for {timeout:g} s; nothing was stored.", hint=BUSY_HINT
                )
            if not self._unanswered.acquire(timeout=grace):
                raise OutcomeUnknown(
                    "The commit did not end in time; it may still succeed.",
                    hint="Send the same call with the same idempotency_key to learn what became of it.",
                )
        if self._fault is not None:
            raise self._fault
        return self.result

    def _withdraw(self) -> bool:
        with self._mutex:
            if self._state is _State.QUEUED:
                self._state = _State.WITHDRAWN
            return self._state is _State.WITHDRAWN
