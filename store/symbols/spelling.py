"""The one spelling of an instrument, whatever the desk, the vendor or the model calls it.

Rules are tried in order and the first that fits decides; what none knows stays as typed, in capitals. Two spellings
become one only where they cannot mean two instruments, because a column is never rewritten:

| what | typed as | one spelling | not taken for it |
|---|---|---|---|
| cash tag | $AAPL | AAPL | |
| option (OCC) | SPXW  250117C05000000, O:SPXW250117C05000000, .SPXW250117C5000 | SPXW250117C05000000 | no such day |
| future | /ESZ6, ESZ6, ESZ6.CME; with the year in full /ESZ26, ESZ2026 | /ESZ6; /ESZ26 | an unknown root without / |
| nearest future | ES=F, /ES, ES1! | ES=F | ES, which is a share |
| pair | BTC-USD, BTC_USD, X:BTCUSD, EUR.USD, "EUR USD" | BTC/USD, EUR/USD | USD/EUR; BTC, a share too |
| pair without a sign | EURUSD, EURUSD=X, JPY=X | EUR/USD, USD/JPY | BTCUSD, until an alias says so |
| listing abroad | 7203.T, VOD.L, NOVO-B.CO; 700.HK | as typed, NOVO.B.CO; 0700.HK | VOD L, VOD-L |
| share class | BRK-B, BRK/B, BRK B, BRK.B | BRK.B | a letter of an exchange: F, L, N, O, T, V; N/A |
| index | ^GSPC, I:GSPC | ^GSPC | GSPC |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final

from ..errors import InvalidInput
from .tables import (
    CLASS_LETTERS,
    CRYPTO_BASES,
    CRYPTO_NAMES,
    CURRENCIES,
    EXCHANGES,
    FUTURES,
    FUTURES_EXCHANGES,
    QUOTES,
    ZERO_PADDED,
)

MAX_SYMBOL: Final = 64
_EXAMPLES = "AAPL, BRK.B, BTC/USD or ES=F"
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})

_CASH_TAG = re.compile(r"\$(?=[A-Z])")
_OPTION = re.compile(r"(?:O:)?([A-Z]{1,5}[A-Z0-9]?) ?([0-9]{6})([CP])([0-9]{8})")
_DOLLAR_OPTION = re.compile(r"\.([A-Z]{1,5}[A-Z0-9]?)([0-9]{6})([CP])([0-9]{1,5})(?:\.([0-9]{1,3}))?")
_CONTRACT = re.compile(r"(/?)([A-Z0-9]{1,4}?) ?([FGHJKMNQUVXZ])((?:19|20)?[0-9]{2}|[0-9])(?:\.([A-Z]+))?")
_NEAREST = re.compile(r"/([0-9]?[A-Z][A-Z0-9]{0,3})|([A-Z0-9]{1,4})(?:=F|1!)")
_PAIR = re.compile(r"([A-Z0-9]{1,12}) ?([-/_. ]) ?([A-Z]{3,5})")
_COMPACT = re.compile(r"([XC]:)?([A-Z0-9]{4,15})(=X)?")
_AGAINST_DOLLAR = re.compile(r"([A-Z]{3})=X")
_LISTED = re.compile(r"(.+?) ?\. ?([A-Z]{1,3})")
_CLASS = re.compile(r"([A-Z]{2,5}) ?[-./ ] ?([A-Z])")
_INDEX = re.compile(r"I:([A-Z0-9.]+)")


@lru_cache(maxsize=4_096)
def normalise_symbol(given: str | None, *, field: str = "symbol") -> str | None:
    """The one spelling of a symbol, as the table above has it; None when blank. It knows no alias and no date.

    The text is taken as NFKC, trimmed, with single spaces, in capitals. F, IT, NAN or TRUE are symbols like any
    other. The result is its own normal form. Raises InvalidInput naming `field` for invisible or control characters
    and for more than 64 characters.
    """
    if given is None:
        return None
    # Before anything is normalised: NFKC takes quadratic time on long runs of combining marks.
    _check_length(len(given), 2 * MAX_SYMBOL, field=field, given=given)
    for character in given:
        if unicodedata.category(character) in _INVISIBLE:
            raise InvalidInput(
                f"{field} holds the invisible or unassigned character U+{ord(character):04X}.",
                field=field,
                hint=f"Type the symbol plainly, for example {_EXAMPLES}.",
            )
    capitals = " ".join(unicodedata.normalize("NFKC", given).split()).upper()
    symbol = unicodedata.normalize("NFKC", capitals)  # a few letters come apart when they are made capitals
    _check_length(len(symbol), MAX_SYMBOL, field=field, given=given)
    return one_spelling(symbol) or None


@lru_cache(maxsize=4_096)
def one_spelling(symbol: str) -> str:
    """The spelling that the first fitting rule gives to a symbol in capitals; the symbol itself when none fits."""
    plain = symbol[1:] if _CASH_TAG.match(symbol) else symbol
    return next((found for found in (rule(plain) for rule in _RULES) if found), plain)


def _option(symbol: str) -> str | None:
    """OCC, compact; the padded form, and the form with a full stop whose strike is in dollars."""
    if found := _OPTION.fullmatch(symbol):
        root, day, side, strike = found.groups()
    elif found := _DOLLAR_OPTION.fullmatch(symbol):
        root, day, side, dollars, mills = found.groups()
        strike = dollars.zfill(5) + (mills or "").ljust(3, "0")
    else:
        return None
    return f"{root}{day}{side}{strike}" if _is_day(day) else None


def _is_day(day: str) -> bool:
    try:
        date(2000 + int(day[:2]), int(day[2:4]), int(day[4:]))
    except ValueError:
        return False
    return True


def _contract(symbol: str) -> str | None:
    """A future of one month. A year of one digit stays one: which decade it means depends on the date."""
    found = _CONTRACT.fullmatch(symbol)
    if found is None:
        return None
    slash, root, month, year, exchange = found.groups()
    if exchange is not None and exchange not in FUTURES_EXCHANGES:
        return None
    return f"/{root}{month}{year[-2:]}" if slash or exchange or root in FUTURES else None


def _nearest(symbol: str) -> str | None:
    found = _NEAREST.fullmatch(symbol)
    return f"{found[1] or found[2]}=F" if found else None


def _pair(symbol: str) -> str | None:
    """Two codes and a sign. A space or full stop means other things too, so both codes have to be known."""
    found = _PAIR.fullmatch(symbol)
    if found is None or found[3] not in QUOTES:
        return None
    base, sign, quote = found.groups()
    return None if sign in " ." and not _is_money(base) else _in_pair(base, quote)


def _compact(symbol: str) -> str | None:
    """Two codes without a sign: only as two currencies, or where a vendor's mark says that it is a pair."""
    if found := _AGAINST_DOLLAR.fullmatch(symbol):
        return f"USD/{found[1]}" if found[1] in CURRENCIES - {"USD"} else None
    found = _COMPACT.fullmatch(symbol)
    if found is None:
        return None
    vendor, codes, mark = found.groups()
    halves = split_pair(codes)
    if halves is None:
        return None
    return _in_pair(*halves) if vendor or mark or CURRENCIES.issuperset(halves) else None


