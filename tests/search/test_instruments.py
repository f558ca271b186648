"""Which instruments a query names: tickers as they are typed, names, other spellings; and no plain words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import Remember
from store.search.instruments import ACRONYMS, Named, named_instruments
from store.symbols import Alias, Symbols
from store.symbols.names import NAMES, named_in

if TYPE_CHECKING:
    from conftest import Seat

HELD = {
    "ON": "Inventory is normalising in autos",
    "IT": "Subscriptions grew again",
    "F": "Trucks sold well",
    "ALL": "Premiums rose",
    "BRK-B": "The cash pile grew",
    "NVDA": "The chip maker guided low",
    "BTC/USD": "Halving is priced in",
}


@pytest.fixture
def held(seat: Seat) -> Seat:
    """A seat at a ledger with a memory of each of these instruments, and words that look like them."""
    for symbol, text in HELD.items():
        seat.do(Remember(text=text, symbol=symbol))
    seat.do(Remember(text="all in all it is on hold, so wait for it and be on time; all of it"))
    return seat


@pytest.fixture
def named(view_of: Callable[[Seat], Any]) -> Callable[[Seat, str], list[Named]]:
    def ask(seat: Seat, query: str) -> list[Named]:
        with view_of(seat) as view:
            return list(named_instruments(view, query))

    return ask


def columns(found: list[Named]) -> list[str]:
    return [one.spellings[0] for one in found if one.held]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("ON inventory", ["ON"]),
        ("inventory of ON", ["ON"]),
        ("IT outlook", ["IT"]),
        ("what about F?", ["F"]),
        ("F: trucks", ["F"]),
        ("is F's margin falling", ["F"]),
        ("ALL premiums", ["ALL"]),
        ("BRK-B cash", ["BRK.B"]),
        ("BRK.B cash", ["BRK.B"]),
        ("nvda guidance", ["NVDA"]),
        ("NVDA guidance", ["NVDA"]),
        ("$NVDA guidance", ["NVDA"]),
        ("$nvda guidance", ["NVDA"]),
        ("Nvidia guidance", ["NVDA"]),
        ("Nvidia’s guidance", ["NVDA"]),
        ("NVIDIA guidance", ["NVDA"]),
        ("Berkshire Hathaway and Bitcoin", ["BRK.B", "BTC/USD"]),
        ("Allstate and Gartner", ["ALL", "IT"]),
        ("F and ON, then F again", ["F", "ON"]),
        ("BTCUSD or BTC-USD", ["BTC/USD"]),
        ("NVDA (Nvidia)", ["NVDA"]),
    ],
)
def test_an_instrument_of_which_memory_holds_something_is_recognised(
    held: Seat, named: Any, query: str, wanted: list[str]
) -> None:
    assert columns(named(held, query)) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "it is on all of them",
        "is it all on hold",
        "on it all",
        "what is on now",
        "f you ask",
        "It was late",
        "All of them were late",
        "On time",
        "a nvdax of its own",
        "",
        "?!",
        "🚀",
        "目标价",
    ],
)
def test_plain_words_name_no_instrument(held: Seat, named: Any, query: str) -> None:
    assert named(held, query) == []


def test_what_is_typed_all_in_capitals_says_nothing_by_them(held: Seat, named: Any) -> None:
    assert named(held, "IT IS ALL ON HOLD") == []
    assert columns(named(held, "$IT IS ALL ON HOLD")) == ["IT"]


@pytest.mark.parametrize(
    "query", ["PLTR guidance", "$PLTR", "$pltr", "guidance of PLTR.", "Palantir guidance"]
)
def test_an_instrument_of_which_memory_holds_nothing_is_told_apart(
    held: Seat, named: Any, query: str
) -> None:
    (found,) = named(held, query)
    assert not found.held
    assert found.spellings[0] == "PLTR"
    assert held.find(query)["message"].endswith(f" Nothing is kept about {found.word}.")


@pytest.mark.parametrize("word", ["CPI", "FOMC", "RSI", "EPS", "GDP", "VWAP", "USD", "CEO", "I", "A", "AI"])
def test_acronyms_name_no_instrument(held: Seat, named: Any, word: str) -> None:
    assert named(held, f"what does {word} say") == []
    assert named(held, f"{word} was high") == []


def test_an_acronym_is_an_instrument_once_memory_holds_something_under_it(held: Seat, named: Any) -> None:
    held.do(Remember(text="Warehouse rents grew", symbol="AI"))
    assert columns(named(held, "what does AI say")) == ["AI"]


def test_a_ticker_that_texts_speak_of_is_looked_for_in_them(held: Seat, named: Any) -> None:
    note = held.do(Remember(text="Sold PLTR too early")).id
    assert named(held, "PLTR") == []
    assert held.ids("PLTR") == [note]


def test_a_name_that_texts_write_is_looked_for_in_them_and_not_as_another_word(
    held: Seat, named: Any
) -> None:
    held.do(Remember(text="The target of the trade was met, and a snowflake fell"))
    assert [one.word for one in named(held, "Target margins")] == ["Target"]
    note = held.do(Remember(text="Target cut its margins")).id
    assert named(held, "Target margins") == []
    assert held.ids("Target margins")[0] == note


def test_words_of_a_name_are_no_tickers_of_their_own(held: Seat, named: Any) -> None:
    held.do(Remember(text="Lost a strike", symbol="GM"))
    assert columns(named(held, "General Motors")) == ["GM"]
    assert named(held, "US Steel tariffs")[0].spellings == ("X",)
    assert len(named(held, "US Steel tariffs")) == 1


def test_other_spellings_that_the_config_names_count(open_seat: Callable[..., Seat], named: Any) -> None:
    symbols = Symbols((Alias("GOOG", "GOOGL"),))
    seat = open_seat(symbols=symbols)
    note = seat.do(Remember(text="Ads slowed down", symbol="GOOG")).id
    for query in ("GOOGL", "GOOG", "googl", "Google", "Alphabet ads"):
        (found,) = named(seat, query)
        assert found.held, query
        assert set(found.spellings) >= {"GOOG", "GOOGL"}
        assert seat.ids(query) == [note]
    assert seat.ids("ads", symbol="GOOGL") == seat.ids(symbol="GOOGL") == [note]


def test_a_memory_about_the_instrument_is_found_though_its_text_never_says_so(held: Seat) -> None:
    for query, text in (("ON", HELD["ON"]), ("Nvidia", HELD["NVDA"]), ("BRK-B", HELD["BRK-B"])):
        assert [hit["text"] for hit in held.find(query)["hits"]] == [text]


def test_a_search_narrowed_to_an_instrument_shows_nothing_of_another(held: Seat) -> None:
    for query in ("guided low", "NVDA", "ON inventory", ""):
        for hit in held.find(query, symbol="NVDA")["hits"]:
            assert hit["symbol"] == "NVDA"
    assert held.find("inventory", symbol="NVDA")["total"] == 0


def test_every_name_leads_to_symbols_in_the_spelling_of_the_columns() -> None:
    for name, symbols in NAMES.items():
        assert named_in(f"about {name}, then") == ((name, symbols),)
        assert named_in(f"about x{name}y") == ()
        assert all(symbol == symbol.strip().upper() for symbol in symbols)
        assert len(set(symbols)) == len(symbols)


def test_no_acronym_is_also_a_name_that_stands_for_an_instrument() -> None:
    assert not ACRONYMS & set(NAMES)


def test_the_longest_name_wins() -> None:
    assert [name for name, _ in named_in("Delta Air Lines, Goldman Sachs and Berkshire Hathaway")] == [
        "Delta Air Lines",
        "Goldman Sachs",
        "Berkshire Hathaway",
    ]
