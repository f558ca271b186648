"""Small files that are whole or not there: notes, keys and proofs, written durably."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StoreError, StoreReadOnly
from ..paths import sync_folder

MOST_BYTES = 16 * 2**20
PUBLIC, PRIVATE = 0o644, 0o600


def read_small(path: Path) -> bytes:
    """The bytes of a plain file of at most 16 MiB; raises StoreError for anything else, FileNotFoundError for none.

    A named pipe in its place does not hold the reader up.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise StoreError("That is no plain file.", hint="Name a file.", where=path)
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise StoreError(
            f"The file cannot be read: {os.strerror(fault.errno or 0)}.",
            hint="Check its name and who may read it.",
            where=path,
        ) from None
    if len(raw) > MOST_BYTES:
        raise StoreError("The file is longer than 16 MiB.", hint="Name another.", where=path)
    return raw


def write_whole(path: Path, raw: bytes, mode: int = PUBLIC, *, replace: bool = True) -> None:
    """Write a file so that it is there whole, or not at all, whenever the power goes.

    Raises FileExistsError where one lies and `replace` is false, StoreReadOnly where none can be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(handle)
            if replace:
                fresh.replace(path)
            else:
                os.link(fresh, path)
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        if replace:
            raise _unwritable(path, "something else lies there") from None
        raise
    except OSError as fault:
        raise _unwritable(path, os.strerror(fault.errno or 0)) from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, made if missing (0700), against other commands that write notes into it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    except OSError as fault:
        raise _unwritable(folder, os.strerror(fault.errno or 0)) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # A command that was killed while it wrote leaves a file that nobody reads.
        for left in folder.glob(".*.new"):
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def _unwritable(path: Path, why: str) -> StoreReadOnly:
    return StoreReadOnly(
        f"The file cannot be written: {why}.", hint="Make room and the folder writable.", where=path
    )
