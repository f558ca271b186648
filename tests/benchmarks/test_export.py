"""An export beside reading its ledger raw, with its memory; a write with and without the exporter at work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Caller
from store.commands import Remember
from store.export.exporter import bring_up_to_date
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import Measured, Print

pytestmark = pytest.mark.bench

SIZE = 100_000
MOST = int(os.environ.get("BENCH_EXPORT_ENTRIES", "0"))
"""A larger ledger to measure too, such as 1000000; it takes minutes to fill."""

WRITES = 3_000

READ = """
import sys, apsw
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
for row in connection.execute("SELECT * FROM memory_events ORDER BY sequence"):
    pass
"""
EXPORT = """
import sys
from pathlib import Path
from store.export.exporter import bring_up_to_date
from store.export.source import ledger_snapshot
root = Path(sys.argv[1]).parents[1]
bring_up_to_date(root, Path(sys.argv[1]), lambda: ledger_snapshot(root, "default", None))
"""
NOTHING = "import apsw, pyarrow.parquet"


def test_an_export_beside_reading_the_ledger_raw(
    copy_of: Callable[[int], Path], larger: Callable[[int], Path], measured: Measured, show: Print
) -> None:
    rows = []
    roots = {SIZE: copy_of(SIZE)} | ({MOST: larger(MOST)} if MOST else {})
    for size, root in roots.items():
        path = ledger_path(root, "default", None)
        nothing = measured(NOTHING, path)
        raw, export, again = (measured(code, path) for code in (READ, EXPORT, EXPORT))
        size_of = sum(file.stat().st_size for file in (path.parent / "exports" / "segments").glob("*/*"))
        rows.append(
            (
                f"{size:,}",
                f"{raw[0]:.2f} s",
                f"{export[0]:.2f} s",
                f"{export[0] / raw[0]:.1f}",
                f"{again[0]:.2f} s",
                f"{nothing[1]:.0f} MiB",
                f"{raw[1]:.0f} MiB",
                f"{export[1]:.0f} MiB",
                f"{size_of / 2**20:.0f} of {path.stat().st_size / 2**20:.0f} MiB",
            )
        )
    head = ("entries", "read raw", "export", "ratio", "again", "imports", "raw", "export", "size")
    show("a first export, and one with nothing to do", head, rows)


def test_a_write_with_and_without_the_exporter(
    copy_of: Callable[[int], Path], percentile: Any, show: Print
) -> None:
    """The exporter makes pass after pass here; a server makes one in a minute."""
    root = copy_of(SIZE)
    book = Book.open(root, "default")
    path = ledger_path(root, "default", None)
    first = time.perf_counter()
    bring_up_to_date(root, path, book.snapshot)
    first = time.perf_counter() - first
    stop, passes = threading.Event(), []

    def exporting() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            bring_up_to_date(root, path, book.snapshot)
            passes.append(time.perf_counter() - began)

    off = _writes(book)
    thread = threading.Thread(target=exporting)
    thread.start()
    on = _writes(book)
    stop.set()
    thread.join()
    book.close()
    rows = [
        (name, *(f"{percentile(times, share):.2f} ms" for share in (0.5, 0.95, 0.99)))
        for name, times in (("export off", off), ("export on, without a pause", on))
    ]
    rows.append(
        (f"a pass ({len(passes)} made)", *(f"{percentile(passes, s):.0f} ms" for s in (0.5, 0.95, 0.99)))
    )
    show(f"a write beside a ledger of {SIZE:,} (first export {first:.1f} s)", ("", "p50", "p95", "p99"), rows)


def _writes(book: Book) -> list[float]:
    caller = Caller(agent="bench", profile="solo", session_id="bench", tool="remember")
    times = []
    for number in range(WRITES):
        began = time.perf_counter()
        book.execute(caller, Remember(text=f"note {number} of thirty words or fewer", symbol="AAPL"))
        times.append(time.perf_counter() - began)
    return times
