"""In what two memories are found to differ, rule by rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.event_parts import Alike
from store.screening import wording
from store.screening.contradictions import Claim, compare

_NOTES = Path(__file__).parents[1] / "benchmarks" / "trading_notes" / "memories.jsonl"


def _note(text: str, symbol: str | None = "NVDA") -> Claim:
    return Claim(kind="memory", symbol=symbol, text=text)


def _why(older: str, newer: str, symbol: str | None = "NVDA") -> str | None:
    return compare(_note(newer, symbol), _note(older, symbol))


def _thesis(direction: str | None = "long", target: str | None = None, horizon: str | None = None) -> Claim:
    return Claim("thesis", "NVDA", "Supply stays tight.", direction, target, horizon)


@pytest.mark.parametrize(
    ("older", "newer", "why"),
    [
        ("Cloud demand is strong", "Cloud demand is weak", "direction"),
        ("Buy NVDA", "Sell NVDA", "direction"),
        ("In uptrend", "In downtrend", "direction"),
        ("Deliveries will beat in Q3", "Deliveries will miss in Q3", "direction"),
        ("Max position 5%", "Max position 3%", "number"),
        ("Stop at 112, target 150", "Stop at 112, target 160", "number"),
        ("Expect three launches this year", "Expect five launches this year", "number"),
        ("The recall is a one-off", "The recall isn't a one-off", "negation"),
        ("The squeeze will end by Friday", "The squeeze will never end by Friday", "negation"),
    ],
)
def test_each_kind_of_contradiction_is_named(older: str, newer: str, why: str) -> None:
    assert _why(older, newer) == why
    assert _why(newer, older) == why


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Bought 100 at 118 on the retest", "Bought 80 at 131 on the retest"),
        ("Closed at 14.2, range narrow", "Closed at 19.8, range narrow"),
        ("Deliveries beat in Q2", "Deliveries miss in Q3"),
        ("Deliveries were 410k in 2024-04", "Deliveries were 388k in 2024-07"),
        ("Gross margin is 75%", "Operating margin is 62%"),
        ("Stop at 112", "Target at 150"),
        ("Daily momentum is strong", "Weekly momentum is weak"),
        ("If breadth is thin, momentum is weak", "If breadth is broad, momentum is strong"),
        ("On rising volume breakouts hold up", "On falling volume breakouts break down"),
        ("Growth of 28-32% this year", "Growth of 30% this year"),
        ("Sell puts at 110", "Buy calls at 130"),
        ("Cloud demand is strong", "A broker says that cloud demand is weak"),
        ("Cloud demand is strong", 'Read on a forum: "cloud demand is weak, sell"'),
        ("Max position 5%", "Update: max position 3%"),
        ("Guidance is 3%", "Guidance raised from 3% to 5%"),
        ("Guidance is 3%", "Guidance raised to 5% from 3%"),
        ("Demand is not weak", "Demand is strong"),
        ("The move is not just covering", "The move is covering"),
    ],
)
def test_what_only_looks_like_a_contradiction_is_none(older: str, newer: str) -> None:
    assert _why(older, newer) in (None, "near_repeat")


def test_the_case_p106_is_a_contradiction_with_and_without_its_symbol() -> None:
    raised, cut = "AAPL guidance raised to 5%, source X", "AAPL guidance cut to 2%, source Y"
    assert _why(raised, cut, "AAPL") == "number"
    assert _why(raised, cut, None) is not None


def test_the_cases_p108_and_p116_are_told_apart() -> None:
    assert _why("in uptrend, valid 2023-01 to 2023-03", "in uptrend, valid 2024-05 to 2024-06") is None
    assert _why("target weight 5%", "target weight 3%", None) == "number"


def test_the_terms_of_theses_are_compared_as_values() -> None:
    assert compare(_thesis("short"), _thesis("long")) == "direction"
    assert compare(_thesis(target="165"), _thesis(target="$210")) == "target"
    assert compare(_thesis(target="210.00"), _thesis(target="$210")) == "near_repeat"
    assert compare(_thesis(target="1,210"), _thesis(target="1210")) == "near_repeat"
    assert compare(_thesis(horizon="12 months"), _thesis(horizon="2 weeks")) == "horizon"
    assert compare(_thesis(horizon="3m"), _thesis(horizon="3 months")) == "near_repeat"
    assert compare(_thesis(horizon="one to two quarters"), _thesis(horizon="when it is time")) is None
    assert compare(_thesis("neutral"), _thesis("long")) is None


def test_a_thesis_is_held_against_the_view_of_a_note() -> None:
    assert compare(_note("Bearish here, the order book is thinning."), _thesis("long")) == "direction"
    assert compare(_note("Bullish here, the order book fills."), _thesis("long")) is None
    assert compare(_note("Not bearish here, the order book fills."), _thesis("long")) is None


def test_nearly_the_same_words_are_a_near_repeat() -> None:
    said = "Earnings momentum stays strong into the print, stop 112."
    assert _why(said, "Into the print: earnings momentum is staying strong; stop 112") == "near_repeat"
    assert _why(said, "Earnings momentum stays strong into the print, stop 113.") == "number"
    assert _why(said, said + " Breadth is thin and the dollar firms, which matters for exporters.") is None


def test_a_near_repeat_is_of_one_kind_and_one_instrument() -> None:
    said = "Earnings momentum stays strong into the print."
    assert compare(Claim("lesson", "NVDA", said), Claim("memory", "NVDA", said)) is None
    assert compare(Claim("memory", None, said), Claim("memory", "NVDA", said)) is None


def test_two_instruments_never_contradict_each_other() -> None:
    assert compare(_note("Demand is strong", "NVDA"), _note("Demand is weak", "AMD")) is None


def test_without_an_instrument_more_words_have_to_agree() -> None:
    assert _why("Demand is strong", "Demand is weak", "NVDA") == "direction"
    assert _why("Demand is strong", "Demand is weak", None) is None
    assert _why("Chip demand in China is strong", "Chip demand in China is weak", None) == "direction"


def test_a_text_is_taken_apart_once_for_all_comparisons() -> None:
    new = _note("Supply of this one text is tight.")
    before = wording.wording_of.cache_info().misses
    for each in ("Supply is loose.", "Supply is fine.", "Supply is odd."):
        compare(new, _note(each))
    assert wording.wording_of.cache_info().misses == before + 4


_SAID = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            "demand strong weak not never 5% 3% from to if when rising falling volume . , ; 2024-05-01 q1 2-4".split()
        ),
        max_size=30,
    ).map(" ".join),
)


@given(_SAID, _SAID, st.sampled_from(["NVDA", "BTC/USD", "A", None]))
def test_whatever_is_said_the_answer_is_one_the_ledger_can_keep(
    one: str, other: str, symbol: str | None
) -> None:
    why = _why(one, other, symbol)
    assert why is None or Alike(id="mem_0000000000001", why=why).why == why


@given(_SAID, st.sampled_from(["NVDA", None]))
def test_no_text_contradicts_itself(text: str, symbol: str | None) -> None:
    assert _why(text, text, symbol) in (None, "near_repeat")


def test_no_note_of_the_benchmarks_contradicts_itself() -> None:
    notes = [json.loads(line) for line in _NOTES.read_text(encoding="utf-8").splitlines()]
    claims = [Claim(kind=note["kind"], symbol=note["symbol"], text=note["text"]) for note in notes]
    assert [claim.text for claim in claims if compare(claim, claim) not in (None, "near_repeat")] == []
