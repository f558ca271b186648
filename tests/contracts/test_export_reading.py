"""What an engine gives to whoever copies a ledger: whole rows in order, within a range, as of a cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.commands import IntendOrder, OpenThesis, RecordOutcome, Remember, ReportPositions, UpdateThesis
from store.entry import COLUMNS
from store.rows import INDEX_COLUMNS, ORDER_COLUMNS, REPORT_COLUMNS

if TYPE_CHECKING:
    from conftest import Seat

REASON = "Dated evidence, sizing, risks and what would prove it wrong. " * 5


def test_rows_come_in_order_and_only_from_the_range(seat: Seat) -> None:
    for number in range(5):
        seat.do(Remember(text=f"note {number}"))
        seat.find("note")
        seat.do(ReportPositions(positions=[{"symbol": "AAPL", "quantity": str(number)}]))
    last = seat.book.head().sequence
    with seat.book.snapshot() as snapshot:
        for rows, at, width in (
            (snapshot.entry_rows, 0, len(COLUMNS)),
            (snapshot.retrieval_rows, 1, 13),
            (snapshot.report_rows, 0, len(REPORT_COLUMNS)),
        ):
            every = list(rows(0, last))
            assert [row[at] for row in every] == sorted({row[at] for row in every})
            assert {len(row) for row in every} == {width}
            assert list(rows(5, 9)) == [row for row in every if 5 < row[at] <= 9]
            assert list(rows(last, last)) == []


def test_a_memory_stays_where_it_began_and_stands_as_of_the_cut(seat: Seat) -> None:
    thesis = seat.do(OpenThesis(text="first words"))
    note = seat.do(Remember(text="a note"))
    changed = seat.do(UpdateThesis(thesis_id=thesis.id, text="second words"))
    text, name = (INDEX_COLUMNS.index(column) + 1 for column in ("text", "memory_id"))

    def texts(cut: int) -> list[tuple[Any, ...]]:
        with seat.book.snapshot() as snapshot:
            return [(row[0], row[name], row[text]) for row in snapshot.index_rows(0, cut, cut)]

    assert texts(note.sequence) == [
        (thesis.sequence, thesis.id, "first words"),
        (note.sequence, note.id, "a note"),
    ]
    assert texts(changed.sequence)[0] == (thesis.sequence, thesis.id, "second words")
    with seat.book.snapshot() as snapshot:
        assert snapshot.changed_births(None, note.sequence, changed.sequence) == [thesis.sequence]
        assert snapshot.changed_births("order_action", note.sequence, changed.sequence) == []
        assert snapshot.changed_births(None, 0, changed.sequence) == []


def test_an_order_has_the_entry_it_began_with_and_that_of_its_outcome(seat: Seat) -> None:
    order = seat.do(
        IntendOrder(operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="1"), call="c-1"
    )
    with seat.book.snapshot() as snapshot:
        (row,) = snapshot.order_rows(0, order.sequence, order.sequence)
    before = dict(zip(ORDER_COLUMNS, row, strict=True))
    assert (before["sequence"], before["model_call_id"]) == (order.sequence, "c-1")
    assert before["outcome_sequence"] is None
    told = seat.do(RecordOutcome(action_id=order.id, certainty="unknown"), agent="desk", call="c-2")
    with seat.book.snapshot() as snapshot:
        (row,) = snapshot.order_rows(0, told.sequence, told.sequence)
        (old,) = snapshot.order_rows(0, told.sequence, order.sequence)
    after = dict(zip(ORDER_COLUMNS, row, strict=True))
    assert (after["sequence"], after["model_call_id"], after["status"]) == (order.sequence, "c-1", "unknown")
    assert (after["outcome_sequence"], after["outcome_by"]) == (told.sequence, "desk")
    assert dict(zip(ORDER_COLUMNS, old, strict=True)) == before
