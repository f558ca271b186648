"""However many runs there are, live does the same work, and a removed run gives its disk back.

Counted here on a few small runs; tests/benchmarks/test_runs_beside_live.py measures 500 runs of 200 entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from store import Book
from store.commands import Remember
from store.leaks import find_leaks
from store.paths import RUNS
from store.runs import list_runs, remove_run

if TYPE_CHECKING:
    from conftest import Seat

START = 1_772_461_800_000_000
OpenSeat = Callable[..., "Seat"]
ENTRIES = 20


@contextmanager
def counted() -> Iterator[list[tuple[str, str]]]:
    """Every statement that any connection runs from here on, with the file it is open on."""
    ran: list[tuple[str, str]] = []

    def watch(connection: apsw.Connection) -> None:
        name = Path(connection.db_filename("main")).name

        def note(_cursor: Any, statement: str, _bindings: Any) -> bool:
            ran.append((name, statement))
            return True

        connection.set_exec_trace(note)

    apsw.connection_hooks.append(watch)
    try:
        yield ran
    finally:
        apsw.connection_hooks.remove(watch)


def fill(open_seat: OpenSeat, number: int) -> None:
    seat = open_seat(run=f"run-{number}", inherit="live")
    for entry in range(ENTRIES - 2):  # genesis and session.started are entries too
        seat.do(Remember(text=f"unicorn {entry}"), now=START + entry)
    assert seat.book.head().sequence == ENTRIES
    seat.book.close()


def work_of_live(root: Path, open_seat: OpenSeat) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The statements of opening live, and of a search, a state and a write on it."""
    with counted() as opening:
        seat = open_seat()
    seat.book.close()
    with counted() as serving:
        seat = open_seat()
        assert seat.find("unicorn")["total"] == 1
        seat.state()
        seat.book.close()
    return opening, serving


def of(ran: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What ran, in an order of its own: the writer and the readers run beside each other."""
    return sorted(ran)


def test_live_opens_and_serves_with_the_same_statements_however_many_runs_there_are(
    open_seat: OpenSeat, tmp_path: Path
) -> None:
    live = open_seat()
    live.do(Remember(text="unicorn live"))
    live.find("unicorn")
    live.state()
    live.book.close()
    before = work_of_live(tmp_path, open_seat)
    for number in range(12):
        fill(open_seat, number)
    after = work_of_live(tmp_path, open_seat)
    assert [of(ran) for ran in after] == [of(ran) for ran in before]
    assert len(before[0]) > 5


def test_a_run_opens_with_the_same_statements_however_many_others_there_are(open_seat: OpenSeat) -> None:
    open_seat().do(Remember(text="unicorn live"))

    def opened(name: str) -> list[tuple[str, str]]:
        with counted() as ran:
            seat = open_seat(run=name, inherit="live")
            assert seat.find("unicorn", who=seat.caller(now=START + 10**9))["total"] > 0
            seat.book.close()
        return of(ran)

    for number in range(2):
        fill(open_seat, number)
    before = opened("run-0")
    for number in range(2, 10):
        fill(open_seat, number)
    assert opened("run-1") == before


def disk(folder: Path) -> int:
    """Bytes taken on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_a_removed_run_gives_its_disk_back(open_seat: OpenSeat, tmp_path: Path) -> None:
    open_seat().do(Remember(text="unicorn live"))
    for number in range(5):
        fill(open_seat, number)
    runs = tmp_path / "default" / RUNS
    sizes = {run.name: run.size_bytes for run in list_runs(tmp_path, "default")}
    assert len(sizes) == 5
    assert max(sizes.values()) < 300_000
    whole, one = disk(runs), disk(runs / "run-3")
    assert one > 0
    assert remove_run(tmp_path, "default", "run-3") >= sizes["run-3"]
    assert disk(runs) <= whole - one
    assert [run.name for run in list_runs(tmp_path, "default")] == ["run-0", "run-1", "run-2", "run-4"]
    for name in ("run-0", "run-1", "run-2", "run-4"):
        assert find_leaks(tmp_path, "default", name).leaks == ()
        remove_run(tmp_path, "default", name)
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize("name", ["again", "日本"])
def test_a_run_begins_anew_under_the_name_of_a_removed_one(
    open_seat: OpenSeat, tmp_path: Path, name: str
) -> None:
    seat = open_seat(run=name)
    seat.do(Remember(text="unicorn"), now=START + 10)
    store = seat.book.genesis.store_id
    seat.book.close()
    remove_run(tmp_path, "default", name)
    again = Book.open(tmp_path, "default", name, begins=START)
    assert again.genesis.store_id != store
    assert again.head().effective_at == START
    again.close()
