"""`deskbook export`: the forms, what they are cut to, and what is never overwritten."""

from __future__ import annotations

import csv
import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from server.cli import app
from store.clock import format_instant
from store.commands import Remember
from store.errors import ConfigError, DeskbookError, StoreError
from store.export.arrow import arrow_schema
from store.export.cells import harmless
from store.export.handmade import Export
from store.export.schemas import SCHEMAS
from store.export.selection import Selection
from store.jsonl import read_jsonl

if TYPE_CHECKING:
    from conftest import Seat

Run = Callable[..., str]


@pytest.fixture
def export(tmp_path: Path) -> Run:
    """Run the command on the test's root; gives what it printed. An error of ours is raised."""

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, ["export", "--root", str(tmp_path / "root"), *map(str, words)])
        if isinstance(done.exception, DeskbookError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.fixture
def desk(open_seat: Callable[..., Seat], tmp_path: Path) -> Seat:
    return open_seat(root=tmp_path / "root")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"


def sequences(exports: Any, target: Path) -> list[int]:
    found = exports(f"SELECT sequence FROM '{target}/memory_events/*.parquet' ORDER BY 1")
    return [sequence for (sequence,) in found]


@pytest.mark.parametrize("single", [False, True])
def test_parquet_holds_every_table_whole(
    desk: Seat, target: Path, export: Run, filled_with: Any, asked: Any, single: bool
) -> None:
    filled_with(desk)
    said = export(target, *(["--single-file"] if single else []))
    last = desk.book.head().sequence
    assert f"up to sequence {last}" in said
    for table in SCHEMAS:
        file = f"{target}/{table}.parquet" if single else f"{target}/{table}/*.parquet"
        (described,) = [Path(f"{target}/{table}.parquet")] if single else list((target / table).iterdir())
        assert pq.read_schema(described).equals(arrow_schema(table))
        assert asked(f"SELECT count(*) > 0 FROM '{file}'") == [(True,)]
    events = f"{target}/memory_events{'' if single else '/*'}.parquet"
    assert asked(f"SELECT count(*), max(sequence) FROM '{events}'") == [(last, last)]
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["head"]["sequence"] == last


def test_json_lines_can_be_read_back_entry_by_entry(
    desk: Seat, target: Path, export: Run, filled_with: Any
) -> None:
    filled_with(desk)
    export(target, "--format", "jsonl")
    with (target / "entries.jsonl").open("rb") as file:
        header, entries = read_jsonl(file)
        assert list(entries) == desk.entries()
    assert header["strategy"] == "default"


def test_csv_keeps_line_ends_and_numbers_and_runs_nothing(
    desk: Seat, target: Path, export: Run, filled_with: Any
) -> None:
    """P151, with the cases below; Parquet holds the text as it is."""
    filled_with(desk)
    desk.do(Remember(text='=HYPERLINK("http://x","y")'))
    export(target, "--format", "csv")
    with (target / "memory_state.csv").open(newline="", encoding="utf-8") as file:
        state = list(csv.DictReader(file))
    texts = [row["text"] for row in state]
    assert 'Nestlé 目标价 95\nsecond line, with "quotes"' in texts
    assert '\'=HYPERLINK("http://x","y")' in texts
    with (target / "positions.csv").open(newline="", encoding="utf-8") as file:
        (position,) = csv.DictReader(file)
    assert (position["quantity"], position["last_price"]) == ("10.5", "187.30")
    assert list(position) == [column.name for column in SCHEMAS["positions"]]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1+2",
        "@SUM(A1)",
        "\tx",
        "\rx",
        "\nx",
        "＝1",
        "＋1",
        "－1",
        "＠x",
        "  =1",
        "|x",
        "%x",
        "\u200b=1",
        "\ufeff=1",
        "−1+2",
    ],
)
def test_what_a_spreadsheet_would_run_is_only_shown(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "plain", "a=b", "1-2", "目标价 95", "'=quoted"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


def test_a_negative_number_stays_a_number(desk: Seat, target: Path, export: Run) -> None:
    from store.commands import ReportPositions

    desk.do(ReportPositions(positions=[{"symbol": "AAPL", "quantity": "-1.5"}]))
    export(target, "--format", "csv")
    with (target / "positions.csv").open(newline="", encoding="utf-8") as file:
        (position,) = csv.DictReader(file)
    assert position["quantity"] == position["quantity_text"] == "-1.5"


def test_rows_are_cut_by_time_symbol_and_as_of(
    desk: Seat, target: Path, export: Run, traded: Any, asked: Any, tmp_path: Path
) -> None:
    traded(desk, "AAPL")
    middle = desk.clock.us
    before = desk.book.head().sequence
    traded(desk, "MSFT")
    entries = desk.entries()
    since = [entry.sequence for entry in entries if entry.effective_at >= middle]
    export(target / "since", "--since", format_instant(middle))
    assert sequences(asked, target / "since") == since
    export(target / "until", "--until", format_instant(middle))
    assert sequences(asked, target / "until") == list(range(1, before + 1))
    export(target / "as_of", "--as-of", format_instant(middle))
    assert sequences(asked, target / "as_of") == list(range(1, before + 1))
    assert asked(f"SELECT symbol FROM '{target}/as_of/orders/*.parquet'") == [("AAPL",)]
    export(target / "symbol", "--symbol", "msft")
    wanted = [
        e.sequence
        for e in entries
        if e.symbol == "MSFT" or (e.event_type == "memory.retrieved" and '"symbol":"MSFT"' in e.content)
    ]
    assert sequences(asked, target / "symbol") == wanted
    for table in ("memory_state", "orders", "positions"):
        assert set(asked(f"SELECT symbol FROM '{target}/symbol/{table}/*.parquet'")) == {("MSFT",)}
    assert asked(f"SELECT count(*) FROM '{target}/symbol/memory_retrievals/*.parquet'") == [(1,)]
    with pytest.raises(DeskbookError, match="nothing as of"):
        export(target / "never", "--as-of", "1990-01-01T00:00:00Z")
    assert not (target / "never").exists()


def test_a_thesis_stands_as_it_stood_at_the_time_asked_for(
    desk: Seat, target: Path, export: Run, asked: Any
) -> None:
    from store.commands import OpenThesis, UpdateThesis

    thesis = desk.do(OpenThesis(text="first words", symbol="AAPL"))
    then = desk.clock.us
    desk.do(UpdateThesis(thesis_id=thesis.id, text="second words"))
    export(target, "--as-of", format_instant(then))
    assert asked(f"SELECT text, version FROM '{target}/memory_state/*.parquet'") == [("first words", 1)]


def test_nothing_is_overwritten_without_force_and_foreign_files_never(
    desk: Seat, target: Path, export: Run, asked: Any
) -> None:
    desk.do(Remember(text="one"))
    export(target)
    with pytest.raises(ConfigError, match="not empty"):
        export(target)
    (target / "notes.txt").write_text("mine")
    desk.do(Remember(text="two"))
    export(target, "--force")
    assert sequences(asked, target) == list(range(1, desk.book.head().sequence + 1))
    export(target, "--force", "--single-file")
    assert list((target / "memory_events").iterdir()) == []
    assert (target / "notes.txt").read_text() == "mine"
    (target / "orders.csv").write_text("mine too")
    with pytest.raises(ConfigError, match=r"orders\.csv"):
        export(target, "--force", "--format", "csv")
    assert (target / "orders.csv").read_text() == "mine too"


def test_places_that_will_not_do(desk: Seat, target: Path, export: Run, tmp_path: Path) -> None:
    desk.do(Remember(text="one"))
    with pytest.raises(ConfigError, match="root"):
        export(tmp_path / "root" / "mine")
    target.write_text("a file")
    with pytest.raises(ConfigError, match="no folder"):
        export(target, "--force")
    with pytest.raises(ConfigError, match="--single-file"):
        export(tmp_path / "x", "--format", "csv", "--single-file")
    with pytest.raises(StoreError, match="too long"):
        export(tmp_path / ("x" * 300))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "root")
    with pytest.raises(ConfigError, match="root"):
        export(link / "mine")


