"""A backup is one file at rest, a ledger like any other, with a manifest beside it that says what it must be.

Restoring puts nothing in place before the copy has proved to be what the manifest says. What stood in its place is
moved aside, never deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw

from ..audit import verify
from ..clock import format_instant
from ..engines.sqlite.copying import copy_whole
from ..engines.sqlite.faults import translate_opening
from ..engines.sqlite.lock import FairLock
from ..engines.sqlite.preparation import recognise
from ..errors import ConfigError, ForeignFile, NotFound, StoreDamaged
from ..paths import absent, ledger_path, make_folders, refuse_link, refuse_links, sync_folder
from .portrait import Portrait, Search, portray

Progress = Callable[[int, int], None]

FORMAT = "deskbook-backup"
VERSION = 1
LOCK_SECONDS = 10.0
_CHUNK = 2**20
_BESIDE = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup must be: its file's size in bytes and SHA-256, and the portrait of the ledger in it.

    `made_at` is an ISO time in UTC.
    """

    file: str
    size_bytes: int
    sha256: str
    made_at: str
    product: str
    portrait: Portrait

    def to_json(self) -> str:
        """The manifest as it is written."""
        return (
            json.dumps({"format": FORMAT, "version": VERSION} | asdict(self), ensure_ascii=False, indent=1)
            + "\n"
        )


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put in place: where, what it is, and where what stood there was moved to."""

    path: Path
    portrait: Portrait
    moved: tuple[Path, ...]


def manifest_path(backup: Path) -> Path:
    """Where a backup's manifest lies."""
    return backup.with_name(backup.name + ".json")


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
        _write(manifest_path(target), made.to_json())
        sync_folder(target.parent)
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return made


def restore(
    root: Path, strategy: str, run: str | None, backup: Path, *, force: bool = False, progress: Progress
) -> Restored:
    """Put a backup in the place of a strategy's live ledger or of one of its runs.

    It must be the file its manifest names, a sound ledger of that strategy and run, with the same head, counts and
    answers to searches. Raises ConfigError where a ledger stands (unless `force`: then it is moved aside), NotFound
    without backup or manifest, ForeignFile for another strategy's or run's, StoreDamaged for one that is not what
    it was; then nothing was changed.
    """
    manifest = _read_manifest(backup)
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
    path = ledger_path(root, strategy, run)
    refuse_links(root, path)
    if not absent(path) and not force:
        raise ConfigError(
            f"A ledger stands at {path}.",
            field="--force",
            hint="Stop its servers; with --force it is moved aside, not deleted, and the backup takes its place.",
        )
    make_folders(root, path)
    partial = path.with_name(path.name + ".restoring")
    try:
        partial.unlink(missing_ok=True)
        _copy_file(backup, partial, manifest.size_bytes, progress)
        _prove(partial, manifest, strategy, run, progress)
        _sync(partial)
        moved = _put_in_place(path, partial)
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return Restored(path, manifest.portrait, moved)


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


def _read_manifest(backup: Path) -> Manifest:
    place = manifest_path(backup)
    for file in (backup, place):
        if not file.is_file():
            raise NotFound(
                f"There is no file {file}.", hint="A backup is a file with its manifest, .json, beside it."
            )
    try:
        return _manifest_of(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreDamaged(
            "The backup's manifest cannot be read.", hint="Use another backup.", where=place
        ) from None


def _manifest_of(told: dict[str, Any]) -> Manifest:
    """The manifest in its JSON; raises ValueError, KeyError or TypeError for any other."""
    if (told.pop("format"), told.pop("version")) != (FORMAT, VERSION):
        raise ValueError("another format or version")
    seen = told.pop("portrait")
    searches = tuple(
        Search(each["query"], each["total"], tuple(each["found"])) for each in seen.pop("searches")
    )
    return Manifest(**told, portrait=Portrait(**seen, searches=searches))


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


def _put_in_place(path: Path, fresh: Path) -> tuple[Path, ...]:
    """Move what stands there aside and the fresh file in its place, while no writer is at work."""
    lock = FairLock(str(path))
    try:
        with lock.hold_within(LOCK_SECONDS):
            moved = _move_aside(path)
            fresh.replace(path)
            sync_folder(path.parent)
    finally:
        lock.close()
    return moved


def _move_aside(path: Path) -> tuple[Path, ...]:
    standing = [path.with_name(path.name + suffix) for suffix in _BESIDE]
    if not any(file.exists() for file in standing):
        return ()
    number = 1
    while any(path.with_name(f"{path.name}.replaced-{number}{suffix}").exists() for suffix in _BESIDE):
        number += 1
    moved = []
    for file, suffix in zip(standing, _BESIDE, strict=True):
        if file.exists():
            aside = path.with_name(f"{path.name}.replaced-{number}{suffix}")
            file.rename(aside)
            moved.append(aside)
    return tuple(moved)


def _digest(file: Path) -> tuple[int, str]:
    with file.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    return file.stat().st_size, digest


def _copy_file(source: Path, target: Path, size: int, progress: Progress) -> None:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out, source.open("rb") as read:
        while chunk := read.read(_CHUNK):
            out.write(chunk)
            progress(out.tell(), max(size, out.tell()))


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.part")
    with suppress(FileNotFoundError):
        partial.unlink()
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(file)


def _sync(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
