"""The store: whether its root can be written and by whom it can be read, its disk, and each agent's ledger.

Whether a folder can be written is found out by making a file in it and removing that again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from store.errors import NotFound, StoreError
from store.inspection import inspect_ledger
from store.paths import ledger_path

from .findings import Finding, fail, fault, ok, warn
from .subject import Subject

LEAST_FREE_BYTES: Final = 64 * 2**20
"""Below this a running server calls itself degraded."""

NETWORK: Final = frozenset(
    (
        "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs lustre vboxsf prl_fs fuse.sshfs fuse.glusterfs fuse.rclone"
    ).split()
)
"""File systems without the shared memory and locks that SQLite's write-ahead log needs between processes."""

FLEETING: Final = frozenset({"tmpfs", "ramfs"})

SYNCED: Final = re.compile(
    r"(Dropbox|OneDrive|Google ?Drive|iCloud ?Drive|Mobile Documents|CloudStorage|Nextcloud|ownCloud|pCloudDrive"
    r"|MEGA|Box Sync|Syncthing)\b.*",
    re.IGNORECASE,
)
"""Folders whose names say that a program copies them elsewhere, such as `OneDrive - Firm`."""

_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_GROUP_AND_OTHERS: Final = 0o077


def check_root(subject: Subject) -> Iterator[Finding]:
    """Whether the root is there or can be made, and can be written."""
    root = subject.root
    place = _standing_part(root)
    reason = _why_unwritable(place)
    if not is_folder(root):
        yield fail("root", f"{place} is no folder", "Move it away, or choose another --root.")
    elif reason is not None:
        yield fail(
            "root",
            f"{root} cannot be written{'' if place == root else f' (nor made in {place})'}: {reason}",
            _how_to_own(place),
        )
    elif place == root:
        yield ok("root", f"{root}, writable")
    else:
        yield ok("root", f"{root}, not there yet; the first write makes it")


def check_permissions(subject: Subject) -> Iterator[Finding]:
    """Whether others can read what is the owner's alone."""
    closed = True
    for path, wanted in dict(_private_places(subject)).items():
        mode = _mode(path)
        if mode is not None and mode & _GROUP_AND_OTHERS:
            closed = False
            yield warn(
                "permissions",
                f"{path} is open to other users (mode {mode:04o})",
                f"chmod {wanted:o} {shlex.quote(str(path))}",
            )
    if closed and _mode(subject.root) is not None:
        yield ok("permissions", "folders 0700, files 0600")


def check_disk(subject: Subject) -> Iterator[Finding]:
    """Room on the disk, and whether it is one that a ledger can lie on."""
    place = _standing_part(subject.root)
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        yield fail(
            "disk", f"{place} cannot be looked at: {os.strerror(error.errno or 0)}", _how_to_own(place)
        )
        return
    kind = file_system(place, subject.mounts())
    told = f"{free // 2**20:,} MiB free{f', {kind}' if kind else ''}"
    if free < LEAST_FREE_BYTES:
        yield fail("disk", told, f"Make room: a server needs {LEAST_FREE_BYTES // 2**20} MiB to be well.")
    elif kind in NETWORK:
        yield warn(
            "disk",
            f"{told}: a network or shared file system, which does not lock as SQLite's write-ahead log needs",
            "Put the root on a local disk of this machine ([store] root or --root).",
        )
    elif synced := _synced_part(subject.root):
        yield warn(
            "disk",
            f"{told}: {synced} looks like a folder that a sync program copies, which tears a ledger being written",
            "Put the root outside of it, and let the program copy what `deskbook backup` writes.",
        )
    elif kind in FLEETING:
        yield warn("disk", f"{told}: gone at the next restart", "Put the root on a disk that lasts.")
    else:
        yield ok("disk", told)


def check_ledgers(subject: Subject) -> Iterator[Finding]:
    """Whether the ledger of each agent would open; it is neither made nor upgraded."""
    for strategy, run in ledgers_of(subject):
        yield _ledger(subject, strategy, run)


def ledgers_of(subject: Subject) -> list[tuple[str, str | None]]:
    """Strategy and run of each ledger that the desk's agents have; a run that each call names is not known here."""
    known = (
        (identity.strategy, identity.run)
        for identity in subject.identities
        if identity.mode == "live" or identity.run is not None
    )
    return list(dict.fromkeys(known))


def file_system(place: Path, mounts: str) -> str | None:
    """The kind of file system that a folder lies on, as the mount table names it; None where it does not say."""
    found, kind = PurePosixPath(), None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = PurePosixPath(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[1]))
        # The last of several mounts on one point covers those before it.
        if PurePosixPath(place).is_relative_to(point) and len(point.parts) >= len(found.parts):
            found, kind = point, fields[2]
    return kind


def _ledger(subject: Subject, strategy: str, run: str | None) -> Finding:
    name = f"ledger {strategy}" if run is None else f"ledger {strategy}/{run}"
    path = ledger_path(subject.root, strategy, run)
    try:
        found = inspect_ledger(subject.root, path, strategy, run)
    except NotFound as none:
        return ok(name, f"none yet at {path}; the first write makes it" if none.hint else none.message)
    except StoreError as error:
        error.where = error.where or path
        return fault(name, error)
    entries = "1 entry" if found.entries == 1 else f"{found.entries:,} entries"
    told = f"{path}, {entries}, schema {found.schema}"
    if not _writable(path):
        return fail(name, f"{told}, read-only", _how_to_own(path))
    if found.schema < found.current_schema:
        told += f", upgraded to {found.current_schema} at the next start, with a copy kept beside it"
    return ok(name, told)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def _private_places(subject: Subject) -> Iterator[tuple[Path, int]]:
    yield subject.root, 0o700
    for identity in subject.identities:
        path = ledger_path(subject.root, identity.strategy, identity.run)
        folder = path.parent
        while folder != subject.root:
            yield folder, 0o700
            folder = folder.parent
        yield path, 0o600
        yield path.with_name(path.name + "-wal"), 0o600


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except OSError:
        return None


def is_folder(root: Path) -> bool:
    """Whether the root is a folder, or could become one; what cannot be looked at may be one."""
    try:
        return stat.S_ISDIR(_standing_part(root).stat().st_mode)
    except OSError:
        return True


def _synced_part(path: Path) -> Path | None:
    """The outermost folder on the way, links followed, that is named like a sync program's."""
    way = [*reversed(path.resolve().parents), path.resolve()]
    return next((place for place in way if SYNCED.fullmatch(place.name)), None)


def _standing_part(path: Path) -> Path:
    """The path, or the nearest folder above it that is there; what cannot be looked at counts as there."""
    for place in (path, *path.parents):
        try:
            place.lstat()
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            continue
        except OSError:
            return place
        return place
    return Path(path.anchor)


def _why_unwritable(folder: Path) -> str | None:
    """What keeps a file from being made, filled and removed here; None where nothing does."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as made:
            made.write(b"x")
            made.flush()
            os.fsync(made.fileno())
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None


def _how_to_own(place: Path) -> str:
    return (
        f"Make it writable for the user that runs the server (chown or chmod u+rwX {shlex.quote(str(place))}), "
        "or choose another --root."
    )
