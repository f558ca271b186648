"""Vectors of a model that has another name, or whose vectors have another length, are never compared with the old."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store.commands import Remember
from store.embedding.loading import Encoder
from store.errors import EmbeddingFailed


def write(seat: Any, count: int, agent: str = "ann") -> list[str]:
    said = (Remember(text=f"note number{number} of the desk") for number in range(count))
    return [seat.do(command, agent).id for command in said]


@pytest.mark.parametrize("writes_more", [True, False])
@pytest.mark.parametrize("searches_first", [True, False])
def test_a_model_whose_vectors_became_shorter_begins_anew(
    writes_more: bool, searches_first: bool, desk: Any, desk_of: Any, make_embedder: Any
) -> None:
    """P219: also where nothing has been written since, once a search has met the old vectors."""
    write(desk.seat, 5)
    desk.embed()
    later = desk_of(desk.seat, make_embedder(40))
    if writes_more:
        write(later.seat, 2, "bob")
    if searches_first:
        head = later.seat.book.head().sequence
        assert later.near("note number3 of the desk") == []
        assert later.reach() < 3
        with later.seat.book.snapshot() as snapshot:
            assert later.index.scan(snapshot) is None
            assert later.index.backlog(snapshot, head) == 5 + 2 * writes_more
    later.embed()
    if not (writes_more or searches_first):
        assert later.embedder.asked == []
        return
    assert len(later.held()) == 5 + 2 * writes_more
    assert len(set(later.embedder.asked)) == 5
    assert later.near("note number3 of the desk")[0].cosine > 0.999
    assert later.near("note number3 of the desk", index=later.another())[0].cosine > 0.999
    assert later.reach() == later.seat.book.head().sequence


def test_told_how_long_the_vectors_are_now_it_begins_anew_before_any_search(
    desk: Any, desk_of: Any, make_embedder: Any
) -> None:
    """P219: once; what a batch finds itself is newer, so that it comes to an end whichever way the model changes."""
    write(desk.seat, 5)
    desk.embed()
    later = desk_of(desk.seat, make_embedder(40))
    snapshot = later.seat.book.snapshot
    assert later.index.catch_up(snapshot, later.embedder, 9, 40).versions == 5
    assert later.near("note number3 of the desk")[0].cosine > 0.999
    assert later.index.catch_up(snapshot, later.embedder, 9, 40).versions == 0
    later.embedder = make_embedder(24)
    write(desk.seat, 3, "bob")
    steps = [later.index.catch_up(snapshot, later.embedder, 9, 40).versions for _ in range(4)]
    assert steps == [0, 8, 0, 0]
    assert later.near("note number3 of the desk")[0].cosine > 0.999


def test_a_similarity_to_vectors_of_another_length_is_not_told(
    desk: Any, make_embedder: Any, wanting: Any
) -> None:
    """P219."""
    write(desk.seat, 3)
    desk.embed()
    with desk.seat.book.snapshot() as snapshot:
        scan = desk.index.scan(snapshot)
        sequences = [row[0] for row in desk.held()]
        assert len(scan.similarities(desk.embedder.vector("note"), wanting(), sequences)) == 3
        assert scan.similarities(make_embedder(65).vector("note"), wanting(), sequences) == {}
        assert desk.index.scan(snapshot) is None


def test_two_models_have_a_file_each_and_neither_is_compared_with_the_other(
    desk: Any, desk_of: Any, make_embedder: Any
) -> None:
    """P219: the name of the model is a part of what a file is."""
    write(desk.seat, 4)
    desk.embed()
    other = desk_of(desk.seat, make_embedder(64, "Fake!"))
    assert other.near("note number1 of the desk") == []
    assert other.embed() == 4
    names = sorted(path.name for path in desk.folder.glob("*.vectors"))
    assert len(names) == 2
    assert len(desk.held()) == len(other.held()) == 4
    renamed = desk.folder / names[0]
    renamed.replace(desk.folder / names[1])
    assert [len(each.held()) for each in (desk, other)] in ([0, 4], [4, 0], [0, 0])


class Changing:
    """A model behind an address: which one it is, and whether it answers, may change between two calls."""

    def __init__(self, make_embedder: Callable[..., Any]) -> None:
        self._make = make_embedder
        self.dimensions = 64
        self.fails = False
        self.model = "fake"

    def pieces(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Any) -> Any:
        if self.fails:
            raise EmbeddingFailed("The embedding endpoint answered vectors of another size.")
        return self._make(self.dimensions).embed(texts)


def test_a_fallback_model_with_another_dimension_ends_neither_writing_nor_searching(
    open_seat: Any, make_embedder: Any
) -> None:
    """P219: words find what the vectors cannot, and the vectors come back."""
    model = Changing(make_embedder)
    encoder = Encoder("fake", lambda: model)
    encoder.ready(60)
    seat = open_seat(encoder=encoder)
    ids = write(seat, 6)
    seat.book.embed_next()
    assert seat.find("number2")["hits"][0]["id"] == ids[2]
    model.dimensions = 24
    ids += write(seat, 3, "bob")
    for query in ("number1 desk", "number1 desk again"):
        assert seat.ids(query)[:1] == [ids[1]] or ids[1] in seat.ids(query)
    seat.do(Remember(text="written all the same"))
    while (done := seat.book.embed_next()) is not None and done.more:
        pass
    assert done is not None
    assert seat.book.embedding_backlog() == 0
    assert seat.ids("written all the same")
    (path,) = (seat.path.parent / "vectors").glob("*.vectors")
    assert path.stat().st_size > 0
    model.fails = True
    seat.do(Remember(text="and this too"))
    assert seat.book.embed_next() is None
    assert encoder.state == "resting"
    assert seat.ids("and this too")
