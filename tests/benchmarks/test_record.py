"""verify, rebuild and backup beside reading the same ledger raw, each a process of its own, with peak memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import Measured, Print

pytestmark = pytest.mark.bench

SIZE = 100_000
MOST = int(os.environ.get("BENCH_RECORD_ENTRIES", "0"))
"""A larger ledger to measure too, such as 1000000; it takes minutes to fill."""

OPEN = """
import sys
from pathlib import Path
path = Path(sys.argv[1])
"""
WORK = {
    "read raw": """
import apsw
for row in apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY).execute(
    "SELECT * FROM memory_events ORDER BY sequence"
):
    pass
""",
    "verify": """
from store.audit import verify
assert verify(path, "default", None).sound
""",
    "rebuild": """
from store import Book
book = Book.open(path.parents[1], "default")
book.rebuild(lambda _: None)
book.close()
""",
    "backup": """
from store.backup.keeping import back_up
back_up(path, path.parents[1] / "kept.sqlite", product="d", now=0, progress=lambda *_: None)
""",
}


def test_the_record_beside_reading_it_raw(
    copy_of: Callable[[int], Path], larger: Callable[[int], Path], measured: Measured, show: Print
) -> None:
    rows = []
    roots = {SIZE: copy_of(SIZE)} | ({MOST: larger(MOST)} if MOST else {})
    for size, root in roots.items():
        path = ledger_path(root, "default", None)
        raw = 1.0
        for name, code in WORK.items():
            seconds, most = measured(OPEN + code, path)
            raw = seconds if name == "read raw" else raw
            each = f"{1e6 * seconds / size:.1f} µs"
            rows.append(
                (f"{size:,}", name, f"{seconds:.2f} s", each, f"{seconds / raw:.1f}", f"{most:.0f} MiB")
            )
    show("the record", ("entries", "", "time", "an entry", "times raw", "peak memory"), rows)
