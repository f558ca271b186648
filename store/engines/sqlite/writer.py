"""The single writer of a process: callers queue, one transaction takes all that wait.

Each job runs in a savepoint of its own, so one caller's error undoes only that caller, and each caller is
answered after the commit. A job whose deadline passes before its turn is withdrawn by its caller.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from ...errors import OutcomeUnknown, StoreBusy, StoreClosed
from ..base import Transaction
from .faults import BUSY_HINT, translate
from .lock import FairLock

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
        with self._arrived:
            while not self._queue and not self._closed:
                self._arrived.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]

    def _commit_together(self, batch: list[_Job]) -> None:
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
        self._connection.set_busy_timeout(_ATTEMPT_MS)
        while any(job.wanted() for job in batch):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                continue
            self._in_transaction()
            return True
        return False

    def _run_one(self, job: _Job) -> bool:
        self._connection.execute("SAVEPOINT caller")
        try:
            job.result = job.work(self._transaction)
        except BaseException as fault:  # noqa: BLE001 - whatever the job raised belongs to its caller
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO caller; RELEASE caller")
            job.fail(translate(fault))
            return False
        self._connection.execute("RELEASE caller")
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
        for job in done:
            job.succeed()


class _Job:
    """One caller's work, from queued over started to answered; or withdrawn before it started."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.result: Any = None
        self._answer: Future[Any] = Future()
        self._started = False
        self._mutex = threading.Lock()

    def wanted(self) -> bool:
        return not self._answer.cancelled()

    def start(self) -> bool:
        """Claim the job for running; False once its caller has withdrawn it."""
        with self._mutex:
            if not self._started and not self._answer.cancelled():
                self._started = self._answer.set_running_or_notify_cancel()
            return self._started

    def succeed(self) -> None:
        if not self._answer.done():
            self._answer.set_result(self.result)

    def fail(self, fault: BaseException) -> None:
        if self.start() and not self._answer.done():
            self._answer.set_exception(fault)

    def wait(self, timeout: float, grace: float) -> Any:
        try:
            return self._answer.result(timeout)
        except TimeoutError:
            if self._answer.cancel():
                raise StoreBusy(
                    f"Another writer held the ledger for {timeout:g} s; nothing was stored.", hint=BUSY_HINT
                ) from None
        try:
            return self._answer.result(grace)
        except TimeoutError:
            raise OutcomeUnknown(
                "The commit did not end in time; it may still succeed.",
                hint="Send the same call with the same idempotency_key to learn what became of it.",
            ) from None
