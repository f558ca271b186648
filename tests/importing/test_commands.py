"""`deskbook import` as a person runs it: reports, exit codes, and what is told where."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from server.cli import app
from store import Book, Caller
from store.commands import Remember
from store.errors import DeskbookError, StoreDamaged
from store.jsonl import header_of, write_jsonl

Run = Callable[..., Result]


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the test's root."""
    for name in ("DESKBOOK_CONFIG", "DESKBOOK_STRATEGY", "DESKBOOK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: CliRunner().invoke(app, [*words, "--root", str(root)])


def test_the_report_says_what_was_read_added_and_wrong(run: Run, lumibot_memory: Path, root: Path) -> None:
    done = run("import", "lumibot", str(lumibot_memory))
    assert done.exit_code == 0
    assert "40 rows in the source, 0 known, 40 new:" in done.stdout
    assert "      12  memory.created" in done.stdout
    assert "12 memory.recorded" in done.stdout
    assert "       2  phantom_thesis: event_00000000000000000000000000000023, event_" in done.stdout
    assert "and 3 more (--json names them)" in done.stdout
    assert "stands in strategy Momentum Bot: " in done.stdout
    assert done.stdout.splitlines()[0].startswith("read memory.sqlite: 602112 bytes, sha256 ")
    again = run("import", "lumibot", str(lumibot_memory))
    assert "40 rows in the source, 40 known, 0 new:" in again.stdout
    assert "added: nothing" in again.stdout
    assert run("verify", "--strategy", "Momentum Bot").exit_code == 0


def test_the_json_report_names_every_id(run: Run, lumibot_memory: Path) -> None:
    dry = json.loads(run("import", "lumibot", str(lumibot_memory), "--json", "--dry-run").stdout)
    told = json.loads(run("import", "lumibot", str(lumibot_memory), "--json", "--strategy", "s").stdout)
    assert (dry["dry_run"], told["dry_run"], told["strategy"]) == (True, False, "s")
    assert dry["defects"] == told["defects"]
    assert len(told["defects"]["repaired"]["ids"]) == told["defects"]["repaired"]["total"] == 8


def test_the_log_tells_source_time_and_author(run: Run, lumibot_memory: Path) -> None:
    run("import", "lumibot", str(lumibot_memory), "--as", "maria")
    lines = run("log", "--strategy", "Momentum Bot", "--kind", "risk_note").stdout
    assert "maria  risk_note.recorded" in lines
    assert "(imported, of 2025-01-06T15:07:00Z by researcher)" in lines
    ended = run("log", "--strategy", "Momentum Bot", "--event", "import.ended").stdout
    assert "added 1 decision.recorded" in ended
    begun = run("log", "--strategy", "Momentum Bot", "--event", "import.begun").stdout
    assert "39 rows of lumibot" in begun
    name = next(word for word in lines.split() if word.startswith("risk_") and "." not in word)
    shown = run("show", name, "--strategy", "Momentum Bot").stdout
    assert '"source_at": "2025-01-06T14:3' in shown


def test_a_source_that_cannot_be_read_is_our_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"hello")
    for words in (("lumibot", "x.sqlite"), ("lumibot", "none"), ("jsonl", "x.sqlite"), ("jsonl", "none")):
        done = run("import", words[0], str(tmp_path / words[1]))
        assert isinstance(done.exception, DeskbookError)
        assert done.exception.code in {"foreign_file", "not_found"}
    assert run("import").exit_code == 2
    assert run("import", "lumibot").exit_code == 2


def test_an_export_in_lines_comes_back(
    run: Run, tmp_path: Path, open_seat: Callable[..., Any], root: Path
) -> None:
    seat = open_seat("desk", root=tmp_path / "first")
    seat.do(Remember(text="Nestlé"))
    out = io.BytesIO()
    write_jsonl(seat.entries(), header_of(seat.book.genesis, seat.book.head()), out)
    place = tmp_path / "entries.jsonl"
    place.write_bytes(out.getvalue())
    done = run("import", "jsonl", str(place))
    assert done.exit_code == 0, done.exception
    assert f"proven: 3 entries, chain {seat.entries()[-1].chain_sha256.hex()}" in done.stdout
    assert "added 3 to strategy desk: " in done.stdout
    told = json.loads(run("import", "jsonl", str(place), "--json").stdout)
    assert (told["added"], told["entries"]) == (0, 3)


@pytest.mark.parametrize("standing", [False, True], ids=["nothing there", "first entries there"])
@pytest.mark.parametrize("kept_bytes", [1, 40, -2, -1])
def test_an_export_whose_last_line_was_cut_is_refused_by_line_and_stores_nothing(
    run: Run, tmp_path: Path, root: Path, kept_bytes: int, standing: bool
) -> None:
    """P022: the line is named, no ledger begins, one that stands there stays as it is, and a whole file helps."""
    with closing(Book.open(tmp_path / "first", "desk")) as book:
        seat = Caller("ann", "solo", "ses-1", "remember")
        book.execute(seat, Remember(text="whole"))
        folder = tmp_path / "early"
        words = ("--format", "jsonl", "--strategy", "desk", "--root", str(tmp_path / "first"))
        assert CliRunner().invoke(app, ["export", str(folder), *words]).exit_code == 0
        if standing:
            assert run("import", "jsonl", str(folder / "entries.jsonl")).exit_code == 0
        for number in range(3):
            book.execute(seat, Remember(text=f"Nestlé {number}"))
        assert CliRunner().invoke(app, ["export", str(tmp_path / "late"), *words]).exit_code == 0
    place = tmp_path / "late" / "entries.jsonl"
    *lines, last = whole = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(b"".join(lines) + last[:kept_bytes])
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    done = run("import", "jsonl", str(place))
    assert isinstance(done.exception, StoreDamaged)
    assert f"Line {len(whole)}: The line was cut off." in done.exception.message
    assert done.exception.stored == "no"
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert bool(before) == standing

    place.write_bytes(b"".join(whole))
    assert run("import", "jsonl", str(place)).exit_code == 0
    assert json.loads(run("verify", "--strategy", "desk", "--json").stdout)["entries"] == len(whole) - 1
