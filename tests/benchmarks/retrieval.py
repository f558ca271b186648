"""Labelled sets for search quality, the rankings that are held against each other, and how they are scored.

`relevant` maps the ids of a query's answers to grades: 3 answers it, 1 touches it. Dialogues have grade 1 alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store import Book, Caller, Filter, SearchRequest
from store.clock import parse_instant
from store.commands import Decide, NoteRisk, OpenThesis, Propose, ProposeLesson, Remember
from store.embedding.bundled import MODEL, Bundled
from store.embedding.loading import Encoder
from store.search.evidence import Evidence, gather
from store.search.meaning import Meaning
from store.view import View

HERE = Path(__file__).parent
NOTES = HERE / "trading_notes"
DIALOGUE = HERE.parents[2] / "shared" / "eval" / "dialogue.jsonl"
RUN = "labelled"
RRF = 60
AT = (5, 10)


@dataclass(frozen=True)
class Query:
    """One labelled query."""

    text: str
    relevant: Mapping[str, int]
    category: str = ""
    held_out: bool = False
    symbol: str | None = None


@dataclass(frozen=True)
class Group:
    """Memories that share a ledger, and the queries about them."""

    memories: Sequence[dict[str, Any]]
    queries: Sequence[Query]


@dataclass
class Scores:
    """Averages over queries that have answers: recall at 5 and 10, nDCG at 10."""

    recall: dict[int, float] = field(default_factory=lambda: dict.fromkeys(AT, 0.0))
    ndcg: float = 0.0
    count: int = 0

    def add(self, ranked: Sequence[str], relevant: Mapping[str, int]) -> None:
        """Count one query's ranking."""
        self.count += 1
        for at in AT:
            self.recall[at] += sum(1 for name in ranked[:at] if name in relevant) / len(relevant)
        gained = sum(_gain(relevant.get(name, 0), at) for at, name in enumerate(ranked[:10]))
        ideal = sum(_gain(grade, at) for at, grade in enumerate(sorted(relevant.values(), reverse=True)[:10]))
        self.ndcg += gained / ideal

    def told(self) -> tuple[str, ...]:
        """The averages as text."""
        count = max(1, self.count)
        return (*(f"{self.recall[at] / count:.3f}" for at in AT), f"{self.ndcg / count:.3f}")


def _gain(grade: int, at: int) -> float:
    return float(2**grade - 1) / math.log2(at + 2)


def trading_notes() -> list[Group]:
    """The notes of this repository."""
    queries = [
        Query(row["query"], row["relevant"], row["category"], row["held_out"], row["symbol_filter"])
        for row in _rows(NOTES / "queries.jsonl")
    ]
    return [Group(list(_rows(NOTES / "memories.jsonl")), queries)]


def dialogues() -> list[Group]:
    """The dialogue set, which is no part of the product; empty where it is absent."""
    if not DIALOGUE.exists():
        return []
    return [
        Group(
            [
                {"id": one["id"], "time": one["time"], "text": f"{one['speaker']}: {one['text']}"}
                for one in row["memories"]
            ],
            [Query(one["query"], dict.fromkeys(one["relevant"], 1)) for one in row["queries"]],
        )
        for row in _rows(DIALOGUE)
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Shelf:
    """One group's memories in a run of their own, each at its own time, with vectors."""

    def __init__(self, root: Path, group: Group, encoder: Encoder) -> None:
        times = [parse_instant(row["time"], field="time") for row in group.memories]
        self.now = max(times)
        self.book = Book.open(root, "labelled", RUN, begins=min(times), durability="normal", encoder=encoder)
        self.names: dict[str, str] = {}
        self.texts = {row["id"]: row["text"] for row in group.memories}
        at = min(times)
        for row, time in zip(group.memories, times, strict=True):
            at = max(at, time)
            caller = Caller(
                agent=row.get("agent", "trader"),
                profile="solo",
                session_id="s",
                tool="remember",
                now=at,
            )
            written = self.book.execute(caller, _command(row))
            self.names.setdefault(written.id, row["id"])
        self._caller = Caller(
            agent="trader", profile="solo", session_id="s", tool="search_memory", now=self.now
        )
        while (step := self.book.embed_next(256)) is not None and step.more:
            pass

    def search(self, query: Query) -> list[str]:
        """What `search_memory` answers, ten hits."""
        reply = self.book.search(
            self._caller, SearchRequest(query=query.text, conditions=Filter(symbol=query.symbol), limit=10)
        )
        return [self.names[hit["id"]] for hit in reply.body["hits"]]

    def evidence(self, query: Query, encoder: Encoder) -> list[tuple[str, Evidence]]:
        """Every candidate of both channels, by the set's ids."""
        meaning = Meaning(encoder.query(query.text, 60.0), MODEL)
        with self._view() as view:
            found = gather(view, query.text, Filter(symbol=query.symbol), meaning).evidence
            return [(self.names[view.version_at(each.place).memory_id], each) for each in found]  # type: ignore[union-attr]

    @contextmanager
    def _view(self) -> Iterator[View]:
        with (
            self.book.snapshot() as snapshot,
            self.book._view(snapshot, snapshot.head().sequence, self.now, meaning=True) as view,
        ):
            yield view


def _command(row: dict[str, Any]) -> Any:
    text, symbol, tags = row["text"], row.get("symbol"), tuple(row.get("tags", ()))
    match row.get("kind", "memory"):
        case "proposal":
            return Propose(text=text, symbol=symbol, tags=tags)
        case "risk_note":
            return NoteRisk(text=text, symbol=symbol, tags=tags)
        case "decision":
            return Decide(text=text, symbol=symbol, tags=tags, action="other")
        case "lesson":
            return ProposeLesson(text=text, symbol=symbol, tags=tags)
        case "thesis":
            return OpenThesis(text=text, symbol=symbol, tags=tags)
    return Remember(text=text, symbol=symbol, tags=tags)


def encoder() -> Encoder:
    """The bundled model."""
    made = Encoder(MODEL, Bundled)
    assert made.ready(60.0) is not None
    return made


def by_words(found: Sequence[tuple[str, Evidence]]) -> list[str]:
    """BM25 alone."""
    return [
        name
        for name, one in sorted(found, key=lambda each: each[1].lexical_rank or 10**9)
        if one.lexical_rank
    ]


def by_vectors(found: Sequence[tuple[str, Evidence]]) -> list[str]:
    """Cosine alone."""
    return [
        name for name, one in sorted(found, key=lambda each: each[1].vector_rank or 10**9) if one.vector_rank
    ]


def by_rrf(found: Sequence[tuple[str, Evidence]]) -> list[str]:
    """Reciprocal rank fusion with k = 60."""

    def score(one: Evidence) -> float:
        return sum(1 / (RRF + rank) for rank in (one.lexical_rank, one.vector_rank) if rank)

    return [name for name, one in sorted(found, key=lambda each: -score(each[1]))]


def by_substrings(query: Query, texts: Mapping[str, str]) -> list[str]:
    """As Lumibot's store ranks: by how many of the query's words a row holds as substrings, the newer first."""
    words = query.text.lower().split()
    held = [json.dumps(text).lower() for text in texts.values()]
    scored = [
        (-sum(word in text for word in words), -at, name)
        for at, (name, text) in enumerate(zip(texts, held, strict=True))
    ]
    return [name for score, _, name in sorted(scored) if score]
