"""What one write costs, counted: statements, and pages in the log. A bound that is passed is a write that grew."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.commands import Remember
from store.engines.sqlite import checkpoint

CALLER = Caller("trader", "trader", "ses_1", "remember")
FRAME = 24 + 4_096
GUARD = 30.0


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Book]:
    monkeypatch.setattr(checkpoint, "PAGES", 10**9)  # never moved, the log holds every page that was written
    monkeypatch.setattr(checkpoint, "LONG_PAGES", 10**9)
    book = Book.open(tmp_path, "default", durability="normal")
    write(book, 200)
    yield book
    book.close()


def write(book: Book, count: int) -> None:
    for number in range(count):
        text = " ".join(f"word{number * place % 997}" for place in range(1, 31))
        book.execute(CALLER, Remember(text=text, symbol=f"SYM{number % 60}", tags=("desk",)))


@pytest.fixture
def statements(book: Book) -> Counter[str]:
    """The statements of the write connection from now on, by their first words."""
    found: Counter[str] = Counter()

    def note(_: apsw.Cursor, sql: str, bindings: Any) -> bool:
        found[sql] += 1
        return True

    book._engine._write_connection.exec_trace = note  # type: ignore[attr-defined]
    return found


def pages(book: Book) -> int:
    return int(book.status().wal_bytes // FRAME)


def test_a_write_alone_takes_few_statements_and_pages(book: Book, statements: Counter[str]) -> None:
    before = pages(book)
    write(book, 50)
    assert statements.total() <= 12 * 50, statements
    assert not [sql for sql in statements if "SAVEPOINT" in sql or "user_version" in sql]
    assert pages(book) - before <= 20 * 50


def test_writes_that_wait_together_share_what_a_transaction_costs(
    book: Book, statements: Counter[str]
) -> None:
    reached, gate = threading.Event(), threading.Event()
    engine: Any = book._engine
    blocked = _started(lambda: engine.write(lambda _: (reached.set(), gate.wait(GUARD)), timeout=GUARD))
    assert reached.wait(GUARD)
    writer = engine._writer
    together = [_started(lambda: write(book, 1)) for _ in range(20)]
    with writer._arrived:
        assert writer._arrived.wait_for(lambda: len(writer._queue) == 20, GUARD)
    before = pages(book)
    statements.clear()
    gate.set()
    for thread in (blocked, *together):
        thread.join(GUARD)
    assert statements["COMMIT"] == 2, "that of the one they waited for, and one for all of them"
    assert statements.total() <= 10 * 20 + 4, statements
    assert pages(book) - before <= 2 * 20


def _started(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_write_costs_the_same_however_much_is_stored_p232(book: Book, statements: Counter[str]) -> None:
    """Case P232: each update rewrites the whole log."""
    spent = []
    for _ in range(2):
        statements.clear()
        before = pages(book)
        write(book, 50)
        spent.append((statements.total(), pages(book) - before))
        write(book, 1_500)
    (few, small), (many, large) = spent
    assert many <= few + 10
    assert large <= 1.5 * small
