"""Every engine: what happens when the file under it goes, is replaced or cannot be written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store.errors import (
    NotFound,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreVanished,
)

GUARD = 30.0
NOBODY = 65_534


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Be somebody whom file modes stop, also when the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def open_house(house: Any) -> Iterator[Any]:
    """A house that everybody can walk up to, with one written memory in it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    inner = folder / "ledger"
    inner.mkdir()
    yield type(house)(inner)
    inner.chmod(0o755)
    shutil.rmtree(folder)


def _lock_up(folder: Path) -> None:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


@pytest.mark.parametrize("how", ["unlink", "replace", "remove the folder"])
def test_a_file_that_goes_or_is_replaced_is_an_error_and_never_made_anew(crew: Any, how: str) -> None:
    crew.write("there before")
    path = crew.house.path
    if how == "unlink":
        path.unlink()
    elif how == "replace":
        copy = path.with_name("copy")
        shutil.copy(path, copy)
        copy.replace(path)
    else:
        shutil.rmtree(path.parent)
    for _ in range(2):
        with pytest.raises(StoreVanished) as fault:
            crew.engine.write(crew.note("lost"), timeout=GUARD)
        assert fault.value.stored == "no"
        with pytest.raises(StoreVanished), crew.engine.read():
            pytest.fail("read from a file that is gone")
    assert path.exists() == (how == "replace")
    status = crew.engine.status()
    assert status.problem is not None
    assert not status.writable


def test_a_file_that_comes_back_serves_again(crew: Any) -> None:
    crew.write("there before")
    path = crew.house.path
    away = path.with_name("away")
    path.rename(away)
    with pytest.raises(StoreVanished):
        crew.write("lost")
    away.rename(path)
    crew.write("found")
    assert crew.texts() == ["there before", "found"]


def test_an_absent_ledger_that_is_not_to_be_made_is_not_found(house: Any) -> None:
    with pytest.raises(NotFound):
        house.open(create=False)
    assert list(house.path.parent.iterdir()) == []


def test_a_folder_that_cannot_be_written_gives_a_ledger_to_read_and_refuses_writes_at_once(
    open_house: Any, clock: Any
) -> None:
    engine = open_house.open()
    engine.close()
    _lock_up(open_house.path.parent)
    before = open_house.path.read_bytes()
    with _as_nobody():
        engine = open_house.open()
        with pytest.raises(StoreReadOnly) as fault:
            engine.write(lambda _: None, timeout=GUARD)
        with engine.read() as snapshot:
            assert snapshot.head() is None
        assert not engine.status().writable
        assert engine.status().problem is None
        engine.close()
    assert fault.value.stored == "no"
    assert open_house.path.read_bytes() == before


def test_no_ledger_is_made_where_nothing_can_be_written(open_house: Any) -> None:
    _lock_up(open_house.path.parent)
    with _as_nobody(), pytest.raises(StoreReadOnly):
        open_house.open()
    assert not open_house.path.exists()


def test_a_ledger_that_cannot_be_read_is_a_hard_error(open_house: Any) -> None:
    """P024: there is no fallback that says stored."""
    open_house.open().close()
    open_house.path.chmod(0o000)
    with _as_nobody(), pytest.raises(StoreError):
        open_house.open()


def test_a_lock_file_that_cannot_be_opened_is_an_error_of_ours(house: Any, tmp_path: Path) -> None:
    house.open().close()
    lock = Path(f"{house.path}.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        house.open()
    assert not (tmp_path / "elsewhere").exists(), "a link out of the store was followed"


def test_a_ledger_that_another_process_upgraded_refuses_the_older_writer(crew: Any) -> None:
    crew.write("there before")
    other = crew.house.raw()
    other.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew) as fault:
        crew.engine.write(crew.note("too old"), timeout=GUARD)
    assert fault.value.stored == "no"
    assert other.execute("SELECT count(*) FROM memory_events").fetchone() == (3,)
    other.close()


def test_a_full_disk_stores_nothing_and_the_next_write_works_once_there_is_space(crew: Any) -> None:
    crew.write("there before")
    crew.house.limit_space(crew.engine, spare_pages=0)
    with pytest.raises(StoreFull) as fault:
        crew.write("far too long " * 50_000)
    assert (fault.value.stored, fault.value.retryable) == ("no", True)
    assert crew.texts() == ["there before"]
    crew.house.limit_space(crew.engine, spare_pages=100_000)
    crew.write("fits")
    assert crew.texts() == ["there before", "fits"]


def test_a_foreign_write_lock_while_opening_is_busy_and_not_a_raw_error(house: Any) -> None:
    house.path.touch()
    connection = apsw.Connection(str(house.path))
    connection.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreBusy):
            house.open()
    finally:
        connection.close()
    house.open().close()
