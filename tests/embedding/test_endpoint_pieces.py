"""Long text in pieces that an endpoint takes: nothing lost, nothing too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.embedding.endpoint import PIECE_CHARS, Endpoint


@pytest.fixture(scope="module")
def splitter() -> Endpoint:
    return Endpoint("https://desk.example", "m")


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_blank_text_is_one_piece(splitter: Endpoint, text: str) -> None:
    assert splitter.pieces(text) == [text]


def test_short_text_is_one_piece(splitter: Endpoint) -> None:
    assert splitter.pieces(f" {'a' * PIECE_CHARS}\n") == ["a" * PIECE_CHARS]


def test_text_is_cut_where_a_sentence_ends(splitter: Endpoint) -> None:
    sentence = "The desk holds 1.5 units of the fund, and says why. "
    pieces = splitter.pieces(sentence * 50)
    assert len(pieces) > 1
    assert all(piece.startswith("The desk") and piece.endswith("why.") for piece in pieces)


def test_text_without_white_space_is_cut_where_a_sentence_ends(splitter: Endpoint) -> None:
    pieces = splitter.pieces("買いの理由を記録する。" * 200)
    assert all(piece.endswith("。") for piece in pieces)
    assert "".join(pieces) == "買いの理由を記録する。" * 200


def test_text_without_sentences_is_cut_at_white_space(splitter: Endpoint) -> None:
    pieces = splitter.pieces("word " * 1_000)
    assert set(" ".join(pieces).split()) == {"word"}
    assert all(len(piece) > PIECE_CHARS - 10 for piece in pieces[:-1])


def test_a_word_longer_than_a_piece_is_cut(splitter: Endpoint) -> None:
    assert [len(piece) for piece in splitter.pieces("a " + "b" * 2_500)] == [1, 1_000, 1_000, 500]


def test_the_largest_text_has_no_more_pieces_than_promised(splitter: Endpoint) -> None:
    worst = ("a " + "b" * PIECE_CHARS + " ") * 100
    assert len(splitter.pieces(worst[:100_000])) <= 201
    assert len(splitter.pieces("x" * 499 + ". ")) == 1


words = st.one_of(
    st.sampled_from(["a", "why.", 'said."', "1.5", "…", "。", "買い。売り", "🦊", "e\u0301"]),
    st.integers(1, 2_600).map(lambda size: "w" * size),
    st.integers(1, 1_200).map(lambda size: "買。" * size),
)
gaps = st.one_of(
    st.sampled_from([" ", "\n", "\n\n", "\t", "\u2003", "\x1c"]), st.integers(1, 1_500).map(" ".__mul__)
)


@given(st.lists(st.tuples(words, gaps), max_size=60))
def test_pieces_cover_every_word_in_order(splitter: Endpoint, parts: list[tuple[str, str]]) -> None:
    text = "".join(word + gap for word, gap in parts)
    pieces = splitter.pieces(text)
    assert all(len(piece) <= PIECE_CHARS for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    if text.strip():
        assert all(piece == piece.strip() != "" for piece in pieces)
        assert len(pieces) <= 2 * len(text) / PIECE_CHARS + 1
    at = 0
    for piece in pieces:  # each stands in the text, after the one before
        at = text.index(piece, at) + len(piece)
    if "。" not in text and all(len(word) <= PIECE_CHARS for word in text.split()):
        assert " ".join(pieces).split() == text.split()


@given(st.text(max_size=3_000))
def test_any_text_is_covered(splitter: Endpoint, text: str) -> None:
    pieces = splitter.pieces(text)
    assert pieces
    assert all(len(piece) <= PIECE_CHARS for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
