"""A Lumibot memory file: read from a private copy, so that it is never changed, and never trusted.

The copy is taken together with its log, and both are hashed as they are copied. Only plain tables with the columns
that Lumibot 4.6 makes are read, each text as bytes of bounded length.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from ...engines.sqlite.connection import connect
from ...errors import ForeignFile, NotFound, SchemaTooNew, StoreBusy, StoreDamaged, StoreError

SCHEMA = 1
MOST_BYTES = 64 * 2**20
"""A longer text is not read at all; the report names its row."""
_PIECE = 2**20
_ATTEMPTS = 5
_MAGIC = b"SQLite format 3\0"

EVENTS = (
    "event_id sequence timestamp wall_time strategy event_type subject_type subject_id symbol agent_name"
    " model_call_id retrieval_id text tags_json metadata_json payload_json payload_hash schema_version"
).split()
RETRIEVALS = (
    "retrieval_id timestamp wall_time strategy agent_name model_call_id query kind symbol status result_limit"
    " candidate_ids_json selected_ids_json rendered_text schema_version"
).split()
INDEX = (
    "memory_id latest_event_id kind status symbol text tags_json metadata_json created_at updated_at"
    " schema_version"
).split()
_TABLES = {"memory_events": EVENTS, "memory_retrievals": RETRIEVALS, "memory_index": INDEX}


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it stands: every value as text, None where there is none; `damage` names what could not be read."""

    table: str
    values: dict[str, str | None]
    damage: tuple[str, ...]

    def get(self, name: str) -> str | None:
        """A column's value."""
        return self.values.get(name)


class Source:
    """An open copy of a source."""

    def __init__(self, connection: apsw.Connection, files: tuple[dict[str, Any], ...], named: str) -> None:
        self._connection = connection
        self.files = files
        self.named = named
        self._check()
        self.strategies = self._distinct("strategy")
        self.versions = self._distinct("schema_version")

    def count(self) -> int:
        """Events and retrievals together."""
        return sum(int(self._one(f"SELECT count(*) FROM {table}")) for table in list(_TABLES)[:2])

    def origin(self) -> str | None:
        """What tells this memory from another one: the id of its first event, else of its first retrieval."""
        events = "SELECT event_id FROM memory_events ORDER BY sequence LIMIT 1"
        retrievals = "SELECT retrieval_id FROM memory_retrievals ORDER BY wall_time, rowid LIMIT 1"
        found = self._one(events) or self._one(retrievals)
        return None if found is None else str(found)

    def events(self) -> Iterator[Row]:
        """Events in the order of their sequence."""
        return self._rows("memory_events", "ORDER BY sequence, rowid")

    def retrievals(self) -> Iterator[Row]:
        """Retrievals in the order of the machine's clock."""
        return self._rows("memory_retrievals", "ORDER BY wall_time, rowid")

    def retrieval(self, name: str) -> Row | None:
        """The retrieval of an id."""
        return next(self._rows("memory_retrievals", "WHERE retrieval_id = ?", (name,)), None)

    def index(self) -> Iterator[Row]:
        """The current state of each memory, as the source tells it."""
        return self._rows("memory_index", "ORDER BY created_at, rowid")

    def _rows(self, table: str, order: str, bindings: tuple[str, ...] = ()) -> Iterator[Row]:
        names = _TABLES[table]
        columns = ", ".join(
            f"CASE WHEN octet_length({name}) <= {MOST_BYTES} THEN CAST({name} AS BLOB) END, octet_length({name})"
            for name in names
        )
        for found in self._connection.execute(f"SELECT {columns} FROM {table} {order}", bindings):
            values: dict[str, str | None] = {}
            damage = []
            for at, name in enumerate(names):
                raw, size = found[2 * at], found[2 * at + 1]
                values[name] = None if raw is None else bytes(raw).decode("utf-8", "replace")
                if raw is None and size is not None:
                    damage.append(f"{name}: {size} bytes are too many to be read")
                elif raw is not None and (values[name] or "").encode() != bytes(raw):
                    damage.append(f"{name}: bytes that are no UTF-8 are written as U+FFFD")
            yield Row(table, values, tuple(damage))

    def _one(self, sql: str) -> Any:
        found = self._connection.execute(sql).fetchone()
        return None if found is None else found[0]

    def _distinct(self, column: str) -> tuple[str, ...]:
        found: set[str] = set()
        for table in list(_TABLES)[:2]:
            sql = f"SELECT DISTINCT CAST(substr({column}, 1, 256) AS BLOB) FROM {table} LIMIT 100"
            found |= {
                bytes(raw or b"").decode("utf-8", "replace") for (raw,) in self._connection.execute(sql)
            }
        return tuple(sorted(found))

    def _check(self) -> None:
        for table, columns in _TABLES.items():
            made = self._connection.execute(
                "SELECT type, sql FROM sqlite_schema WHERE name = ?", (table,)
            ).fetchone()
            plain = made is not None and made[0] == "table" and "VIRTUAL" not in str(made[1]).upper()[:40]
            told = self._connection.execute(f"PRAGMA table_xinfo ({table})") if plain else ()
            # Hidden columns are computed by whatever the file says.
            found = {str(row[1]) for row in told if row[6] == 0}
            if not set(columns) <= found:
                raise ForeignFile(
                    f"The file holds no Lumibot memory: {table} is missing or has other columns.",
                    hint="Name the memory.sqlite of a strategy of Lumibot 4.6.",
                )
        newest = max(
            int(self._one(f"SELECT coalesce(max(CAST(schema_version AS INTEGER)), 0) FROM {table}"))
            for table in _TABLES
        )
        if newest > SCHEMA:
            raise SchemaTooNew(
                f"The memory has Lumibot's schema {newest}; this Deskbook knows {SCHEMA}.",
                hint="Upgrade Deskbook; nothing was imported.",
            )
        if self._one("PRAGMA integrity_check(1)") != "ok":
            raise _damaged()


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """A source that is open while its copy exists.

    Raises NotFound, ForeignFile (another program's file, or an encrypted one), SchemaTooNew, StoreDamaged, StoreBusy
    when somebody keeps writing it, or StoreError where it cannot be read.
    """
    # The log lies beside the file itself and not beside a link to it.
    path = Path(os.path.realpath(path))
    with tempfile.TemporaryDirectory(prefix="deskbook-import-") as folder:
        files = _copied_or_refused(path, Path(folder) / "memory.sqlite")
        try:
            with closing(connect(Path(folder) / "memory.sqlite", "write")) as connection:
                connection.execute("PRAGMA query_only = ON")
                connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
                yield Source(connection, files, path.name)
        except (apsw.NotADBError, apsw.CorruptError, apsw.CantOpenError, apsw.SQLError) as fault:
            if isinstance(fault, apsw.NotADBError):
                raise _foreign(path) from None
            raise _damaged() from None


