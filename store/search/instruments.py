"""Instruments that a query names: NVDA and BRK-B, but also ON, IT and F where they are typed as tickers are.

One may be named by a name that it is known under (Nvidia) or by its ticker. A word in capitals, one with a cash tag
and one in the form of a future, a pair or a foreign listing may be a ticker: it is one when the memory holds
something about it. A word in small letters is one when the memory uses that word for nothing else. What looks like a
ticker, or is the name of an instrument, of which the memory holds nothing at all, is told apart: a query about it
must not be answered with memories of another instrument.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidInput
from ..rows import Filter
from ..symbols import normalise_symbol
from ..symbols.names import MERE_WORDS, NAMES, named_in
from ..terms import is_stopword
from ..view import Place, View

_WORD: Final = re.compile(r"[^\s,;:!?\"“”‘(){}\[\]<>]+")
_TICKER: Final = re.compile(r"\$?[A-Z]{1,5}(?:[.\-/][A-Z]{1,4})?|\^[A-Z]{2,5}")
_FORMED: Final = re.compile(
    r"[A-Z0-9]{1,6}=[FX]|[0-9]{4,6}\.[A-Z]{1,3}|[A-Z]{2,5}[-/]USDT?|[A-Z]{6}|/[A-Z]{1,3}[FGHJKMNQUVXZ][0-9]{1,2}"
)
_SHOUTED: Final = 4
"""From so many words on, a query all in capitals says nothing by them."""

_AMBIGUOUS: Final = 3
"""A word held by so many times as many texts as there are memories of the ticker is a word, not the ticker."""

_TEXTS_READ: Final = 20
_COUNTED: Final = 1_000

_WORDS: Final = frozenset(
    "A AI ALL ALLY ARE BILL BOX BROS C CAT CB CG CI COIN COP COST CX D DASH DB DD DE DECK DOW EA EL ET F FANG GAP GE"
    " GOLD GRAB HD HOG HOOD HUM ICE IT K KEY LI LOW M MA MAR META MET MO MS NET NOW NU O ON OPEN PARA PATH PM RF RIO"
    " RUN S SAN SAVE SE SHOP SNAP SO SPOT SQ SU T TAP TD TEAM TM U UPS V VALE W WEN WM X Z ZM".split()
)
_UNMISTAKABLE: Final = frozenset(symbol for symbols in NAMES.values() for symbol in symbols) - _WORDS
"""Tickers that are no words, so that a query which holds one is about it."""

ACRONYMS: Final = frozenset(
    """
    ADR ADX AI AM API ATH ATM ATR AUM BOE BOJ BOJ BPS BUY CAGR CAPEX CB CDS CEO CFO CFTC CIO CME COO COT CPI CPU CTA
    CTO DCF DD DTE DXY EBIT EBITDA ECB EDT EIA EM EMA EOD EPS ESG EST ET ETF EU EV FAQ FCF FDA FED FIFO FOMC FOMO FX
    FY GAAP GDP GMT GPU GTC HFT HOLD HQ HY ID IG IMF IPO IRR ISM ITM IV IVR JGB JOLTS KPI KYC LBO LIBOR LIFO LLM LONG
    LTV MA MACD MBS MOC MOM MOO NAV NFP NO NOT OCO OI OK OPEC OPEX OR ORB OTC OTM PB PCE PE PEG PM PMI PNL PPI PR PT
    QE QOQ QT RBA RFQ ROE ROI ROIC RSI RTH SEC SEL SELL SG SHORT SL SMA SOFR SPAC STOP TA TAM TIPS TLDR TP TTM TWAP UK
    UN US USA USD USDA UTC VAR VC VIX VWAP WACC WTI YES YOY YTD YTM
    """.split()
)
"""Words in capitals that name no instrument, unless the memory holds something under them."""


@dataclass(frozen=True, slots=True)
class Named:
    """An instrument that a query names: as typed, its columns' spellings, and whether memory holds anything of it."""

    word: str
    spellings: tuple[str, ...]
    held: bool
    plain: bool
    """Whether texts use the word for nothing else, so that it may be looked for in them."""

    sure: bool = True
    """Whether it can be nothing but an instrument: a word in capitals may only be said with force."""


