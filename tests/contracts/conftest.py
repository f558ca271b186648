"""The engines that must keep the contract. A second engine is one more line in HOUSES."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Caller
from store.engines.base import Engine, Transaction
from store.engines.sqlite import SqliteEngine
from store.entry import Entry
from store.events import MemoryRecorded
from store.ids import new_id
from store.ledger import Draft, Ledger, projected
from store.lifecycle import MEMORY
from store.rows import Filter

# Only a bound for a test that hangs; nothing is asserted about time.
GUARD = 30.0
ANN = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool")

HOLD = """
import fcntl, os, sys
fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in sys.argv[1:]]
for fd in fds:
    fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class SqliteHouse:
    """Where a SQLite ledger lives, and what a test may do to it from outside."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "memory.sqlite"

    def open(self, **options: Any) -> SqliteEngine:
        return SqliteEngine(self.path, projected, durability="normal", **options)

    def raw(self) -> apsw.Connection:
        """A connection of somebody else, who knows nothing of Deskbook."""
        return apsw.Connection(str(self.path))

    @contextmanager
    def hold_transaction(self) -> Iterator[None]:
        """Somebody else is in the middle of a write."""
        connection = self.raw()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()

    @contextmanager
    def hold_lock(self) -> Iterator[subprocess.Popen[str]]:
        """Another process holds the lock between processes."""
        command = [sys.executable, "-c", HOLD, f"{self.path}.lock"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            try:
                yield holder
            finally:
                holder.kill()

    @staticmethod
    def wait_for_queue(engine: SqliteEngine, length: int) -> None:
        """Return once that many jobs wait behind the one that runs."""
        writer = engine._writer
        assert writer is not None
        with writer._arrived:
            assert writer._arrived.wait_for(lambda: len(writer._queue) == length, GUARD)

    @staticmethod
    def wait_for_closing(engine: SqliteEngine) -> None:
        """Return once `close` has told the writer to end."""
        writer = engine._writer
        assert writer is not None
        with writer._arrived:
            assert writer._arrived.wait_for(lambda: writer._closed, GUARD)

    @staticmethod
    def limit_space(engine: SqliteEngine, spare_pages: int) -> None:
        """Let the file grow by so many pages only, as on a disk that is nearly full."""

        def job(_: Transaction) -> None:
            connection = engine._write_connection
            pages = connection.pragma("page_count")
            connection.pragma("max_page_count", pages + spare_pages)

        engine.write(job, timeout=GUARD)


HOUSES = {"sqlite": SqliteHouse}


class Gate:
    """A job that has come to the gate waits there until it is opened."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def pass_through(self) -> None:
        self._reached.set()
        assert self._open.wait(GUARD)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(GUARD)

    def open(self) -> None:
        self._open.set()


class Crew:
    """Callers, each in a thread of its own, of one engine."""

    def __init__(self, house: SqliteHouse, engine: Engine, ledger: Ledger, pool: ThreadPoolExecutor) -> None:
        self.house = house
        self.engine = engine
        self.ledger = ledger
        self._pool = pool
        self._queued = 0
        self.gate = Gate()

    def note(self, text: str, **extra: Any) -> Callable[[Transaction], Entry]:
        """A job that records one memory and returns its entry."""

        def job(transaction: Transaction) -> Entry:
            draft = Draft(MemoryRecorded(text=text), "memory", new_id("mem"), MEMORY, **extra)
            return self.ledger.append(transaction, ANN, [draft])[-1]

        return job

    def write(self, text: str, **extra: Any) -> Entry:
        return self.engine.write(self.note(text, **extra), timeout=GUARD)

    def texts(self) -> list[str]:
        """The texts of all memories that stand, oldest first."""
        with self.engine.read() as snapshot:
            head = snapshot.head()
            assert head is not None
            found = snapshot.versions(Filter(), head.sequence, head.effective_at, limit=1_000)
        return [version.text for version in reversed(found)]

    def block(self) -> Future[None]:
        """Occupy the writer until the gate is opened; returns once it is occupied."""
        running = self._pool.submit(self.engine.write, lambda _: self.gate.pass_through(), timeout=GUARD)
        self.gate.wait_until_reached()
        return running

    def queue(self, job: Callable[[Transaction], Any], timeout: float = GUARD) -> Future[Any]:
        """Queue a job behind the blocked writer, in a thread of its own; returns once it waits its turn."""
        self._queued += 1
        answer = self._pool.submit(self.engine.write, job, timeout=timeout)
        self.house.wait_for_queue(self.engine, self._queued)
        return answer

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        return self._pool.submit(work)


@pytest.fixture(params=list(HOUSES))
def house(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteHouse:
    return HOUSES[request.param](tmp_path)


@pytest.fixture
def new_crew(house: SqliteHouse, clock: Any) -> Iterator[Callable[..., Crew]]:
    """Open the house's ledger, as often as a test wants, each time as another process would."""
    opened: list[Engine] = []
    with ThreadPoolExecutor(32) as pool:

        def new() -> Crew:
            engine = house.open()
            opened.append(engine)
            ledger = Ledger(clock, "default", None)
            engine.write(lambda transaction: ledger.begin(transaction, "test", None), timeout=GUARD)
            return Crew(house, engine, ledger, pool)

        yield new
        for engine in opened:
            engine.close()


@pytest.fixture
def crew(new_crew: Callable[..., Crew]) -> Crew:
    return new_crew()