def _copied_or_refused(path: Path, target: Path) -> tuple[dict[str, Any], ...]:
    try:
        return _copied(path, target)
    except OSError as fault:
        raise StoreError(
            f"The source cannot be copied: {os.strerror(fault.errno or 0)}.",
            hint="Check that the file may be read and that there is room for a copy.",
            where=path,
        ) from None


def _copied(path: Path, target: Path) -> tuple[dict[str, Any], ...]:
    """Copy the file and its log, and say what was copied; tried again when somebody wrote meanwhile."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ForeignFile("The source is not a file.", hint="Name the memory.sqlite itself.", where=path)
    except FileNotFoundError:
        raise NotFound(f"There is no file at {path}.", hint="Name the memory.sqlite of a strategy.") from None
    for _ in range(_ATTEMPTS):
        before = _stamps(path)
        files = []
        for suffix in ("", "-wal", "-journal"):
            place, copy = path.with_name(path.name + suffix), target.with_name(target.name + suffix)
            copy.unlink(missing_ok=True)
            if place.exists():
                if not place.is_file():
                    raise ForeignFile(
                        f"What lies beside the source as {place.name} is not a plain file.",
                        hint="Move it away, or name the memory.sqlite itself.",
                        where=place,
                    )
                files.append(_copy(place, copy))
        if _stamps(path) == before:
            with target.open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    raise _foreign(path)
            return tuple(files)
    raise StoreBusy(
        "The source was written while it was read; nothing was imported.",
        hint="Stop its writer, then try again.",
    )


def _copy(place: Path, copy: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with place.open("rb") as source, copy.open("xb") as out:
        while piece := source.read(_PIECE):
            digest.update(piece)
            size += out.write(piece)
    return {"name": place.name, "bytes": size, "sha256": digest.hexdigest()}


def _stamps(path: Path) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            seen = path.with_name(path.name + suffix).stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((seen.st_mtime_ns, seen.st_size))
    return found


def _foreign(path: Path) -> ForeignFile:
    return ForeignFile(
        "The source is no SQLite database, or an encrypted one.",
        hint="Name the memory.sqlite of a strategy of Lumibot 4.6.",
        where=path,
    )


def _damaged() -> StoreDamaged:
    return StoreDamaged(
        "The source's file is damaged; nothing more was imported.",
        hint="Restore it from a backup, or mend a copy with SQLite's .recover.",
    )
