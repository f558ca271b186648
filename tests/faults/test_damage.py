"""A damaged file is called damaged, is not written any more, and nothing new is put in its place."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from store import Book, Caller
from store.audit import verify
from store.commands import NoteRisk, Remember
from store.errors import StoreError

if TYPE_CHECKING:
    from conftest import Command, StartServer

pytestmark = pytest.mark.faults

PAGE = 4096
NOTES = 120
REFUSALS = {"store_damaged", "foreign_file"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with some history, closed in order."""
    root = tmp_path_factory.mktemp("whole")
    book = Book.open(root, "default")
    caller = Caller(agent="a", profile="solo", session_id="s", tool="remember")
    for number in range(NOTES):
        book.execute(caller, Remember(text=f"note {number} " + "of a long day " * 40, tags=("day",)))
        book.execute(caller, NoteRisk(text=f"risk {number}", symbol="SPY"))
    book.close()
    ledger = root / "default" / "memory.sqlite"
    assert ledger.stat().st_size > 40 * PAGE
    return ledger


@pytest.fixture
def damaged(whole: Path, ledger: Path) -> Callable[[Callable[[bytearray], None]], Path]:
    """A copy of the ledger with its bytes changed."""

    def change(how: Callable[[bytearray], None]) -> Path:
        content = bytearray(whole.read_bytes())
        how(content)
        ledger.parent.mkdir(parents=True, exist_ok=True)
        ledger.write_bytes(content)
        return ledger

    return change


def noise(at: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[at : at + PAGE] = random.Random(at).randbytes(PAGE)

    return change


def zero_header(content: bytearray) -> None:
    content[:100] = bytes(100)


def zero_first_page(content: bytearray) -> None:
    content[:PAGE] = bytes(PAGE)


def cut_in_half(content: bytearray) -> None:
    del content[len(content) // 2 // PAGE * PAGE :]


def cut_within_a_page(content: bytearray) -> None:
    del content[-1500:]


def zero_the_middle(content: bytearray) -> None:
    middle = len(content) // 2 // PAGE * PAGE
    content[middle : middle + 8 * PAGE] = bytes(8 * PAGE)


DAMAGES = (noise(2 * PAGE), zero_header, zero_first_page, cut_in_half, cut_within_a_page, zero_the_middle)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_is_said_by_call_and_command_and_left_as_it_is(
    start_server: StartServer,
    damaged: Callable[[Callable[[bytearray], None]], Path],
    damage: Callable[[bytearray], None],
    deskbook: Command,
) -> None:
    """P016."""
    ledger = damaged(damage)
    before = ledger.read_bytes()
    server = start_server().open()
    for _ in range(2):
        for tool, arguments in (
            ("get_memory_state", {}),
            ("remember", {"text": "over the damage"}),
            ("search_memory", {"query": "note"}),
        ):
            answer = server.call(tool, **arguments)
            assert answer.is_error
            assert answer.body["code"] in REFUSALS, answer.body
            assert answer.body["stored"] == "no"
            assert answer.body["hint"]
    assert "result" in server.message(server.ask("tools/list"))
    assert server.end() == 0
    for command in ("status", "verify"):
        told = deskbook(command)
        assert told.returncode == 1, told.stdout + told.stderr
        assert "Traceback" not in told.stderr
    assert ledger.read_bytes() == before


def test_noise_in_any_page_is_found_by_verify(whole: Path, tmp_path: Path) -> None:
    """P016, at every page: also in indexes and in the full-text index, which no entry's hash covers."""
    content = whole.read_bytes()
    free = _free_pages(whole)
    missed = []
    target = tmp_path / "memory.sqlite"
    for at in range(0, len(content), PAGE):
        changed = bytearray(content)
        noise(at)(changed)
        target.write_bytes(changed)
        report = verify(target, "default", None)
        if report.sound and at // PAGE + 1 not in free:
            missed.append(at // PAGE + 1)
    assert missed == []


def _free_pages(path: Path) -> set[int]:
    """Pages that hold nothing: their content means nothing."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        used = connection.execute("SELECT pageno FROM dbstat").fetchall()
        count = connection.pragma("page_count")
    finally:
        connection.close()
    return set(range(1, count + 1)) - {page for (page,) in used}


def test_a_server_whose_file_is_damaged_under_it_stops_writing(
    start_server: StartServer, whole: Path, ledger: Path
) -> None:
    ledger.parent.mkdir(parents=True)
    shutil.copy(whole, ledger)
    server = start_server().open()
    assert not server.call("get_memory_state").is_error
    second = start_server().open()
    content = ledger.read_bytes()
    with ledger.open("r+b") as file:
        for at in range(PAGE, len(content), PAGE):
            file.seek(at)
            file.write(random.Random(at).randbytes(PAGE))
    refused = second.call("remember", text="over the damage")
    assert refused.body["code"] == "store_damaged"
    found = server.call("search_memory", query="note long day")
    assert found.is_error
    assert found.body["code"] in {"store_damaged", "not_recorded"}
    refused = server.call("remember", text="over the damage")
    assert refused.is_error
    assert refused.body["code"] == "store_damaged"


def test_openings_that_fail_let_go_of_every_file(
    damaged: Callable[[Callable[[bytearray], None]], Path], root: Path
) -> None:
    damaged(cut_in_half)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        with pytest.raises(StoreError):
            Book.open(root, "default")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_scattered_noise_never_makes_verify_fail_in_any_other_way(whole: Path, tmp_path: Path) -> None:
    content = whole.read_bytes()
    chosen = random.Random(16)
    target = tmp_path / "memory.sqlite"
    found = 0
    for _ in range(300):
        changed = bytearray(content)
        at, size = chosen.randrange(100, len(content) - 64), chosen.choice((1, 4, 64))
        changed[at : at + size] = chosen.randbytes(size)
        target.write_bytes(changed)
        found += not verify(target, "default", None).sound
    assert found > 150


@pytest.mark.parametrize("column", ["tags", "details", "text", "status"])
def test_a_projection_that_is_no_longer_what_it_was_is_named(
    whole: Path, tmp_path: Path, column: str
) -> None:
    target = tmp_path / "memory.sqlite"
    shutil.copy(whole, target)
    connection = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute(f"UPDATE memory_versions SET {column} = '[' WHERE sequence_from = 5")
    connection.close()
    findings = verify(target, "default", None).findings
    assert [finding.sequence for finding in findings][:1] == [5]
    assert "memory_versions" in findings[0].what
