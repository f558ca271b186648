"""kill -9 anywhere in an export or a merge: every file of the manifest is whole, and no row is missing or double."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from store import Book
from store.export.checking import check_exports
from store.export.exporter import bring_up_to_date

if TYPE_CHECKING:
    from conftest import StartHand

ROUNDS = 30
NOTES = 25

pytestmark = pytest.mark.faults


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "default" / "exports"


def assert_whole(folder: Path, asked: Any) -> int:
    """Both ways of reading give each entry and each memory once; gives the manifest's head."""
    if not (folder / "manifest.json").exists():
        return 0
    manifest = json.loads((folder / "manifest.json").read_text())
    head = int(manifest["head"]["sequence"])
    for table in manifest["tables"].values():
        for file in table["files"]:
            path = folder / file["path"]
            assert hashlib.sha256(path.read_bytes()).hexdigest() == file["sha256"]
            assert pq.read_metadata(path).num_rows == file["rows"]
    events = [str(folder / file["path"]) for file in manifest["tables"]["memory_events"]["files"]]
    assert asked(f"SELECT sequence FROM read_parquet({events}) ORDER BY 1") == [
        (sequence,) for sequence in range(1, head + 1)
    ]
    found = asked(f"SELECT sequence FROM '{folder}/memory_events/*.parquet' ORDER BY 1")
    assert found == [(sequence,) for sequence in range(1, len(found) + 1)]
    assert len(found) >= head
    born = asked(
        f"SELECT memory_id, count(*) FROM '{folder}/memory_state/*.parquet' GROUP BY 1 HAVING count(*) > 1"
    )
    assert born == []
    return head


@pytest.mark.parametrize(
    ("what", "grows_to", "largest", "steps"),
    [("export", 1, 10, 260), ("merge", 10_000, 10_000, 90)],
)
def test_killed_thirty_times_nothing_is_missing_or_double(
    what: str,
    grows_to: int,
    largest: int,
    steps: int,
    folder: Path,
    tmp_path: Path,
    start_hand: StartHand,
    asked: Any,
) -> None:
    chosen = random.Random(what)
    heads, lived = [0], 0
    for _ in range(ROUNDS):
        step = chosen.randrange(1, steps)
        hand = start_hand("write-and-export", tmp_path, grows_to, largest, NOTES, step)
        lived += hand.says() is not None
        hand.wait()
        heads.append(assert_whole(folder, asked))
    assert heads == sorted(heads)
    assert lived < ROUNDS / 2
    book = Book.open(tmp_path, "default", create=False)
    ledger = folder.parent / "memory.sqlite"
    done = bring_up_to_date(tmp_path, ledger, book.snapshot)
    book.close()
    assert assert_whole(folder, asked) == done.through
    assert check_exports(ledger) == []
    assert [path.name for path in folder.rglob("*.tmp")] == []


def test_killed_at_each_step_of_a_merge(
    folder: Path, tmp_path: Path, start_hand: StartHand, asked: Any
) -> None:
    """Every step once, from the first to the one it survives."""
    assert start_hand("write-and-export", tmp_path, 1_000, 1_000, NOTES, 0).says()
    step, told = 0, None
    while told is None:
        step += 1
        hand = start_hand("write-and-export", tmp_path, 1_000, 1_000, 1, step)
        told = hand.says()
        hand.wait()
        assert_whole(folder, asked)
    assert step > 20
    assert check_exports(folder.parent / "memory.sqlite") == []
