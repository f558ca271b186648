"""What lies at a ledger's place and is none: refused with the reason, and left as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from store.audit import verify
from store.commands import Remember
from store.errors import ForeignFile, StoreDamaged, StoreError

Put = Callable[[Path], None]


def _text(path: Path) -> None:
    path.write_text("hello")


def _foreign(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE memory_events (id INTEGER PRIMARY KEY, note TEXT); "
                       "INSERT INTO memory_events (note) VALUES ('theirs')")  # fmt: skip
    connection.close()


def _foreign_in_use(path: Path) -> None:
    """Another program's file whose log has not been moved into it yet."""
    made = path.with_name("made.sqlite")
    connection = apsw.Connection(str(made))
    connection.execute(
        "PRAGMA journal_mode = WAL; CREATE TABLE memory_events (id INTEGER PRIMARY KEY, note TEXT)"
    ).fetchall()
    shutil.copy(made, path)
    shutil.copy(f"{made}-wal", f"{path}-wal")
    connection.close()
    made.unlink()


def _named_by_another(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(
        "PRAGMA application_id = 1234; PRAGMA user_version = 2; CREATE TABLE memory_events (id)"
    )
    connection.close()


FOREIGN = [_text, _foreign, _foreign_in_use, _named_by_another]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the live ledger of the default strategy would lie."""
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir()
    return path


@pytest.mark.parametrize("put", FOREIGN)
def test_a_foreign_file_is_refused_with_the_reason_and_left_untouched(
    place: Path, open_seat: Any, put: Put
) -> None:
    """P031: text, another program's database with a table of our name, and one whose log is still beside it."""
    put(place)
    before = {path.name: path.read_bytes() for path in place.parent.iterdir()}
    with pytest.raises(ForeignFile, match=r"not a database|another program") as fault:
        open_seat()
    assert fault.value.hint
    assert {path.name: path.read_bytes() for path in place.parent.iterdir()} == before


@pytest.mark.parametrize("put", FOREIGN)
def test_verify_of_a_foreign_file_finds_it_wrong_instead_of_crashing(place: Path, put: Put) -> None:
    put(place)
    assert not verify(place, "default", None).sound


def test_an_empty_file_is_initialised(place: Path, open_seat: Any) -> None:
    """P031: nothing is in it that could be lost."""
    place.touch()
    seat = open_seat()
    assert seat.book.head().sequence == 1
    assert verify(place, "default", None).sound


def test_a_folder_in_the_way_is_a_hard_error(place: Path, open_seat: Any) -> None:
    """P024: there is no fallback that says stored."""
    place.mkdir()
    with pytest.raises(StoreError):
        open_seat()
    assert list(place.iterdir()) == []
    assert not verify(place, "default", None).sound


def test_a_pipe_in_the_way_is_a_hard_error_and_not_a_hang(place: Path, open_seat: Any) -> None:
    os.mkfifo(place)
    with pytest.raises(StoreError):
        open_seat()


def test_a_refused_file_costs_no_open_files_however_often_it_is_tried(place: Path, open_seat: Any) -> None:
    _named_by_another(place)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(ForeignFile):
            open_seat()
    place.unlink()
    place.mkdir()
    for _ in range(5):
        with pytest.raises(StoreError):
            open_seat()
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


@pytest.mark.parametrize("offset", [0, 4_096, 8_192, 16_384])
def test_a_damaged_ledger_is_refused_by_name_and_nothing_is_made_in_its_place(
    open_seat: Any, offset: int
) -> None:
    """P016: 4,096 bytes of nonsense within the file."""
    seat = open_seat()
    for at in range(50):
        seat.do(Remember(text=f"note {at} " + "word " * 200))
    seat.book.close()
    with seat.path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes(at * 89 % 251 for at in range(4_096)))
    before = seat.path.read_bytes()
    with pytest.raises((StoreDamaged, ForeignFile)) as fault:
        open_seat()
    assert fault.value.stored == "no"
    assert "verify" in (fault.value.hint or "") or offset == 0
    assert seat.path.read_bytes() == before
    assert not verify(seat.path, "default", None).sound


def test_a_ledger_damaged_while_it_is_served_refuses_writes_and_says_so_in_its_status(open_seat: Any) -> None:
    """P016: it does not keep serving as if nothing had happened."""
    seat = open_seat()
    for at in range(50):
        seat.do(Remember(text=f"note {at} " + "word " * 200))
    seat.book.close()
    seat = open_seat()
    with seat.path.open("r+b") as file:
        file.seek(4_096)
        file.write(os.urandom(seat.path.stat().st_size - 4_096))
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            seat.do(Remember(text="into a broken ledger"))
    status = seat.book.status()
    assert not status.writable
    assert "damaged" in (status.problem or "")


def test_a_ledger_cut_short_is_refused(open_seat: Any) -> None:
    seat = open_seat()
    for at in range(50):
        seat.do(Remember(text=f"note {at} " + "word " * 200))
    seat.book.close()
    os.truncate(seat.path, seat.path.stat().st_size - 3 * 4_096)
    with pytest.raises(StoreDamaged):
        open_seat()
    assert not verify(seat.path, "default", None).sound
