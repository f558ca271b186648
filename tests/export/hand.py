"""The export tests' other process: writes, exports, and dies by SIGKILL at its n-th step in the exports folder.

A step is whatever changes the folder, just before it is done: a file opened to be written, a rename, a link, a
removal, and every write of Parquet in between.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from store import Book, Caller
from store.commands import OpenThesis, Remember, UpdateThesis
from store.export import exporter, segments
from store.export.tables import TABLES
from store.paths import ledger_path

STEPS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}
WHO = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool")


def say(what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def die_at(step: int) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def heed(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS and "/exports" in str(arguments[0]):
            count()

    sys.addaudithook(heed)
    write = segments.Hashed.write

    def counted(self: segments.Hashed, data: Any) -> int:
        count()
        return write(self, data)

    segments.Hashed.write = counted  # type: ignore[method-assign]


def small(grows_to: int, largest: int) -> None:
    """Few rows in a segment, so that a short ledger has many."""
    exporter.GROWS_TO = grows_to  # type: ignore[misc]
    exporter.TABLES = {name: replace(table, largest=largest) for name, table in TABLES.items()}  # type: ignore[misc]


def write_and_export(root: str, grows_to: str, largest: str, notes: str, step: str) -> None:
    """Write some notes, reword an old thesis, and make a pass; say how far it reaches, if it lives to."""
    small(int(grows_to), int(largest))
    book = Book.open(Path(root), "default", durability="normal")
    thesis = book.execute(WHO, OpenThesis(text="Long AAPL.", symbol="AAPL"), idempotency_key="thesis")
    for number in range(int(notes)):
        book.execute(WHO, Remember(text=f"note {number}", symbol="AAPL"))
    book.execute(WHO, UpdateThesis(thesis_id=thesis.id, text="Longer."))
    die_at(int(step))
    done = exporter.bring_up_to_date(Path(root), ledger_path(Path(root), "default", None), book.snapshot)
    say(done.through)
    book.close()


def write_while_read(root: str, passes: str) -> None:
    """Write and make a pass again and again, and say how far each reaches."""
    small(40, 100)
    book = Book.open(Path(root), "default", durability="normal")
    thesis = book.execute(WHO, OpenThesis(text="Long AAPL.", symbol="AAPL"))
    for turn in range(int(passes)):
        for number in range(1 + turn % 23):
            book.execute(WHO, Remember(text=f"turn {turn} note {number}", symbol="AAPL"))
        book.execute(WHO, UpdateThesis(thesis_id=thesis.id, text=f"Longer {turn}."))
        done = exporter.bring_up_to_date(Path(root), ledger_path(Path(root), "default", None), book.snapshot)
        say(done.through)
    book.close()


def export_at_once(root: str, passes: str) -> None:
    """Write and make passes beside others that do the same."""
    small(40, 100)
    book = Book.open(Path(root), "default", durability="normal")
    for turn in range(int(passes)):
        book.execute(WHO, Remember(text=f"{os.getpid()} turn {turn}"))
        exporter.bring_up_to_date(Path(root), ledger_path(Path(root), "default", None), book.snapshot)
    book.close()
    say("done")


TASKS = {
    task.__name__.replace("_", "-"): task for task in (write_and_export, write_while_read, export_at_once)
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
