"""Files of the owner's alone that are there whole or not at all, whenever the power goes."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from .paths import sync_folder


def write_whole(path: Path, text: str) -> None:
    """Write a small file in one step, mode 0600; raises the OSError that kept it from being written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with new_file(partial) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def new_file(path: Path) -> Any:
    """A new file for bytes, mode 0600; what a killed process left under that name is replaced."""
    path.unlink(missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "w+b")


def lock_at_once(handle: int) -> bool:
    """Take the lock of an open file without waiting; False when another holds it. It ends with its holder."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
