"""One instrument is one line of memory, and no two instruments are the same line."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.errors import InvalidInput
from store.symbols import MAX_SYMBOL, Symbols, normalise_symbol

# Each line: the one spelling, and everything else that the instrument is called.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "AAPL": ("aapl", " aapl", "Aapl ", "ＡＡＰＬ", "$AAPL", "$aapl"),
    "BRK.B": ("BRK-B", "BRK/B", "BRK B", "brk b", "BRK - B", "BRK. B", "$BRK.B"),
    "BF.B": ("BF-B", "BF/B", "bf b"),
    "RCI.B.TO": ("RCI-B.TO", "rci.b.to"),
    "NOVO.B.CO": ("NOVO-B.CO", "NOVO B.CO"),
    "BTC/USD": ("BTC-USD", "btc-usd", "BTC_USD", "BTC USD", "btc / usd", "X:BTCUSD", "BTCUSD=X", "XBT/USD"),
    "ETH/BTC": ("ETH-BTC", "eth_btc", "X:ETHBTC"),
    "SOL/USDT": ("SOL-USDT", "sol/usdt", "SOL USDT", "X:SOLUSDT"),
    "PUDGY/USDC": ("PUDGY-USDC", "pudgy_usdc"),
    "T/USD": ("T-USD",),
    "EUR/USD": ("EURUSD=X", "EUR-USD", "eurusd", "EUR.USD", "EUR_USD", "EUR USD", "C:EURUSD"),
    "USD/JPY": ("USDJPY", "JPY=X", "usd-jpy"),
    "XAU/USD": ("XAUUSD", "XAU-USD"),
    "ES=F": ("es=f", "/ES", "ES1!"),
    "6E=F": ("/6e", "6E1!"),
    "/ESZ6": ("ESZ6", "esz6", "ES Z6", "/esz6", "ESZ6.CME"),
    "/ESZ26": ("ESZ26", "ESZ2026", "/ESZ26", "ESZ26.CME", "/ESZ2026"),
    "/6EH7": ("6EH7", "/6eh7"),
    "/ABZ6": ("/abz6",),
    "SPXW250117C05000000": (
        "SPXW  250117C05000000",
        "SPXW 250117C05000000",
        "O:SPXW250117C05000000",
        "spxw250117c05000000",
        ".SPXW250117C5000",
    ),
    "F250117P00012500": ("F     250117P00012500", "O:F250117P00012500", ".F250117P12.5"),
    "AAPL1250117C00150000": ("AAPL1 250117C00150000",),
    "7203.T": ("7203.t", " 7203.T"),
    "130A.T": ("130a.t",),
    "VOD.L": ("vod.l", "VOD .L"),
    "SAP.DE": ("sap.de",),
    "0700.HK": ("700.HK", "00700.hk", "0700.hk"),
    "80700.HK": (),
    "^GSPC": ("^gspc", "I:GSPC"),
    "SPX 5000C": ("spx  5000c",),
    "目标价": (),
}
WORDS = ["F", "T", "A", "IT", "ON", "ALL", "NOW", "TRUE", "NULL", "NAN", "NA", "INF", "NONE", "NIL", "FALSE"]
LEFT_ALONE = [
    "N/A", "VOD L", "VOD-L", "F-B", "AAPL USD", "AAPL.US", "BTC", "BTCUSD", "BTCUSDT", "USDCUSD", "GBTC", "ES",
    "SI", "BRKB", "GSPC", "SPX", "BTC-PERP", "BTC/USDT:USDT", "ABZ6", "XBTZ25", "SPXW251399C05000000",
    "O:SPXW251399C05000000", "USD=X", "$", "$$AAPL", "$ AAPL", "$1", "..", "../..", "A OR B", "AAPL*", '"AAPL"',
    "NEAR(A)", "-AAPL", "%", "BAC-PL",
]  # fmt: skip
# What trades under a name of its own: shares, funds, classes, listings abroad, pairs, futures, options, indices.
REAL = """
AAPL MSFT GOOG GOOGL AMZN NVDA META FB TSLA JPM JNJ WMT UNH XOM CVX PG HD KO PEP MRK ABBV LLY AVGO COST CSCO ADBE CRM
ORCL INTC AMD NFLX DIS BAC WFC GS MS C V MA AXP F GM T VZ A B D E G H J K L M O Q R S U W X Y Z IT ON ALL NOW TRUE
NULL NAN NA INF ES CL GC SI NQ ZB GE GBTC BTC ETH ETHE IBIT SPY SPX SPXW VIX VXX UVXY QQQ IWM DIA TLT GLD SLV USO
UNG BRK.A BRK.B BF.A BF.B HEI HEI.A LEN LEN.B MOG.A MOG.B CRD.A CRD.B GEF.B BIO BIO.B RDS.A RDS.B PBR PBR.A MKC.V
VOD VOD.L VOD.DE BP BP.L SAP SAP.DE SAP.F SAP.TO 7203.T 6758.T 9984.T 130A.T 0700.HK 9988.HK 0005.HK 80700.HK RY RY.TO
RCI.A.TO RCI.B.TO SHOP SHOP.TO ABC.V MC.PA OR.PA AIR.PA AIR ASML ASML.AS NESN.SW ROG.SW NOVO.B.CO VOLV.A.ST VOLV.B.ST
ERIC.B.ST RELIANCE.NS RELIANCE.BO 005930.KS 2330.TW 600519.SS 000001.SZ BHP.AX CBA.AX PETR4.SA VALE3.SA WALMEX.MX
BTC/USD BTC/USDT BTC/USDC BTC/EUR ETH/USD ETH/BTC ETH/EUR SOL/USD DOGE/USD XRP/USD USDT/USD USDC/USD T/USD S/USD
EUR/USD USD/EUR GBP/USD USD/JPY EUR/JPY AUD/USD USD/CAD USD/CHF XAU/USD XAG/USD ES=F NQ=F CL=F GC=F SI=F ZB=F 6E=F
BTC=F /ESZ6 /ESZ26 /ESH7 /NQZ6 /CLZ6 /CLF7 /6EZ6 /ZBZ6 /MESZ6 SPXW250117C05000000 SPXW250117P05000000
SPX250117C05000000 SPXW250117C05000500 SPXW250118C05000000 F250117C00012500 ^GSPC ^DJI ^IXIC ^VIX ^RUT ^N225 ^FTSE
BTCUSD XBTZ25 BTC-PERP BRKB
""".split()

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PIECES = st.lists(
    st.sampled_from([
        "$", "/", "-", ".", "_", " ", "=X", "=F", "1!", "^", "O:", "X:", "I:", "C:", "BRK", "B", "A", "L", "T", "HK",
        "0", "700", "EUR", "USD", "BTC", "XBT", "USDT", "ES", "Z", "6", "26", "250117", "C05000000", "C5000", "CME",
        "ﬀ", "ß", "é", "٣", "１",
    ]),
    min_size=1,
    max_size=7,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "one"), [(typed, one) for one, others in SPELLINGS.items() for typed in (one, *others)]
)
def test_an_instrument_has_one_spelling(typed: str, one: str) -> None:
    """P063, P065, P067"""
    assert normalise_symbol(typed) == one


@pytest.mark.parametrize("word", WORDS)
def test_a_ticker_that_looks_like_a_word_or_a_value_stays_a_symbol(word: str) -> None:
    """P069"""
    assert {normalise_symbol(typed) for typed in (word, word.lower(), f" {word} ", f"${word}")} == {word}


@pytest.mark.parametrize("symbol", LEFT_ALONE)
def test_what_may_mean_something_else_is_left_as_typed(symbol: str) -> None:
    assert normalise_symbol(symbol) == symbol
    assert normalise_symbol(symbol.lower()) == symbol


def test_no_two_real_instruments_share_a_spelling() -> None:
    assert len(REAL) == len(set(REAL)) > 200
    assert {symbol: normalise_symbol(symbol) for symbol in REAL} == {symbol: symbol for symbol in REAL}


def test_no_two_instruments_share_a_spelling_in_any_of_theirs() -> None:
    said = [(typed, one) for one, others in SPELLINGS.items() for typed in (one, *others)]
    for (first, one), (second, other) in itertools.combinations(said, 2):
        assert (normalise_symbol(first) == normalise_symbol(second)) == (one == other)


@given(TEXT | PIECES)
@example("$BRK B")
@example("00700 .HK")
@example("$X:BTCUSD")
def test_a_spelling_is_its_own_bounded_and_visible(symbol: str) -> None:
    try:
        one = normalise_symbol(symbol)
    except InvalidInput:
        return
    if one is None:
        assert not symbol.strip()
        return
    assert 0 < len(one) <= MAX_SYMBOL
    assert one == one.strip() == unicodedata.normalize("NFKC", one)
    assert not any(unicodedata.category(letter).startswith("C") for letter in one)
    assert normalise_symbol(one) == one
    assert normalise_symbol(f"  {symbol}\u3000") == one


@given(st.sampled_from(REAL), st.data())
def test_case_width_and_space_around_never_make_another_instrument(symbol: str, data: st.DataObject) -> None:
    """P067"""
    typed = "".join(
        data.draw(st.sampled_from([letter, letter.lower(), chr(ord(letter) + 0xFEE0)])) for letter in symbol
    )
    assert normalise_symbol(f" {typed} ") == symbol


@given(
    st.from_regex(r"[A-Z]{2,5}", fullmatch=True),
    st.sampled_from("ABCDEGHIJKMPQRSUWXYZ"),
    st.sampled_from(["-", "/", " ", " / "]),
)
def test_every_sign_before_a_share_class_says_the_same(root: str, letter: str, sign: str) -> None:
    assert normalise_symbol(f"{root}{sign}{letter}") == f"{root}.{letter}"


@given(
    st.from_regex(r"[A-Z]{1,6}", fullmatch=True), st.dates(), st.sampled_from("CP"), st.integers(0, 10**8 - 1)
)
def test_an_option_is_the_same_padded_compact_and_with_a_vendors_mark(
    root: str, day: object, side: str, strike: int
) -> None:
    """P065"""
    rest = f"{str(day).replace('-', '')[-6:]}{side}{strike:08d}"
    typed = {f"{root:6}{rest}", f"{root} {rest}", f"O:{root}{rest}", f"{root}{rest}".lower()}
    assert len({normalise_symbol(each) for each in typed}) == 1


def test_a_caller_without_configuration_gets_what_no_alias_gives() -> None:
    for symbol in (*REAL, *LEFT_ALONE):
        assert Symbols().normalise(symbol, None) == normalise_symbol(symbol)
    assert Symbols().normalise(None, None) is None
    assert Symbols().normalise("  ", 0) is None


def test_a_fault_names_the_field_that_was_asked_about() -> None:
    with pytest.raises(InvalidInput) as fault:
        Symbols().lines("A\x00", None, field="conditions.symbol")
    assert fault.value.field == "conditions.symbol"
