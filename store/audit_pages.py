"""What SQLite itself can say of the file, asked in a thread of its own beside all else that is checked.

These few statements take a third of a verification and need nothing of Python meanwhile. They have a connection of
their own: it sees the same moment of the ledger, or one next to it while others write.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from .audit_text import Segment, copy_index
from .engines.sqlite.connection import connect, reading_access

_ATTEMPTS = 5
_CACHE_KIB = 4_096  # of each connection: nearly all is read once and in order

_DRIFT = (
    "SELECT (SELECT count(*) FROM memory_versions v"
    "   WHERE NOT EXISTS (SELECT 1 FROM memory_text_docsize d WHERE d.id = v.sequence_from)),"
    " (SELECT count(*) FROM memory_text_docsize d"
    "   WHERE NOT EXISTS (SELECT 1 FROM memory_versions v WHERE v.sequence_from = d.id)),"
    " (SELECT count(*) FROM memory_versions v WHERE v.sequence_to IS NOT"
    "   (SELECT n.sequence_from FROM memory_versions n"
    "    WHERE n.memory_id = v.memory_id AND n.version = v.version + 1))"
)
_DRIFTS = (
    "versions are missing from the full-text index",
    "full-text rows have no version",
    "versions end wrongly",
)


@dataclass(frozen=True, slots=True)
class Beside:
    """What is being asked; each answer is waited for, and raises apsw.Error when there is none."""

    _connection: apsw.Connection
    _drifts: Future[list[str]]
    _copied: Future[Segment | None]
    _damage: Future[str | None]

    def drifts(self) -> list[str]:
        """Rows that no other table accounts for, and versions that the full-text index lost."""
        return self._drifts.result()

    def copied(self) -> tuple[apsw.Connection, Segment | None]:
        """Where a copy of the full-text index of the same moment lies, if it could be made; all else is answered."""
        self._damage.exception()  # whatever came of it: the connection serves one thread at a time
        return self._connection, None if self._copied.exception() else self._copied.result()

    def damage(self) -> str | None:
        """Damage that no entry shows, such as in an index or a page that is not used."""
        return self._damage.result()


@contextmanager
def beside(path: Path, connection: apsw.Connection) -> Iterator[Beside]:
    """Begin a transaction on the connection and ask while the block runs; what is open when it ends is broken off."""
    with closing(connect(path, reading_access(path))) as other, ThreadPoolExecutor(1) as thread:
        for each in (connection, other):
            each.pragma("cache_size", -_CACHE_KIB)
        same = _begin(connection, other)
        drifts = thread.submit(_drift, other)
        copied = thread.submit(copy_index if same else _no_copy, other)
        damage = thread.submit(_damage, other)
        try:
            yield Beside(other, drifts, copied, damage)
        finally:
            thread.shutdown(wait=False, cancel_futures=True)
            other.interrupt()


def _begin(*connections: apsw.Connection) -> bool:
    """Begin a transaction on each; whether they see the same moment, as long as nobody but Deskbook writes."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            for connection in connections:
                connection.execute("COMMIT")
        for connection in connections:
            connection.execute("BEGIN")
        if len({_moment(connection) for connection in connections}) == 1:
            return True
    return False


def _moment(connection: apsw.Connection) -> tuple[object, object]:
    """What every writer changes: the last sequence, or in a rebuild the tables."""
    try:
        last = connection.execute("SELECT max(sequence) FROM memory_events").get
    except apsw.SQLError:  # no ledger: that will be said
        last = None
    return connection.pragma("schema_version"), last


def _no_copy(_: apsw.Connection) -> None:
    return None


def _drift(connection: apsw.Connection) -> list[str]:
    counts = connection.execute(_DRIFT).fetchone() or ()
    return [f"{count} {what}" for count, what in zip(counts, _DRIFTS, strict=False) if count]


def _damage(connection: apsw.Connection) -> str | None:
    found = connection.execute("PRAGMA main.integrity_check(1)").fetchone()
    return None if found == ("ok",) else str(found[0]) if found else "no answer"
