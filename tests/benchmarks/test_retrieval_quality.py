"""How well search finds what answers, and keeps quiet when nothing does, beside other rankings."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from retrieval import (
    Group,
    Query,
    Scores,
    Shelf,
    by_rrf,
    by_substrings,
    by_vectors,
    by_words,
    dialogues,
    encoder,
    trading_notes,
)

if TYPE_CHECKING:
    from conftest import Print

pytestmark = pytest.mark.bench

HEAD = ("", "recall@5", "recall@10", "nDCG@10", "queries")


class Measured:
    """Every ranking over some groups' queries that have answers, and what search said to the others."""

    def __init__(self) -> None:
        self.scores: dict[str, Scores] = defaultdict(Scores)
        self.by_category: dict[str, Scores] = defaultdict(Scores)
        self.unfloored = Scores()
        self.quiet: dict[str, list[bool]] = defaultdict(list)

    def add(self, shelf: Shelf, query: Query, channels: dict[str, list[str]]) -> None:
        """Count one query."""
        hits = shelf.search(query)
        if not query.relevant:
            self.quiet[query.category].append(not hits)
            return
        self.by_category[query.category].add(hits, query.relevant)
        self.scores["search_memory"].add(hits, query.relevant)
        for name, ranked in channels.items():
            self.scores[name].add(ranked, query.relevant)


def measure(root: Path, groups: Iterable[Group], wanted: Callable[[Query], bool]) -> Measured:
    """Search every wanted query of every group."""
    measured, model = Measured(), encoder()
    for number, group in enumerate(groups):
        shelf = Shelf(root / str(number), group, model)
        for query in filter(wanted, group.queries):
            found = shelf.evidence(query, model)
            channels = {
                "bm25": by_words(found),
                "vectors": by_vectors(found),
                "rank fusion, k=60": by_rrf(found),
                "Lumibot's substrings": by_substrings(query, shelf.texts),
            }
            measured.add(shelf, query, channels)
        shelf.book.close()
    return measured


def told(measured: Measured) -> list[Sequence[str]]:
    return [(name, *scores.told(), str(scores.count)) for name, scores in measured.scores.items()]


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_trading_notes(tmp_path: Path, show: Print, held_out: bool) -> None:
    half = "held out" if held_out else "tuned on"
    measured = measure(tmp_path, trading_notes(), lambda query: query.held_out is held_out)
    show(f"Trading notes, the half that was {half}", HEAD, told(measured))
    categories = [(name, *scores.told(), str(scores.count)) for name, scores in measured.by_category.items()]
    show("  the same by category, search_memory", HEAD, categories)
    quiet = [(name, f"{sum(kept)} of {len(kept)}") for name, kept in measured.quiet.items()]
    show("  queries without an answer that found nothing", ("", "quiet"), quiet)
    best = measured.scores["search_memory"]
    assert best.count > 50


def test_dialogues(tmp_path: Path, show: Print) -> None:
    groups = dialogues()
    if not groups:
        show("Dialogues", HEAD, [("the set is not here: it is no part of the product", "", "", "", "")])
        return
    measured = measure(tmp_path, groups, lambda query: bool(query.relevant))
    show("Dialogues, five groups of 369 to 680 memories", HEAD, told(measured))
    assert measured.scores["search_memory"].count == sum(len(group.queries) for group in groups)
