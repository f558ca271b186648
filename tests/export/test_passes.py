"""What a pass costs, leaves behind, refuses, and mends."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store.audit import verify
from store.commands import OpenThesis, Remember, UpdateThesis
from store.errors import StoreError
from store.export import checking, exporter
from store.export.checking import check_exports
from store.export.schemas import SCHEMAS
from store.export.segments import Abandoned
from store.export.tables import TABLES

if TYPE_CHECKING:
    from conftest import Seat


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows in a segment, so that a short ledger has many."""
    monkeypatch.setattr(exporter, "GROWS_TO", 10)
    monkeypatch.setattr(
        exporter, "TABLES", {name: replace(table, largest=20) for name, table in TABLES.items()}
    )


def note(seat: Seat, count: int) -> None:
    for number in range(count):
        seat.do(Remember(text=f"note {number}", symbol="AAPL"))


def test_a_pass_costs_what_is_new_however_long_the_ledger_is(exports: Any, seat: Seat, small: None) -> None:
    thesis = seat.do(OpenThesis(text="Long AAPL.", symbol="AAPL"))
    costs = []
    for turn in range(12):
        note(seat, 30)
        exports.bring()
        note(seat, 1)
        seat.do(UpdateThesis(thesis_id=thesis.id, text=f"Longer {turn}."))
        work = exports.bring().work
        costs.append((work.rows_read, work.rows_written, work.files_written))
    # New rows, at most a segment that grows around them, and the segment of the thesis that changed.
    assert all(read <= 100 and written <= 90 and files <= 6 for read, written, files in costs), costs
    assert exports.bring().work.rows_read == 0
    assert check_exports(seat.path) == []
    assert len(exports.files("memory_events")) > 15


def test_segments_cover_all_sequences_each_once(exports: Any, seat: Seat, small: None) -> None:
    for count in (3, 50, 1, 1, 1, 70, 9, 2):
        note(seat, count)
        exports.bring()
        for table in SCHEMAS:
            files = exports.manifest["tables"][table]["files"]
            assert [file["first"] for file in files] == [1, *(file["last"] + 1 for file in files[:-1])]
            assert files[-1]["last"] == seat.book.head().sequence
    assert check_exports(seat.path) == []


def test_nobody_else_can_read_them_and_nothing_is_left_over(exports: Any, seat: Seat, small: None) -> None:
    for _ in range(4):
        note(seat, 15)
        exports.bring()
    stray = exports.folder / "segments" / "memory_events" / "000000000099-0123456789abcdef.parquet"
    stray.write_bytes(b"left by a process that was killed")
    (exports.folder / "memory_events" / ".x.tmp").write_bytes(b"half a link")
    note(seat, 1)
    before = {file["path"] for table in exports.manifest["tables"].values() for file in table["files"]}
    exports.bring()
    found = {str(path.relative_to(exports.folder)) for path in exports.folder.glob("segments/*/*")}
    named = {file["path"] for table in exports.manifest["tables"].values() for file in table["files"]}
    assert found == named | before
    assert not (exports.folder / "memory_events" / ".x.tmp").exists()
    for path in (exports.folder, *exports.folder.rglob("*")):
        assert path.lstat().st_mode & 0o077 == 0, path


def test_a_file_of_somebody_else_is_left_alone(exports: Any) -> None:
    exports.bring()
    theirs = exports.folder / "notes.txt"
    theirs.write_text("mine")
    beside = exports.folder / "memory_events" / "mine.csv"
    beside.write_text("mine")
    note(exports.seat, 1)
    exports.bring()
    assert theirs.read_text() == beside.read_text() == "mine"


@pytest.mark.parametrize("place", ["exports", "exports/memory_events", "exports/segments/orders"])
def test_a_symbolic_link_is_never_followed(exports: Any, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = exports.seat.path.parent / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="symbolic link"):
        exports.bring()
    assert list(elsewhere.iterdir()) == []


def test_files_that_were_lost_or_cut_are_made_again(exports: Any, seat: Seat, small: None) -> None:
    note(seat, 60)
    exports.bring()
    first, second = exports.files("memory_events")[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-10])
    (exports.folder / "memory_state" / "000000000001.parquet").unlink()
    assert {finding.table for finding in check_exports(seat.path)} == {"memory_events", "memory_state"}
    assert exports.bring().changed
    assert check_exports(seat.path) == []


@pytest.mark.parametrize("what", ["columns", "version", "ledger", "garbage", "ahead"])
def test_exports_of_another_version_or_ledger_are_made_anew(
    exports: Any, seat: Seat, small: None, what: str
) -> None:
    note(seat, 60)
    exports.bring()
    manifest = exports.manifest
    if what == "columns":
        manifest["tables"]["memory_events"]["columns"].pop()
    elif what == "version":
        manifest["version"] = 0
    elif what == "ledger":
        manifest["store_id"] = "store_0000000000000"
    elif what == "ahead":
        manifest["head"]["sequence"] += 1_000
    text = "{" if what == "garbage" else json.dumps(manifest)
    (exports.folder / "manifest.json").write_text(text)
    done = exports.bring()
    assert done.changed
    assert done.work.rows_written >= 60
    assert check_exports(seat.path) == []