def named_instruments(view: View, query: str) -> tuple[Named, ...]:
    """The instruments that a query names, in order, each once."""
    words = [word.rstrip(".") for word in _WORD.findall(query)]
    letters = [word for word in words if word.isalpha()]
    shouted = len(letters) >= _SHOUTED and all(word.isupper() for word in letters)
    found: dict[str, Named] = {}
    for name, symbols in named_in(query):
        instrument = _called(view, name, symbols)
        if instrument is not None:
            found.setdefault(instrument.spellings[0], instrument)
    called = {part for name, _ in named_in(query) for part in name.split()}
    for at, typed in enumerate(words):
        word = re.sub(r"['’]s$", "", typed)
        if word in called:
            continue
        named = _named(view, word, first=at == 0 and len(words) > 1, shouted=shouted)
        if named is not None:
            found.setdefault(named.spellings[0], named)
    return tuple(found.values())


def _called(view: View, name: str, symbols: tuple[str, ...]) -> Named | None:
    """An instrument called by its name; None where the memory knows the name only from its texts."""
    held = [symbol for symbol in symbols if view.holds_symbol(symbol)]
    spellings = tuple(each for symbol in held or symbols for each in (view.spellings(symbol) or (symbol,)))
    if not held and _spoken_of(view, name):
        return None
    return Named(name, spellings, held=bool(held), plain=True, sure=name.title() not in MERE_WORDS)


def _spoken_of(view: View, name: str) -> bool:
    """Whether a text holds the name as it is written: the index knows no capitals and no accents."""
    held = view.match(name, Filter(), limit=_TEXTS_READ)[:_TEXTS_READ]
    places = (Place(layer, sequence) for layer, sequence, _ in held)
    texts = (version.text for place in places if (version := view.version_at(place)) is not None)
    return any(name in text for text in texts)


def _named(view: View, word: str, *, first: bool, shouted: bool) -> Named | None:
    try:
        symbol = normalise_symbol(word)
    except InvalidInput:
        return None
    if symbol is None:
        return None
    tagged = word.startswith("$") and _TICKER.fullmatch(word.upper()) is not None
    formed = tagged or (_FORMED.fullmatch(word) is not None and (not word.isalpha() or "/" in symbol))
    capital = bool(_TICKER.fullmatch(word)) and not shouted and not _begins_sentence(word, first)
    if not (formed or capital):
        return _in_small_letters(view, word, symbol)
    spellings = view.spellings(symbol) or (symbol,)
    if view.holds_symbol(symbol):
        return Named(word, spellings, held=True, plain=not _ambiguous(view, word, spellings))
    bare = word.strip("$")
    if not bare or bare in ACRONYMS or (len(bare) < 2 and not word.startswith("$")):
        return None
    if view.count_matches(bare, Filter(), most=1):
        return None  # texts speak of it: it is looked for in them as any word
    return Named(word, spellings, held=False, plain=True, sure=formed or symbol in _UNMISTAKABLE)


def _begins_sentence(word: str, first: bool) -> bool:
    return word == "I" or (first and word == "A")


def _in_small_letters(view: View, word: str, symbol: str) -> Named | None:
    if not word.isalnum() or len(word) < 2 or is_stopword(word) or not view.holds_symbol(symbol):
        return None
    spellings = view.spellings(symbol) or (symbol,)
    if view.count_matches(word, Filter(), most=_COUNTED) > view.count_matches(
        "", Filter(), most=_COUNTED, symbols=spellings
    ):
        return None
    return Named(word, spellings, held=True, plain=True)


def _ambiguous(view: View, word: str, spellings: tuple[str, ...]) -> bool:
    if is_stopword(word.lower()) or len(word) == 1:
        return True
    about = view.count_matches("", Filter(), most=_COUNTED, symbols=spellings)
    return view.count_matches(word, Filter(), most=_COUNTED) > _AMBIGUOUS * about
