"""500 runs of 200 entries beside a live ledger: what they cost live, what they take on the disk, and what rm frees.

pytest -m bench -s tests/benchmarks/test_runs_beside_live.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Book, Caller, SearchRequest
from store.commands import Remember
from store.events import MemoryRecorded
from store.ids import new_id
from store.ledger import Draft
from store.lifecycle import MEMORY
from store.paths import RUNS
from store.runs import list_runs, remove_run

pytestmark = pytest.mark.bench

START = 1_772_461_800_000_000
RUN_COUNT, ENTRIES, LIVE_NOTES = 500, 200, 2_000
OPENINGS, SEARCHES = 40, 300
WORDS = "margin momentum breakout earnings guidance hedge carry unicorn spread liquidity".split()
ME = Caller("ann", "solo", "ses-1", "remember")


def text_of(number: int) -> str:
    words = (WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7))
    return f"{' '.join(words)}: note {number} on what the desk saw before the open and did after it."


def fill(book: Book, count: int, now: int | None = None) -> None:
    """Write so many notes in one transaction."""
    drafts = [
        Draft(MemoryRecorded(text=text_of(number)), "memory", new_id("mem"), MEMORY, "AAPL")
        for number in range(count)
    ]
    caller = Caller(ME.agent, ME.profile, ME.session_id, ME.tool, now=now)
    book._engine.write(lambda transaction: book._ledger.append(transaction, caller, drafts), timeout=60.0)


def median_ms(work: Callable[[], None], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1_000


def measure(root: Path) -> tuple[float, float]:
    """Medians of opening live and of a recorded search on it, in milliseconds."""

    def open_and_close() -> None:
        Book.open(root, "default", durability="normal").close()

    opening = median_ms(open_and_close, OPENINGS)
    book = Book.open(root, "default", durability="normal")
    searching = median_ms(lambda: _search(book), SEARCHES)
    book.close()
    return opening, searching


def _search(book: Book) -> None:
    book.search(ME, SearchRequest(query="unicorn carry", limit=5))


def disk(folder: Path) -> int:
    """Bytes taken on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_live_beside_500_runs(tmp_path: Path) -> None:
    live = Book.open(tmp_path, "default", durability="normal")
    fill(live, LIVE_NOTES)
    live.execute(ME, Remember(text="the last one"))
    live.close()
    measure(tmp_path)  # once, so that both measurements find warm caches
    before = measure(tmp_path)
    began = time.perf_counter()
    for number in range(RUN_COUNT):
        run = Book.open(tmp_path, "default", f"run-{number:03}", begins=START, durability="normal")
        fill(run, ENTRIES - 2, START)
        assert run.head().sequence == ENTRIES
        run.close()
    made = time.perf_counter() - began
    after = measure(tmp_path)
    runs = tmp_path / "default" / RUNS
    taken = disk(runs)
    began = time.perf_counter()
    listed = list_runs(tmp_path, "default")
    listing = time.perf_counter() - began
    assert len(listed) == RUN_COUNT
    freed = sum(remove_run(tmp_path, "default", run.name) for run in listed)
    print(
        f"\n{RUN_COUNT} runs of {ENTRIES} entries, made in {made:.1f} s, listed in {listing:.1f} s;"
        f" {taken / RUN_COUNT / 1024:.0f} KiB on the disk per run"
    )
    for what, first, then in zip(("open", "search"), before, after, strict=True):
        print(f"live {what}: {first:.2f} ms before, {then:.2f} ms beside them, ratio {then / first:.2f}")
    print(f"run rm freed {freed / 2**20:.1f} MiB by its own account; {disk(runs) / 2**20:.1f} MiB are left")
    assert list(runs.iterdir()) == []
