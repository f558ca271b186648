"""log, show and rebuild as of a time: what they print and write is what stood then, and the ledger stays as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store import Book
from store.audit import verify
from store.commands import CloseThesis, OpenThesis, UpdateThesis

if TYPE_CHECKING:
    from conftest import Ran, Seat

START = 1_772_461_800_000_000
HOUR = 3_600_000_000
FIRST, THIRD, BEFORE = "2026-03-02T15:30:00Z", "2026-03-02T12:30:00-05:00", "2020-01-01T00:00:00Z"
Command = Callable[..., "Ran"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def thesis(open_seat: Callable[..., Seat]) -> str:
    """A run whose thesis is opened after one hour, updated after two and closed after three."""
    seat = open_seat(run="r")
    opened = seat.do(OpenThesis(text="unicorn first", symbol="AAPL"), now=START + HOUR)
    seat.do(UpdateThesis(thesis_id=opened.id, text="unicorn second"), now=START + 2 * HOUR)
    seat.do(CloseThesis(thesis_id=opened.id, result="win"), now=START + 3 * HOUR)
    seat.book.close()
    return opened.id


def events(ran: Ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [json.loads(line)["event_type"] for line in ran.out.splitlines()]


def test_log_and_show_print_what_stood_then(deskbook: Command, thesis: str) -> None:
    whole = ["genesis", "session.started", "thesis.opened", "thesis.updated", "thesis.closed"]
    for as_of, count in ((BEFORE, 0), ("2026-03-02T15:29:59Z", 1), (FIRST, 3), (THIRD, 5)):
        assert events(deskbook("log", "--run", "r", "--json", "--as-of", as_of)) == whole[:count]
    assert events(deskbook("log", "--run", "r", "--json", "--as-of", FIRST, "--limit", "1")) == whole[2:3]
    # --follow of the past has nothing to wait for
    assert events(deskbook("log", "--run", "r", "--json", "--as-of", FIRST, "--follow")) == whole[:3]
    assert events(deskbook("show", thesis, "--run", "r", "--json", "--as-of", FIRST)) == ["thesis.opened"]
    absent = deskbook("show", thesis, "--run", "r", "--as-of", BEFORE)
    assert (absent.code, "Nothing in this ledger" in absent.err) == (1, True)


def test_rebuild_as_of_writes_a_sound_ledger_that_stops_there_and_leaves_this_one_alone(
    deskbook: Command, thesis: str, root: Path
) -> None:
    source = root / "default" / "runs" / "r" / "memory.sqlite"
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    target = root / "elsewhere" / "default" / "runs" / "r" / "memory.sqlite"
    target.parent.mkdir(parents=True)
    ran = deskbook("rebuild", "--run", "r", "--as-of", FIRST, "--to", str(target))
    assert (ran.code, "wrote 3 entries" in ran.out) == (0, True)
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before
    assert verify(target, "default", "r").findings == ()
    book = Book.open(root / "elsewhere", "default", "r", create=False)
    assert (book.status().entries, book.status().memories) == (3, 1)
    assert [entry.event_type for entry in book.show(thesis)] == ["thesis.opened"]
    book.close()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--as-of", FIRST], 2, "--as-of and --to go together"),
        (["--to", "{root}/x"], 2, "--as-of and --to go together"),
        (["--as-of", "2026-03-02", "--to", "{root}/x"], 2, "--as-of"),
        (["--as-of", FIRST, "--to", "{root}/default/runs/r/memory.sqlite"], 2, "exists"),
        (["--as-of", FIRST, "--to", "{root}/no/such/folder/x"], 1, "cannot"),
        (["--as-of", FIRST, "--to", "/proc/x"], 1, "cannot"),
    ],
)
def test_a_rebuild_that_cannot_be_is_refused_and_writes_nothing(
    deskbook: Command, thesis: str, root: Path, words: list[str], code: int, said: str
) -> None:
    before = sorted(path.name for path in root.rglob("*"))
    ran = deskbook("rebuild", "--run", "r", *(word.format(root=root) for word in words))
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert "Traceback" not in ran.err
    left = {path.name for path in root.rglob("*")} - set(before)
    assert left <= {"memory.sqlite-wal", "memory.sqlite-shm"}


def test_a_time_without_an_offset_is_refused_by_log_and_show(deskbook: Command, thesis: str) -> None:
    for words in (("log",), ("show", thesis)):
        ran = deskbook(*words, "--run", "r", "--as-of", "2026-03-02T15:30:00")
        assert (ran.code, "--as-of" in ran.err, "Add Z or an offset" in ran.err) == (2, True, True)
