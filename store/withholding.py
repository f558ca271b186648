"""What agents are shown unasked holds no text that seems to instruct them; whoever asks for it is shown it quoted."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from .ids import MEMORY_ID
from .planning import TICKER
from .rows import Version
from .screening.instructions import reads_as_order

WITHHELD: Final = "(withheld: it reads like an instruction; get_memory shows it quoted)"
_WORDED: Final = frozenset({"horizon", "target", "invalidation", "category", "outcome"})

_OWN: Final = frozenset(
    """
    notice empty retrieval_policy positions_reason as_of effective_at age stale_for source_at review_by flagged_at
    warned_at positions_reported_at id memory_id other_id action_id decision_id thesis_id modified_by
    theses_without_holding counts omitted
    """.split()
)
"""What the server says in its own words, ids and times: no words of an agent."""

_LINES: Final = frozenset({"recent"})
"""Lists whose texts have nothing to do with each other."""

_HEAD: Final = re.compile(
    rf"[0-9T:.+Z-]{{10,40}} [a-z_]{{1,20}} {MEMORY_ID.pattern} [a-z_]{{1,20}} v[0-9]{{1,9}}"
)
"""How a line of `recent` begins: which memory it is about is not hidden."""


def withheld(version: Version) -> Version:
    """The version without its words where they seem to instruct, judged whole: what is cut may not be known."""
    if "suspicious" not in version.details:
        outcome = version.details.get("outcome")
        safe = without_orders(outcome) if isinstance(outcome, dict) else outcome
        return version if safe == outcome else replace(version, details=version.details | {"outcome": safe})
    details = {name: value for name, value in version.details.items() if name not in _WORDED}
    if "imported" in details:
        details["imported"] = {name: at for name, at in details["imported"].items() if name == "source_at"}
    symbol = version.symbol if version.symbol is None or TICKER.fullmatch(version.symbol) else None
    return replace(version, text=WITHHELD, tags=(), details=details, symbol=symbol)


def without_orders(body: dict[str, Any]) -> dict[str, Any]:
    """What is shown unasked, without any text that seems to instruct, wherever in it that stands."""
    return {name: value if name in _OWN else _judged(value, name) for name, value in body.items()}


def _judged(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return _withheld(value) if reads_as_order(value) else value
    if isinstance(value, dict):
        return without_orders(value)
    if not isinstance(value, list):
        return value
    # Tags or symbols may say together what none of them says.
    words = [item for item in value if isinstance(item, str)]
    if len(words) > 1 and name not in _LINES and reads_as_order(" ".join(words)):
        return [WITHHELD]
    return [_judged(item, name) for item in value]


def _withheld(text: str) -> str:
    head = _HEAD.match(text)
    return WITHHELD if head is None else f"{head[0]}: {WITHHELD}"
