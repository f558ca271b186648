"""Search, state and get on ledgers of two sizes, recorded as they are for an agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store import Book, Caller, Filter, SearchRequest
from store.clock import SECOND

if TYPE_CHECKING:
    from conftest import Print, Writing

pytestmark = pytest.mark.bench

ROUNDS = 300
CALLER = Caller(agent="bench", profile="solo", session_id="bench", tool="search_memory")
SIZES = (10_000, 100_000)


def test_reads(
    show: Print,
    percentile: Callable[[Sequence[float], float], float],
    copy_of: Callable[[int], Path],
    writing: Writing,
) -> None:
    books = {size: Book.open(copy_of(size), "default") for size in SIZES}
    instants = {size: _middle(book) for size, book in books.items()}
    reads: dict[str, Callable[[int, int], object]] = {
        "search, three words": lambda size, n: books[size].search(
            CALLER, SearchRequest(query=writing.query())
        ),
        "search, three words of a symbol": lambda size, n: books[size].search(
            CALLER, SearchRequest(query=writing.query(), conditions=Filter(symbol=writing.symbol()))
        ),
        "search, three words, as of the middle": lambda size, n: books[size].search(
            CALLER, SearchRequest(query=writing.query(), as_of=instants[size])
        ),
        "search, newest": lambda size, n: books[size].search(CALLER, SearchRequest()),
        "search, newest of a symbol": lambda size, n: books[size].search(
            CALLER, SearchRequest(conditions=Filter(symbol=writing.symbol()))
        ),
        "state, in a new model call": lambda size, n: books[size].state(
            replace(CALLER, model_call_id=f"call-{n}")
        ),
        "state, shown before": lambda size, n: books[size].state(CALLER),
    }
    rows = []
    for name, read in reads.items():
        times: dict[int, list[float]] = {size: [] for size in SIZES}
        for number in range(ROUNDS):
            for size in SIZES:
                began = time.perf_counter()
                read(size, number)
                times[size].append(time.perf_counter() - began)
        small, large = SIZES
        rows.append(
            (
                name,
                *(f"{percentile(times[size], share):.2f}" for size in SIZES for share in (0.5, 0.95)),
                f"{percentile(times[large], 0.5) / percentile(times[small], 0.5):.1f}",
            )
        )
    for book in books.values():
        book.close()
    show(
        f"Reads that are recorded, {ROUNDS} each, milliseconds",
        ("", "10k p50", "p95", "100k p50", "p95", "times"),
        rows,
    )


def _middle(book: Book) -> int:
    """An instant half way through the ledger."""
    from store.rows import EntryFilter

    head = book.head().sequence
    entry = book.log(EntryFilter(after=head // 2, limit=1))[0]
    return entry.effective_at + SECOND // SECOND
