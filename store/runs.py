"""The runs of a strategy as they lie on disk: listed, described and removed."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from .engines.sqlite import SqliteEngine
from .errors import DeskbookError, NotFound, StoreReadOnly
from .ledger import genesis_of, projected
from .paths import LEDGER_FILE, RUNS, folder_name, ledger_path, refuse_links

_TRIES = 3


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: its name, what it inherits, and its extent; times in microseconds since the epoch, UTC.

    `problem` says why its ledger could not be read; then name is the folder's and the rest is zero.
    """

    name: str
    folder: Path
    size_bytes: int
    inherit: str = "none"
    entries: int = 0
    memories: int = 0
    began_at: int = 0
    last_entry_at: int = 0
    problem: str | None = None


def list_runs(root: Path, strategy: str) -> list[RunSummary]:
    """All runs of a strategy, by name."""
    runs = root / folder_name(strategy) / RUNS
    found = [_summary(root, path.parent) for path in sorted(runs.glob(f"*/{LEDGER_FILE}"))]
    return sorted(found, key=lambda run: run.name)


def describe_run(root: Path, strategy: str, run: str) -> RunSummary:
    """One run; raises NotFound when there is none of that name."""
    path = ledger_path(root, strategy, run)
    if not path.exists():
        raise NotFound("There is no run of that name.", field="run", hint="`deskbook run list` names them.")
    return _summary(root, path.parent)


def remove_run(root: Path, strategy: str, run: str) -> int:
    """Remove a run's folder with its ledger and exports; gives the bytes that became free.

    A server that has the run open notices and refuses further calls. Raises NotFound, or StoreReadOnly when the
    folder cannot be removed.
    """
    summary = describe_run(root, strategy, run)
    refuse_links(root, summary.folder)
    try:
        _remove(summary.folder)
    except OSError as fault:
        raise StoreReadOnly(
            f"The run's folder cannot be removed: {os.strerror(fault.errno or 0)}.",
            hint="Check its permissions.",
        ) from None
    return summary.size_bytes


def _remove(folder: Path) -> None:
    """Remove a folder, also while a server that has not noticed yet puts an export into it."""
    for _ in range(_TRIES):
        with suppress(OSError):
            shutil.rmtree(folder)
            return
    shutil.rmtree(folder)


def _summary(root: Path, folder: Path) -> RunSummary:
    size = 0
    try:
        refuse_links(root, folder / LEDGER_FILE)
        size = sum(_size(path) for path in folder.rglob("*"))
        return _read(folder, size)
    except (DeskbookError, apsw.Error) as fault:
        return RunSummary(folder.name, folder, size, problem=str(fault))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:  # a log that its server has just put away
        return 0


def _read(folder: Path, size: int) -> RunSummary:
    engine = SqliteEngine(folder / LEDGER_FILE, projected, create=False, writes=False)
    try:
        with engine.read() as snapshot:
            head, first = snapshot.head(), snapshot.entry(1)
            genesis = genesis_of(snapshot)
            if head is None or first is None or genesis is None:
                raise NotFound("The ledger has no genesis entry.")
            return RunSummary(
                name=genesis.run or folder.name,
                folder=folder,
                size_bytes=size,
                inherit=genesis.inherit,
                entries=head.sequence,
                memories=snapshot.totals(head.sequence)[0],
                began_at=first.effective_at,
                last_entry_at=head.effective_at,
            )
    finally:
        engine.close()
