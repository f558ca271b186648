"""The one place where a driver's error becomes one of ours."""

from __future__ import annotations

import errno
import os

import apsw

from ...errors import OutcomeUnknown, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly

_NO_SPACE = frozenset({apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_SHMOPEN})

BUSY_HINT = "Try again in a moment; the same idempotency_key makes that safe."
FULL_HINT = "Free space where the store lives, then send the call again."
READ_ONLY_HINT = "Make the store's directory and file writable, or start with another --root."
DAMAGED_HINT = "Run `deskbook verify`, keep the file, and restore the ledger from a backup."


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def translate_opening(fault: BaseException) -> BaseException:
    """Our error for what goes wrong while a file is opened, by the driver or by the system."""
    if not isinstance(fault, OSError):
        return translate(fault)
    if fault.errno in _FULL:
        return StoreFull("The disk is full; nothing was stored.", hint=FULL_HINT)
    if fault.errno == errno.EROFS:
        return StoreReadOnly("The store is read-only; nothing was stored.", hint=READ_ONLY_HINT)
    return StoreError(
        f"The ledger's file cannot be opened: {os.strerror(fault.errno or 0)}.",
        hint="Check that it and the files beside it are plain files and may be read.",
    )


def translate(fault: BaseException, *, committing: bool = False) -> BaseException:
    """Our error for a driver's; anything else comes back as it is.

    While committing, an I/O error leaves it open whether the commit reached the disk.
    """
    if not isinstance(fault, apsw.Error):
        return fault
    if isinstance(fault, apsw.FullError) or getattr(fault, "extendedresult", 0) in _NO_SPACE:
        return StoreFull("The disk is full; nothing was stored.", hint=FULL_HINT)
    if isinstance(fault, apsw.BusyError | apsw.LockedError):
        return StoreBusy("Another writer held the ledger; nothing was stored.", hint=BUSY_HINT)
    if isinstance(fault, apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreReadOnly("The store is read-only; nothing was stored.", hint=READ_ONLY_HINT)
    if isinstance(fault, apsw.CorruptError | apsw.NotADBError | apsw.FormatError):
        return StoreDamaged("The ledger's file is damaged; writes are refused.", hint=DAMAGED_HINT)
    if isinstance(fault, apsw.IOError) and committing:
        return OutcomeUnknown(
            "The disk failed while the entry was being committed.",
            hint="Check the disk, then read the entry back.",
        )
    if isinstance(fault, apsw.CantOpenError):
        return StoreError("The ledger's file cannot be opened.", hint="Check that it exists and may be read.")
    if isinstance(fault, apsw.IOError):
        return StoreError(
            "The disk failed; nothing was stored.", hint="Check the disk where the store lives."
        )
    return fault
