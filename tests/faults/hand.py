"""The fault tests' other processes: run as a script with a task's name; says JSON lines, and a line in means go."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw

from store import Book, Caller
from store.commands import Remember
from store.engines.sqlite import SqliteEngine
from store.ledger import projected


def say(what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def wait_for_go() -> None:
    sys.stdin.readline()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hold_transaction(path: str) -> None:
    """Hold BEGIN IMMEDIATE from outside until told to go on."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    connection.execute("BEGIN IMMEDIATE")
    say("held")
    wait_for_go()
    connection.execute("COMMIT")
    say("released")


def hold_transaction_for(path: str, seconds: str) -> None:
    """Hold BEGIN IMMEDIATE for a while."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("BEGIN IMMEDIATE")
    say("held")
    threading.Event().wait(float(seconds))
    connection.execute("COMMIT")
    say("released")


def hold_lock(path: str) -> None:
    """Hold the lock that writers take in turn, as a writer that was stopped in its commit does."""
    with Path(path + ".lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        say("held")
        wait_for_go()
    say("released")


def write_at_once(root: str, agent: str, threads: str, each: str) -> None:
    """Write from several threads of one process; says every wait in seconds and every event id."""
    book = Book.open(Path(root), "default")
    say("open")
    wait_for_go()
    waits: list[float] = []
    ids: list[str] = []

    def work(thread: int) -> None:
        caller = Caller(agent=agent, profile="solo", session_id=f"{agent}-{thread}", tool="remember")
        for number in range(int(each)):
            began = time.monotonic()
            written = book.execute(caller, Remember(text=f"{agent} thread {thread} number {number}"))
            waits.append(time.monotonic() - began)
            ids.append(written.event_id)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    book.close()
    say({"waits": waits, "ids": ids})


def write_until_killed(root: str, agent: str, committed: str) -> None:
    """Write and say each acknowledged id; dies between its n-th commit and the acknowledgement."""
    book = Book.open(Path(root), "default")
    writer = book._engine._writer  # type: ignore[attr-defined]
    commit = writer._commit
    left = [int(committed)]

    def commit_then_die(done: Any) -> None:
        left[0] -= 1
        if left[0] > 0:
            commit(done)
            return
        writer._connection.execute("COMMIT")
        die()

    writer._commit = commit_then_die

    def work(thread: int) -> None:
        caller = Caller(agent=agent, profile="solo", session_id=f"{agent}-{thread}", tool="remember")
        number = 0
        while True:
            number += 1
            say(book.execute(caller, Remember(text=f"{agent} thread {thread} number {number}")).event_id)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
    for worker in workers:
        worker.start()
    workers[0].join()


def _die_when(statement: str, *, after: bool) -> None:
    """Arm every connection: die when it begins, or has ended, a statement (a COMMIT: of what it writes)."""
    writing = statement != "COMMIT"

    def trace(event: dict[str, Any]) -> None:
        nonlocal writing
        writing = writing or str(event["sql"]).startswith("BEGIN IMMEDIATE")
        if writing and str(event["sql"]).startswith(statement):
            die()

    mask = apsw.SQLITE_TRACE_PROFILE if after else apsw.SQLITE_TRACE_STMT
    apsw.connection_hooks.append(lambda connection: connection.trace_v2(mask, trace))


def upgrade_and_die(path: str, moment: str) -> None:
    """Open a ledger of an older schema and die at a moment of its upgrade."""
    seen = 0

    def counted(transaction: Any, entry: Any) -> Any:
        nonlocal seen
        seen += 1
        if moment == f"entry {seen}":
            die()
        return projected(transaction, entry)

    if not moment.startswith("entry"):
        _die_when(moment.removeprefix("after "), after=moment.startswith("after "))
    SqliteEngine(Path(path), counted, create=False).close()
    say("lived")


def rebuild_and_die(root: str, moment: str) -> None:
    """Rebuild the projections and die at a moment of it."""
    book = Book.open(Path(root), "default", create=False)

    def progress(sequence: int) -> None:
        if moment == "page":
            die()

    if moment == "commit":
        writer = book._engine._writer  # type: ignore[attr-defined]
        writer._commit = lambda _done: die()
    book.rebuild(progress)
    say("lived")


TASKS = {
    task.__name__.replace("_", "-"): task
    for task in (
        hold_transaction,
        hold_transaction_for,
        hold_lock,
        write_at_once,
        write_until_killed,
        upgrade_and_die,
        rebuild_and_die,
    )
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
