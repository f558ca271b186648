"""Positions as reported: what is held, how each open thesis on it stands, and whether one is invalidated.

A report is everything that is held at its time. Cash is not a holding and zero is flat. What was not reported is
missing, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, localcontext
from typing import Any

from .caller import Caller
from .canonical import check_json, check_text
from .commands import ReportPositions
from .engines.base import Transaction
from .errors import InvalidInput
from .event_parts import Position
from .events import PositionsReported, ThesisObserved, Warned
from .inputs import decimal_text, short_text
from .invalidation import read_invalidation
from .ledger import Draft
from .lifecycle import THESIS
from .limits import POSITIONS
from .planning import Plan, plan
from .rows import EntryFilter, Version
from .symbols import Line, normalise_symbol
from .view import View

SUBJECT = "positions"
CASH = frozenset({"cash", "money_market"})
MONEY = frozenset({"currency", "forex", "fx"})
"""Asset types of money: one currency is cash, a pair of them is a holding."""
_NUMBERS = ("quantity", "average_cost", "last_price", "market_value")
_KEYS = frozenset({"symbol", "asset_type", *_NUMBERS})
_EXAMPLE = '[{"symbol": "AAPL", "quantity": "100", "average_cost": "181.20", "last_price": "187.30"}]'
_THESES = 10_000
_DIGITS = 100
_OBSERVED_WITHIN = 2 * 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@plan.register
def _(command: ReportPositions, transaction: Transaction, caller: Caller, view: View) -> Plan:
    read = [_row(row, f"positions[{index}]") for index, row in enumerate(_rows(command.positions))]
    _refuse_repeats(read, view)
    held = tuple(row for row in read if not _is_cash(row) and Decimal(row.quantity) != 0)
    left_out = tuple(row.symbol for row in read if row not in held)
    report = PositionsReported(standing=caller.standing, positions=held, left_out=left_out)
    drafts = [Draft(report, SUBJECT, SUBJECT)]
    lines = Lines((row.symbol for row in held), view)
    by_symbol = {row.symbol: row for row in held}
    theses = transaction.theses_to_observe(lines.columns, view.cut, view.at, limit=_THESES)
    on = [(thesis, lines.holding(thesis.symbol, thesis.effective_at)) for thesis in theses]
    day = strategy_day(view.at, view.zone)
    seen = _seen([thesis.memory_id for thesis, symbols in on if symbols], day, transaction, caller, view)
    for thesis, symbols in on:
        row = by_symbol[symbols[0]] if symbols else None
        if row is not None and thesis.memory_id not in seen:
            drafts.append(_observation(thesis, row, day, caller))
        drafts.extend(_warning(thesis, row, day, transaction, view))
    return Plan(tuple(drafts))


class Lines:
    """Which of some instruments a column names, by the date of its entry."""

    def __init__(self, symbols: Iterable[str], view: View) -> None:
        self._by_column: dict[str, list[tuple[Line, str]]] = {}
        for symbol in symbols:
            for line in view.symbols.lines(symbol, view.at):
                self._by_column.setdefault(line.symbol, []).append((line, symbol))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that names one of them on some date."""
        return tuple(self._by_column)

    def holding(self, column: str | None, at: int) -> list[str]:
        """Those of the symbols that a column names in an entry of that date."""
        named = () if column is None else self._by_column.get(column, ())
        return [symbol for line, symbol in named if line.holds(at)]


def _is_cash(row: Position) -> bool:
    return row.asset_type in CASH or (row.asset_type in MONEY and "/" not in row.symbol)


def strategy_day(at: int, zone: tzinfo | None) -> str:
    """The date of an instant in the strategy's zone (UTC when None), ISO 8601."""
    return (_EPOCH + timedelta(microseconds=at)).astimezone(zone or UTC).date().isoformat()


def unrealised_return(row: Position) -> str | None:
    """The holding's return in percent, by average cost and last price; None where a price is missing."""
    if row.average_cost is None or row.last_price is None or Decimal(row.average_cost) == 0:
        return None
    sign = 1 if Decimal(row.quantity) > 0 else -1
    with localcontext(prec=_DIGITS):
        change = (Decimal(row.last_price) / Decimal(row.average_cost) - 1) * 100 * sign
        return format(change.quantize(Decimal("0.0001")) + 0, "f")


