"""Opening, sharing and closing one ledger file.

Opening never makes a file in the place of one that is damaged, foreign, newer or gone. Many processes may
have the file open; each has one writer thread and a few read connections.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Empty, Full, LifoQueue
from typing import TypeVar

import apsw

from ...errors import (
    DeskbookError,
    NotFound,
    SchemaTooNew,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreVanished,
)
from ...rows import EntryFilter
from ..base import EngineStatus, Snapshot, Transaction
from . import schema
from .checkpoint import Checkpointer
from .connection import Durability, connect, reading_access
from .faults import DAMAGED_HINT, READ_ONLY_HINT, translate, translate_opening
from .lock import FairLock
from .preparation import Project, make_empty_file, prepare, rebuild, recognise, schema_of, write_copy
from .snapshot import SqliteSnapshot
from .transaction import SqliteTransaction
from .writer import GRACE_SECONDS, Writer

T = TypeVar("T")

READERS_KEPT = 8
CHECKED_AT_OPEN_BYTES = 32 * 2**20
"""Files up to this size are checked whole when they are opened; larger ones by `status` and `verify`."""


class SqliteEngine:
    """One open ledger file; safe to use from many threads."""

    def __init__(
        self,
        path: Path,
        project: Project,
        *,
        durability: Durability = "full",
        create: bool = True,
        writes: bool = True,
    ) -> None:
        """Open the file at an absolute path whose folder exists, only to be read when `writes` is false.

        Raises NotFound when it is absent and not to be made, and the StoreError that fits a file that is
        foreign, newer, damaged or unreadable.
        """
        self._path = path
        self._project = project
        self._durability = durability
        self._problem: DeskbookError | None = None
        self._closed = False
        self._readers: LifoQueue[apsw.Connection] = LifoQueue(READERS_KEPT)
        self._writer: Writer | None = None
        self._lock: FairLock | None = None
        self._writes = writes
        try:
            self._open(create)
        except BaseException as fault:  # noqa: BLE001 - whatever went wrong, what was opened is let go
            self._let_go()
            raise translate_opening(fault) from None

    def _open(self, create: bool) -> None:
        writable = os.access(self._path.parent, os.W_OK) and (
            not self._path.exists() or os.access(self._path, os.W_OK)
        )
        if not self._path.exists() and not self._wal_path.exists():
            if not create:
                raise NotFound("There is no ledger here yet.", hint="The first write makes it.")
            if not writable:
                raise StoreReadOnly("There is no store here and none can be made.", hint=READ_ONLY_HINT)
            make_empty_file(self._path)
        if not self._writes and not _size(self._path):
            # Whoever writes may make a ledger of it; to look at it must not.
            raise NotFound("The ledger's file is empty.", hint="The first write makes the ledger.")
        self._access = reading_access(self._path)
        self._identity = _identity(self._path)
        recognise(self._path)
        if writable:
            self._lock = FairLock(str(self._path))
            prepare(self._path, self._lock, self._project)
        self._check_whole()
        if self._lock is not None and self._writes:
            self._start_writer(self._lock)

    def _check_whole(self) -> None:
        with self._reader() as connection:
            version = schema_of(connection, self._path)
            if version < schema.CURRENT:
                raise StoreReadOnly(
                    f"The store has schema {version} and must be upgraded, but it cannot be written.",
                    hint=READ_ONLY_HINT,
                )
        if self._path.stat().st_size <= CHECKED_AT_OPEN_BYTES:
            self._check_pages()

    def _check_pages(self) -> None:
        """Raise StoreDamaged when the file's pages contradict each other.

        On a connection of its own: on one that has read before, the full-text index is checked against what it
        remembers of an earlier snapshot, and a ledger that another process writes looks damaged.
        """
        with closing(connect(self._path, self._access)) as connection:
            # A page that was cut reads as if it ended in zeros; only with a log beside it may the file still grow.
            cut = _size(self._path) % int(connection.pragma("page_size"))
            if cut and not _size(self._wal_path):
                raise StoreDamaged("The ledger's file ends within a page.", hint=DAMAGED_HINT)
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise StoreDamaged("The ledger's file is damaged.", hint=DAMAGED_HINT)

    def _start_writer(self, lock: FairLock) -> None:
        connection = connect(self._path, "write", self._durability)
        self._checkpointer = Checkpointer(self._path, connection)
        self._write_connection = connection
        self._writer = Writer(
            connection,
            SqliteTransaction(connection),
            lock,
            before_batch=self._check_present,
            in_transaction=self._check_schema,
            after_batch=self._checkpointer.move_rest,
        )

    @property
    def _wal_path(self) -> Path:
        return self._path.with_name(self._path.name + "-wal")

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """A consistent snapshot on a connection of its own."""
        self._check_present()
        try:
            with self._reader() as connection:
                connection.execute("BEGIN")
                try:
                    yield SqliteSnapshot(connection)
                finally:
                    connection.execute("ROLLBACK")
        except apsw.Error as fault:
            raise self._remember(translate(fault)) from None

    def write(self, job: Callable[[Transaction], T], *, timeout: float, grace: float = GRACE_SECONDS) -> T:
        """See `Engine.write`."""
        if self._problem is not None:
            raise self._problem
        if self._closed:
            raise StoreClosed("The ledger is closed; nothing was stored.", hint="Start the server again.")
        if self._writer is None:
            raise StoreReadOnly("The store is read-only; nothing was stored.", hint=READ_ONLY_HINT)
        try:
            return self._writer.run(job, timeout, grace)
        except StoreDamaged as fault:
            raise self._remember(fault) from None

    def rebuild(self, progress: Callable[[int], None]) -> None:
        """Drop every projection and write it anew from the ledger, in one transaction."""
        self.write(lambda _: rebuild(self._write_connection, self._project, progress), timeout=3600.0)

    def copy_until(self, cut: int, target: Path) -> None:
        """See `Engine.copy_until`."""
        try:
            with self.read() as snapshot:
                entries = snapshot.raw_entries(EntryFilter(until_sequence=cut, limit=-1))
                write_copy(target, entries, self._project, snapshot.kept_until(cut))
        except apsw.Error as fault:
            raise translate(fault) from None
        except OSError as fault:
            raise StoreError(
                f"{target} cannot be written: {os.strerror(fault.errno or 0)}.",
                hint="Name a new file in a folder that exists and may be written.",
            ) from None

    def status(self) -> EngineStatus:
        """How the store stands; a damaged one is described, not raised."""
        entries = redacted = memories = 0
        problem = self._problem
        try:
            with self.read() as snapshot:
                head = snapshot.head()
                entries = head.sequence if head else 0
                redacted = snapshot.count_redacted()
                memories = snapshot.totals(entries)[0]
            self._check_pages()
        except DeskbookError as fault:
            problem = fault
        except apsw.Error as fault:
            problem = problem or _as_ours(translate(fault))
        return EngineStatus(
            path=str(self._path),
            engine=f"sqlite {apsw.sqlite_lib_version()}",
            schema=schema.CURRENT,
            size_bytes=_size(self._path),
            wal_bytes=_size(self._wal_path),
            entries=entries,
            redacted=redacted,
            memories=memories,
            writable=self._writer is not None and problem is None,
            problem=problem.message if problem else None,
        )

    def close(self) -> None:
        """Finish what is queued and let go of the files; closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        # The writer goes last: SQLite moves the log into the file when the last connection to it may write.
        self._close_readers()
        if self._writer is None:
            self._let_go()
        elif self._writer.close():
            self._checkpointer.close()
            self._write_connection.close()
            self._let_go()

    def _let_go(self) -> None:
        self._close_readers()
        if self._lock is not None:
            self._lock.close()

    def _close_readers(self) -> None:
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                return

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        if self._lock is None:
            self._follow_files()
        try:
            connection = self._readers.get_nowait()
        except Empty:
            connection = connect(self._path, self._access)
        try:
            yield connection
        finally:
            self._keep(connection)

    def _follow_files(self) -> None:
        """Read on in the right way when somebody else begins or ends writing what is read-only here."""
        access = reading_access(self._path)
        if access != self._access:
            self._access = access
            self._close_readers()

    def _keep(self, connection: apsw.Connection) -> None:
        try:
            self._readers.put_nowait(connection)
        except Full:
            connection.close()
        if self._closed:
            self._close_readers()

    def _check_present(self) -> None:
        """Raise StoreVanished when the path no longer leads to the file that was opened."""
        if _identity(self._path) != self._identity:
            raise StoreVanished(
                "The ledger's file was removed or replaced while it was open; nothing was stored.",
                hint="Restore the file, then start the server again.",
            )

    def _check_schema(self) -> None:
        found = self._write_connection.pragma("user_version")
        if found != schema.CURRENT:
            raise SchemaTooNew(
                f"The store was upgraded to schema {found} by another process; nothing was stored.",
                hint="Start this server again with the newer Deskbook.",
            )

    def _remember(self, fault: BaseException) -> BaseException:
        if isinstance(fault, StoreDamaged):
            self._problem = fault
        return fault


def _as_ours(fault: BaseException) -> DeskbookError | None:
    return fault if isinstance(fault, DeskbookError) else None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
