"""What agents are shown unasked holds no text that seems to instruct them; whoever asks for it is shown it quoted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from .planning import TICKER
from .rows import Version
from .screening.instructions import instructs

WITHHELD: Final = "(withheld: it reads like an instruction; get_memory shows it quoted)"
_WORDED: Final = frozenset({"horizon", "target", "invalidation", "category", "outcome"})
_LONGEST: Final = 30


def withheld(version: Version) -> Version:
    """The version without its words where they seem to instruct: the state is put before agents unasked."""
    if "suspicious" not in version.details:
        return version
    details = {name: value for name, value in version.details.items() if name not in _WORDED}
    symbol = version.symbol if version.symbol is None or TICKER.fullmatch(version.symbol) else None
    return replace(version, text=WITHHELD, tags=(), details=details, symbol=symbol)


def unless_instructing(text: str) -> str:
    """The text, or that it is withheld where it seems to instruct."""
    return WITHHELD if instructs(text) else text


def safe_order(shown: dict[str, Any]) -> dict[str, Any]:
    """An order as it is shown, without free words of an agent that seem to instruct."""
    return {
        name: unless_instructing(value) if isinstance(value, str) and len(value) > _LONGEST else value
        for name, value in shown.items()
    }