def invalidated(thesis: Version, row: Position | None, day: str, written: str) -> str | None:
    """Why a thesis' invalidation is reached on a strategy day, in words; None when it is not, or cannot be watched.

    `written` is the strategy day of the thesis' wording. A price needs the holding that was reported (None when
    nothing is held); a date does not.
    """
    watched = read_invalidation(thesis.details.get("invalidation"), written)
    if watched is None:
        return None
    if watched.day is not None:
        return f"its date {watched.day} is reached" if day >= watched.day else None
    if watched.price is None or row is None or row.last_price is None:
        return None
    direction = thesis.details.get("direction")
    short = direction == "short" or (direction != "long" and Decimal(row.quantity) < 0)
    above = short if watched.side is None else watched.side == "above"
    last = Decimal(row.last_price)
    if last >= watched.price if above else last <= watched.price:
        return f"the last price {row.last_price} reached {watched.said}"
    return None


def _observation(thesis: Version, row: Position, day: str, caller: Caller) -> Draft:
    event = ThesisObserved(
        day=day,
        standing=caller.standing,
        quantity=row.quantity,
        last_price=row.last_price,
        market_value=row.market_value,
        unrealised_return_pct=unrealised_return(row),
    )
    return Draft(event, "memory", thesis.memory_id, THESIS, thesis.symbol)


def _warning(
    thesis: Version, row: Position | None, day: str, transaction: Transaction, view: View
) -> list[Draft]:
    """A warning once the thesis, as it is worded, is invalidated."""
    if thesis.details.get("invalidation") is None:
        return []
    why = invalidated(thesis, row, day, strategy_day(thesis.effective_at, view.zone))
    if why is None:
        return []
    since = EntryFilter(
        after=thesis.sequence_from,
        until_sequence=view.cut,
        subject_id=thesis.memory_id,
        event_type="warning",
        limit=1,
    )
    if list(transaction.entries(since)):
        return []
    message = (
        f"thesis_invalidation_reached: {thesis.memory_id} ({thesis.symbol or 'no symbol'}): {why}."
        " Review it before the next order."
    )
    warning = Warned(
        code="thesis_invalidation_reached",
        message=message,
        symbol=thesis.symbol,
        related=(thesis.memory_id,),
    )
    return [Draft(warning, "memory", thesis.memory_id, THESIS, thesis.symbol)]


def _seen(theses: list[str], day: str, transaction: Transaction, caller: Caller, view: View) -> set[str]:
    """The theses that have their observation of the day; a claim does not keep a harness' own out."""
    # A strategy day lasts 25 hours at most, so its observations cannot lie further back.
    after = transaction.cut_at(view.at - _OBSERVED_WITHIN)
    found = set()
    for memory_id, content in transaction.observed(tuple(theses), after, view.cut):
        if f'"day":"{day}"' in content:
            event = ThesisObserved.model_validate_json(content)
            if event.standing == "observed" or not caller.observer:
                found.add(memory_id)
    return found


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
    if kind is not None and not isinstance(kind, str):
        raise InvalidInput(
            f"{field}.asset_type is not text.",
            field=f"{field}.asset_type",
            hint='For example "stock" or "cash".',
        )
    asset_type = short_text(kind, field=f"{field}.asset_type", longest=40)
    return Position(symbol=normal, asset_type=asset_type.lower() if asset_type else None, **numbers)


def _number(value: Any, *, field: str) -> str | None:
    if isinstance(value, bool):
        raise InvalidInput(f"{field} is not a number.", field=field, hint='For example "187.30".')
    return None if value is None else decimal_text(str(value), field=field, percent=False)


def _refuse_repeats(read: list[Position], view: View) -> None:
    seen: set[str] = set()
    for row in read:
        if _is_cash(row):
            continue
        name = view.instrument(row.symbol)
        if name in seen:
            raise InvalidInput(
                f"{row.symbol} stands twice in positions.", field="positions", hint="One row an instrument."
            )
        seen.add(name)