def split_pair(codes: str) -> tuple[str, str] | None:
    """The two known codes that text without a sign is made of, such as BTC and USD; None when it is not."""
    for length in (3, 4, 5):
        base, quote = codes[:-length], codes[-length:]
        if quote in QUOTES and _is_money(base):
            return base, quote
    return None


def _is_money(code: str) -> bool:
    return code in CURRENCIES or code in CRYPTO_BASES or code in CRYPTO_NAMES or code in QUOTES


def _in_pair(base: str, quote: str) -> str:
    return f"{CRYPTO_NAMES.get(base, base)}/{quote}"


def _listed(symbol: str) -> str | None:
    """A listing by the suffix of its exchange, so that VOD.L is London's line and no share class."""
    found = _LISTED.fullmatch(symbol)
    if found is None or found[2] not in EXCHANGES:
        return None
    code, exchange = found.groups()
    if code.isdecimal() and code.isascii() and exchange in ZERO_PADDED:
        return f"{code.lstrip('0').zfill(ZERO_PADDED[exchange])}.{exchange}"
    return f"{_share_class(code) or code}.{exchange}"


def _share_class(symbol: str) -> str | None:
    found = _CLASS.fullmatch(symbol)
    return f"{found[1]}.{found[2]}" if found and found[2] in CLASS_LETTERS else None


def _index(symbol: str) -> str | None:
    found = _INDEX.fullmatch(symbol)
    return f"^{found[1]}" if found else None


_RULES: Final[tuple[Callable[[str], str | None], ...]] = (
    _option,
    _contract,
    _nearest,
    _pair,
    _compact,
    _listed,
    _share_class,
    _index,
)


def _check_length(size: int, most: int, *, field: str, given: str) -> None:
    if size > most:
        raise InvalidInput(
            f"{field} has {len(given)} characters; at most {MAX_SYMBOL} are allowed.",
            field=field,
            hint=f"Name one instrument, for example {_EXAMPLES}.",
        )
