"""Every error of the driver becomes one of ours at one boundary, each pair named here."""

from __future__ import annotations

import errno
from typing import Any

import apsw
import pytest

from store import errors
from store.engines.sqlite.faults import translate, translate_opening

PAIRS = {
    apsw.FullError: errors.StoreFull,
    apsw.BusyError: errors.StoreBusy,
    apsw.LockedError: errors.StoreBusy,
    apsw.ReadOnlyError: errors.StoreReadOnly,
    apsw.PermissionsError: errors.StoreReadOnly,
    apsw.CorruptError: errors.StoreDamaged,
    apsw.NotADBError: errors.StoreDamaged,
    apsw.FormatError: errors.StoreDamaged,
    apsw.CantOpenError: errors.StoreError,
    apsw.IOError: errors.StoreError,
}
OPENING = {
    errno.ENOSPC: errors.StoreFull,
    errno.EDQUOT: errors.StoreFull,
    errno.EROFS: errors.StoreReadOnly,
    errno.EACCES: errors.StoreError,
    errno.ELOOP: errors.StoreError,
    errno.EISDIR: errors.StoreError,
}


@pytest.mark.parametrize(("theirs", "ours"), PAIRS.items())
def test_a_driver_error_becomes_ours_and_says_that_nothing_was_stored(
    theirs: type[apsw.Error], ours: type[errors.StoreError]
) -> None:
    fault = translate(theirs("/secret/path: database is locked"))
    assert type(fault) is ours
    assert isinstance(fault, errors.StoreError)
    assert fault.stored == "no"
    assert fault.hint
    assert "secret" not in fault.message
    assert "locked" not in fault.message


def test_an_io_error_while_committing_leaves_the_outcome_unknown() -> None:
    fault = translate(apsw.IOError("disk I/O error"), committing=True)
    assert isinstance(fault, errors.OutcomeUnknown)
    assert fault.stored == "unknown"


@pytest.mark.parametrize("theirs", [kind for kind in PAIRS if kind is not apsw.IOError])
def test_any_other_error_while_committing_means_that_nothing_was_stored(theirs: type[apsw.Error]) -> None:
    fault = translate(theirs("x"), committing=True)
    assert type(fault) is PAIRS[theirs]


@pytest.mark.parametrize("extended", [
    apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_SHMOPEN,
])  # fmt: skip
def test_no_room_for_the_shared_memory_file_is_a_full_disk(extended: int) -> None:
    fault = apsw.IOError("disk I/O error")
    fault.extendedresult = extended
    assert type(translate(fault)) is errors.StoreFull
    assert type(translate(fault, committing=True)) is errors.StoreFull


@pytest.mark.parametrize("fault", [ValueError("x"), errors.Conflict("x"), KeyboardInterrupt()])
def test_what_is_no_driver_error_comes_back_as_it_is(fault: BaseException) -> None:
    assert translate(fault) is fault
    assert translate_opening(fault) is fault


@pytest.mark.parametrize(("number", "ours"), OPENING.items())
def test_a_system_error_while_opening_becomes_ours(number: int, ours: type[errors.StoreError]) -> None:
    assert type(translate_opening(OSError(number, "x"))) is ours


@pytest.mark.parametrize(("theirs", "ours"), PAIRS.items())
def test_a_caller_sees_only_our_error_and_the_engine_serves_on(
    crew: Any, theirs: type[apsw.Error], ours: type[errors.StoreError]
) -> None:
    def fails(_: object) -> None:
        raise theirs("raw text of the driver")

    with pytest.raises(ours) as fault:
        crew.engine.write(fails, timeout=30.0)
    assert "raw" not in str(fault.value)
    if ours is errors.StoreDamaged:
        with pytest.raises(errors.StoreDamaged):
            crew.write("a damaged ledger takes nothing more")
        assert crew.engine.status().problem is not None
    else:
        crew.write("served on")
        assert crew.texts() == ["served on"]
