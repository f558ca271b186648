"""Handed cases of a ledger's soundness: what is untouched always verifies, and what a cut tail can hide."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import apsw
import apsw.shell
import pytest

from store import clock as clocks
from store.audit import verify
from store.clock import WallClock
from store.commands import Decide, Remember
from store.entry import COLUMNS
from store.errors import Conflict
from store.importers.jsonl import import_jsonl
from store.jsonl import header_of, write_jsonl

if TYPE_CHECKING:
    from conftest import Seat

REPOSITORY = Path(__file__).resolve().parents[2]
EVENTS = 1_000
BEGINS_NS = 1_772_461_800_000_000_123
TEXTS = (
    "Nestlé 目标价 95",
    "Nestle\u0301 in pieces, and Nestlé whole",
    "\U0001f9d1\u200d\U0001f4bb holds \U0001f1e8\U0001f1ed",
    "שלום \u202eand back\u202c",
    "line\u2028paragraph\u2029next\u0085end",
    "\ufeff\ufffd\uffff\U0010ffff",
    'quotes "\\" and \t tab \x01\x1f\x7f',
    "ﬀ ⅷ ｆｕｌｌ ſ İ ı ß",
)
NUMBERS = (
    2**53 - 1,
    -(2**53 - 1),
    0.1,
    -0.0,
    1e21,
    5e-324,
    1.7976931348623157e308,
    100.0,
    "0.30000000000000000000000000000000000001",
    "123456789012345678901234567890.123456789012345678901234567890",
    "-0.00",
    "1E+400",
)


def in_another_process(root: Path) -> dict[str, Any]:
    """What `deskbook verify` says, told by a process that never saw the ledger being written."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING"
    }
    done = subprocess.run(
        [sys.executable, "-m", "server", "verify", "--json", "--root", str(root)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd="/",
        env=own | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))


def rows(path: Path) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.execute(f"SELECT {', '.join(COLUMNS)} FROM memory_events ORDER BY 1").fetchall()


def dumped(path: Path) -> str:
    """The whole file as SQL, its header's pragmas included."""
    out = io.StringIO()
    apsw.shell.Shell(stdout=out, args=[str(path)]).process_command(".dump")
    return out.getvalue()


@pytest.fixture
def odd_ledger(open_seat: Callable[..., Seat], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seat:
    """A closed ledger of a thousand odd events, under a clock that ticks in parts of a microsecond."""
    dice, told = random.Random(201), [BEGINS_NS]

    def time_ns() -> int:
        told[0] += dice.choice((1, 7, 333, 999, 1_001, 123_456_789))
        return told[0]

    monkeypatch.setattr(clocks, "time", SimpleNamespace(time_ns=time_ns))
    seat = open_seat(clock=WallClock())
    while len(seat.entries()) < 2:
        seat.do(Remember(text="first"))
    for number in range(EVENTS - seat.book.head().sequence):
        text = f"{TEXTS[number % len(TEXTS)]} {number}"
        evidence = {TEXTS[number % 5]: NUMBERS[number % len(NUMBERS)], "deep": [[{"n": list(NUMBERS)}]]}
        if number % 3:
            seat.do(Decide(text=text, action="hold", symbol="NESN", evidence=evidence), key=f"k-{number}")
        else:
            seat.do(Remember(text=text, tags=(TEXTS[number % 3], "swiss")))
    assert seat.book.head().sequence == EVENTS
    seat.book.close()
    return seat


def test_what_nobody_touched_verifies_elsewhere_after_a_vacuum_and_after_a_dump(
    odd_ledger: Seat, tmp_path: Path
) -> None:
    """P201: what is stored is what was hashed, whatever the text, the number or the clock."""
    path = odd_ledger.path
    before = rows(path)
    assert (
        len({row[COLUMNS.index("effective_at")] for row in before}) < EVENTS
    )  # some fell into one microsecond
    first = in_another_process(tmp_path)
    assert (first["sound"], first["entries"], first["findings"]) == (True, EVENTS, [])

    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("VACUUM")
    assert in_another_process(tmp_path) == first

    sql = dumped(path)
    for place in path.parent.glob("memory.sqlite*"):
        place.unlink()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)
    assert rows(path) == before
    assert in_another_process(tmp_path) == first


