"""A file of vectors that is cut, damaged, another's or no file is never used, and the next batch makes it anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.commands import Remember
from store.vectors import layout
from store.vectors.file import VectorFile
from store.vectors.layout import PAGE, Head, Mark

HEAD_BYTES = 96
MARKS = (range(1_024, 1_060), range(2_048, 2_084))
"""Where the mark of the first batch is, and where that of the second."""
WANTED = Head.of("store", "fake", 1, 1)

each_time = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def opened(path: Path, wanted: Head = WANTED, **how: Any) -> VectorFile | None:
    return VectorFile.open(path, wanted.ledger, wanted.form, **how)


@pytest.fixture
def sound(tmp_path: Path, written: Any) -> Path:
    """A file with two marks: of five rows up to entry 5, and of nine up to 9."""
    path: Path = tmp_path / "fake.vectors"
    file = written(path, np.random.default_rng(3).standard_normal((9, 40)), batches=[5])
    assert file.mark == Mark(3, 9, 9, file.mark.chain)
    file.close()
    return path


def flip(path: Path, at: int, bits: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        old = file.read(1)[0]
        file.seek(at)
        file.write(bytes([old ^ bits]))


@given(share=st.floats(0, 1, exclude_max=True), writes=st.booleans())
@each_time
def test_a_file_cut_anywhere_is_not_used(share: float, writes: bool, sound: Path) -> None:
    cut = sound.with_name("cut.vectors")
    shutil.copy(sound, cut)
    os.truncate(cut, int(share * sound.stat().st_size))
    assert opened(cut, writes=writes) is None


@pytest.mark.parametrize("length", [0, 1, HEAD_BYTES - 1, HEAD_BYTES, 1_060, 2_084, PAGE - 1, PAGE])
def test_a_file_cut_at_the_edge_of_a_part_is_not_used(length: int, sound: Path) -> None:
    os.truncate(sound, length)
    assert opened(sound) is None


def test_a_file_that_is_too_long_is_not_used(sound: Path) -> None:
    with sound.open("ab") as file:
        file.write(b"\0")
    assert opened(sound) is None


@pytest.mark.parametrize("at", range(HEAD_BYTES))
def test_a_file_with_a_changed_byte_in_its_head_is_not_used(at: int, sound: Path) -> None:
    for bits in (1, 16, 255):
        flip(sound, at, bits)
        assert opened(sound) is None
        flip(sound, at, bits)
    assert opened(sound) is not None


@given(place=st.sampled_from([0, 1]), at=st.integers(0, 35), bits=st.integers(1, 255))
@each_time
def test_of_two_marks_the_whole_one_counts(place: int, at: int, bits: int, sound: Path) -> None:
    """The newer one where both are whole, either one where the other is not, and none without any."""
    path = sound.with_name("damaged.vectors")
    shutil.copy(sound, path)
    flip(path, MARKS[place][at], bits)
    file = opened(path)
    assert file is not None
    assert (file.mark.rows, file.mark.watermark) == ((9, 9), (5, 5))[place]
    flip(path, MARKS[1 - place][35 - at], bits)
    assert opened(path) is None
    assert file.mark == Mark()


@given(at=st.integers(0, PAGE - 1), bits=st.integers(1, 255))
@each_time
def test_a_changed_byte_of_the_first_page_never_makes_more_of_a_file_than_there_is(
    at: int, bits: int, sound: Path
) -> None:
    path = sound.with_name("damaged.vectors")
    shutil.copy(sound, path)
    flip(path, at, bits)
    file = opened(path)
    assert file is None or file.mark.rows in {5, 9}
    assert (file is None) == (at < HEAD_BYTES)


@given(content=st.binary(max_size=3 * PAGE))
@each_time
def test_bytes_that_are_no_file_of_vectors_are_not_used(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any.vectors"
    path.write_bytes(content)
    assert opened(path) is None


def test_a_file_of_another_ledger_model_or_layout_is_not_used(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened(sound, Head.of("another store", "fake", 1, 1)) is None
    assert opened(sound, Head.of("store", "another model", 1, 1)) is None
    with monkeypatch.context() as patch:
        patch.setattr(layout, "KIND_NUMBERS", {**layout.KIND_NUMBERS, "later": 99})
        assert opened(sound, Head.of("store", "fake", 1, 1)) is None
    with monkeypatch.context() as patch:
        patch.setattr(layout, "COLUMNS", (*layout.COLUMNS, ("later", "<i8")))
        assert opened(sound, Head.of("store", "fake", 1, 1)) is None
    assert opened(sound, Head.of("store", "fake", 512, 9_999)) is not None


def _linked(path: Path) -> None:
    real = path.rename(path.with_name("real"))
    path.symlink_to(real)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _socket(path: Path) -> None:
    path.unlink()
    os.mknod(path, 0o140_600)


@pytest.mark.parametrize("put", [_linked, _folder, _pipe, _socket, Path.unlink])
@pytest.mark.parametrize("writes", [True, False])
def test_what_is_no_plain_file_is_not_used(put: Callable[[Path], None], writes: bool, sound: Path) -> None:
    """A pipe among them, which would be waited for."""
    put(sound)
    assert opened(sound, writes=writes) is None


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _no_head(path: Path) -> None:
    flip(path, 40, 1)


def _no_mark(path: Path) -> None:
    flip(path, 1_030, 1)
    flip(path, 2_050, 1)


def _no_content(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [_cut, _no_head, _no_mark, _no_content, _linked, _pipe, Path.unlink])
def test_a_damaged_file_is_made_anew_by_the_next_batch(harm: Callable[[Path], None], desk: Any) -> None:
    for number in range(9):
        desk.seat.do(Remember(text=f"note {number}"))
    desk.embed()
    before, asked = desk.held(), list(desk.embedder.asked)
    harm(desk.path)
    assert desk.held() == []
    assert desk.near("note 3", index=desk.another()) == []
    assert desk.reach(desk.another()) < 3
    assert desk.embed(index=desk.another()) == 9
    assert desk.held() == before
    assert desk.embedder.asked == asked * 2
    assert desk.path.is_file()
    assert not desk.path.is_symlink()
    assert desk.near("note 3", index=desk.another())[0].cosine > 0.999


def test_with_a_damaged_mark_the_rows_since_the_other_one_are_embedded_again(desk: Any) -> None:
    """None is missing or double, and a process that has the file open goes on with it."""
    thesis = [desk.seat.do(Remember(text=f"note {number}")) for number in range(6)]
    desk.embed(most=4)
    desk.seat.do(Remember(text="the last note", supersedes=thesis[0].id))
    desk.embed()
    before = desk.held()
    turn = VectorFile.open(desk.path, *_told(desk)).mark.turn  # type: ignore[union-attr]
    flip(desk.path, (1_024, 2_048)[turn % 2] + 5, 1)
    assert len(desk.held()) < len(before)
    desk.embed()
    assert desk.held() == desk.held(desk.index) == before


def _told(desk: Any) -> tuple[bytes, bytes]:
    page = desk.path.read_bytes()[:PAGE]
    head = layout.read_head(page)
    assert head is not None
    return head.ledger, head.form


@pytest.mark.parametrize(
    "mark", [Mark(9, 10**6, 9), Mark(2**64 - 1, 9, 9), Mark(9, 2**60, 9), Mark(9, 9, 2**63)], ids=str
)
def test_a_whole_mark_that_no_file_can_have_is_none(mark: Mark, sound: Path) -> None:
    content = bytearray(sound.read_bytes())
    for at in (MARKS[0].start, MARKS[1].start):
        content[at : at + len(mark.packed())] = mark.packed()
    sound.write_bytes(content)
    assert opened(sound) is None
    assert opened(sound, writes=True) is None
