"""verify of the vectors: every column of every row is held against the ledger or against the vector itself."""

from __future__ import annotations

from typing import Any

import pytest

from store.commands import OpenThesis, Remember, UpdateThesis
from store.vectors.checking import check_vectors
from store.vectors.layout import COLUMNS, PAGE, read_head, read_mark

CHECKED = (*(name for name, _ in COLUMNS), "codes", "sketch")


@pytest.fixture
def filled(desk: Any) -> Any:
    for number in range(5):
        desk.seat.do(Remember(text=f"note {number} of the breakout", symbol="AAPL"))
    thesis = desk.seat.do(OpenThesis(text="it breaks out", symbol="AAPL"))
    desk.seat.do(UpdateThesis(thesis_id=thesis.id, text="it broke out"))
    desk.embed()
    return desk


def wrong_with(desk: Any) -> list[str]:
    return [finding.what for finding in check_vectors(desk.seat.path)]


def change(desk: Any, at: int) -> None:
    content = bytearray(desk.path.read_bytes())
    content[at] ^= 0x55
    desk.path.write_bytes(content)


def test_vectors_as_they_are_made_are_sound_and_stay_so(filled: Any) -> None:
    assert wrong_with(filled) == []
    filled.seat.do(Remember(text="one more that has no vector yet"))
    assert wrong_with(filled) == []
    filled.embed()
    assert wrong_with(filled) == []


@pytest.mark.parametrize("column", CHECKED)
@pytest.mark.parametrize("row", [0, 3, 6])
def test_a_changed_value_is_found(filled: Any, column: str, row: int) -> None:
    page = filled.path.read_bytes()[:PAGE]
    head = read_head(page)
    assert head is not None
    sizes = dict(COLUMNS) | {"codes": f"<V{head.dimensions}", "sketch": "<u8"}
    width = int(sizes[column][2:])
    change(filled, head.offsets()[column] + row * width)
    assert wrong_with(filled) != []


def test_a_row_that_is_missing_or_too_many_is_found(filled: Any) -> None:
    page = filled.path.read_bytes()[:PAGE]
    mark = read_mark(page)
    assert mark is not None
    content = bytearray(filled.path.read_bytes())
    short = type(mark)(mark.turn + 1, mark.rows - 1, mark.watermark)
    content[short.at : short.at + len(short.packed())] = short.packed()
    filled.path.write_bytes(content)
    (what,) = wrong_with(filled)
    assert what.endswith("has no vector")
    again = type(mark)(mark.turn + 2, mark.rows + 1, mark.watermark)
    content[again.at : again.at + len(again.packed())] = again.packed()
    filled.path.write_bytes(content)
    assert any("made no text that is searched" in what for what in wrong_with(filled))


def test_a_cut_file_is_found_and_a_foreign_one_is_left_alone(filled: Any) -> None:
    whole = filled.path.read_bytes()
    filled.path.write_bytes(whole[:-1])
    assert wrong_with(filled) == ["is cut"]
    filled.path.write_bytes(b"something else")
    assert wrong_with(filled) == []
    filled.path.unlink()
    assert wrong_with(filled) == []


def test_one_bad_vector_in_many_texts_is_named_by_its_sequence(filled: Any) -> None:
    head = read_head(filled.path.read_bytes()[:PAGE])
    assert head is not None
    change(filled, head.offsets()["codes"] + 2 * head.dimensions)
    (what,) = wrong_with(filled)
    sequences = [row[0] for row in filled.held()]
    assert what == f"the vector of sequence {sequences[2]} does not agree with its signs or its length"
