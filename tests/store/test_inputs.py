"""What is written is trimmed, bounded and exact, or refused by the name of its field."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import InvalidInput
from store.inputs import decimal_text, identifier, json_value, required_text, short_text, tag_list
from store.limits import IDENTIFIER_CHARS, JSON_TEXT_CHARS, TAG_CHARS, TAGS, TEXT_CHARS
from store.symbols import MAX_SYMBOL, normalise_symbol

TEXT = st.text(st.characters(exclude_categories=["Cs"]))

SYMBOLS = {
    "aapl": "AAPL",
    " AAPL ": "AAPL",
    "ＡＡＰＬ": "AAPL",
    "brk.b": "BRK.B",
    "BTC/USD": "BTC/USD",
    "es=f": "ES=F",
    "7203.t": "7203.T",
    "^gspc": "^GSPC",
    "spx  5000c": "SPX 5000C",
    "目标价": "目标价",
    "": None,
    "   ": None,
    None: None,
}
SYMBOLS_REFUSED = [
    "AAPL\u200b",
    "\u202eLPAA",
    "AA\x00PL",
    "AA\nPL",
    "A\ufeff",
    "\ue000",
    "\U000e0041",
    "A" * 65,
    "\ud800",
]


@pytest.mark.parametrize(("given", "normal"), SYMBOLS.items())
def test_a_symbol_has_one_normal_form(given: str | None, normal: str | None) -> None:
    """P059: full-width letters are the letters they look like."""
    assert normalise_symbol(given) == normal


@pytest.mark.parametrize("symbol", SYMBOLS_REFUSED)
def test_a_symbol_with_what_nobody_sees_is_refused_with_a_hint(symbol: str) -> None:
    """P059: zero-width and direction-turning characters."""
    with pytest.raises(InvalidInput) as fault:
        normalise_symbol(symbol)
    assert fault.value.field == "symbol"
    assert "AAPL" in (fault.value.hint or "")
    fault.value.message.encode()


@given(TEXT)
def test_a_normal_form_of_a_symbol_is_its_own_normal_form(symbol: str) -> None:
    try:
        normal = normalise_symbol(symbol)
    except InvalidInput:
        return
    assert normal is None or len(normal) <= MAX_SYMBOL
    assert normalise_symbol(normal) == normal


@pytest.mark.parametrize("symbol", ["ΐ", "ŉ", "ǰ", "ﬃ", "ᾳ", "İ", "ß"])
def test_a_letter_that_grows_in_capitals_still_has_one_normal_form(symbol: str) -> None:
    normal = normalise_symbol(symbol)
    assert normalise_symbol(normal) == normal


def test_a_tag_is_kept_once_in_its_normal_form() -> None:
    """P055"""
    assert tag_list(("decision", "decision ", "Decision", "ＤＥＣＩＳＩＯＮ", "risk  off")) == (
        "decision",
        "risk off",
    )


@given(st.lists(TEXT, max_size=5))
def test_normal_tags_are_their_own_normal_form(tags: list[str]) -> None:
    try:
        normal = tag_list(tuple(tags))
    except InvalidInput:
        return
    assert tag_list(normal) == normal
    assert len(set(normal)) == len(normal)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "blank text": (lambda: required_text(" \n "), "text"),
    "no text": (lambda: required_text(""), "text"),
    "a text too long": (lambda: required_text("x" * (TEXT_CHARS + 1)), "text"),
    "a NUL in a text": (lambda: required_text("a\x00b"), "text"),
    "half a character": (lambda: required_text("a\ud83d"), "text"),
    "a note too long": (lambda: short_text("x" * 501, field="note", longest=500), "note"),
    "too many tags": (lambda: tag_list(("x",) * (TAGS + 1)), "tags"),
    "a blank tag": (lambda: tag_list(("a", " ")), "tags[1]"),
    "a tag too long": (lambda: tag_list(("x" * (TAG_CHARS + 1),)), "tags[0]"),
    "a control character in a tag": (lambda: tag_list(("a\x07",)), "tags[0]"),
    "a blank id": (lambda: identifier("  ", field="thesis_id"), "thesis_id"),
    "an id too long": (lambda: identifier("x" * (IDENTIFIER_CHARS + 1), field="thesis_id"), "thesis_id"),
    "a line break in an id": (lambda: identifier("a\nb", field="thesis_id"), "thesis_id"),
    "a number as evidence": (lambda: json_value(3, field="evidence"), "evidence"),
    "text as evidence": (lambda: json_value("x", field="evidence"), "evidence"),
    "evidence too long": (lambda: json_value(["x" * JSON_TEXT_CHARS], field="evidence"), "evidence"),
    "NaN deep in evidence": (lambda: json_value({"a": [float("nan")]}, field="evidence"), "evidence.a[0]"),
    "infinity in evidence": (lambda: json_value([float("-inf")], field="evidence"), "evidence[0]"),
    "a whole number too large": (lambda: json_value([2**53], field="evidence"), "evidence[0]"),
    "a word as a number": (lambda: decimal_text("much", field="pnl"), "pnl"),
    "NaN as a number": (lambda: decimal_text("NaN", field="pnl"), "pnl"),
    "infinity as a number": (lambda: decimal_text("Infinity", field="pnl"), "pnl"),
    "an absurd exponent": (lambda: decimal_text("1e999999", field="pnl"), "pnl"),
    "a number too long": (lambda: decimal_text("1" * 65, field="pnl"), "pnl"),
}


@pytest.mark.parametrize(("call", "field"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_kept_is_refused_by_its_field_with_a_hint(call: Callable[[], Any], field: str) -> None:
    with pytest.raises(InvalidInput) as fault:
        call()
    assert fault.value.field == field
    assert fault.value.hint
    assert fault.value.stored == "no"


def test_a_text_of_the_greatest_length_is_kept_exactly() -> None:
    text = " " + "é" * (TEXT_CHARS - 2) + "\n"
    assert required_text(text) == text


@pytest.mark.parametrize(
    ("given", "kept"),
    [("-12.50", "-12.50"), (" 3.4% ", "3.4"), ("1_000", "1000"), ("1e3", "1000"), ("0.10", "0.10"), ("+5", "5"),
     ("", None), ("  ", None), (None, None), ("1E-7", "0.0000001")],
)  # fmt: skip
def test_a_decimal_keeps_its_precision_in_plain_notation(given: str | None, kept: str | None) -> None:
    assert decimal_text(given, field="pnl") == kept


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_a_decimal_is_kept_as_exactly_as_it_was_given(number: Decimal) -> None:
    kept = decimal_text(str(number), field="pnl")
    assert kept is not None
    assert Decimal(kept) == number
    assert "E" not in kept
    assert decimal_text(kept, field="pnl") == kept