def test_a_dump_without_the_numbers_in_the_head_is_a_ledger_again_as_the_page_says(
    odd_ledger: Seat, tmp_path: Path
) -> None:
    """P201: the dump of SQLite's own shell leaves them out."""
    path = odd_ledger.path
    first = in_another_process(tmp_path)
    sql = re.sub(r"(?im)^pragma (application_id|user_version)\b.*$", "", dumped(path))
    path.unlink()
    page = (REPOSITORY / "docs" / "backups.md").read_text(encoding="utf-8")
    (pragmas,) = re.findall(r"^sqlite3 memory\.sqlite '(.+)'$", page, re.MULTILINE)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)
        (finding,) = verify(path, "default", None).findings
        assert "another program" in finding.what
        connection.execute(pragmas)
    assert in_another_process(tmp_path) == first


def test_a_restored_dump_is_a_ledger_to_write_to_and_not_only_to_read(
    odd_ledger: Seat, tmp_path: Path, open_seat: Callable[..., Seat]
) -> None:
    """P201: guards, full text and identity come through a dump too."""
    path = odd_ledger.path
    sql = dumped(path)
    path.unlink()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            connection.execute("DELETE FROM memory_events WHERE sequence = 9")
    again = open_seat(create=False)
    assert again.find("目标价")["total"] > 0
    again.do(Remember(text="after the restore"))
    again.book.close()
    report = verify(path, "default", None)
    assert report.sound
    assert report.entries > EVENTS


@pytest.fixture
def cut_copy(seat: Seat, tmp_path: Path, open_seat: Callable[..., Seat]) -> Seat:
    """A copy without the last four entries of a ledger, made sound in itself by whoever owns the disk."""
    for number in range(12):
        seat.do(Remember(text=f"note {number}"))
    seat.book.close()
    root = tmp_path / "copy"
    target = root / "default" / "memory.sqlite"
    target.parent.mkdir(parents=True, mode=0o700)
    shutil.copy(seat.path, target)
    with closing(apsw.Connection(str(target))) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM memory_events WHERE sequence > 10")
        for _, sql in guards:
            connection.execute(sql)
    return open_seat(root=root, create=False)


def test_a_cut_tail_shows_until_the_projections_are_cut_too(cut_copy: Seat) -> None:
    """P203: without anything kept elsewhere this is the documented limit; with a checkpoint see tests/proofs."""
    assert not verify(cut_copy.path, "default", None).sound
    cut_copy.book.rebuild(lambda _: None)
    report = verify(cut_copy.path, "default", None)
    assert (report.sound, report.entries) == (True, 10)
    limit = (REPOSITORY / "docs" / "ledger.md").read_text().partition("## What it cannot find")[2]
    assert "A tail cut off at the end" in limit
    assert "checkpoint" in limit


def test_an_export_kept_elsewhere_tells_of_a_cut_tail_and_gives_it_back(
    cut_copy: Seat, tmp_path: Path, open_seat: Callable[..., Seat]
) -> None:
    """P203: an export is a saved head too."""
    whole = open_seat(create=False)
    kept = tmp_path / "kept.jsonl"
    with kept.open("wb") as out:
        write_jsonl(whole.entries(), header_of(whole.book.genesis, whole.book.head()), out)
    root = cut_copy.path.parents[1]
    cut_copy.book.rebuild(lambda _: None)
    assert import_jsonl(kept, root, dry_run=True).added == 4
    grown = [cut_copy.do(Remember(text=f"another tail {number}")) for number in range(2)]
    assert verify(cut_copy.path, "default", None).sound
    with pytest.raises(Conflict, match=f"differs from the export at sequence {grown[0].sequence}"):
        import_jsonl(kept, root, dry_run=True)
