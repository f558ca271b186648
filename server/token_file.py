"""The file that says which bearer tokens there are: `<root>/tokens.json`, a hash of each and never a token.

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
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from store.clock import LAST_INSTANT
from store.errors import SchemaTooNew, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly
from store.paths import make_folders, refuse_link, sync_folder

from .sections import Name, Section

FILE: Final = "tokens.json"
LOCK: Final = "tokens.lock"
VERSION: Final = 1
LOCK_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.01
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

Mark = tuple[int, ...]
Instant = Annotated[int, Field(ge=0, le=LAST_INSTANT)]


class TokenRecord(Section):
    """What is kept of one token; times in microseconds since the epoch, UTC, and `sha256` of the whole token."""

    id: Annotated[str, Field(pattern=r"^[a-z2-7]{10,32}$")]
    agent: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]
    created: Instant
    expires: Instant | None
    revoked: Instant | None
    read_only: bool
    label: Name | None


class _Contents(Section):
    version: int
    tokens: tuple[TokenRecord, ...]


class _Header(BaseModel):
    model_config = ConfigDict(strict=True, hide_input_in_errors=True)

    version: Annotated[int, Field(ge=1)]


def lock_path(path: Path) -> Path:
    """The lock beside a token file; it stays for good once a token was made."""
    return path.with_name(LOCK)


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


def read_records(path: Path) -> tuple[TokenRecord, ...]:
    """The tokens in the file; none where there is no file.

    Raises StoreError for a link, for what is no file and for one that others may read or write, StoreDamaged
    for what cannot be read as one, SchemaTooNew for one of a newer version.
    """
    refuse_link(path)
    try:
        # Without O_NONBLOCK a named pipe in its place would hold the reader up for good.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError as fault:
        raise StoreError(
            f"The token file {path} cannot be opened: {os.strerror(fault.errno or 0)}.",
            hint="Without it no token is accepted. Make it readable for the user that runs Deskbook.",
        ) from None
    try:
        _check_private(path, os.fstat(handle))
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read()
    except OSError as fault:
        raise StoreError(
            f"The token file {path} cannot be read: {os.strerror(fault.errno or 0)}.",
            hint="Without it no token is accepted.",
        ) from None
    finally:
        os.close(handle)
    return _parsed(path, raw)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock under which the file may change; makes the root (0700) and the lock (0600) if missing.

    Raises StoreBusy after ten seconds, StoreReadOnly or StoreError where root or lock cannot be made.
    """
    make_folders(path.parent, path)
    lock = lock_path(path)
    refuse_link(lock)
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as fault:
        raise _unwritable(fault, lock) from None
    try:
        _take(handle, lock)
        yield
    finally:
        os.close(handle)


def write_records(path: Path, records: tuple[TokenRecord, ...]) -> None:
    """Replace the file durably; the lock must be held. Raises StoreFull or StoreReadOnly, and nothing changed."""
    raw = _Contents(version=VERSION, tokens=records).model_dump_json(indent=1).encode() + b"\n"
    # Only the holder of the lock writes here, so what lies there was left behind by a process that died.
    fresh = path.with_name(f"{FILE}.new")
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


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(
            f"What lies at {path}, in the token file's place, is not a file.",
            hint="Move it away. Until then no token is accepted.",
        )
    if found.st_mode & 0o077:
        raise StoreError(
            f"The token file {path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o}), so no token "
            f"is accepted: chmod 600 {shlex.quote(str(path))}",
            hint="Then look with `deskbook token list` whether every token in it is one that you made.",
        )


def _parsed(path: Path, raw: bytes) -> tuple[TokenRecord, ...]:
    try:
        version = _Header.model_validate_json(raw).version
        if version > VERSION:
            raise SchemaTooNew(
                f"The token file {path} has version {version}; this Deskbook reads version {VERSION}, and accepts "
                "no token of a newer one.",
                hint="Install the Deskbook that wrote it.",
            )
        records = _Contents.model_validate_json(raw).tokens
    except ValidationError:
        raise _damaged(path) from None
    if len({record.id for record in records}) != len(records):
        raise _damaged(path)
    return records


def _damaged(path: Path) -> StoreDamaged:
    return StoreDamaged(
        f"The token file {path} is damaged, so no token is accepted.",
        hint="Put back a copy, or move it away and make new tokens with `deskbook token new AGENT`.",
    )


def _take(handle: int, lock: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"Another command held the token file for {LOCK_SECONDS:g} s; nothing was changed.",
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
