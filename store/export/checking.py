"""Proof of the exports beside a ledger: every file whole, every row there once and what the ledger says.

It shares no code with what wrote them: it reads the manifest's JSON, hashes every file anew, and holds each row
against the ledger's own tables, on a connection of its own and in one snapshot. Memory stays flat.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import islice, zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, Final

import apsw
import pyarrow as pa
import pyarrow.parquet as pq

from ..engines.sqlite.connection import connect, reading_access
from .expected import EXPECTED

MOST_FINDINGS: Final = 20
_ROWS: Final = 4_096
_WHOLE_DIGITS: Final = 20
_SCALE: Final = 18
_ENOUGH_DIGITS: Final = 200

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: in which table and file (None: the manifest), and what."""

    table: str | None
    file: str | None
    what: str


def check_exports(ledger: Path) -> list[Finding]:
    """What is wrong with the exports beside the ledger file, at most 20 findings; none where there are no exports.

    Waits for a server's pass and keeps the next one off meanwhile. Raises apsw.Error for a ledger that cannot be
    read.
    """
    folder = ledger.parent / "exports"
    with _without_a_pass(folder):
        try:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            tables, head = dict(manifest["tables"]), manifest["head"]
            sequence, chain = int(head["sequence"]), str(head["chain_sha256"])
            for table, told in tables.items():
                _check_places(table, told["files"])
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            return [Finding(None, None, f"the manifest cannot be read: {fault}")]
        with closing(connect(ledger, reading_access(ledger))) as connection:
            connection.execute("BEGIN")
            return list(islice(_all(connection, folder, tables, sequence, chain), MOST_FINDINGS))


def _check_places(table: str, files: list[dict[str, Any]]) -> None:
    """Raise KeyError, TypeError or ValueError for a file that lacks what is told of one, or lies elsewhere."""
    for file in files:
        for name in ("first", "last", "rows", "bytes"):
            if type(file[name]) is not int:
                raise ValueError(f"{name} of a file is no number")
        if type(file["sha256"]) is not str:
            raise ValueError("sha256 of a file is no text")
        if PurePosixPath(file["path"]).parts[:-1] != ("segments", table):
            raise ValueError(f"a file of {table} lies outside of segments/{table}")
        if PurePosixPath(file["glob"]).parts[:-1] != (table,):
            raise ValueError(f"a file of {table} lies outside of {table}")


@contextmanager
def _without_a_pass(folder: Path) -> Iterator[None]:
    """Wait for the pass that a server makes, if any, and keep the next one off: it finds that others are at it."""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # nobody made a pass here yet
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _all(
    connection: apsw.Connection, folder: Path, tables: dict[str, Any], sequence: int, chain: str
) -> Iterator[Finding]:
    row = connection.execute(
        "SELECT chain_sha256 FROM memory_events WHERE sequence = ?", (sequence,)
    ).fetchone()
    if row is None or row[0].hex() != chain:
        yield Finding(
            None, None, f"the ledger has no entry {sequence} with the chain that the manifest names"
        )
        return
    if tables.keys() != EXPECTED.keys():
        yield Finding(None, None, f"the tables are not {', '.join(EXPECTED)}")
        return
    for table, told in tables.items():
        files = list(told["files"])
        wrong = list(_files(folder, table, files, sequence))
        yield from wrong
        if not wrong:
            yield from _rows(connection, folder, table, files, sequence)


def _files(folder: Path, table: str, files: list[dict[str, Any]], sequence: int) -> Iterator[Finding]:
    """Whether each file is the one that was written, and their ranges follow each other up to the head."""
    expected = 1
    for file in files:
        for name in (file["path"], file["glob"]):
            problem = _hashed_wrong(folder / name, file)
            if problem is not None:
                yield Finding(table, name, problem)
        if file["first"] != expected or file["last"] < file["first"]:
            yield Finding(
                table, file["path"], f"it covers {file['first']} to {file['last']}, after {expected - 1}"
            )
        expected = file["last"] + 1
    if expected != sequence + 1:
        yield Finding(table, None, f"the files end at {expected - 1} and the manifest at {sequence}")
    named = {Path(file["glob"]).name for file in files}
    for path in (folder / table).glob("*.parquet"):
        if path.name not in named:
            yield Finding(table, f"{table}/{path.name}", "the manifest does not name it")


def _hashed_wrong(path: Path, file: dict[str, Any]) -> str | None:
    """What is wrong with a file's bytes, None when they are those that the manifest names."""
    try:
        if path.is_symlink():
            return "it is a symbolic link"
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        if digest != file["sha256"] or path.stat().st_size != file["bytes"]:
            return "it is not the file that was written"
        rows = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowInvalid) as fault:
        return f"it cannot be read: {fault}"
    return None if rows == file["rows"] else f"it holds {rows} rows and the manifest says {file['rows']}"


def _rows(
    connection: apsw.Connection, folder: Path, table: str, files: list[dict[str, Any]], sequence: int
) -> Iterator[Finding]:
    """Whether the rows of all files together are those of the ledger, in its order."""
    stored = EXPECTED[table](connection, sequence)
    for read, wanted in zip_longest(_exported(folder, files), stored):
        if read is None or wanted is None:
            what = (
                "there are rows that the ledger does not hold"
                if read
                else f"the row of {wanted[0]} is missing"
            )
            yield Finding(table, None, what)
            return
        (file, row), (born, values) = read, wanted
        if not file["first"] <= born <= file["last"]:
            yield Finding(table, file["path"], f"it holds a row that began at {born}")
        names = [name for name in row if not _agree(name, row, values)]
        if names or row.keys() != values.keys():
            differing = ", ".join(names) or "the columns"
            yield Finding(table, file["path"], f"the row that began at {born} differs in {differing}")


def _exported(folder: Path, files: list[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    for file in files:
        with pq.ParquetFile(folder / file["path"]) as opened:
            for batch in opened.iter_batches(batch_size=_ROWS):
                plain = [
                    column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
                    for column in batch.columns
                ]
                for values in zip(*(column.to_pylist() for column in plain), strict=True):
                    yield file, dict(zip(batch.schema.names, values, strict=True))


def _agree(name: str, row: Row, wanted: Row) -> bool:
    """Whether a value is the ledger's; a number may be null where its digits do not fit the column."""
    value, told = row[name], wanted.get(name)
    if f"{name}_text" in row:
        return _same_number(value, told)
    if isinstance(value, list):
        return [_without_nulls(item) for item in value] == told
    return bool(value == told)


def _same_number(value: Decimal | None, told: str | None) -> bool:
    if told is None:
        return value is None
    with localcontext(prec=_ENOUGH_DIGITS):
        number = Decimal(told)
        _, digits, exponent = number.normalize().as_tuple()
    whole = isinstance(exponent, int) and len(digits) + exponent <= _WHOLE_DIGITS and exponent >= -_SCALE
    return value == number if whole or not number else value is None


def _without_nulls(item: Any) -> Any:
    return (
        {name: value for name, value in item.items() if value is not None} if isinstance(item, dict) else item
    )
