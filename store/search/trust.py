"""What a memory's standing and age count in the order of hits, and which memories tell of a failure or a success."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from ..clock import SECOND
from ..rows import Version

_DAY: Final = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Ranking:
    """How much standing and age change a score; factors of 1 and shares of 0 change nothing."""

    validated: float = 1.05
    contradicted: float = 0.85
    ended: float = 0.9
    """Superseded, retired, withdrawn or resolved."""

    stale: float = 0.9
    """Past its review date."""

    tally: float = 0.05
    """The most that a lesson's outcomes raise or lower its score, as a share."""

    age: float = 0.05
    """The most that age lowers a score, as a share; half of it at `half_life_days`."""

    half_life_days: int = 365


_ENDED: Final = frozenset({"superseded", "retired", "withdrawn", "resolved"})
_LOST: Final = frozenset(
    {"loss", "lost", "losing", "stop", "stopped", "stopped_out", "invalidated", "failed"}
)
_WON: Final = frozenset(
    {"win", "won", "winning", "winner", "profit", "gain", "target", "target_hit", "hit_target", "take_profit"}
)


def trust_of(version: Version, at: int, ranking: Ranking) -> float:
    """The factor on a version's score at an instant (microseconds, UTC)."""
    factor = 1.0
    if version.status == "validated":
        factor *= ranking.validated
    elif version.status == "contradicted":
        factor *= ranking.contradicted
    elif version.status in _ENDED:
        factor *= ranking.ended
    if version.stale_at is not None and version.stale_at <= at:
        factor *= ranking.stale
    factor *= 1 + ranking.tally * _balance(version.details.get("tally"))
    # In whole days: a backtest and live, some microseconds apart, then give the same.
    days = round(max(0, at - version.effective_at) / _DAY)
    return round(factor * (1 - ranking.age * days / (days + ranking.half_life_days)), 4)


def is_failure(version: Version) -> bool:
    """Whether a memory tells of what went wrong: a loss, a lesson refuted, an order refused."""
    if version.status in ("contradicted", "rejected") or _balance(version.details.get("tally")) < 0:
        return True
    return _result_of(version) in _LOST or any(number < 0 for number in _gains_of(version))


def is_success(version: Version) -> bool:
    """Whether a memory tells of what went well: a gain, a target reached, a lesson borne out. No failure does."""
    if is_failure(version):
        return False
    if version.status == "validated" or _balance(version.details.get("tally")) > 0:
        return True
    return _result_of(version) in _WON or any(number > 0 for number in _gains_of(version))


def outcomes_of(versions: Iterable[Version]) -> tuple[int, int]:
    """How many of the versions tell of a success, and how many of a failure."""
    told = [(is_success(version), is_failure(version)) for version in versions]
    return sum(won for won, _ in told), sum(lost for _, lost in told)


def _result_of(version: Version) -> str:
    outcome = version.details.get("outcome")
    result = outcome.get("result", "") if isinstance(outcome, dict) else ""
    return re.sub(r"[\s_-]+", "_", str(result).strip().lower())


def _gains_of(version: Version) -> list[Decimal]:
    outcome = version.details.get("outcome")
    told = [outcome.get(name) for name in ("pnl", "return_pct")] if isinstance(outcome, dict) else []
    return [number for value in told if (number := _number(value)) is not None]


def _balance(tally: Any) -> float:
    """From -1, all outcomes against, to 1, all for; 0 where there are none."""
    if not isinstance(tally, dict):
        return 0.0
    supports, contradicts = int(tally.get("supports", 0)), int(tally.get("contradicts", 0))
    return (supports - contradicts) / ((supports + contradicts) or 1)


def _number(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