@pytest.mark.parametrize("name", ["diary.txt", ".hidden", "memory_events"])
def test_p149_force_takes_no_folder_that_holds_no_export(
    desk: Seat, target: Path, export: Run, name: str
) -> None:
    desk.do(Remember(text="one"))
    target.mkdir()
    mine = target / name
    mine.mkdir() if name == "memory_events" else mine.write_text("mine")
    for words in ((), ("--force",), ("--force", "--format", "csv")):
        with pytest.raises(ConfigError) as fault:
            export(target, *words)
        assert fault.value.field == "DIR"
        assert fault.value.hint
    assert list(target.iterdir()) == [mine]
    mine.rmdir() if name == "memory_events" else mine.unlink()
    export(target, "--force")
    export(target, "--force")


@pytest.mark.parametrize("address", ["file:///tmp/x", "FILE://localhost/x", "file:/x", "s3://bucket/x"])
def test_p149_an_address_is_no_folder(
    desk: Seat, export: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    desk.do(Remember(text="one"))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for words in ((), ("--force",)):
        with pytest.raises(ConfigError, match="begins an address") as fault:
            export(address, *words)
        assert fault.value.field == "DIR"
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_in_the_place_of_a_table_is_not_followed(
    desk: Seat, target: Path, export: Run, tmp_path: Path
) -> None:
    desk.do(Remember(text="one"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "000000000001.parquet").write_text("mine")
    export(target)
    shutil.rmtree(target / "orders")
    (target / "orders").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="symbolic link"):
        export(target, "--force")
    assert (elsewhere / "000000000001.parquet").read_text() == "mine"


def test_memory_stays_flat(desk: Seat, tmp_path: Path) -> None:
    """Twice the ledger takes no more memory: rows are streamed in groups."""
    from store.export import segments

    desk.do(Remember(text="a word " * 10_000))
    for number in range(1_500):
        desk.do(Remember(text=f"{number} " + "a word " * 500))
    peaks = []
    for part in (3, 1):
        cut = desk.book.head().sequence // part
        with desk.book.snapshot() as snapshot:
            entry = snapshot.entry(cut)
            assert entry is not None
            tracemalloc.start()
            Export(tmp_path / f"out-{part}", snapshot, Selection(as_of=entry.effective_at)).csv()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2
    assert peaks[1] < segments.GROUP_CHARS * 2
