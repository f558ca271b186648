"""Instrument symbols: one normal form for filters and columns; the spelling as typed stays in content."""

from __future__ import annotations

import unicodedata

from .errors import InvalidInput

MAX_SYMBOL = 64
_EXAMPLES = "AAPL, BRK.B, BTC/USD or ES=F"


def normalise_symbol(given: str | None, *, field: str = "symbol") -> str | None:
    """The normal form of a symbol: NFKC, trimmed, inner white space single, upper case; None when blank.

    Raises InvalidInput naming `field` for invisible or control characters and for more than 64 characters.
    """
    if given is None:
        return None
    for character in given:
        if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Cn"):
            raise InvalidInput(
                f"{field} holds the invisible or unassigned character U+{ord(character):04X}.",
                field=field,
                hint=f"Type the symbol plainly, for example {_EXAMPLES}.",
            )
    capitals = " ".join(unicodedata.normalize("NFKC", given).split()).upper()
    symbol = unicodedata.normalize("NFKC", capitals)  # a few letters come apart when they are made capitals
    # The spelling as typed is kept too, so what normalising takes away is bounded as well.
    if len(symbol) > MAX_SYMBOL or len(given) > 2 * MAX_SYMBOL:
        raise InvalidInput(
            f"{field} has {len(given)} characters; at most {MAX_SYMBOL} are allowed.",
            field=field,
            hint=f"Name one instrument, for example {_EXAMPLES}.",
        )
    return symbol or None
