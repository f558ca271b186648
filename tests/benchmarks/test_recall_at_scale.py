"""Search by meaning and words on large ledgers, recorded as for an agent, beside an exact scan of the same vectors.

The vectors are made up, since embedding a million texts takes hours: each word has a direction of its own, and a text
is the sum of its words. A query is embedded by the bundled model too, so that its time is in every figure.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from store import Book, Caller, Filter, SearchRequest
from store.embedding.bundled import Bundled
from store.embedding.loading import Encoder
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import Measured, Print, Writing

pytestmark = pytest.mark.bench

ROUNDS = 120
DIMENSIONS = 384
CALLER = Caller(agent="bench", profile="solo", session_id="bench", tool="search_memory")
SIZES = (10_000, 100_000)
LARGEST = int(os.environ.get("BENCH_RECALL_ENTRIES", "0"))
"""Another size, which takes its time to fill: 1000000."""

OPENED = """
from pathlib import Path
from store import Book
book = Book.open(Path(sys.argv[1]), "default")
book.search(__import__("store").Caller(agent="bench", profile="solo", session_id="s", tool="search_memory"),
            __import__("store").SearchRequest(query="w20 w3000"))
"""


class MadeUp:
    """An embedder of made-up vectors, which also runs the bundled model where it is asked for a single text."""

    model = "made-up"

    def __init__(self, real: Bundled | None = None) -> None:
        self._real = real
        self._words: dict[str, Any] = {}

    def pieces(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> Any:
        if self._real is not None and len(texts) == 1:
            self._real.embed(texts)
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Any:
        total = np.sum([self._word(word) for word in text.split()[:60]], axis=0)
        return (total / np.linalg.norm(total)).astype(np.float32)

    def _word(self, word: str) -> Any:
        if word not in self._words:
            made = np.random.default_rng(zlib.crc32(word.encode()))
            self._words[word] = made.standard_normal(DIMENSIONS).astype(np.float32)
        return self._words[word]


def with_vectors(root: Path) -> Book:
    """The ledger with all its vectors, its queries embedded by the real model too."""
    filling = Encoder(MadeUp.model, MadeUp)
    book = Book.open(root, "default", encoder=filling)
    assert filling.ready(60.0) is not None
    while (step := book.embed_next(4_096)) is not None and step.more:
        pass
    book.close()
    asking = Encoder(MadeUp.model, lambda: MadeUp(Bundled()))
    assert asking.ready(60.0) is not None
    return Book.open(root, "default", encoder=asking)


def exact_scan(book: Book) -> Callable[[Any], Any]:
    """A scan of all vectors in float32, one product, without any filter, time or record."""
    with book.snapshot() as snapshot:
        file = book._vectors._index.file(snapshot)
    rows = file.mark.rows
    whole = file.codes[:rows].astype(np.float32)
    whole /= file.column("length", rows)[:, None]

    def scan(query: Any) -> Any:
        near = whole @ query
        best = np.argpartition(-near, 50)[:50]
        return best[np.argsort(-near[best])]

    return scan


def test_recall_at_scale(
    show: Print,
    percentile: Callable[[Sequence[float], float], float],
    copy_of: Callable[[int], Path],
    larger: Callable[[int], Path],
    measured: Measured,
    writing: Writing,
) -> None:
    rows, memory = [], []
    for size in (*SIZES, LARGEST):
        if not size:
            continue
        root = copy_of(size) if size in SIZES else larger(size)
        book = with_vectors(root)
        middle = _middle(book)
        asks: dict[str, Callable[[], SearchRequest]] = {
            "no filter": lambda: SearchRequest(query=writing.query()),
            "symbol": lambda: SearchRequest(
                query=writing.query(), conditions=Filter(symbol=writing.symbol())
            ),
            "symbol and kind": lambda: SearchRequest(
                query=writing.query(), conditions=Filter(symbol=writing.symbol(), kind="decision")
            ),
            "as of the middle": lambda middle=middle: SearchRequest(query=writing.query(), as_of=middle),
        }
        scan, made = exact_scan(book), MadeUp()
        times: dict[str, list[float]] = {name: [] for name in (*asks, "exact")}
        for _ in range(ROUNDS):
            for name, ask in asks.items():
                request = ask()
                times[name].append(_timed(partial(book.search, CALLER, request)))
            query = made.embed([writing.query()])[0]
            times["exact"].append(_timed(partial(scan, query)))
        beside = percentile(times["exact"], 0.5)
        for name, taken in times.items():
            p50, p95 = percentile(taken, 0.5), percentile(taken, 0.95)
            told = "exact float32 scan alone" if name == "exact" else f"search, {name}"
            rows.append((f"{size:,}: {told}", f"{p50:.2f}", f"{p95:.2f}", f"{p50 / beside:.2f}"))
        book.close()
        seconds, most = measured(OPENED, root)
        memory.append((f"{size:,}", f"{seconds * 1e3:.0f}", f"{most:.0f}"))
    show(f"Search by meaning and words, recorded, {ROUNDS} each, ms", ("", "p50", "p95", "of exact"), rows)
    show("A process that opens the ledger and searches it by words", ("memories", "ms", "MiB"), memory)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _middle(book: Book) -> int:
    head = book.head().sequence
    return book.log(EntryFilter(after=head // 2, limit=1))[0].effective_at
