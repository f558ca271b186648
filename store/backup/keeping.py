"""A backup is one file at rest, a ledger like any other, with a manifest beside it that says what it must be.

Restoring puts nothing in place before the copy has proved to be what the manifest says. What stood in its place is
moved aside, never deleted.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from ..audit import verify
from ..clock import format_instant
from ..engines.sqlite.connection import connect
from ..engines.sqlite.copying import copy_whole
from ..engines.sqlite.faults import translate_opening
from ..engines.sqlite.preparation import recognise
from ..engines.sqlite.purging import purge_file
from ..engines.sqlite.snapshot import SqliteSnapshot
from ..errors import ConfigError, ForeignFile, NotFound, StoreDamaged
from ..files import write_whole
from ..paths import absent, ledger_path, make_folders, refuse_link, refuse_links
from ..redaction.again import redact_again
from ..redaction.purging import Purged, purge
from ..redaction.register import Register
from ..rows import Head
from .manifest import Manifest, manifest_path, read_manifest
from .placing import LOCKS, LOGS, put_in_place, refuse_standing
from .portrait import Portrait, portray

Progress = Callable[[int, int], None]

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put in place: where, what it is, and where what stood there was moved to."""

    path: Path
    portrait: Portrait
    moved: tuple[Path, ...]
    redacted_again: int = 0
    """How many entries had their content back, in the backup, and lost it again."""
    head: Head | None = None
    """The ledger's head where it is not the backup's any more."""
    remains: tuple[tuple[str, str], ...] = ()
    """What of it could not be purged beside the ledger, each with what to do."""


def back_up(
    path: Path, target: Path, *, product: str, now: int, force: bool = False, progress: Progress
) -> Manifest:
    """Copy the ledger at `path`, which may be in use, into the file `target`, with its manifest beside it.

    `now` is microseconds since the epoch, UTC. Raises NotFound where there is no ledger, ConfigError for a target
    that exists (unless `force`) or lies among ledgers, and the StoreError that fits a file that cannot be read or
    written; then nothing is left behind.
    """
    if absent(path):
        raise NotFound("There is no ledger to back up.", hint="Check --root, --strategy and --run.")
    _check_target(path, target, force)
    partial = target.with_name(f".{target.name}.part")
    try:
        recognise(path)
        partial.unlink(missing_ok=True)
        copy_whole(path, partial, progress)
        portrait = portray(partial)
        size, digest = _digest(partial)
        made = Manifest(target.name, size, digest, format_instant(now), product, portrait)
        _sync(partial)
        partial.replace(target)
        write_whole(manifest_path(target), made.to_json())
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return made


def restore(
    root: Path,
    strategy: str,
    run: str | None,
    backup: Path,
    *,
    register: Register,
    force: bool = False,
    progress: Progress,
) -> Restored:
    """Put a backup in the place of a strategy's live ledger or of one of its runs.

    It must be the file its manifest names, a sound ledger of that strategy and run, with the same head, counts and
    answers to searches. What was redacted since, by the register, is redacted again before it stands there. Raises
    ConfigError where a ledger stands (unless `force`: then it is moved aside), NotFound without backup or manifest,
    ForeignFile for another strategy's or run's, StoreDamaged for one that is not what it was; then nothing changed.
    """
    manifest = read_manifest(backup)
    if (manifest.portrait.strategy, manifest.portrait.run) != (strategy, run):
        raise ForeignFile(
            "The backup is of another strategy or run.",
            hint=f"Restore it with --strategy {manifest.portrait.strategy}"
            + (
                f" --run {manifest.portrait.run}."
                if manifest.portrait.run is not None
                else " and without --run."
            ),
        )
    gone = register.lines(manifest.portrait.store_id)
    path = ledger_path(root, strategy, run)
    refuse_links(root, path)
    if not force:
        refuse_standing(path)
    make_folders(root, path)
    try:
        with _copied_beside(path, backup, manifest.size_bytes, progress) as partial:
            _prove(partial, manifest, strategy, run, progress)
            again = redact_again(partial, strategy, run, gone)
            if again:
                purge_file(partial, to_rest=True)
            head = _head_of(partial) if again else None
            _sync(partial)
            moved = put_in_place(path, partial, force=force)
        left = purge(root, path, pages=False) if again else Purged()
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None
    remains = tuple(zip(left.remains, left.hints, strict=True))
    return Restored(path, manifest.portrait, moved, again, head, remains)


def _check_target(path: Path, target: Path, force: bool) -> None:
    if (target.parent / path.name).exists() or target.name.endswith(("-wal", "-shm", "-journal", ".json")):
        raise ConfigError(
            f"{target} lies where a ledger has files of its own.",
            field="TARGET",
            hint="Name a file in another folder.",
        )
    if target.is_dir() or not target.parent.is_dir():
        what = "is a folder" if target.is_dir() else "is in no folder that exists"
        raise ConfigError(f"{target} {what}.", field="TARGET", hint="Name a file in a folder that exists.")
    refuse_link(target)
    for file in (target, manifest_path(target)):
        if file.exists() and not force:
            raise ConfigError(f"{file} exists.", field="TARGET", hint="Name another file, or add --force.")


def _prove(file: Path, manifest: Manifest, strategy: str, run: str | None, progress: Progress) -> None:
    """Raise StoreDamaged unless the file is what the manifest says and proves sound."""
    if _digest(file) != (manifest.size_bytes, manifest.sha256):
        raise _not_the_same("its bytes")
    report = verify(file, strategy, run, progress)
    if not report.sound:
        raise StoreDamaged(
            f"The backup does not prove sound: {report.findings[0].what}.",
            hint="Use another backup; `deskbook verify` of the original tells whether it was so already.",
        )
    searches = tuple(search.query for search in manifest.portrait.searches)
    if (what := portray(file, searches).differs_from(manifest.portrait)) is not None:
        raise _not_the_same(what)


def _not_the_same(what: str) -> StoreDamaged:
    return StoreDamaged(
        f"The backup is not what its manifest says: {what} differs.", hint="Use another backup."
    )


def _digest(file: Path) -> tuple[int, str]:
    with file.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    return file.stat().st_size, digest


@contextmanager
def _copied_beside(path: Path, source: Path, size: int, progress: Progress) -> Iterator[Path]:
    """A copy of the file in the folder of `path`, under a name of its own; gone in the end unless it was moved."""
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".restoring", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out, source.open("rb") as read:
            while chunk := read.read(_CHUNK):
                out.write(chunk)
                progress(out.tell(), max(size, out.tell()))
        yield Path(name)
    finally:
        for suffix in ("", *LOGS, *LOCKS):
            with suppress(OSError):
                Path(name + suffix).unlink(missing_ok=True)


def _head_of(file: Path) -> Head | None:
    with closing(connect(file, "immutable")) as connection:
        return SqliteSnapshot(connection).head()


def _sync(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
