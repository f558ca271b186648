"""Where ledgers live below a root, and the safe folder name of any strategy or run.

`<root>/<strategy>/memory.sqlite` is the live ledger, `<root>/<strategy>/runs/<run>/memory.sqlite` a run's.
Folder names are injective on every file system, also where upper and lower case are one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from .errors import StoreError, StoreReadOnly

LEDGER_FILE = "memory.sqlite"
RUNS = "runs"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST = 180


def folder_name(name: str) -> str:
    """A path-safe folder name, different for every name; percent-encoded but for a-z, 0-9, - and _."""
    encoded = "".join(
        character if character in _PLAIN else "".join(f"%{byte:02x}" for byte in character.encode())
        for character in name
    )
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[:100]}~{hashlib.sha256(name.encode()).hexdigest()}"


def ledger_path(root: Path, strategy: str, run: str | None) -> Path:
    """The ledger file of a strategy (live) or of one of its runs."""
    folder = root / folder_name(strategy)
    if run is not None:
        folder = folder / RUNS / folder_name(run)
    return folder / LEDGER_FILE


def make_folders(root: Path, path: Path) -> None:
    """Make the folders between root and `path`, mode 0700; refuse a symbolic link below the root.

    Raises StoreReadOnly where a folder cannot be made, StoreError for a link or a file in the way.
    """
    folder = root
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in path.parent.relative_to(root).parts:
            folder = folder / part
            folder.mkdir(mode=0o700, exist_ok=True)
            refuse_link(folder)
            sync_folder(folder.parent)
    except FileExistsError:
        raise StoreError(
            "What lies in the store's place is not a folder.",
            hint="Move it away or choose another --root.",
            where=folder,
        ) from None
    except OSError as fault:
        raise StoreReadOnly(
            f"The store's folder cannot be made: {os.strerror(fault.errno or 0)}.",
            hint="Make the root writable or choose another --root.",
        ) from None
    refuse_link(path)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, so that what was made in it survives a power cut from then on."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def absent(path: Path) -> bool:
    """Whether nothing is there; what cannot be seen counts as there, and opening it says what is wrong."""
    try:
        return not path.exists()
    except OSError:
        return False


def refuse_links(root: Path, path: Path) -> None:
    """Raise StoreError when `path` or a folder between it and `root` is a symbolic link."""
    folder = root
    for part in path.relative_to(root).parts:
        folder = folder / part
        refuse_link(folder)


def refuse_link(path: Path) -> None:
    """Raise StoreError when `path` is a symbolic link: nothing is followed out of the root."""
    try:
        linked = stat.S_ISLNK(path.lstat().st_mode)
    except OSError:
        return
    if linked:
        raise StoreError(
            "What lies in the store's place is a symbolic link.",
            hint="A store holds no links; name the real root instead.",
            where=path,
        )
