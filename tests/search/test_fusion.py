"""How two channels become one order, also beyond the texts that are compared, and when nothing answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import Remember
from store.embedding.bundled import MODEL
from store.search.evidence import COMPARED, Evidence, Gathered
from store.search.fusion import Fusion, fuse, is_answered, is_english, setting_of
from store.search.instruments import Named
from store.view import Place

if TYPE_CHECKING:
    from conftest import Seat

Embed = Callable[["Seat"], int]
FLOORED = setting_of(MODEL)
FREE = setting_of("another")


def fused(
    *found: tuple[float, float | None], instruments: tuple[Named, ...] = (), setting: Any = FLOORED
) -> Fusion:
    """Candidates of average length by their share of words and their cosine."""
    evidence = tuple(
        Evidence(Place(0, at), at, words, words / 2.2, at, cosine, words)
        for at, (words, cosine) in enumerate(found, start=1)
    )
    return fuse(Gathered(evidence, (), 1.0, instruments), setting)


@pytest.mark.parametrize(
    ("found", "answered"),
    [
        ([], False),
        ([(0.0, 0.6)], True),
        ([(0.0, 0.3)], False),
        ([(0.2, 0.2)], False),
        ([(0.2, 0.36)], True),
        ([(0.9, 0.0)], True),
        ([(0.4, None)], True),
        ([(0.1, None)], False),
        ([(0.4, 0.0)], False),
        ([(0.0, 0.1), (0.0, 0.6)], True),
    ],
)
def test_a_query_is_answered_by_a_near_text_or_by_one_with_its_words(
    found: list[tuple[float, float | None]], answered: bool
) -> None:
    assert is_answered("revenue of retailers", fused(*found), narrowed=False) is answered


def test_fewer_words_are_enough_about_an_instrument_of_the_memory() -> None:
    held = Named("NVDA", ("NVDA",), held=True, plain=True)
    absent = Named("PLTR", ("PLTR",), held=False, plain=True)
    found = (0.4, 0.1)
    assert is_answered("NVDA guidance", fused(found, instruments=(held,)), narrowed=False)
    assert is_answered("guidance", fused(found), narrowed=True)
    assert not is_answered("PLTR guidance", fused(found, instruments=(absent,)), narrowed=False)
    assert not is_answered(
        "install the NVDA driver", fused((0.05, 0.15), instruments=(held,)), narrowed=False
    )


def test_a_query_in_another_language_is_answered_by_its_words_or_by_a_very_near_text() -> None:
    for query in ("recette de la tarte", "特斯拉交付量"):
        assert not is_answered(query, fused((0.05, 0.5)), narrowed=False)
        assert is_answered(query, fused((0.05, 0.65)), narrowed=False)
        assert is_answered(query, fused((0.4, 0.0)), narrowed=False)


def test_other_models_have_no_floor() -> None:
    assert is_answered("anything", fused((0.0, 0.01), setting=FREE), narrowed=False)
    assert not is_answered("anything", fused(setting=FREE), narrowed=False)


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("why did we sell NVDA", True),
        ("naïve résumé of the café", True),
        ("SPY 0DTE @ 512.5", True),
        ("warum haben wir verkauft", False),
        ("pourquoi avons-nous vendu", False),
        ("目标价", False),
        ("почему продали", False),
        ("🚀", True),
        ("", True),
    ],
)
def test_whether_a_query_may_be_english(query: str, english: bool) -> None:
    assert is_english(query) is english


def test_the_best_come_first_over_what_is_compared_and_what_is_not() -> None:
    evidence = tuple(Evidence(Place(0, at), at, 1.0 / at, 1.0 / at, None, None) for at in range(1, 4))
    rest = tuple((at, (-1.0 / at, 0, -at)) for at in range(4, 9))
    fusion = fuse(Gathered(evidence, rest, 1.0, ()), FREE)
    assert [each.place.sequence_from for each in fusion.first(99)] == list(range(1, 9))
    assert [each.place.sequence_from for each in fusion.first(5)] == list(range(1, 6))
    for floor in (0.0, 0.3, 0.6, 3.0):
        assert fusion.count(floor=floor) == len(fusion.first(99, floor=floor))
    assert [each.evidence.lexical_rank for each in fusion.first(99)] == list(range(1, 9))


def test_a_text_that_only_meaning_found_takes_no_rank_by_words() -> None:
    by_words = Evidence(Place(0, 1), 1, 1.0, 1.0, None, 0.1)
    by_meaning = Evidence(Place(0, 2), None, 0.0, 0.0, 1, 0.9)
    fusion = fuse(Gathered((by_words, by_meaning), ((2, (-0.2, 0, -3)),), 1.0, ()), FREE)
    ranks = {each.place.sequence_from: each.evidence.lexical_rank for each in fusion.first(9)}
    assert ranks == {1: 1, 2: None, 3: 2}


@pytest.fixture
def many(meant: Seat, embed: Embed) -> Seat:
    """A seat at a ledger whose oldest text is the nearest of more texts than are compared; by words all are equal."""
    meant.do(Remember(text="revenue turnover"))
    for at in range(COMPARED + 29):
        meant.do(Remember(text=f"revenue {at}"))
    embed(meant)
    return meant


def test_every_text_that_holds_a_word_is_counted_and_paged_to(many: Seat) -> None:
    shown: list[str] = []
    cursor = None
    while True:
        page = many.find("revenue", limit=50, cursor=cursor)
        assert page["total"] == COMPARED + 30
        shown += [hit["id"] for hit in page["hits"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert len(set(shown)) == len(shown) == COMPARED + 30


def test_a_text_near_in_meaning_keeps_what_its_words_say_beyond_the_compared_ones(many: Seat) -> None:
    (first,) = many.find("revenue", limit=1, detailed=True)["hits"]
    assert first["text"] == "revenue turnover"
    assert first["provenance"]["score"] > first["provenance"]["vector_score"]
