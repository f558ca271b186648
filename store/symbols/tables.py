"""What the rules of spelling know of the markets, as frozen sets of codes.

Currencies: the codes of ISO 4217 that are traded against each other, and its four metals. A code that no pair is
made of (ALL, the lek; TOP, the pa'anga) is left out, because it is a ticker more often than a currency.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CURRENCIES: Final = frozenset(
    """
    AED ARS AUD BRL CAD CHF CLP CNH CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KES KRW KWD MXN MYR
    NGN NOK NZD PEN PHP PKR PLN QAR RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR XAG XAU XPD XPT
    """.split()
)

STABLE_COINS: Final = frozenset("BUSD DAI FDUSD PYUSD TUSD USDC USDE USDT".split())

CRYPTO_BASES: Final = frozenset(
    """
    AAVE ADA ALGO APT ARB ATOM AVAX BCH BNB BTC DOGE DOT ETC ETH FIL GRT HBAR ICP LINK LTC MATIC MKR NEAR OP PEPE POL
    SHIB SOL SUI TON TRX UNI XLM XMR XRP XTZ
    """.split()
)

CRYPTO_NAMES: Final[Mapping[str, str]] = MappingProxyType({"XBT": "BTC", "XDG": "DOGE"})
"""Codes that one exchange has for a coin, to the code that all others have."""

QUOTES: Final = CURRENCIES | STABLE_COINS | {"BTC", "ETH", "BNB"}
"""What a pair may be quoted in."""

EXCHANGES: Final = frozenset(
    """
    AE AS AT AX BA BC BD BE BK BO BR CA CN CO CR CS DE DU F HA HE HK HM IC IL IR IS JK JO KL KQ KS KW L LS MC MI MU MX
    N NE NS NZ O OL PA PR PS QA RG RO SA SG SI SN SR SS ST SW SZ T TA TL TO TW TWO V VI VN VS WA XC XD
    """.split()
)
"""Suffixes after a full stop: those of Yahoo Finance, and .N and .O, which Reuters has for New York and Nasdaq."""

ZERO_PADDED: Final[Mapping[str, int]] = MappingProxyType({"HK": 4})
"""Exchanges whose numeric codes are written with leading zeros up to so many digits, and also without them."""

CLASS_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ") - EXCHANGES
"""A single letter that is an exchange too (F, L, N, O, T, V) names no share class, unless after a full stop."""

FUTURES: Final = frozenset(
    """
    ES NQ YM RTY EMD NKD MES MNQ MYM M2K VX VXM
    CL QM MCL BZ NG QG HO RB GC MGC SI SIL HG MHG PL PA
    ZB UB ZN TN ZF ZT ZQ SR1 SR3 GE
    ZC ZS ZW ZM ZL ZO ZR KE LE GF HE CC CT KC SB OJ
    6A 6B 6C 6E 6J 6L 6M 6N 6S DX BTC MBT MET
    """.split()
)
"""Roots of futures that are taken for futures without a leading slash, before a month and year."""

FUTURES_EXCHANGES: Final = frozenset("CBF CBOT CBT CME CMX COMEX NYB NYM NYMEX".split())