@pytest.mark.parametrize("field", ["path", "glob"])
@pytest.mark.parametrize(
    "place",
    [
        "../memory.sqlite",
        "manifest.json",
        "/memory.sqlite",
        "positions/../../memory.sqlite",
        "segments/positions/../../../memory.sqlite",
        "memory_events/000000000001.parquet",
        7,
        None,
    ],
)
def test_a_manifest_that_leads_elsewhere_is_not_followed(
    exports: Any, seat: Seat, field: str, place: object
) -> None:
    """A pass renames over the names of the manifest; the ledger lies beside them."""
    exports.bring()
    manifest = exports.manifest
    manifest["tables"]["positions"]["files"][0][field] = place
    (exports.folder / "manifest.json").write_text(json.dumps(manifest))
    assert any("the manifest cannot be read" in finding.what for finding in check_exports(seat.path))
    note(seat, 5)
    head = seat.book.head().sequence
    assert exports.bring().changed
    assert check_exports(seat.path) == []
    assert verify(seat.path, "default", None).entries == head
    assert verify(seat.path, "default", None).sound


@pytest.mark.parametrize("field", ["sha256", "bytes", "rows", "first", "last", "path", "glob"])
def test_a_manifest_that_lacks_something_is_told_and_written_anew(
    exports: Any, seat: Seat, field: str
) -> None:
    exports.bring()
    manifest = exports.manifest
    del manifest["tables"]["positions"]["files"][0][field]
    (exports.folder / "manifest.json").write_text(json.dumps(manifest))
    (finding,) = check_exports(seat.path)
    assert "the manifest cannot be read" in finding.what
    assert exports.bring().changed
    assert check_exports(seat.path) == []


def test_no_pass_is_made_while_the_exports_are_checked(
    exports: Any, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass in between renames what the manifest that was read still names."""
    exports.bring()
    note(seat, 5)
    passes = []
    hashed_wrong = checking._hashed_wrong

    def meanwhile(*told: Any) -> str | None:
        passes.append(exports.bring())
        return hashed_wrong(*told)

    monkeypatch.setattr(checking, "_hashed_wrong", meanwhile)
    assert check_exports(seat.path) == []
    assert {done.busy for done in passes} == {True}
    assert exports.bring().changed


def test_a_pass_that_is_told_to_stop_leaves_the_exports_as_they_were(exports: Any, seat: Seat) -> None:
    note(seat, 5)
    exports.bring()
    before = exports.manifest
    note(seat, 5)
    with pytest.raises(Abandoned):
        exports.bring(stop=lambda: True)
    assert exports.manifest == before
    assert [path.name for path in exports.folder.rglob("*.tmp")] == []
    assert exports.bring().through == seat.book.head().sequence


def test_a_full_disk_leaves_the_exports_as_they_were(
    exports: Any, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from store.export import segments

    exports.bring()
    before = exports.manifest
    note(seat, 5)

    def full(self: Any, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(segments.Hashed, "write", full)
        with pytest.raises(OSError, match="No space left"):
            exports.bring()
    assert exports.manifest == before
    assert [path.name for path in exports.folder.rglob("*.tmp")] == []
    assert exports.bring().changed
    assert check_exports(seat.path) == []


def test_a_disk_without_links_gets_copies(
    exports: Any, seat: Seat, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    note(seat, 30)
    exports.bring()
    assert not exports.bring().changed
    assert check_exports(seat.path) == []


def test_a_run_exports_its_own_entries_alone(
    open_seat: Callable[..., Seat], exports_of: Callable[[Any], Any], seat: Seat, tmp_path: Path
) -> None:
    note(seat, 3)
    run = open_seat("default", "march", inherit="live")
    run.do(Remember(text="of the run"), now=seat.clock.us + 10**9)
    exports = exports_of(run)
    exports.bring()
    assert exports.rows("memory_state", "text") == [("of the run",)]
    assert set(exports.rows("memory_events", "run_id")) == {("march",)}
    assert exports.folder == tmp_path / "default" / "runs" / "march" / "exports"


def test_what_was_tampered_with_is_found(exports: Any, seat: Seat, filled_with: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    filled_with(seat)
    exports.bring()
    sound = shutil.copytree(exports.folder, exports.folder.with_name("sound"))

    def forged(table: str, change: Callable[[Any], Any]) -> list[Any]:
        shutil.rmtree(exports.folder)
        shutil.copytree(sound, exports.folder)
        manifest = exports.manifest
        (file,) = manifest["tables"][table]["files"]
        path = exports.folder / file["path"]
        pq.write_table(change(pq.read_table(path)), path)
        shutil.copy(path, exports.folder / file["glob"])
        file["bytes"] = path.stat().st_size
        file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        file["rows"] = pq.read_metadata(path).num_rows
        (exports.folder / "manifest.json").write_text(json.dumps(manifest))
        return check_exports(seat.path)

    def reworded(table: Any) -> Any:
        at = table.schema.get_field_index("reason")
        return table.set_column(at, table.field(at), pa.array(["forged"] * len(table)))

    assert "differs in reason" in forged("orders", reworded)[0].what
    assert "missing" in forged("memory_events", lambda table: table.slice(0, 5))[0].what
    doubled = forged("positions", lambda table: pa.concat_tables([table, table]))
    assert "does not hold" in doubled[-1].what
    path = exports.files("memory_state")[0]
    path.write_bytes(path.read_bytes() + b" ")
    assert any("not the file that was written" in finding.what for finding in check_exports(seat.path))
