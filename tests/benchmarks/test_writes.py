"""An acknowledged write beside a one-row commit at the same durability."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from store import Book, Caller

if TYPE_CHECKING:
    from conftest import Print, Writing

pytestmark = pytest.mark.bench

CALLERS = (1, 4, 32)
ROUNDS = 5
EACH_ROUND = 400
CALLER = Caller(agent="bench", profile="solo", session_id="bench", tool="remember")


class PlainTable:
    """The floor: one row in one transaction, on a connection that callers take in turn."""

    def __init__(self, path: Path, rows: int, writing: Writing) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.execute(
            "PRAGMA synchronous = FULL; CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"
        )
        with self._connection:
            self._connection.executemany(
                "INSERT INTO notes (text) VALUES (?)", ((writing.text(),) for _ in range(rows))
            )
        self._turn = threading.Lock()

    def write(self, text: str) -> None:
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def timed(callers: int, works: list[Callable[[], None]]) -> tuple[list[float], float]:
    """Every call's time and the whole time, in seconds, with so many callers at once."""
    waits: list[float] = []
    ready = threading.Barrier(callers + 1)

    def run(mine: list[Callable[[], None]]) -> None:
        ready.wait()
        for work in mine:
            began = time.perf_counter()
            work()
            waits.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run, args=(works[at::callers],)) for at in range(callers)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return waits, time.perf_counter() - began


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_acknowledged_writes(
    show: Print,
    percentile: Callable[[Sequence[float], float], float],
    copy_of: Callable[[int], Path],
    writing: Writing,
    tmp_path: Path,
    size: int,
) -> None:
    plain = PlainTable(tmp_path / "plain.sqlite", size, writing)
    book = Book.open(copy_of(size), "default")

    def ours(number: int) -> Callable[[], None]:
        caller = replace(CALLER, session_id=f"bench-{number % 32}")
        command = writing.command()
        return lambda: (book.execute(caller, command), None)[1]

    rows = []
    for callers in CALLERS:
        found: dict[str, tuple[list[float], list[float]]] = {"one-row commit": ([], []), "deskbook": ([], [])}
        for _ in range(ROUNDS):
            works = {
                "one-row commit": [partial(plain.write, writing.text()) for _ in range(EACH_ROUND)],
                "deskbook": [ours(number) for number in range(EACH_ROUND)],
            }
            for name, (every, wholes) in found.items():
                some, whole = timed(callers, works[name])
                every.extend(some)
                wholes.append(whole)
        base = found["one-row commit"][0]
        for name, (waits, wholes) in found.items():
            p50, p99 = percentile(waits, 0.5), percentile(waits, 0.99)
            rows.append(
                (
                    f"{name}, {callers} callers",
                    f"{p50:.2f}",
                    f"{p50 / percentile(base, 0.5):.1f}",
                    f"{p99:.2f}",
                    f"{p99 / percentile(base, 0.99):.1f}",
                    f"{1e3 * max(waits):.0f}",
                    f"{ROUNDS * EACH_ROUND / sum(wholes):,.0f}",
                )
            )
    log_bytes = book.status().wal_bytes
    book.close()
    plain.close()
    show(
        f"Acknowledged write at {size:,} memories, synchronous=FULL, {ROUNDS * EACH_ROUND:,} writes each"
        f" (log afterwards {log_bytes / 2**20:.0f} MiB)",
        ("", "p50 ms", "times", "p99 ms", "times", "max ms", "writes/s"),
        rows,
    )
