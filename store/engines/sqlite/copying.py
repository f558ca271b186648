"""A whole store copied while it is served: one consistent moment of it, in one file at rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from .connection import connect, reading_access
from .preparation import make_empty_file

PAGES_A_STEP = 2_000


def copy_whole(path: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy the store at `path` into the new file `target`, by SQLite's online backup.

    The copy shows the moment it was begun at, however long it takes and whatever is written meanwhile: the
    transaction that is held open keeps the backup from starting anew with every commit. `progress` is told pages
    done and pages in all. Raises apsw.Error or OSError.
    """
    make_empty_file(target)
    with closing(connect(path, reading_access(path))) as source, closing(connect(target, "write")) as copy:
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES_A_STEP)
                progress(backup.page_count - backup.remaining, backup.page_count)
        # What was copied says that a log lies beside it; a file at rest has none.
        if copy.pragma("journal_mode", "delete") != "delete":
            raise apsw.SQLError("the copy could not be brought to rest")
