"""A file of vectors gives back all that was written into it, however it grew and whoever reads it meanwhile."""

from __future__ import annotations

import errno
import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.vectors import file as files
from store.vectors.file import Row, VectorFile
from store.vectors.layout import COLUMNS, Head, Mark

LIMITS = {"<i8": (-(2**63), 2**63 - 1), "<u8": (0, 2**64 - 1), "<u1": (0, 255)}
NUMBERS = {name: st.integers(*LIMITS[kind]) for name, kind in COLUMNS if kind in LIMITS}
LENGTHS = {"length": st.floats(0, 1e6, width=32)}
ROWS = st.builds(Row, **{**NUMBERS, **LENGTHS})  # type: ignore[arg-type]
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=7), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Little room at first, so that files grow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "FIRST_CAPACITY", 2)
        yield


@pytest.fixture(scope="module", name="folder")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    place = tmp_path_factory.mktemp("files")
    return lambda: Path(tempfile.mkdtemp(dir=place))


def head(dimensions: int, capacity: int = 2) -> Head:
    return Head.of("store", "fake", dimensions, capacity)


def opened(path: Path, **how: Any) -> VectorFile | None:
    wanted = head(1)
    return VectorFile.open(path, wanted.ledger, wanted.form, **how)


def codes_for(rows: int, dimensions: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(-127, 128, (rows, dimensions), dtype=np.int8)


def sketch_of(code: bytes, words: int) -> bytes:
    """The signs of a code, made bit by bit."""
    bits = sum(1 << at for at, value in enumerate(np.frombuffer(code, dtype=np.int8).tolist()) if value > 0)
    return bits.to_bytes(8 * words, "little")


@given(batches=BATCHES, dimensions=st.integers(1, 150), seed=st.integers(0, 99))
def test_all_that_was_appended_is_read_back(
    batches: list[list[Row]], dimensions: int, seed: int, folder: Callable[[], Path], held_in: Any
) -> None:
    path = folder() / "fake.vectors"
    file = VectorFile.create(path, head(dimensions))
    expected: list[tuple[Any, ...]] = []
    for at, rows in enumerate(batches):
        codes = codes_for(len(rows), dimensions, seed + at)
        before = opened(path)
        assert before is not None
        file = file.append(rows, codes, at + 1)
        for row, code in zip(rows, codes, strict=True):
            values = tuple(getattr(row, name) for name in Row.__slots__)
            expected.append((*values, code.tobytes(), sketch_of(code.tobytes(), file.head.words)))
        after = opened(path)
        assert after is not None
        assert held_in(file) == held_in(after) == expected
        assert after.mark == Mark(after.mark.turn, len(expected), at + 1)
        if before.is_current():
            assert held_in(before) == expected
        else:
            assert held_in(before) == expected[: -len(rows)]
    file.close()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@given(ended=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 2**62)), max_size=8))
def test_what_ended_is_seen_by_who_has_the_file_open_and_is_kept_when_it_grows(
    ended: list[tuple[int, int]], folder: Callable[[], Path], written: Any
) -> None:
    path = folder() / "fake.vectors"
    file = written(path, np.eye(12, 8) + 1)
    reader = opened(path)
    assert reader is not None
    for row, sequence in ended:
        file.end(row, sequence)
    expected = dict(ended)
    told = reader.column("ended", 12).tolist()
    assert {row: told[row] for row in expected} == expected
    grown = VectorFile.create(path, head(8, 64), file)
    assert grown.column("ended", 12).tolist() == told


def test_a_large_file_grows_slab_by_slab(
    tmp_path: Path, written: Any, held_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SLAB", 100)
    vectors = np.random.default_rng(1).standard_normal((700, 70))
    grown = written(tmp_path / "grown.vectors", vectors, batches=[3, 40, 200])
    monkeypatch.setattr(files, "FIRST_CAPACITY", 1_024)
    assert held_in(grown) == held_in(written(tmp_path / "whole.vectors", vectors))


def test_growing_leaves_no_file_open(tmp_path: Path, written: Any) -> None:
    def still_open() -> list[str]:
        handles = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [str(path) for handle in handles if str(path := handle.readlink()).startswith(str(tmp_path))]

    path = tmp_path / "fake.vectors"
    file = written(path, np.eye(300, 8) + 1, batches=[20] * 14)
    readers = [opened(path) for _ in range(5)]
    assert all(readers)
    file.close()
    del file, readers
    gc.collect()
    assert still_open() == []


def test_a_file_may_be_closed_twice(tmp_path: Path, written: Any) -> None:
    """Another file that was given the same descriptor meanwhile stays open."""
    file = written(tmp_path / "fake.vectors", np.eye(3))
    file.close()
    with (tmp_path / "other").open("wb") as other:
        file.close()
        other.write(b"still open")
    assert (tmp_path / "other").read_bytes() == b"still open"


class Failing:
    """Stands before `os` and fails from its n-th write on, or writes only a few bytes at a time."""

    def __init__(self, at: int, most: int = 2**62) -> None:
        self._left = at
        self._most = most

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, descriptor: int, content: bytes, at: int) -> int:
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, "no space")
        return os.pwrite(descriptor, memoryview(content)[: self._most], at)


@pytest.mark.parametrize(
    ("count", "fails_at"), [*((2, write) for write in range(16)), *((16, write) for write in range(33))]
)
def test_a_write_that_fails_loses_nothing_and_the_next_one_is_whole(
    count: int,
    fails_at: int,
    tmp_path: Path,
    written: Any,
    row: Any,
    held_in: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each write of a batch for which there is room, and of one that makes the file grow."""
    path = tmp_path / "fake.vectors"
    vectors = np.random.default_rng(2).standard_normal((30, 70))
    file = written(path, vectors[:14], batches=[14])
    before = held_in(file)
    rows = [row(sequence) for sequence in range(15, 31)]
    codes = codes_for(16, 70, 5)
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", Failing(fails_at))
        with pytest.raises(OSError, match="no space"):
            file.append(rows[:count], codes[:count], 30)
    reader = opened(path, writes=True)
    assert reader is not None
    assert held_in(reader) == before
    after = reader.append(rows, codes, 30)
    assert held_in(after)[:14] == before
    assert [held[0] for held in held_in(after)] == list(range(1, 31))
    assert after.mark.watermark == 30
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_writes_that_the_kernel_cuts_short_go_on(
    tmp_path: Path, written: Any, row: Any, held_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(2).standard_normal((12, 70))
    whole = held_in(written(tmp_path / "whole.vectors", vectors))
    monkeypatch.setattr(files, "os", Failing(10**9, most=60))
    assert held_in(written(tmp_path / "cut.vectors", vectors)) == whole
