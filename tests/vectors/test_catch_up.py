"""Vectors are brought up to the ledger's head: what is embedded, what is not, and what is found by them."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import CloseThesis, IntendOrder, OpenThesis, Remember, UpdateThesis
from store.errors import EmbeddingFailed
from store.events import LessonRecorded
from store.ledger import Draft
from store.lifecycle import LESSON
from store.rows import Filter
from store.vectors.base import Step
from store.vectors.index import MOST_PIECES
from store.vectors.layout import FOREVER

if TYPE_CHECKING:
    from conftest import Desk

REASON = "The order follows the thesis, is sized at two percent of the book, and ends below 180. " * 4


def notes(desk: Desk, count: int, of: str = "note") -> list[str]:
    return [desk.seat.do(Remember(text=f"{of} number{number} of the desk")).id for number in range(count)]


def test_from_nothing_every_text_is_embedded_once_in_its_order(desk: Desk) -> None:
    ids = notes(desk, 10)
    assert desk.near("number3") == []
    assert desk.embed(most=3) == 10
    assert desk.embedder.asked == [f"note number{number} of the desk" for number in range(10)]
    assert desk.ids("note number3 of the desk")[0] == ids[3]
    assert desk.near("note number3 of the desk", limit=1)[0].cosine == pytest.approx(1.0, abs=1e-4)
    assert sorted(desk.ids("anything")) == sorted(ids)


def test_each_batch_says_what_it_did_and_whether_more_is_left(desk: Desk) -> None:
    notes(desk, 5)
    last = desk.seat.book.head().sequence
    steps = [desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 2) for _ in range(4)]
    assert steps[:3] == [
        Step(2, 2, last - 3, more=True),
        Step(2, 2, last - 1, more=True),
        Step(1, 1, last, more=False),
    ]
    assert steps[3] == Step(0, 0, last, more=False)


def test_a_ledger_without_texts_needs_no_file(desk: Desk) -> None:
    assert desk.embed() == 0
    assert not desk.folder.exists()
    assert desk.reach() == desk.seat.book.head().sequence


def test_it_goes_on_where_it_stopped_in_another_process_too(desk: Desk) -> None:
    first = notes(desk, 4)
    desk.embed()
    later = notes(desk, 4, of="later")
    assert desk.reach() < desk.seat.book.head().sequence
    assert set(desk.ids("later number2 of the desk")) == set(first)
    assert desk.embed(index=desk.another()) == 4
    assert len(desk.embedder.asked) == 8
    assert desk.ids("later number2 of the desk")[0] == later[2]
    assert desk.reach() == desk.seat.book.head().sequence


def test_how_far_they_reach_and_how_much_is_left(desk: Desk) -> None:
    notes(desk, 6)
    book = desk.seat.book
    desk.index.catch_up(book.snapshot, desk.embedder, 2)
    with book.snapshot() as snapshot:
        texts = [text.sequence_from for text in snapshot.texts(0, book.head().sequence, limit=100)]
        assert desk.index.backlog(snapshot, book.head().sequence) == 4
        assert desk.index.backlog(snapshot, texts[3]) == 2
        assert desk.index.reach(snapshot, book.head().sequence) == texts[1]
        assert desk.index.reach(snapshot, texts[1]) == texts[1]
        assert desk.index.reach(snapshot, texts[0]) == texts[0]
    desk.embed()
    desk.seat.state()  # an entry that is no text
    with book.snapshot() as snapshot:
        assert desk.index.reach(snapshot, book.head().sequence) == book.head().sequence
        assert desk.index.backlog(snapshot, book.head().sequence) == 0


def test_an_older_version_is_found_only_where_it_stood(desk: Desk) -> None:
    thesis = desk.seat.do(OpenThesis(text="long the exporters"))
    before = desk.seat.book.head().sequence
    desk.embed()
    desk.seat.do(UpdateThesis(thesis_id=thesis.id, text="short the importers"))
    after = desk.seat.book.head().sequence
    desk.embed()
    assert [near.sequence for near in desk.near("long the exporters")] == [after]
    assert desk.near("short the importers")[0].cosine > 0.99
    then = desk.near("long the exporters", cut=before)
    assert [near.sequence for near in then] == [before]
    assert then[0].cosine > 0.99
    assert [held[1] for held in desk.held()] == [after, FOREVER]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_a_text_that_stays_the_same_is_embedded_once_whatever_becomes_of_it(most: int, desk: Desk) -> None:
    """Also where both versions stand in one batch, or two memories say the same."""
    thesis = desk.seat.do(OpenThesis(text="long the exporters // and the miners"))
    desk.embed(most=most)
    desk.seat.do(CloseThesis(thesis_id=thesis.id, result="win"))
    other = desk.seat.do(OpenThesis(text="short the banks"))
    desk.seat.do(CloseThesis(thesis_id=other.id, result="loss"))
    desk.embed(most=most)
    assert sorted(desk.embedder.asked) == ["and the miners", "long the exporters", "short the banks"]
    rows = desk.held()
    assert len(rows) == 6
    assert [row[12:] for row in rows[:2]] == [row[12:] for row in rows[2:4]]
    assert [row[11] for row in rows[:2]] == [row[11] for row in rows[2:4]]
    assert rows[4][12:] == rows[5][12:]
    assert [row[1] == FOREVER for row in rows] == [False, False, True, True, False, True]
    assert set(desk.ids("short the banks", conditions=Filter(status="closed"))) == {thesis.id, other.id}


def test_of_a_long_text_the_best_piece_counts_once(desk: Desk) -> None:
    long = desk.seat.do(Remember(text="dull talk // the exporters gain // more dull talk"))
    short = desk.seat.do(Remember(text="the exporters gain somewhat today"))
    desk.embed()
    found = desk.near("the exporters gain")
    assert desk.ids("the exporters gain") == [long.id, short.id]
    assert found[0].cosine == pytest.approx(1.0, abs=1e-4)
    assert desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 9).pieces == 0
    assert len(desk.held()) == 4


def test_order_actions_have_no_vectors_and_what_waits_for_review_is_not_found(desk: Desk) -> None:
    order = IntendOrder(operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="1")
    action = desk.seat.do(order).id
    note = desk.seat.do(Remember(text="size after the print"))
    pending = LessonRecorded(text="size before the print", review_state="pending")
    book, caller = desk.seat.book, desk.seat.caller()
    draft = Draft(pending, "memory", "les_waiting", LESSON)
    book._engine.write(lambda each: book._ledger.append(each, caller, [draft]), timeout=10)
    desk.embed()
    with book.snapshot() as snapshot:
        named = [snapshot.version_at(row[0]) for row in desk.held()]
    assert {version.memory_id for version in named if version is not None} >= {note.id, "les_waiting"}
    assert action not in {version.memory_id for version in named if version is not None}
    assert "size before the print" in desk.embedder.asked
    assert desk.ids("size before the print")[0] == note.id
    assert not {action, "les_waiting"} & set(desk.ids("size before the print"))


def test_one_that_fails_keeps_what_was_embedded_before(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = notes(desk, 6)
    desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 3)
    before = desk.held()

    def fail(texts: Any) -> Any:
        raise EmbeddingFailed("gone")

    with monkeypatch.context() as patch:
        patch.setattr(desk.embedder, "embed", fail)
        for _ in range(2):
            with pytest.raises(EmbeddingFailed):
                desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 3)
    assert desk.held() == before
    assert desk.embed() == 3
    assert set(desk.ids("note")) == set(ids)


def test_forgotten_they_are_made_anew(desk: Desk) -> None:
    notes(desk, 3)
    desk.embed()
    before = desk.held()
    desk.index.forget()
    desk.index.forget()
    assert desk.near("note") == []
    assert desk.embed() == 3
    assert desk.held() == before


def test_while_another_holds_the_lock_it_says_so_at_once(desk: Desk) -> None:
    notes(desk, 3)
    desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 1)
    with (desk.folder / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 9) == Step(
            0, 0, 0, True, busy=True
        )
        assert len(desk.embedder.asked) == 1
        assert len(desk.near("note")) == 1
    assert desk.embed() == 2


def test_many_threads_share_the_work_and_each_text_is_embedded_once(
    desk: Desk, make_embedder: Callable[..., Any]
) -> None:
    notes(desk, 120)
    again = threading.Event()
    models = [make_embedder() for _ in range(4)]
    indexes = [desk.index, desk.index, desk.another(), desk.another()]
    faults: list[BaseException] = []

    def work(index: Any, model: Any) -> None:
        try:
            more = True
            while more:
                done = index.catch_up(desk.seat.book.snapshot, model, 3)
                more = done.more
                assert desk.near("note number3 of the desk", index=index) is not None
                if done.busy:
                    again.wait(0.001)
        except BaseException as fault:
            faults.append(fault)
            raise

    threads = [threading.Thread(target=work, args=each) for each in zip(indexes, models, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    asked = [text for model in models for text in model.asked]
    assert sorted(asked) == sorted(f"note number{number} of the desk" for number in range(120))
    sequences = [row[0] for row in desk.held()]
    assert sequences == sorted(set(sequences))
    assert len(sequences) == 120


def test_very_long_texts_are_embedded_few_at_a_time(desk: Desk) -> None:
    """So that a batch, during which the lock is held, stays short."""
    for number in range(6):
        desk.seat.do(Remember(text=" // ".join(f"text {number} part {part}" for part in range(100))))
    step = desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 32)
    assert step.more
    assert 1 <= step.versions <= 2
    assert desk.reach() == step.watermark
    assert step.versions + desk.embed() == 6
    assert len(desk.held()) == 6 * MOST_PIECES


def test_one_text_with_more_pieces_than_a_batch_is_embedded_all_the_same(desk: Desk) -> None:
    desk.seat.do(Remember(text=" // ".join(f"part {part}" for part in range(500))))
    desk.seat.do(Remember(text="short"))
    assert desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 32).versions == 1
    assert desk.embed() == 1
    assert len(desk.held()) == MOST_PIECES + 1, "what lies beyond is found by its words"
