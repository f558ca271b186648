"""Positions as reported: what is held, how each open thesis on it stands, and whether one is invalidated.

A report is everything that is held at its time. Cash is not a holding and zero is flat. What was not reported is
missing, never zero.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

from .caller import Caller
from .canonical import check_json, check_text
from .clock import parse_instant
from .commands import ReportPositions
from .engines.base import Transaction
from .errors import InvalidInput
from .events import Position, PositionsReported, ThesisObserved, Warned
from .inputs import decimal_text, short_text
from .ledger import Draft
from .lifecycle import THESIS
from .limits import POSITIONS
from .planning import Plan, plan
from .rows import Filter, Version
from .symbols import normalise_symbol
from .view import View

SUBJECT = "positions"
CASH = frozenset({"cash", "currency", "money_market"})
_NUMBERS = ("quantity", "average_cost", "last_price", "market_value")
_KEYS = frozenset({"symbol", "asset_type", *_NUMBERS})
_EXAMPLE = '[{"symbol": "AAPL", "quantity": "100", "average_cost": "181.20", "last_price": "187.30"}]'
_THESES = 200
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@plan.register
def _(command: ReportPositions, transaction: Transaction, caller: Caller, view: View) -> Plan:
    read = [_row(row, f"positions[{index}]") for index, row in enumerate(_rows(command.positions))]
    held = tuple(row for row in read if row.asset_type not in CASH and Decimal(row.quantity) != 0)
    left_out = tuple(row.symbol for row in read if row not in held)
    _refuse_repeats(held, view)
    report = PositionsReported(standing=caller.standing, positions=held, left_out=left_out)
    drafts = [Draft(report, SUBJECT, SUBJECT)]
    by_symbol = {view.instrument(row.symbol): row for row in held}
    theses = view.versions(Filter(kind=THESIS, status="open"), limit=_THESES)
    for thesis in theses:
        row = by_symbol.get(view.instrument(thesis.symbol, thesis.effective_at)) if thesis.symbol else None
        if row is None or thesis.source is not None:
            continue
        drafts.extend(_observe(thesis, row, transaction, caller, view))
    return Plan(tuple(drafts))


def strategy_day(at: int, zone: tzinfo | None) -> str:
    """The date of an instant in the strategy's zone (UTC when None), ISO 8601."""
    return (_EPOCH + timedelta(microseconds=at)).astimezone(zone or UTC).date().isoformat()


def unrealised_return(row: Position) -> str | None:
    """The holding's return in percent, by average cost and last price; None where a price is missing."""
    if row.average_cost is None or row.last_price is None or Decimal(row.average_cost) == 0:
        return None
    sign = 1 if Decimal(row.quantity) > 0 else -1
    change = (Decimal(row.last_price) / Decimal(row.average_cost) - 1) * 100 * sign
    return format(change.quantize(Decimal("0.0001")), "f")


def invalidated(thesis: Version, row: Position, at: int) -> str | None:
    """Why a thesis' invalidation is reached, in words; None when it is not, or is no price or date."""
    terms = str(thesis.details.get("invalidation", "")).strip()
    if _DATE.fullmatch(terms):
        due = parse_instant(f"{terms}T00:00:00Z", field="invalidation")
        return f"its date {terms} is reached" if at >= due else None
    try:
        price = Decimal(terms.lstrip("$"))
    except InvalidOperation:
        return None
    if row.last_price is None or not price.is_finite():
        return None
    last = Decimal(row.last_price)
    short = thesis.details.get("direction") == "short" or (
        thesis.details.get("direction") is None and Decimal(row.quantity) < 0
    )
    if last >= price if short else last <= price:
        return f"the last price {row.last_price} reached {terms}"
    return None


def _observe(
    thesis: Version, row: Position, transaction: Transaction, caller: Caller, view: View
) -> list[Draft]:
    drafts = []
    day = strategy_day(view.at, view.zone)
    history = transaction.history(thesis.memory_id, view.cut)
    seen = [entry for entry in history if entry.event_type == "thesis.outcome_observed"]
    if not seen or f'"day":"{day}"' not in seen[-1].content:
        event = ThesisObserved(
            day=day,
            standing=caller.standing,
            quantity=row.quantity,
            last_price=row.last_price,
            market_value=row.market_value,
            unrealised_return_pct=unrealised_return(row),
        )
        drafts.append(Draft(event, "memory", thesis.memory_id, THESIS, thesis.symbol))
    why = invalidated(thesis, row, view.at)
    warned = [
        entry for entry in history if entry.event_type == "warning" and entry.sequence > thesis.sequence_from
    ]
    if why is not None and not warned:
        message = (
            f"thesis_invalidation_reached: {thesis.memory_id} ({thesis.symbol}): {why}."
            " Review it before the next order."
        )
        warning = Warned(
            code="thesis_invalidation_reached",
            message=message,
            symbol=thesis.symbol,
            related=(thesis.memory_id,),
        )
        drafts.append(Draft(warning, "memory", thesis.memory_id, THESIS, thesis.symbol))
    return drafts


def _rows(value: Any) -> list[Any]:
    check_json(value, field="positions")
    if not isinstance(value, list) or len(value) > POSITIONS:
        raise InvalidInput(
            f"positions must be a JSON list of at most {POSITIONS} objects.",
            field="positions",
            hint=f"Say {_EXAMPLE}.",
        )
    return value


def _row(row: Any, field: str) -> Position:
    if not isinstance(row, dict):
        raise InvalidInput(f"{field} is not an object.", field=field, hint=f"For example {_EXAMPLE}.")
    unknown = sorted(row.keys() - _KEYS)
    if unknown:
        raise InvalidInput(
            f"{field} holds the unknown key '{unknown[0][:40]}'.",
            field=field,
            hint=f"Known: {', '.join(sorted(_KEYS))}.",
        )
    symbol = row.get("symbol")
    if not isinstance(symbol, str):
        raise InvalidInput(
            f"{field}.symbol is missing.", field=f"{field}.symbol", hint=f"For example {_EXAMPLE}."
        )
    check_text(symbol, field=f"{field}.symbol")
    normal = normalise_symbol(symbol, field=f"{field}.symbol")
    numbers = {name: _number(row.get(name), field=f"{field}.{name}") for name in _NUMBERS}
    if normal is None or numbers["quantity"] is None:
        missing = "symbol" if normal is None else "quantity"
        raise InvalidInput(
            f"{field}.{missing} is missing.", field=f"{field}.{missing}", hint=f"Say {_EXAMPLE}."
        )
    kind = row.get("asset_type")
    asset_type = short_text(kind, field=f"{field}.asset_type", longest=40) if isinstance(kind, str) else None
    return Position(symbol=normal, asset_type=asset_type.lower() if asset_type else None, **numbers)


def _number(value: Any, *, field: str) -> str | None:
    if isinstance(value, bool):
        raise InvalidInput(f"{field} is not a number.", field=field, hint='For example "187.30".')
    return None if value is None else decimal_text(str(value), field=field)


def _refuse_repeats(held: tuple[Position, ...], view: View) -> None:
    seen: set[str] = set()
    for row in held:
        name = view.instrument(row.symbol)
        if name in seen:
            raise InvalidInput(
                f"{row.symbol} stands twice in positions.", field="positions", hint="One row an instrument."
            )
        seen.add(name)
