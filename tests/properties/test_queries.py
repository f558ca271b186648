"""No query is ever an engine's error, and a text is found by itself."""

from __future__ import annotations

import random
import string
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Book, Caller
from store.commands import Remember
from store.events import MemoryRecorded
from store.ids import new_id
from store.ledger import Draft
from store.rows import Filter
from store.search.recall import Question, recall
from store.view import Layer, View

WHO = Caller("ann", "solo", "ses-1", "tool")
LISTED = [
    # P033
    "BRK.B", "BTC/USD", "ES=F", "7203.T", "$NVDA", "#ai", "risk-off", "don't", "AT&T", "C++", "a,b", "50%", "@desk",
    "<x>", "[br]", "x\\y", "why?",
    # From the issue.
    '"unbalanced', "*", "NEAR(", "a OR", "symbol:x", "🚀", "目标价", "Nestlé", "x" * 10_000,
    # What FTS5 reads as syntax.
    "AND", "OR", "NOT", "NEAR", "a AND", "NOT a", "a NEAR b", "NEAR(a b, 2)", "body:x", "{body labels}: x",
    "-body : x",
    "^x", "x*", "x *", "+x", "a + b", '"', '""', '"""', "'", "''", "(", ")", "()", "((x)", "x)", ":", "x:", "-",
    "--x",
    "/* x */", "x;DROP TABLE memory_events", "%", "_", "a_b", "?1", ":x", "@x", "$x", "\\", "\\\"", "\t", "a\nb",
    # Other scripts and signs.
    "価", "目标", "カタカナ", "가격", "ราคา", "😀😀", "👨‍👩‍👧", "🇺🇸", "❤️", "1️⃣", "Å", "ﬁne", "Ⅷ", "½", "x²",
    "İstanbul",
    "ΑΠΟΦΑΣΗ", "שלום", "مرحبا", "हिन्दी", "e\u0301toile", "Zoe\u0308", "naïve", "ß", "ﷺ", "\u200bx", "a\u00adb",
]  # fmt: skip


class Shelf:
    """A book to which many texts are added in one transaction, and that is asked without recording."""

    def __init__(self, book: Book) -> None:
        self.book = book

    def add(self, texts: list[str]) -> list[str]:
        drafts = [Draft(MemoryRecorded(text=text), "memory", new_id("mem"), "memory") for text in texts]
        self.book._engine.write(
            lambda transaction: self.book._ledger.append(transaction, WHO, drafts), timeout=60.0
        )
        return [draft.subject_id for draft in drafts]

    def ask(self, query: str, limit: int = 50) -> list[str]:
        with self.book._engine.read() as snapshot:
            head = snapshot.head()
            assert head is not None
            found = recall(
                View((Layer(snapshot, head.sequence),), head.effective_at), Question(query, Filter(), limit)
            )
        return [hit.version.memory_id for hit in found.hits]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    book = Book.open(tmp_path, "s", durability="normal")
    yield Shelf(book)
    book.close()


@pytest.fixture(scope="module")
def one_shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    book = Book.open(tmp_path_factory.mktemp("shelf"), "s", durability="normal")
    yield Shelf(book)
    book.close()


def _has_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


@pytest.mark.parametrize("query", LISTED, ids=[ascii(query[:20]) for query in LISTED])
def test_a_listed_query_is_no_error_and_finds_its_own_note(open_seat: Any, query: str) -> None:
    """P033"""
    seat = open_seat()
    seat.do(Remember(text="something else entirely"))
    note = seat.do(Remember(text=f"{query} noted")) if query.strip() == "" else seat.do(Remember(text=query))
    hits = seat.ids(query)
    assert note.id in hits
    if query.strip():
        assert hits[0] == note.id


@pytest.mark.slow
def test_five_thousand_random_queries_are_no_error_and_find_their_own_note(shelf: Shelf) -> None:
    """P035: ASCII punctuation and letters, the note's text being exactly the query."""
    chance = random.Random(35)
    alphabet = string.ascii_letters + string.digits + string.punctuation * 2 + "   "
    queries = ["".join(chance.choices(alphabet, k=chance.randint(1, 24))) for _ in range(5_000)]
    queries = [query for query in queries if query.strip()]
    ids = shelf.add(queries)
    missed = []
    for query, memory_id in zip(queries, ids, strict=True):
        found = shelf.ask(query, limit=5_000)
        if _has_word(query) and memory_id not in found:
            missed.append(query)
    assert missed == []


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
# Letters that only mark others and are no words of their own to any full-text index.
MARKS = frozenset("\u037a\u19b0\u1cf2\u1cf3\uff9e\uff9f") | {chr(n) for n in range(0x19B0, 0x19CA)}


@settings(max_examples=150)
@given(ANY_TEXT)
def test_any_text_is_found_by_itself(one_shelf: Shelf, text: str) -> None:
    (memory_id,) = one_shelf.add([text])
    found = one_shelf.ask(text, limit=10_000)
    plain = unicodedata.normalize("NFKC", text)
    if any(character.isalnum() and character not in MARKS for character in plain):
        assert memory_id in found


@settings(max_examples=100)
@given(st.text(st.characters(categories=["L", "N", "M"], max_codepoint=0x2FF), min_size=1, max_size=12))
def test_composed_and_decomposed_letters_match(one_shelf: Shelf, text: str) -> None:
    """P059: NFC and NFD."""
    if not _has_word(unicodedata.normalize("NFKC", text)):
        return
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    one, other = one_shelf.add([composed, decomposed])
    for query in (composed, decomposed):
        assert {one, other} <= set(one_shelf.ask(query, limit=10_000))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Nestlé raised its guidance", "nestle"),
        ("Nestle raised its guidance", "NESTLÉ"),
        ("the 目标价 was raised", "目标"),
        ("the 目标价 was raised", "标价"),
        ("the 目标价 was raised", "价"),
        ("買い推奨カタカナ", "カタ"),
        ("삼성전자 실적", "삼성"),
        ("we are bullish 🚀🚀 now", "🚀"),
        ("earnings disappointed", "earning disappoint"),
        ("ＡＡＰＬ rose", "aapl"),
        ("options expire", "option"),
        ("bought BRK.B at 400", "brk.b"),
        ("BTC/USD broke out", "btc"),
    ],
)
def test_a_word_is_found_in_another_spelling(shelf: Shelf, text: str, query: str) -> None:
    memory_id, _ = shelf.add([text, "of no interest"])
    assert shelf.ask(query) == [memory_id]


def test_a_two_character_word_is_not_found_where_its_characters_stand_apart(shelf: Shelf) -> None:
    together, _ = shelf.add(["目标价", "标目"])
    assert shelf.ask("目标") == [together]
