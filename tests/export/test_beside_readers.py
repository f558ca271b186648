"""DuckDB reads the exports while they are written and merged: at every read each row is there once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from store.export.checking import check_exports

if TYPE_CHECKING:
    from conftest import StartHand

PASSES = 60


def test_a_glob_is_right_at_every_instant(tmp_path: Path, start_hand: StartHand) -> None:
    """P212: a reader in the middle of an export, which goes on beside it."""
    folder = tmp_path / "default" / "exports"
    hand = start_hand("write-while-read", tmp_path, PASSES)
    told = int(hand.says())
    reads, known, growth = 0, told, set()
    with duckdb.connect() as connection:
        while told is not None:
            rows = connection.execute(
                f"SELECT count(*), count(DISTINCT sequence), max(sequence) FROM '{folder}/memory_events/*.parquet'"
            ).fetchone()
            assert rows is not None
            assert rows[0] == rows[1] == rows[2] >= known
            double = connection.execute(
                f"SELECT count(*) - count(DISTINCT memory_id) FROM '{folder}/memory_state/*.parquet'"
            ).fetchone()
            assert double == (0,)
            growth.add(rows[0])
            known, reads = rows[0], reads + 1
            if hand.waits():
                said = hand.says()
                told = None if said is None else int(said)
                known = max(known, told or 0)
    assert hand.wait() == 0
    assert reads > PASSES
    assert len(growth) > 10
    assert check_exports(folder.parent / "memory.sqlite") == []


def test_a_reader_keeps_the_file_it_has_opened(exports: Any, seat: Any, filled_with: Any) -> None:
    """P212: an old file, mapped into memory, is read on after it was replaced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    filled_with(seat)
    exports.bring()
    file = exports.folder / "memory_events" / "000000000001.parquet"
    with pa.memory_map(str(file)) as mapped:
        old = pq.ParquetFile(mapped)
        before = old.metadata.num_rows
        filled_with(seat)
        exports.bring()
        assert old.read().num_rows == before
    assert pq.read_metadata(file).num_rows == seat.book.head().sequence > before


def test_several_processes_share_the_work(tmp_path: Path, start_hand: StartHand) -> None:
    hands = [start_hand("export-at-once", tmp_path, 15) for _ in range(3)]
    assert [hand.says() for hand in hands] == ["done"] * 3
    assert [hand.wait() for hand in hands] == [0, 0, 0]
    hand = start_hand("export-at-once", tmp_path, 1)
    assert hand.says() == "done"
    assert check_exports(tmp_path / "default" / "memory.sqlite") == []
