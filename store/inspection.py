"""A look at a ledger that leaves no trace: no file is made, no schema upgraded, no lock taken and nothing recorded.

For whoever asks whether a store could be served, before or beside the servers that do it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from .clock import WallClock
from .engines.sqlite import schema
from .engines.sqlite.connection import Access, check_sqlite_version, connect
from .engines.sqlite.engine import CHECKED_AT_OPEN_BYTES
from .engines.sqlite.faults import DAMAGED_HINT, translate_opening
from .engines.sqlite.preparation import recognise, schema_of
from .engines.sqlite.snapshot import SqliteSnapshot
from .errors import NotFound, StoreDamaged
from .ledger import Ledger
from .paths import absent, refuse_links

__all__ = ["Inspection", "check_sqlite_version", "inspect_ledger", "sqlite_version"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """How a ledger stands: entries, the file's schema and the one this version writes, sizes in bytes."""

    entries: int
    schema: int
    current_schema: int
    size_bytes: int
    wal_bytes: int


def sqlite_version() -> str:
    """The version of the SQLite library in use, such as 3.51.3."""
    return apsw.sqlite_lib_version()


def inspect_ledger(root: Path, path: Path, strategy: str, run: str | None) -> Inspection:
    """Look at the ledger at `path`, below `root`, which must be that of the strategy (live) or of its run.

    Raises NotFound where there is none yet, and the StoreError that fits one that cannot be served.
    """
    refuse_links(root, path)
    if absent(path):
        raise NotFound("There is no ledger here yet.", hint="The first write makes it.")
    try:
        access = _traceless(path)
        recognise(path)
        if not path.stat().st_size:
            raise NotFound("The ledger's file is empty.", hint="The first write makes the ledger.")
        try:
            return _inspected(path, access, strategy, run)
        except (apsw.Error, StoreDamaged):
            # A server may just have begun to write what was read as a file at rest.
            if _traceless(path) == access:
                raise
            return _inspected(path, _traceless(path), strategy, run)
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None


def _traceless(path: Path) -> Access:
    """How to read without making a log or its index: with those that lie there, else as a file at rest."""
    if not _beside(path, "-wal").exists():
        return "immutable"
    return "read" if _beside(path, "-shm").exists() else "alone"


def _inspected(path: Path, access: Access, strategy: str, run: str | None) -> Inspection:
    size = path.stat().st_size
    if size <= CHECKED_AT_OPEN_BYTES:
        with closing(connect(path, access)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise StoreDamaged("The ledger's file is damaged.", hint=DAMAGED_HINT)
    with closing(connect(path, access)) as connection:
        version = schema_of(connection, path)
        Ledger(WallClock(), strategy, run).check(SqliteSnapshot(connection))
        (entries,) = connection.execute("SELECT max(sequence) FROM memory_events").fetchone() or (0,)
    log = _beside(path, "-wal")
    wal = log.stat().st_size if log.exists() else 0
    return Inspection(int(entries or 0), version, schema.CURRENT, size, wal)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
