"""Instrument symbols: one spelling for each instrument, dated aliases, and the rows that a question means.

`normalise_symbol` gives the spelling that is kept in a column; what was typed stays in the content. `Symbols` knows
the aliases of a configuration. A symbol is only ever a value: never a part of a path, never an operator of a query.
"""

from .aliases import Alias, Line, Symbols
from .spelling import MAX_SYMBOL, normalise_symbol

__all__ = ["MAX_SYMBOL", "Alias", "Line", "Symbols", "normalise_symbol"]
