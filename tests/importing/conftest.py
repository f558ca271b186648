"""A memory that Lumibot's own store wrote (make_lumibot_memory.py), and what an import of it left."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book
from store.entry import Entry
from store.importers.lumibot import import_lumibot
from store.rows import EntryFilter

STRATEGY = "Momentum Bot"
GROWTH = """
INSERT INTO memory_events SELECT 'event_grown_1', (SELECT max(sequence) + 1 FROM memory_events), timestamp,
    '2026-02-01T00:00:00Z', strategy, event_type, subject_type, 'memory_grown', NULL, agent_name, model_call_id,
    NULL, 'Grown: a new note.', tags_json, metadata_json, payload_json, payload_hash, 1
    FROM memory_events WHERE event_type = 'memory.created' AND sequence = 1;
INSERT INTO memory_events SELECT 'event_grown_2', (SELECT max(sequence) + 1 FROM memory_events), timestamp,
    '2026-02-01T00:00:02Z', strategy, event_type, subject_type, subject_id, symbol, agent_name, model_call_id,
    'retrieval_grown', 'Grown: held on.', tags_json, metadata_json, payload_json, payload_hash, 1
    FROM memory_events WHERE subject_id = 'thesis_nobody_opened';
INSERT INTO memory_retrievals SELECT 'retrieval_grown', timestamp, '2026-02-01T00:00:01Z', strategy, 'researcher',
    NULL, 'grown', NULL, NULL, NULL, 10, '["memory_grown"]', '["event_grown_1"]', 'memory: Grown', 1
    FROM memory_retrievals LIMIT 1;
"""


class Ledger:
    """The entries of an imported ledger, and an open book of it."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.entries: list[Entry] = book.log(EntryFilter(limit=1_000_000))

    def contents(self, event_type: str) -> list[dict[str, Any]]:
        return [json.loads(entry.content) for entry in self.entries if entry.event_type == event_type]

    def entry(self, text: str) -> Entry:
        """The one entry with a text."""
        (found,) = [e for e in self.entries if json.loads(e.content).get("text", "").startswith(text)]
        return found

    def about(self, text: str) -> list[dict[str, Any]]:
        """The contents of all entries about the memory with a text, in order."""
        subject = self.entry(text).subject_id
        return [json.loads(entry.content) for entry in self.entries if entry.subject_id == subject]


@pytest.fixture
def lumibot_memory(tmp_path: Path, fixtures: Path) -> Path:
    """The committed memory, in a folder of its own."""
    place = tmp_path / "lumibot" / "memory.sqlite"
    place.parent.mkdir()
    place.write_bytes(lzma.decompress((fixtures / "lumibot_memory.sqlite.xz").read_bytes()))
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def bring(lumibot_memory: Path, root: Path) -> Callable[..., Any]:
    """Import the memory."""

    def run(**options: Any) -> Any:
        return import_lumibot(lumibot_memory, root, durability="normal", **options)

    return run


@pytest.fixture
def read(root: Path) -> Any:
    """Open the imported ledger; all are closed when the test ends."""
    books: list[Book] = []

    def open_book(strategy: str = STRATEGY) -> Ledger:
        books.append(Book.open(root, strategy, create=False))
        return Ledger(books[-1])

    yield open_book
    for book in books:
        book.close()


@pytest.fixture
def edit(lumibot_memory: Path) -> Callable[[str], None]:
    """Change the source by SQL, as somebody else's program would."""

    def run(sql: str) -> None:
        connection = apsw.Connection(str(lumibot_memory))
        connection.execute(sql)
        connection.close()

    return run


@pytest.fixture
def grow(edit: Callable[[str], None]) -> Callable[[], None]:
    """Add three rows to the source: a note, a search that found it, and an update that names the search."""
    return lambda: edit(GROWTH)
