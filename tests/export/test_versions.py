"""A new version of a file keeps the pages of the one it replaces where they were, and stays a few times its size."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from store.commands import OpenThesis, Remember, UpdateThesis
from store.export.segments import Hashed
from store.export.versions import begin_behind, pages_of, put_before

if TYPE_CHECKING:
    from conftest import Seat

MOST_TIMES = 5


def table_of(rows: int, seed: int) -> pa.Table:
    chosen = random.Random(seed)
    texts = ["".join(chosen.choices("abcdefghijklmnop", k=40)) for _ in range(rows)]
    return pa.table({"n": pa.array(range(rows)), "text": texts, "label": pa.array(texts).dictionary_encode()})


def write(path: Path, table: pa.Table, over: Path | None) -> None:
    old = pages_of(over) if over is not None else None
    with path.open("w+b") as file:
        stream = pa.PythonFile(Hashed(file), mode="w")
        with pq.ParquetWriter(stream, table.schema) as writer:
            if old is not None and not old.room_before:
                begin_behind(stream.write, old)
            writer.write_table(table)
        if old is not None and old.room_before:
            put_before(file, old)


def read_by_the_footer_of(old: Path, new: Path, place: Path) -> pa.Table:
    """What a reader sees who has the old footer and the new bytes."""
    raw = old.read_bytes()
    footer = raw[-8 - int.from_bytes(raw[-8:-4], "little") :]
    pages = pages_of(old)
    assert pages is not None
    place.write_bytes(new.read_bytes()[: pages.end] + footer)
    return pq.read_table(place)


@pytest.mark.parametrize("grow", [0, 7, 400])
def test_an_old_footer_reads_the_old_rows_out_of_the_new_file(tmp_path: Path, grow: int) -> None:
    before: tuple[Path, pa.Table] | None = None
    for number in range(12):
        path, table = tmp_path / f"{number}.parquet", table_of(100 + grow * number, number)
        write(path, table, None if before is None else before[0])
        assert pq.read_table(path).equals(table)
        found = duckdb.sql(f"SELECT count(*), sum(n) FROM '{path}'").fetchall()
        assert found == [(len(table), sum(table["n"].to_pylist()))]
        alone = tmp_path / "alone.parquet"
        write(alone, table, None)
        assert path.stat().st_size <= MOST_TIMES * alone.stat().st_size
        if before is not None:
            assert read_by_the_footer_of(before[0], path, tmp_path / "mixed.parquet").equals(before[1])
        before = path, table


def test_where_new_pages_do_not_fit_before_the_old_ones_the_file_stays_as_it_is(tmp_path: Path) -> None:
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    write(small, table_of(10, 1), None)
    write(large, table_of(5_000, 2), None)
    old, whole = pages_of(small), large.read_bytes()
    assert old is not None
    with large.open("r+b") as file:
        assert not put_before(file, old)
    assert large.read_bytes() == whole


def test_a_file_without_rows_or_that_is_no_parquet_has_no_pages(tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty.parquet", tmp_path / "broken.parquet"
    pq.write_table(table_of(0, 1), empty)
    broken.write_bytes(b"PAR1 not at all PAR1")
    for path in (empty, broken, tmp_path / "absent.parquet"):
        assert pages_of(path) is None


def test_a_memory_that_changes_again_and_again_lets_its_file_stay_small(exports: Any, seat: Seat) -> None:
    thesis = seat.do(OpenThesis(text="Long AAPL.", symbol="AAPL"))
    for number in range(300):
        seat.do(Remember(text=f"note {number}"))
    exports.bring()
    (file,) = exports.files("memory_state")
    first = file.stat().st_size
    for number in range(25):
        seat.do(UpdateThesis(thesis_id=thesis.id, text=f"Longer {number}."))
        exports.bring()
        (file,) = exports.files("memory_state")
        assert file.stat().st_size <= MOST_TIMES * first
    assert ("Longer 24.",) in exports.rows("memory_state", "text")
