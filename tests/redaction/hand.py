"""A redaction in a process of its own that is killed where it is told to be: run as a script with a task's name."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from store import Caller
from store.engines.sqlite import purging as pages
from store.engines.sqlite.transaction import SqliteTransaction
from store.redaction import desk as desk_module
from store.redaction import purging
from store.redaction.desk import Desk, Wanted
from store.redaction.register import Register

REVIEWER = Caller("rita", "reviewer", "ses-rita", "redact", reviewer=True)
PLACES: dict[str, tuple[Any, str, bool]] = {
    "before the register": (Register, "add", True),
    "after the register": (Register, "add", False),
    "before the blanks": (SqliteTransaction, "blank", True),
    "among the rows": (SqliteTransaction, "rewrite", True),
    "before the commit": (desk_module.Desk, "_take", False),
    "between the ledgers": (desk_module.Desk, "_take", False),
    "before the pages": (purging, "purge_file", True),
    "before the log": (pages, "_empty_log", True),
    "before the exports": (purging, "_purge_exports", True),
    "before the vectors": (purging, "_purge_vectors", True),
    "before the copies": (purging, "_remove_copies", True),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def redact(root: str, registers: str, name: str, place: str) -> None:
    """Redact, and die at a place."""
    where, what, before = PLACES[place]
    usual = getattr(where, what)

    def dying(*given: Any, **more: Any) -> Any:
        if before:
            die()
        usual(*given, **more)
        die()

    setattr(where, what, dying)
    Desk(Path(root), "default", None, Register(Path(registers))).redact(
        REVIEWER, Wanted(names=(name,)), "by mistake"
    )


if __name__ == "__main__":
    redact(*sys.argv[2:])
