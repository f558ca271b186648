"""What happens to a file before it is served: recognise it, make its tables, or bring an older schema up.

All of it is safe when several processes start at once: they meet at the file lock, and whoever comes second
finds the work done. A foreign or newer file is refused before anything is written to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from ...entry import Entry
from ...errors import ForeignFile, SchemaTooNew, StoreError
from ...rows import EntryFilter, Redaction, Row
from ..base import Transaction
from . import schema
from .connection import connect
from .lock import FairLock
from .transaction import SqliteTransaction, savepoint

Project = Callable[[Transaction, Entry], Iterable[Row]]
PAGE = 1_000
REDACTIONS = EntryFilter(event_type="memory.redacted", limit=-1)
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
PATIENCE_SECONDS = 10.0


def make_empty_file(path: Path) -> None:
    """Make the file, readable by its owner only; leave an existing one alone."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return


def recognise(path: Path) -> None:
    """Raise unless the file is empty or, by its header, a ledger of a schema that is known here.

    Merely opening another program's file as a database can move its log into it, so only its first bytes are
    read; by SQLite's own file layer, because closing a file beside it would end the locks that this process
    may hold on it (POSIX, fcntl). Raises ForeignFile, SchemaTooNew, StoreError for what is no plain file,
    apsw.Error or OSError for what cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreError(
            "What lies in the ledger's place is not a file.",
            hint="Move it away or choose another --root.",
            where=path,
        )
    size = path.stat().st_size
    if size == 0:
        return
    file = apsw.VFSFile("unix", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        header = file.xRead(min(size, _HEADER_BYTES), 0)
    finally:
        file.xClose()
    if not header.startswith(_MAGIC):
        raise _foreign(path, "is not a database")
    application, version = (int.from_bytes(header[at : at + 4], "big") for at in (68, 60))
    if application != schema.APPLICATION_ID:
        # A ledger whose making was cut off still has its rollback journal, from which SQLite restores it.
        if not path.with_name(path.name + "-journal").exists():
            raise _foreign(path, "belongs to another program")
    elif version > schema.CURRENT:
        raise _newer(path, version)


def _foreign(path: Path, what: str) -> ForeignFile:
    return ForeignFile(
        f"The file in the ledger's place {what}.",
        hint="Move it away or choose another --root; it was not changed.",
        where=path,
    )


def _newer(path: Path, version: int) -> SchemaTooNew:
    return SchemaTooNew(
        f"The ledger has schema {version}; this Deskbook knows {schema.CURRENT}.",
        where=path,
        hint="Upgrade Deskbook; the file was not changed.",
    )


def schema_of(connection: apsw.Connection, path: Path) -> int:
    """The file's schema version, 0 when it is empty.

    Raises ForeignFile for another program's file, SchemaTooNew for a newer Deskbook's.
    """
    try:
        with connection:  # one moment of the file: another process may be making its tables
            application = connection.pragma("application_id")
            version = int(connection.pragma("user_version") or 0)
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except apsw.NotADBError:
        raise _foreign(path, "is not a database") from None
    if application == 0 and version == 0 and tables == (0,):
        return 0
    if application != schema.APPLICATION_ID:
        raise _foreign(path, "belongs to another program")
    if version > schema.CURRENT:
        raise _newer(path, version)
    return version


def prepare(path: Path, lock: FairLock, project: Project) -> None:
    """Bring the file to the current schema, atomically; a copy of an older one is kept beside it.

    Raises StoreBusy when another process holds the lock, StoreError where the file cannot have a write-ahead log.
    """
    try:
        connection = connect(path, "write")
    except apsw.CantOpenError:  # the file may be read and written: what cannot be had is its log
        raise _no_log("of this ledger cannot be used") from None
    try:
        if schema_of(connection, path) == schema.CURRENT and _is_wal(connection):
            return
        with lock.hold_within(PATIENCE_SECONDS):
            version = schema_of(connection, path)
            if version == 0:
                _initialise(connection)
            elif version < schema.CURRENT:
                _keep_copy(connection, path.with_name(f"{path.name}.schema{version}.bak"))
                _upgrade(connection, path, project)
            if not _is_wal(connection):
                _begin_log(connection)
    finally:
        connection.close()


def rebuild(
    connection: apsw.Connection, project: Project, progress: Callable[[int], None] | None = None
) -> None:
    """Drop all projections and write them anew from the ledger, all of it or nothing.

    The caller holds a transaction.
    """
    with savepoint(connection):
        schema.drop_to_tables(connection)
        transaction = SqliteTransaction(connection)
        # What stays of an entry must be known before the entry is read.
        for redaction in list(transaction.raw_entries(REDACTIONS)):
            transaction.apply(project(transaction, redaction))
        after = 0
        while page := list(transaction.entries(EntryFilter(after=after, limit=PAGE))):
            for entry in page:
                transaction.note_clock(entry)
                transaction.apply(project(transaction, entry))
            after = page[-1].sequence
            if progress is not None:
                progress(after)
        schema.make_indexes(connection)


def write_copy(
    target: Path, entries: Iterable[Entry], project: Project, redacted: Iterable[Redaction] = ()
) -> None:
    """Make a new store at `target` that holds the entries and the projections they give.

    `redacted` is what stays of those whose content was taken away.
    """
    make_empty_file(target)
    connection = connect(target, "write")
    try:
        with _Transaction(connection):
            schema.create(connection)
            transaction = SqliteTransaction(connection)
            transaction.apply(redacted)
            for entry in entries:
                transaction.insert_entry(entry)
                transaction.apply(project(transaction, transaction.entry(entry.sequence) or entry))
    finally:
        connection.close()


def _is_wal(connection: apsw.Connection) -> bool:
    return bool(connection.pragma("journal_mode") == "wal")


def _no_log(what: str) -> StoreError:
    return StoreError(
        f"The write-ahead log {what}; without it several processes could not share the ledger safely.",
        hint="Keep the store on a local disk, not in a network or synced folder, and its files readable.",
    )


def _begin_log(connection: apsw.Connection) -> None:
    """Change to the write-ahead log; SQLite says which mode it is in rather than fail."""
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise _no_log(f"cannot be kept here (the journal's mode stays {mode})")


def _initialise(connection: apsw.Connection) -> None:
    # The rollback journal is still in use here, so the file's header is whole before the log exists.
    with _Transaction(connection):
        schema.create(connection)


def _upgrade(connection: apsw.Connection, path: Path, project: Project) -> None:
    with _Transaction(connection):
        for version in range(schema_of(connection, path), schema.CURRENT):
            schema.STEPS[version](connection)
        rebuild(connection, project)
        connection.execute(f"PRAGMA user_version = {schema.CURRENT}")


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    partial = target.with_name(target.name + ".part")
    partial.unlink(missing_ok=True)
    make_empty_file(partial)
    copy = connect(partial, "write")
    try:
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()
    partial.replace(target)


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, rolled back on an error."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, fault: object, trace: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
