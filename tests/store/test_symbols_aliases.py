"""What a spelling means depends on the date, and a question finds exactly the rows that mean its instrument."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.clock import parse_instant
from store.errors import ConfigError
from store.symbols import Alias, Line, Symbols, normalise_symbol


def _on(date: str) -> int:
    return parse_instant(f"{date}T00:00:00Z", field="date")


RENAMED = _on("2022-06-09")
FACEBOOK = Symbols((Alias("FB", "META", until_us=RENAMED),))
BITCOIN = Symbols((Alias("btcusd", "BTC-USD"),))
# META was a fund's ticker before it was Facebook's.
REUSED = Symbols((*FACEBOOK.aliases, Alias("META", "METV", until_us=_on("2022-01-31"))))


def _found(symbols: Symbols, asked: str, at: str, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    lines = symbols.lines(asked, _on(at))
    return [
        (symbol, date)
        for symbol, date in rows
        if any(line.symbol == normalise_symbol(symbol) and line.holds(_on(date)) for line in lines)
    ]


NOTES = [("FB", "2019-05-01"), ("META", "2023-01-05"), ("FB", "2025-03-03")]


@pytest.mark.parametrize(
    ("asked", "at", "found"),
    [
        ("META", "2023-06-01", NOTES[:2]),
        ("meta", "2025-12-31", NOTES[:2]),
        ("FB", "2019-06-01", NOTES[:2]),
        ("FB", "2022-06-08", NOTES[:2]),
        ("FB", "2022-06-09", NOTES[2:]),
        ("FB", "2025-12-31", NOTES[2:]),
        ("METV", "2025-12-31", []),
    ],
)
def test_a_changed_ticker_finds_its_old_notes_and_not_those_of_who_has_it_now(
    asked: str, at: str, found: list[tuple[str, str]]
) -> None:
    """P071"""
    assert _found(FACEBOOK, asked, at, NOTES) == found


def test_the_lines_of_a_changed_ticker_are_bounded_by_the_day_of_the_change() -> None:
    """P071"""
    assert FACEBOOK.lines("META", _on("2023-01-01")) == (Line("META"), Line("FB", until_us=RENAMED))
    assert FACEBOOK.lines("FB", _on("2025-01-01")) == (Line("FB", from_us=RENAMED),)
    assert FACEBOOK.normalise("fb", RENAMED - 1) == "META"
    assert FACEBOOK.normalise("fb", RENAMED) == "FB"
    assert FACEBOOK.normalise("fb", None) == "FB"


def test_one_instrument_under_three_spellings_is_one_line_where_the_alias_is_configured() -> None:
    """P063"""
    rows = [("btcusd", "2026-01-02"), ("BTC-USD", "2026-01-03"), ("BTC/USD", "2026-01-04")]
    for asked in ("btcusd", "BTC-USD", "BTC/USD", "btc usd"):
        assert _found(BITCOIN, asked, "2026-02-01", rows) == rows
        assert BITCOIN.normalise(asked, None) == "BTC/USD"


def test_without_the_alias_the_other_spelling_is_named_and_not_taken() -> None:
    """P063"""
    assert _found(Symbols(), "BTC/USD", "2026-02-01", [("btcusd", "2026-01-02")]) == []
    assert "BTCUSD" in Symbols().similar("BTC-USD", None)
    assert "BTC/USD" in Symbols().similar("btcusd", None)
    assert BITCOIN.similar("BTC/USD", None) == ()


@pytest.mark.parametrize(
    ("asked", "named"),
    [("BRK.B", "BRKB"), ("VOD L", "VOD.L"), ("VIX", "^VIX"), ("^VIX", "VIX"), ("ES", "ES=F"), ("ES=F", "ES")],
)
def test_a_reading_that_the_rules_leave_alone_is_named(asked: str, named: str) -> None:
    assert named in Symbols().similar(asked, None)


def test_what_an_alias_means_on_other_dates_is_named_first() -> None:
    """P071"""
    assert FACEBOOK.similar("FB", _on("2025-01-01"))[0] == "META"
    assert "META" not in FACEBOOK.similar("FB", _on("2019-01-01"))
    assert Symbols().similar(" ", None) == ()


def test_a_ticker_that_was_another_companys_before_keeps_both_apart() -> None:
    rows = [("META", "2021-07-01"), ("FB", "2021-07-01"), ("META", "2022-03-01"), ("METV", "2023-01-01")]
    assert _found(REUSED, "META", "2023-01-01", rows) == [rows[1], rows[2]]
    assert _found(REUSED, "METV", "2023-01-01", rows) == [rows[0], rows[3]]
    assert _found(REUSED, "META", "2021-08-01", rows) == [rows[0], rows[3]]


def test_a_ticker_that_changed_twice_is_one_line() -> None:
    twice = Symbols((Alias("A1", "B1", _on("2005-01-01")), Alias("B1", "C1", _on("2015-01-01"))))
    rows = [("A1", "2001-01-01"), ("B1", "2010-01-01"), ("C1", "2020-01-01")]
    others = [("A1", "2006-01-01"), ("B1", "2016-01-01")]
    assert _found(twice, "C1", "2021-01-01", rows + others) == rows
    assert _found(twice, "A1", "2001-06-01", rows + others) == rows


def test_another_spelling_of_a_ticker_follows_its_change() -> None:
    vendor = Symbols((*FACEBOOK.aliases, Alias("FB.US", "FB")))
    rows = [("FB.US", "2019-01-01"), ("FB", "2019-01-02"), ("FB.US", "2025-01-01")]
    assert _found(vendor, "META", "2026-01-01", rows) == rows[:2]
    assert _found(vendor, "FB", "2026-01-01", rows) == rows[2:]


@pytest.mark.parametrize(
    ("symbol", "at", "contract"),
    [
        ("/ESZ6", "2026-03-02", "/ESZ26"),
        ("ESZ6", "2027-01-15", "/ESZ26"),
        ("/ESZ6", "2018-01-01", "/ESZ26"),
        ("/ESZ6", "2017-12-31", "/ESZ16"),
        ("/ESZ6", "2016-03-02", "/ESZ16"),
        ("/ESZ8", "1998-03-02", "/ESZ98"),
        ("/ESZ26", "2016-03-02", "/ESZ26"),
    ],
)
def test_a_futures_year_of_one_digit_is_read_by_the_date(symbol: str, at: str, contract: str) -> None:
    assert Symbols().normalise(symbol, _on(at)) == contract


def test_a_future_is_found_by_either_year_and_not_ten_years_off() -> None:
    rows = [
        ("/ESZ6", "2016-05-01"),
        ("ESZ16", "2016-05-02"),
        ("/ESZ6", "2026-05-01"),
        ("ESZ26", "2026-05-02"),
    ]
    for asked in ("/ESZ6", "ESZ26", "ESZ2026"):
        assert _found(Symbols(), asked, "2026-06-01", rows) == rows[2:]
    assert _found(Symbols(), "/ESZ6", "2016-06-01", rows) == rows[:2]


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ([Alias("A", "B"), Alias("B", "A")], "leads back to itself"),
        ([Alias("A", "B", from_us=0), Alias("B", "C", from_us=5), Alias("C", "A")], "leads back to itself"),
        ([Alias("A", "B"), Alias("a", "C")], "lead to B and to C at once, from any date on"),
        (
            [Alias("A", "B", until_us=9), Alias("a", "C", from_us=8)],
            "at once, from 1970-01-01T00:00:00.000008Z on",
        ),
        ([Alias("A", "B", until_us=9, from_us=9)], "ends before it begins"),
        ([Alias(" ", "B")], "blank symbol"),
        ([Alias("A", "")], "blank symbol"),
        ([Alias("A\x00", "B")], "not usable"),
    ],
)
def test_aliases_that_contradict_each_other_are_refused(aliases: list[Alias], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Symbols(tuple(aliases))


def test_an_alias_that_says_what_the_rules_say_already_changes_nothing() -> None:
    same = Symbols((Alias("BRK-B", "BRK/B"), Alias("a", "b"), Alias("A", "B")))
    assert same.normalise("BRK B", 0) == "BRK.B"
    assert same.lines("B", 0) == (Line("B"), Line("A"))


def test_a_change_of_name_and_back_makes_no_circle() -> None:
    fiserv = Symbols((Alias("FI", "FISV", _on("2025-11-11"), _on("2023-06-07")),))
    rows = [("FISV", "2020-01-01"), ("FI", "2024-01-01"), ("FISV", "2026-01-01")]
    assert _found(fiserv, "FISV", "2026-02-01", [*rows, ("FI", "2022-01-01")]) == rows
    back = Symbols((Alias("A", "B"), Alias("B", "A", until_us=9)))
    assert back.normalise("A", 5) == back.normalise("B", 5) == "B"


NAMES = ["AA", "BB", "CC", "DD", "/ESZ6", "/ESZ26"]
DATES = st.integers(-3, 12).map(lambda years: _on(f"{2018 + years}-07-01"))
ALIASES = st.builds(
    Alias, st.sampled_from(NAMES), st.sampled_from(NAMES), st.none() | DATES, st.none() | DATES
)


@given(st.lists(ALIASES, max_size=6), st.sampled_from(NAMES), DATES, st.sampled_from(NAMES), DATES)
def test_a_row_is_found_exactly_when_it_means_the_instrument_that_is_asked_for(
    aliases: list[Alias], asked: str, at: int, column: str, effective_at: int
) -> None:
    try:
        symbols = Symbols(tuple(aliases))
    except ConfigError:
        return
    lines = symbols.lines(asked, at)
    found = any(line.symbol == column and line.holds(effective_at) for line in lines)
    assert found == (symbols.normalise(column, effective_at) == symbols.normalise(asked, at))
    assert len(lines) == len(set(lines))
