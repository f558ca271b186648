"""The manifest of an exports folder: what is in it, and at which head of which ledger it was taken.

`exports/manifest.json` is written last, in one step. A file that it names is whole and stays as it is until the pass
after the next. Nothing here needs pyarrow, so that anybody can ask how the exports stand.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ..clock import format_instant, parse_instant
from ..errors import DeskbookError, StoreError
from ..files import write_whole
from ..paths import refuse_links
from .schemas import SCHEMAS, written_schema

VERSION: Final = 1
FOLDER: Final = "exports"
MANIFEST: Final = "manifest.json"
FAILURE: Final = "failure.json"
SEGMENTS: Final = "segments"
LOCK: Final = "lock"
ENTRIES: Final = "entries"
_MOST_BYTES: Final = 256 * 2**20
_FILE: Final = re.compile(r"[0-9]{12,20}(-[0-9a-f]{16})?\.parquet")


@dataclass(frozen=True, slots=True)
class Segment:
    """One Parquet file: every row of its table that began with a sequence from `first` to `last`.

    `path` and `glob` are relative to the exports folder: the file that never changes, and the name under which a
    plain glob finds it.
    """

    path: str
    glob: str
    first: int
    last: int
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The ledger that exports are taken from."""

    store_id: str
    strategy: str
    run: str | None


@dataclass(frozen=True, slots=True)
class Stand:
    """The ledger's head when they were taken: sequence, chain in hex, effective_at in microseconds UTC."""

    sequence: int
    chain_sha256: str
    effective_at: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that an exports folder holds; `written_at` in microseconds UTC.

    `columns` are those that the files were written with, by table.
    """

    origin: Origin
    head: Stand
    written_at: int
    tables: Mapping[str, tuple[Segment, ...]]
    columns: Mapping[str, list[dict[str, str]]] = field(
        default_factory=lambda: {table: written_schema(table) for table in SCHEMAS}
    )
    selection: Mapping[str, Any] | None = None
    """Of an export made by hand: what it was cut to."""

    def paths(self) -> set[str]:
        """Every file it names, relative to the exports folder."""
        return {segment.path for segments in self.tables.values() for segment in segments}

    def names(self) -> set[str]:
        """Every name under which its files lie, relative to the exports folder."""
        return self.paths() | {each.glob for segments in self.tables.values() for each in segments}

    def to_json(self) -> str:
        """The manifest as it is written."""
        told: dict[str, Any] = {
            "format": "deskbook exports",
            "version": VERSION,
            **asdict(self.origin),
            "head": asdict(self.head) | {"effective_at": format_instant(self.head.effective_at)},
            "written_at": format_instant(self.written_at),
        }
        if self.selection is not None:
            told["selection"] = dict(self.selection)
        told["tables"] = {
            table: {
                "columns": self.columns[table],
                "rows": sum(segment.rows for segment in segments),
                "files": [asdict(segment) for segment in segments],
            }
            for table, segments in self.tables.items()
        }
        return json.dumps(told, indent=1) + "\n"


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None where there is none, or none that this version reads."""
    try:
        told = json.loads(_bounded(folder / MANIFEST))
        if told["version"] != VERSION:
            return None
        tables = {
            name: tuple(_segment(name, segment) for segment in table["files"])
            for name, table in told["tables"].items()
        }
        head = told["head"]
        return Manifest(
            origin=Origin(told["store_id"], told["strategy"], told["run"]),
            head=Stand(
                head["sequence"], head["chain_sha256"], parse_instant(head["effective_at"], field="head")
            ),
            written_at=parse_instant(told["written_at"], field="written_at"),
            tables=tables,
            columns={name: table["columns"] for name, table in told["tables"].items()},
            selection=told.get("selection"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DeskbookError):
        return None


def _segment(table: str, told: Mapping[str, Any]) -> Segment:
    """A file as a manifest tells of it; raises ValueError for a place that no export of that table has."""
    segment = Segment(**told)
    counts = (segment.first, segment.last, segment.rows, segment.bytes)
    if not all(type(count) is int and count >= 0 for count in counts) or type(segment.sha256) is not str:
        raise ValueError("a number or hash of a file is none")
    if not all(type(name) is str and _is_place(table, name) for name in (segment.path, segment.glob)):
        raise ValueError("a file lies outside of its table's folders")
    return segment


def _is_place(table: str, name: str) -> bool:
    """Whether a file of the table can lie there; what a manifest names is renamed over."""
    if table not in SCHEMAS:
        return (table, name) == (ENTRIES, f"{ENTRIES}.jsonl")
    if name in {f"{table}.parquet", f"{table}.csv"}:
        return True
    folder, _, file = name.rpartition("/")
    return folder in {table, f"{SEGMENTS}/{table}"} and _FILE.fullmatch(file) is not None


def _bounded(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(handle, encoding="utf-8") as file:
        return file.read(_MOST_BYTES)


@dataclass(frozen=True, slots=True)
class ExportStatus:
    """How the exports beside a ledger stand; times ISO 8601 in UTC.

    `through` is the last sequence they hold; `failure` says why the last pass failed, None when it did not.
    """

    through: int
    rows: int
    files: int
    size_bytes: int
    last_success: str | None
    last_failure: str | None
    failure: str | None


def read_status(root: Path, ledger: Path) -> ExportStatus | None:
    """How the exports of the ledger file at `ledger`, below `root`, stand; None when there never were any.

    Raises StoreError for a symbolic link in their place.
    """
    folder = ledger.parent / FOLDER
    refuse_links(root, folder)
    manifest, failed = read_manifest(folder), read_failure(folder)
    if manifest is None and failed is None:
        return None
    segments = [each for table in (manifest.tables if manifest else {}).values() for each in table]
    return ExportStatus(
        through=manifest.head.sequence if manifest else 0,
        rows=sum(segment.rows for segment in segments),
        files=len(segments),
        size_bytes=sum(segment.bytes for segment in segments),
        last_success=format_instant(manifest.written_at) if manifest else None,
        last_failure=failed[0] if failed else None,
        failure=failed[1] if failed else None,
    )


def read_failure(folder: Path) -> tuple[str, str] | None:
    """When the last pass failed, ISO 8601 in UTC, and why; None when it did not."""
    try:
        told = json.loads(_bounded(folder / FAILURE))
        return str(told["at"]), str(told["what"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def note_failure(root: Path, ledger: Path, at: int, what: str) -> None:
    """Leave word of a failed pass where `status` and `doctor` find it, if that can be done at all."""
    folder = ledger.parent / FOLDER
    try:
        refuse_links(root, folder)
        write_whole(folder / FAILURE, json.dumps({"at": format_instant(at), "what": what}) + "\n")
    except (OSError, StoreError):
        return  # what keeps the exports from being written may keep this out too; then they are behind, which shows


def forget_failure(folder: Path) -> None:
    """Take the word of a failed pass away."""
    (folder / FAILURE).unlink(missing_ok=True)
