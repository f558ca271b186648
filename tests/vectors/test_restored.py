"""A ledger that was put back to an earlier state, or replaced: what its vectors knew of the other future is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.commands import OpenThesis, Remember, UpdateThesis


class Restored:
    """A desk whose ledger can be put back to the state it had when it was kept."""

    def __init__(self, open_seat: Callable[..., Any], desk_of: Callable[..., Any], embedder: Any) -> None:
        self._open_seat = open_seat
        self._desk_of = desk_of
        self._embedder = embedder
        self.desk = desk_of(open_seat(), embedder)
        self._kept: Path = self.desk.root / "kept"

    def _files(self, folder: Path) -> list[Path]:
        return sorted(folder.glob("memory.sqlite*"))

    def close(self) -> None:
        self.desk.seat.book.close()

    def again(self) -> None:
        """Open it as a process does that has just begun."""
        self.close()
        self.desk = self._desk_of(self._open_seat(), self._embedder)

    def keep(self) -> None:
        self.close()
        self._kept.mkdir()
        for path in self._files(self.desk.seat.path.parent):
            shutil.copy(path, self._kept)
        self.again()

    def put_back(self) -> None:
        self.close()
        for path in self._files(self.desk.seat.path.parent):
            path.unlink()
        for path in self._files(self._kept):
            shutil.copy(path, self.desk.seat.path.parent)
        self.again()


@pytest.fixture
def restored(open_seat: Any, desk_of: Any, embedder: Any) -> Restored:
    return Restored(open_seat, desk_of, embedder)


def write(desk: Any, of: str, count: int) -> None:
    for number in range(count):
        desk.seat.do(Remember(text=f"{of} number{number}"))


def assert_as_if_new(desk: Any, desk_of: Any, make_embedder: Any) -> None:
    """The vectors are those that the ledger would get from nothing."""
    held = desk.held()
    assert desk.reach(desk.another()) == desk.seat.book.head().sequence
    desk.index.forget()
    fresh = desk_of(desk.seat, make_embedder())
    fresh.embed()
    assert fresh.held() == held


@pytest.mark.parametrize("texts_before", [0, 3])
@pytest.mark.parametrize("texts_lost", [0, 1, 5])
@pytest.mark.parametrize("texts_after", [0, 1, 3, 9])
@pytest.mark.parametrize("looks_before_writing", [True, False])
def test_put_back_and_written_on_the_vectors_are_those_of_what_stands(
    texts_before: int,
    texts_lost: int,
    texts_after: int,
    looks_before_writing: bool,
    restored: Restored,
    desk_of: Any,
    make_embedder: Any,
) -> None:
    """Also where the other future ended in entries that are no texts, and where more has been written since."""
    write(restored.desk, "before", texts_before)
    restored.desk.embed()
    restored.keep()
    write(restored.desk, "lost", texts_lost)
    for _ in range(4):
        restored.desk.seat.state(restored.desk.seat.caller(tool=None))
    restored.desk.embed()
    restored.put_back()
    if looks_before_writing:
        restored.desk.embed()
        restored.again()
    write(restored.desk, "after", texts_after)
    restored.again()
    desk = restored.desk
    desk.embed()
    assert len(desk.held()) == texts_before + texts_after
    assert_as_if_new(desk, desk_of, make_embedder)
    if texts_after:
        assert desk.near("after number0")[0].cosine > 0.99


def test_vectors_whose_last_text_stands_but_whose_end_is_of_another_future_are_made_anew(
    restored: Restored, desk_of: Any, make_embedder: Any
) -> None:
    """They reach over texts of this future, which would never be embedded."""
    write(restored.desk, "before", 2)
    restored.keep()
    desk = restored.desk
    for _ in range(6):
        desk.seat.find("nothing")
    desk.embed()
    restored.put_back()
    write(restored.desk, "after", 12)
    desk = restored.desk
    assert desk.near("after number3", index=desk.another()) == []
    desk.embed()
    assert len(desk.held()) == 14
    assert_as_if_new(desk, desk_of, make_embedder)


def test_what_only_the_lost_future_ended_stands_again(
    restored: Restored, desk_of: Any, make_embedder: Any
) -> None:
    thesis = restored.desk.seat.do(OpenThesis(text="long the exporters"))
    restored.desk.embed()
    restored.keep()
    restored.desk.seat.do(UpdateThesis(thesis_id=thesis.id, text="short the exporters"))
    restored.desk.embed()
    restored.put_back()
    write(restored.desk, "after", 3)
    restored.desk.embed()
    assert restored.desk.near("long the exporters")[0].cosine > 0.99
    assert_as_if_new(restored.desk, desk_of, make_embedder)


def test_the_vectors_of_another_ledger_are_made_anew(
    restored: Restored, desk_of: Any, make_embedder: Any
) -> None:
    """One that stood in this one's place, with just as many entries."""
    write(restored.desk, "other", 6)
    restored.desk.embed()
    restored.close()
    for path in restored.desk.seat.path.parent.glob("memory.sqlite*"):
        path.unlink()
    restored.again()
    write(restored.desk, "own", 6)
    desk = restored.desk
    assert desk.near("other number1") == []
    assert desk.embed() == 6
    assert desk.near("own number1")[0].cosine > 0.99
    assert_as_if_new(desk, desk_of, make_embedder)


def test_a_reading_that_began_before_the_last_texts_still_has_the_vectors(desk: Any) -> None:
    """Another process may embed what a snapshot does not hold; that is no other future."""
    write(desk, "first", 3)
    desk.embed()
    with desk.seat.book.snapshot() as snapshot:
        cut = desk.head(snapshot)
        write(desk, "later", 3)
        desk.embed(index=desk.another())
        index = desk.another()
        assert index.reach(snapshot, cut) == cut
        scan = index.scan(snapshot)
        assert scan is not None
        found = scan.nearest(desk.embedder.vector("first number1"), _until(cut), 9)
        assert len(found) == 3
    assert len(desk.near("first number1", index=index)) == 6


def _until(cut: int) -> Any:
    from store.rows import Filter
    from store.vectors.base import Wanted

    return Wanted(Filter(), cut, 0, cut)
