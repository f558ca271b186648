"""Under any conditions and at any cut the vectors hold exactly what the ledger's own tables give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import Book, Caller
from store.commands import (
    CloseThesis,
    Decide,
    IntendOrder,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.lifecycle import ALL_STATUSES, KINDS
from store.rows import Filter
from store.symbols import Alias, Symbols
from store.vectors.base import Wanted
from store.vectors.index import VectorIndex

BEGINS: Final = 1_772_461_800_000_000
STEP: Final = 1_000_000
ENTRIES: Final = 120
AGENTS: Final = ("ann", "bob")
NAMES: Final = ("AAPL", "FB", "META", "BRK.B")
TAGS: Final = ("earnings", "macro", "swiss")
REASON: Final = "The order follows the thesis, is sized at two percent of the book, and ends below 180. " * 4
RENAMED: Final = Symbols((Alias("FB", "META", until_us=BEGINS + 60 * STEP),))


class Ticking:
    """A clock that moves on by a second at each look."""

    def __init__(self) -> None:
        self.us = BEGINS

    def now(self) -> int:
        self.us += STEP
        return self.us


def _fill(book: Book, clock: Ticking) -> None:
    """A year of a small desk: memories of every kind, most of which change later."""
    chosen = random.Random(5)
    theses: list[str] = []
    notes: list[tuple[str, str]] = []
    for number in range(ENTRIES):
        agent = chosen.choice(AGENTS)
        caller = Caller(agent, "solo", f"ses-{agent}", "tool")
        labels = {
            "symbol": chosen.choice((*NAMES, None)),
            "tags": tuple(tag for tag in TAGS if chosen.random() < 0.4),
        }
        text = f"text {number} on the {chosen.choice(['long', 'short'])} side // and a second part"
        kind = chosen.randrange(9)
        if kind == 0:
            theses.append(book.execute(caller, OpenThesis(text=text, **labels)).id)
        elif kind == 1 and theses:
            book.execute(caller, UpdateThesis(thesis_id=chosen.choice(theses), text=text))
        elif kind == 2 and theses:
            ended = theses.pop(chosen.randrange(len(theses)))
            book.execute(caller, CloseThesis(thesis_id=ended, result="loss"))
        elif kind == 3:
            book.execute(caller, Decide(text=text, action="buy", evidence={"close": "1"}, **labels))
        elif kind == 4:
            book.execute(caller, NoteRisk(text=text, **labels))
        elif kind == 5:
            book.execute(caller, chosen.choice([Propose, ProposeLesson])(text=text, **labels))
        elif kind == 6 and notes:
            owner, note = notes.pop()
            who = Caller(owner, "solo", f"ses-{owner}", "tool")
            book.execute(who, ResolveMemory(memory_id=note, status="retired"))
        elif kind == 7:
            order = IntendOrder(operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="1")
            book.execute(caller, order)
        else:
            ends = chosen.choice([None, clock.us + chosen.randrange(2, 200) * STEP])
            note = book.execute(caller, Remember(text=text, expires_at=ends, **labels)).id
            if ends is None:
                notes.append((agent, note))


@pytest.fixture(scope="module", name="both")
def _both(
    tmp_path_factory: pytest.TempPathFactory, make_embedder: Any
) -> Iterator[tuple[Book, VectorIndex, Any]]:
    root: Path = tmp_path_factory.mktemp("filters")
    clock = Ticking()
    book = Book.open(root, "default", durability="normal", clock=clock)
    _fill(book, clock)
    embedder = make_embedder()
    with book.snapshot() as snapshot:
        entry = snapshot.entry(1)
    assert entry is not None
    index = VectorIndex(root, root / "default" / "memory.sqlite", "any", embedder.model)
    while index.catch_up(book.snapshot, embedder, 11).more:
        pass
    yield book, index, embedder
    book.close()


INSTANTS: Final = st.none() | st.integers(0, 3 * ENTRIES).map(lambda step: BEGINS + step * STEP)
FILTERS: Final = st.builds(
    Filter,
    kind=st.none() | st.sampled_from(sorted(set(KINDS) - {"order_action"})),
    symbol=st.none() | st.sampled_from((*NAMES, "NONE")),
    status=st.none() | st.sampled_from(sorted(ALL_STATUSES)),
    tags=st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    agent=st.none() | st.sampled_from((*AGENTS, "nobody")),
    since=INSTANTS,
    until=INSTANTS,
)


@given(
    conditions=FILTERS | st.just(Filter()),
    cut=st.integers(1, 3 * ENTRIES),
    at=INSTANTS.map(lambda instant: instant or BEGINS),
)
def test_they_are_those_of_the_ledger(
    conditions: Filter, cut: int, at: int, both: tuple[Book, VectorIndex, Any]
) -> None:
    book, index, embedder = both
    with book.snapshot() as snapshot:
        cut = min(cut, book.head().sequence)
        lined = Filter(**{
            **{name: getattr(conditions, name) for name in Filter.__slots__},
            "lines": RENAMED.lines(conditions.symbol, at),
        })  # fmt: skip
        expected = {version.sequence_from for version in snapshot.versions(lined, cut, at, limit=10_000)}
        scan = index.scan(snapshot)
        assert scan is not None
        found = scan.nearest(embedder.vector("long"), Wanted(lined, cut, at, cut), 10_000)
    assert [near.sequence for near in found if near.sequence not in expected] == []
    assert {near.sequence for near in found} == expected


def test_the_ledger_holds_something_for_every_condition(both: tuple[Book, VectorIndex, Any]) -> None:
    """So that the comparison means something."""
    book, _, _ = both
    at, cut = BEGINS, book.head().sequence
    with book.snapshot() as snapshot:
        counts = [
            *(snapshot.count_versions(Filter(symbol=name), cut, at) for name in NAMES),
            *(snapshot.count_versions(Filter(agent=name), cut, at) for name in AGENTS),
            *(snapshot.count_versions(Filter(tags=(tag,)), cut, at) for tag in TAGS),
            *(
                snapshot.count_versions(Filter(status=each), cut, at)
                for each in ("retired", "closed", "open")
            ),
        ]
    assert min(counts) > 2
