"""A small file below the root that says who may do what, and is for its owner alone.

It is replaced as a whole under a lock between processes, so a reader sees it before a change or after it. What
anyone but its owner may read or write, what is damaged and what a newer Deskbook wrote is not used.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from store.errors import SchemaTooNew, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from store.paths import make_folders, refuse_link, sync_folder

LOCK_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.01
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

Mark = tuple[int, ...]
Contents = TypeVar("Contents", bound=BaseModel)


class _Header(BaseModel):
    model_config = ConfigDict(strict=True, hide_input_in_errors=True)

    version: Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Words:
    """How errors speak of a file: its name, what is refused without it, and what to do about it."""

    name: str
    refused: str
    look: str
    """What to do once it was open to others."""
    mend: str
    """What to do when it is damaged."""


def mark_of(path: Path) -> Mark:
    """What changes whenever the file does: empty where nothing lies, the error's number where none can look.

    A change always lengthens the file, so two states of it never share a mark, however coarse the disk's clock.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return ()
    except OSError as fault:
        return (fault.errno or 0,)
    return (
        found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode,
    )  # fmt: skip


def read_private(path: Path, words: Words) -> bytes | None:
    """The file's bytes; None where there is no file.

    Raises StoreError for a link, for what is no file and for one that others may read or write.
    """
    refuse_link(path)
    try:
        # Without O_NONBLOCK a named pipe in its place would hold the reader up for good.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise StoreError(
            f"The {words.name} {path} cannot be opened: {os.strerror(fault.errno or 0)}.",
            hint=f"Without it {words.refused}. Make it readable for the user that runs Deskbook.",
        ) from None
    try:
        _check_private(path, os.fstat(handle), words)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError as fault:
        raise StoreError(
            f"The {words.name} {path} cannot be read: {os.strerror(fault.errno or 0)}.",
            hint=f"Without it {words.refused}.",
        ) from None
    finally:
        os.close(handle)


def parse_private(path: Path, raw: bytes, contents: type[Contents], version: int, words: Words) -> Contents:
    """What the file says; raises StoreDamaged for what cannot be read, SchemaTooNew for a newer version."""
    try:
        found = _Header.model_validate_json(raw).version
        if found > version:
            raise SchemaTooNew(
                f"The {words.name} {path} has version {found}; this Deskbook reads version {version}, and of a "
                f"newer one {words.refused}.",
                hint="Install the Deskbook that wrote it.",
            )
        return contents.model_validate_json(raw)
    except ValidationError:
        raise damaged(path, words) from None


def damaged(path: Path, words: Words) -> StoreDamaged:
    """The error for a file that contradicts itself."""
    return StoreDamaged(f"The {words.name} {path} is damaged, so {words.refused}.", hint=words.mend)


@contextmanager
def held(path: Path, lock: Path, words: Words) -> Iterator[None]:
    """Hold the lock under which the file may change; makes the root (0700) and the lock (0600) if missing.

    Raises StoreBusy after ten seconds, StoreReadOnly or StoreError where root or lock cannot be made.
    """
    make_folders(path.parent, path)
    refuse_link(lock)
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as fault:
        raise _unwritable(fault, lock) from None
    try:
        _take(handle, lock, words)
        yield
    finally:
        os.close(handle)


def write_private(path: Path, raw: bytes) -> None:
    """Replace the file durably; the lock must be held. Raises StoreFull or StoreReadOnly, and nothing changed."""
    # Only the holder of the lock writes here, so what lies there was left behind by a process that died.
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)  # a umask may have taken the owner's own rights away
            file.write(raw)
            file.flush()
            os.fsync(handle)
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as fault:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise _unwritable(fault, path) from None


def _check_private(path: Path, found: os.stat_result, words: Words) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(
            f"What lies at {path}, in the {words.name}'s place, is not a file.",
            hint=f"Move it away. Until then {words.refused}.",
        )
    if found.st_mode & 0o077:
        raise StoreError(
            f"The {words.name} {path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o}), so "
            f"{words.refused}: chmod 600 {shlex.quote(str(path))}",
            hint=words.look,
        )


def _take(handle: int, lock: Path, words: Words) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"Another command held the {words.name} for {LOCK_SECONDS:g} s; nothing was changed.",
                    hint="Try again.",
                ) from None
            time.sleep(_POLL_SECONDS)
        except OSError as fault:
            raise _unwritable(fault, lock) from None
        else:
            return


def _unwritable(fault: OSError, path: Path) -> StoreError:
    kind = StoreFull if fault.errno in _FULL else StoreReadOnly
    return kind(
        f"{path} cannot be written: {os.strerror(fault.errno or 0)}. Nothing was changed.",
        hint="Make room and the root writable, then try again.",
    )
