"""A proven file put in a ledger's place, and what stood there moved aside, while no writer is at work.

Where a ledger stood, its place never looks free to a server that starts: until the new file stands there, the old one
does, or a mark that no server takes for a ledger.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..engines.sqlite.lock import FairLock
from ..errors import ConfigError
from ..export.manifest import FOLDER
from ..paths import absent, sync_folder

LOCK_SECONDS = 10.0
LOCKS = (".lock", ".turn")
LOGS = ("-wal", "-shm", "-journal")
_MARK = b"A restore was cut off here. Run `deskbook restore` with --force again.\n"


def refuse_standing(path: Path) -> None:
    """Raise ConfigError where a ledger stands."""
    if not absent(path):
        raise _stands(path)


def put_in_place(path: Path, fresh: Path, *, force: bool) -> tuple[Path, ...]:
    """Move what stands there aside and the fresh file in its place; returns where what stood there is now.

    Raises ConfigError where a ledger stands (unless `force`), StoreBusy where a writer is at work for too long.
    """
    lock = FairLock(str(path))
    try:
        with lock.hold_within(LOCK_SECONDS):
            if not force:
                refuse_standing(path)
            ends = _free_ends(path)
            if absent(path):
                moved = _move(ends)
                _link(fresh, path)
            else:
                kept = ends.pop(path)
                _put_mark(path, kept)
                moved = (kept, *_move(ends))
                fresh.replace(path)
            sync_folder(path.parent)
    except FileExistsError:
        raise _stands(path) from None
    finally:
        lock.close()
    return moved


def _free_ends(path: Path) -> dict[Path, Path]:
    """Where each file of a ledger, and the folder of its exports, is moved to: under the first free number."""
    number = 1
    while True:
        name = f"{path.name}.replaced-{number}"
        ends = {path.with_name(path.name + suffix): path.with_name(name + suffix) for suffix in ("", *LOGS)}
        ends[path.with_name(FOLDER)] = path.with_name(f"{FOLDER}.replaced-{number}")
        if not any(os.path.lexists(end) for end in ends.values()):
            return ends
        number += 1


def _move(ends: dict[Path, Path]) -> tuple[Path, ...]:
    moved = []
    for file, end in ends.items():
        if os.path.lexists(file):
            file.rename(end)
            moved.append(end)
    return tuple(moved)


def _put_mark(path: Path, kept: Path) -> None:
    """Move the ledger to `kept`, with a mark in its place from the same moment on."""
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".mark", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(_MARK)
            out.flush()
            os.fsync(out.fileno())
        _link(path, kept)
        Path(name).replace(path)
        sync_folder(path.parent)
    finally:
        Path(name).unlink(missing_ok=True)


def _link(file: Path, name: Path) -> None:
    """Give the file a second name that nothing has; where a file system knows no second names, move it there."""
    try:
        name.hardlink_to(file)
    except FileExistsError:
        raise
    except OSError:
        file.rename(name)


def _stands(path: Path) -> ConfigError:
    return ConfigError(
        f"A ledger stands at {path}.",
        field="--force",
        hint="Stop its servers; with --force it is moved aside, not deleted, and the backup takes its place.",
    )
