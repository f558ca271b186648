"""What a redaction reaches besides the one ledger: runs that were shown it, vectors, and what is past its time."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store import Book
from store.audit import verify
from store.commands import Decide, IntendOrder, OpenThesis, Remember, ReportPositions
from store.leaks import find_leaks
from store.redaction.desk import Desk, Wanted
from store.redaction.register import Register
from store.vectors.checking import check_vectors
from store.vectors.index import VectorIndex

DAY = 86_400_000_000
WORDS = 64


class Bag:
    """A model without meaning: a text is the words it has."""

    model = "bag"

    def pieces(self, text: str) -> list[str]:
        assert text, "no model is asked for an empty text"
        return [text[start : start + 40] for start in range(0, len(text), 40)]

    def embed(self, texts: list[str]) -> Any:
        found = np.zeros((len(texts), WORDS), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                found[row, sum(word.encode()) % WORDS] += 1
        return found


def test_a_run_that_was_shown_it_loses_it_too_and_says_so_itself(
    open_seat: Any, redact: Any, traced: Any, tmp_path: Path, register: Register
) -> None:
    live = open_seat()
    made = live.do(Remember(text="Quorvex holds its base", symbol="AAPL"))
    other = live.do(Remember(text="plain words", symbol="AAPL"))
    later = live.clock.us + DAY
    run = open_seat(run="back", inherit="live", begins=later)
    caller = run.caller(now=later)
    assert [hit["id"] for hit in run.find("Quorvex", who=caller)["hits"]] == [made.id]
    assert [hit["id"] for hit in run.find("plain", who=caller)["hits"]] == [other.id]
    live.book.close()
    run.book.close()
    assert find_leaks(tmp_path, "default", "back").leaks == ()
    done = redact(made.id)
    assert done.entries == {None: 1, "back": 1}
    assert traced(tmp_path, "Quorvex") == []
    for path, name in ((live.path, None), (run.path, "back")):
        assert verify(path, "default", name).findings == ()
    assert find_leaks(tmp_path, "default", "back").leaks == ()
    again = open_seat(run="back")
    (said,) = again.entries("memory.redacted")
    assert (said.subject_id, said.effective_at) == (made.id, later)
    assert len(register.lines(again.book.genesis.store_id)) == 1


def test_a_runs_own_memory_goes_from_the_run_alone(
    open_seat: Any, redact: Any, traced: Any, tmp_path: Path
) -> None:
    live = open_seat()
    live.do(Remember(text="live words"))
    later = live.clock.us + DAY
    run = open_seat(run="back", begins=later)
    made = run.do(Remember(text="Quorvex in a run"), now=later)
    live.book.close()
    run.book.close()
    assert redact(made.id, run="back").entries == {"back": 1}
    assert traced(tmp_path, "Quorvex") == []
    assert verify(run.path, "default", "back").findings == ()


def _index(seat: Any, root: Path) -> VectorIndex:
    return VectorIndex(root, seat.path, seat.book.genesis.store_id, Bag.model)


def _embed(seat: Any, root: Path) -> None:
    while _index(seat, root).catch_up(seat.book.snapshot, Bag(), 32).more:  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("embedded", ["before", "only afterwards"])
def test_vectors_of_what_is_gone_are_blank_and_never_found(
    seat: Any, secret: str, redact: Any, tmp_path: Path, embedded: str
) -> None:
    if embedded == "before":
        _embed(seat, tmp_path)
        (file,) = (seat.path.parent / "vectors").glob("*.vectors")
        whole = file.read_bytes()
    seat.book.close()
    redact(secret)
    seat.book = Book.open(tmp_path, "default", clock=seat.clock)
    with closing(seat.book):
        if embedded == "before":
            assert file.read_bytes() != whole
            assert check_vectors(seat.path) == []
        _embed(seat, tmp_path)
        assert check_vectors(seat.path) == []
        gone = {entry.sequence for entry in seat.entries() if entry.subject_id == secret}
        with seat.book.snapshot() as snapshot:
            held = _index(seat, tmp_path).file(snapshot)
            assert held is not None
            rows = [row for row, at in enumerate(held.column("sequence", held.mark.rows)) if int(at) in gone]
            assert rows
            assert all(held.column("pending", held.mark.rows)[rows])
            if embedded == "before":
                assert all((held.codes[row] != 0).sum() == 1 for row in rows)


def test_what_is_past_its_time_goes_but_not_what_is_still_needed(
    seat: Any, tmp_path: Path, register: Register, traced: Any
) -> None:
    old = [seat.do(Remember(text=f"old words {number}", symbol="TSLA")).id for number in range(3)]
    thesis = seat.do(OpenThesis(text="still open", symbol="MSFT")).id
    decision = seat.do(Decide(text="why", action="buy", symbol="AAPL")).id
    order = seat.do(
        IntendOrder(
            operation="submit", reason="a reason of some length. " * 9, symbol="AAPL", side="buy", quantity="1",
            decision_id=decision,
        )
    ).id  # fmt: skip
    past = seat.do(Decide(text="long past", action="sell", symbol="TSLA")).id
    held = seat.do(Decide(text="it is held", action="buy", symbol="NVDA")).id
    seat.clock.us += 40 * DAY
    seat.do(ReportPositions(positions=[{"symbol": "NVDA", "quantity": "5"}]))
    new = seat.do(Remember(text="new words", symbol="TSLA")).id
    seat.book.close()
    desk = Desk(tmp_path, "default", None, register, clock=seat.clock)
    look = desk.look(Wanted(older_than=30 * DAY))
    assert {subject.about for subject in look.subjects} == {*old, past}
    assert set(look.needed) == {thesis, decision, order, held}
    assert new not in {subject.about for subject in look.subjects}
    from_reviewer = seat.caller("rita", tool="redact")
    assert not from_reviewer.reviewer


def test_a_redaction_in_a_large_ledger_names_many_subjects_by_the_ledger(
    seat: Any, redact: Any, tmp_path: Path, traced: Any
) -> None:
    one = seat.do(Remember(text="Quorvex one"))
    two = seat.do(Remember(text="Quorvex two"))
    seat.book.close()
    redact(one.id, two.id)
    assert traced(tmp_path, "Quorvex") == []
    with closing(Book.open(tmp_path, "default", clock=seat.clock)) as book:
        seat.book = book
        (said,) = seat.entries("memory.redacted")
    assert said.subject_type == "ledger"
    assert len(json.loads(said.content)["covered"]) == 2
