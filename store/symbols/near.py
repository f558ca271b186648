"""Readings of a symbol that the rules of spelling leave alone because they may mean another instrument."""

from __future__ import annotations

from .spelling import one_spelling, split_pair
from .tables import FUTURES


def other_readings(symbol: str) -> tuple[str, ...]:
    """What `symbol`, in its one spelling, may have been meant for: BTC/USD for BTCUSD, and the other way round."""
    readings: list[str] = []
    base, slash, quote = symbol.partition("/")
    if base and slash:
        readings.append(base + quote)
    elif halves := split_pair(symbol):
        readings.append("/".join(halves))
    head, sign, letter = symbol[:-2], symbol[-2:-1], symbol[-1:]
    if head.isalpha() and letter.isalpha() and sign in {".", "-", "/", " "}:
        readings += [head + letter, f"{head}.{letter}"]
    if symbol.startswith("^"):
        readings.append(symbol[1:])
    elif symbol.isalpha() and len(symbol) <= 5:
        readings.append(f"^{symbol}")
    if symbol in FUTURES:
        readings.append(f"{symbol}=F")
    elif symbol.endswith("=F"):
        readings.append(symbol[:-2])
    spelt = [one_spelling(reading) for reading in readings if reading]
    return tuple(dict.fromkeys(reading for reading in spelt if reading != symbol))
