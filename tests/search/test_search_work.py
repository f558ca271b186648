"""What one search costs, counted: statements, steps of SQLite's machine, and bytes recorded, whatever is stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Caller, Filter, SearchRequest
from store.commands import Remember
from store.embedding.loading import Encoder
from store.search import lexical

if TYPE_CHECKING:
    from conftest import CountWork

CALLER = Caller("trader", "trader", "ses-1", "search_memory")
SIZES = (400, 4_000)
MOST_STATEMENTS = 110
ROUNDS = 5


def fill(book: Book, count: int) -> None:
    """Notes with one word that all of them hold, one that a tenth hold, and some that few do."""
    for number in range(count):
        words = ["common", f"tenth{number % 10}", f"few{number % 100}", f"own{number}"]
        book.execute(CALLER, Remember(text=" ".join(words), symbol=f"SYM{number % 40}"))


def work_of(
    counted: CountWork, root: Path, count: int, encoder: Encoder, request: SearchRequest
) -> tuple[float, float, int]:
    """Statements and steps of one search, and the bytes of its entry, in a ledger of so many memories."""
    with counted() as work:
        book = Book.open(root, "default", durability="normal", encoder=encoder)
        try:
            fill(book, count)
            while (step := book.embed_next(1_000)) is not None and step.more:
                pass
            book.search(CALLER, request)
            work.statements = work.steps = 0
            for _ in range(ROUNDS):
                book.search(CALLER, request)
            found = work.statements / ROUNDS, work.steps / ROUNDS
            return *found, len(_last(book).content.encode())
        finally:
            book.close()


def _last(book: Book) -> Any:
    with book.snapshot() as snapshot:
        head = snapshot.head()
        assert head is not None
        return snapshot.entry(head.sequence)


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_",
    [
        SearchRequest(query="own17 few17"),
        SearchRequest(query="common few17"),
        SearchRequest(query="few17", conditions=Filter(symbol="SYM17")),
    ],
    ids=["rare words", "a common word", "a symbol"],
)
def test_a_search_does_not_grow_with_what_is_stored(
    tmp_path: Path,
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    counted: CountWork,
    request_: SearchRequest,
) -> None:
    monkeypatch.setattr(lexical, "POSTINGS_BUDGET", 100)
    small, large = (work_of(counted, tmp_path / str(size), size, encoder, request_) for size in SIZES)
    assert large[0] <= MOST_STATEMENTS
    assert large[0] <= 2 * small[0]
    assert large[1] <= 3 * small[1] + 2_000, (small, large)
    assert large[2] <= 16_000


def test_a_very_common_word_is_not_read_to_its_end(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "POSTINGS_BUDGET", 50)
    read: list[int] = []
    match = lexical.View.match

    def counting(self: Any, *given: Any, **more: Any) -> Any:
        found = match(self, *given, **more)
        read.append(len(found))
        return found

    monkeypatch.setattr(lexical.View, "match", counting)
    book = Book.open(tmp_path, "default", durability="normal", encoder=encoder)
    fill(book, 600)
    book.search(CALLER, SearchRequest(query="common tenth3 few23 own123"))
    book.close()
    assert sum(read) <= 50 + 60
