"""Makes a ledger's file forget what was deleted from it: in free pages, in the slack of pages, and in the log.

Everything that stands is written into fresh pages (VACUUM), then the log is moved into the file and cut to nothing.
Merging the full-text index first leaves out the terms of what was deleted, which its segments hold on to.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import apsw

from ...errors import StoreBusy
from .connection import connect
from .lock import FairLock

LOCK_SECONDS: Final = 30.0
READERS_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_LOG_HINT: Final = "End what reads the ledger for long, then run the same command again, which finishes it."


def purge_file(path: Path, *, to_rest: bool = False) -> None:
    """Leave in the file and its log only what stands; no writer is let in meanwhile.

    `to_rest` leaves a file without a log, for one that nobody else has open. Raises StoreBusy when a writer holds the
    ledger for too long, or a reader the log, which then still holds what was deleted; apsw.Error for what SQLite
    cannot do, such as on a full disk.
    """
    with ExitStack() as held:
        lock = held.enter_context(closing(FairLock(str(path))))
        held.enter_context(lock.hold_within(LOCK_SECONDS))
        connection = held.enter_context(closing(connect(path, "write")))
        connection.execute("INSERT INTO memory_text (memory_text) VALUES ('optimize')")
        connection.execute("VACUUM")
        _empty_log(connection)
        if to_rest and connection.pragma("journal_mode", "delete") != "delete":
            raise apsw.SQLError("the file could not be brought to rest")


def _empty_log(connection: apsw.Connection) -> None:
    deadline = time.monotonic() + READERS_SECONDS
    while not _emptied(connection):
        if time.monotonic() >= deadline:
            raise StoreBusy(
                "Another program has been reading the ledger for too long: its log still holds what was deleted.",
                hint=_LOG_HINT,
                stored="yes",
            )
        time.sleep(_POLL_SECONDS)


def _emptied(connection: apsw.Connection) -> bool:
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return True
