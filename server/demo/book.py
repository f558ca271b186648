"""A thesis as its trader writes it: readable text that says all there is to know about the position.

The trader keeps nothing between two days. It writes the plan, the order that waits and the fills into the
thesis and reads them back from memory the next evening: `read_position` is the inverse of `Position.text`. Each
order and fill names the action in the order journal behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Literal

from .market import to_cents

Direction = Literal["long", "short"]
Side = Literal["buy", "sell"]
REMARKS_KEPT = 3

_HEAD = re.compile(r"(Long|Short) (\S+), (\w+) in (\w+) volatility\. (.+)")
_PLAN = re.compile(r"Plan: stop (\S+), target (\S+), out after (\d+) trading days\.")
_ORDER = re.compile(r"Order: (?:none|(buy|sell) (\d+) at the next open by (\S+))\.")
_FILL = re.compile(r"(buy|sell) (\d+) at (\S+) on (\d{4}-\d{2}-\d{2}) by (\w+)")


@dataclass(frozen=True, slots=True)
class Order:
    """Shares to trade at the next open, and the journal's action that sent them to the broker."""

    side: Side
    shares: int
    action_id: str


@dataclass(frozen=True, slots=True)
class Fill:
    """Shares traded at a price in dollars, by the journal's action that ordered them."""

    day: date
    side: Side
    shares: int
    price: Decimal
    action_id: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a closed trade came to: dollars, percent of the entry's cost, the mean exit price."""

    result: Literal["win", "loss", "flat"]
    pnl: Decimal
    return_pct: Decimal
    exit_price: Decimal


@dataclass(frozen=True, slots=True)
class Position:
    """One trade: why, the plan, the order that waits, what was filled, and the last remarks."""

    symbol: str
    direction: Direction
    setup: str
    band: str
    reason: str
    stop: Decimal
    target: Decimal
    horizon: int
    order: Order | None = None
    fills: tuple[Fill, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def entry_side(self) -> Side:
        """The side that opens the trade."""
        return "buy" if self.direction == "long" else "sell"

    @property
    def exit_side(self) -> Side:
        """The side that closes the trade."""
        return "sell" if self.direction == "long" else "buy"

    @property
    def invalidation(self) -> str:
        """The price that proves the trade wrong, as memory watches it in reported positions."""
        return str(self.stop)

    @property
    def shares(self) -> int:
        """Shares held now, whichever the direction."""
        return sum(fill.shares if fill.side == self.entry_side else -fill.shares for fill in self.fills)

    @property
    def entry(self) -> Fill | None:
        """The fill that opened the trade, once there is one."""
        return self.fills[0] if self.fills else None

    @property
    def reduced(self) -> bool:
        """Whether part of the trade was already given back."""
        return any(fill.side == self.exit_side for fill in self.fills)

    def filled(self, day: date, price: Decimal) -> Position:
        """The position after its waiting order was filled."""
        if self.order is None:
            raise ValueError("no order waits")
        fill = Fill(day, self.order.side, self.order.shares, price, self.order.action_id)
        return replace(self, order=None, fills=(*self.fills, fill))

    def remarked(self, day: date, remark: str) -> Position:
        """The position with a dated remark; only the last few are kept, the thesis' history has the rest."""
        kept = (*self.remarks, f"{day} {remark}")[-REMARKS_KEPT:]
        return replace(self, remarks=kept)

    def gain(self, price: Decimal) -> Decimal:
        """Dollars per share that `price` is better than the entry; negative is a loss."""
        if self.entry is None:
            return Decimal(0)
        return (price - self.entry.price) * (1 if self.direction == "long" else -1)

    def text(self) -> str:
        """The thesis' text."""
        waits = self.order
        order = f"{waits.side} {waits.shares} at the next open by {waits.action_id}" if waits else "none"
        fills = "; ".join(f"{f.side} {f.shares} at {f.price} on {f.day} by {f.action_id}" for f in self.fills)
        side = self.direction.capitalize()
        lines = [
            f"{side} {self.symbol}, {self.setup} in {self.band} volatility. {self.reason}",
            f"Plan: stop {self.stop}, target {self.target}, out after {self.horizon} trading days.",
            f"Order: {order}.",
            f"Fills: {fills or 'none'}.",
            *(f"- {remark}" for remark in self.remarks),
        ]
        return "\n".join(lines)


def read_position(text: str) -> Position:
    """Read a thesis' text back; ValueError when it is not one that `Position.text` wrote."""
    lines = text.split("\n")
    if len(lines) < 4:
        raise ValueError(f"not a position: {text[:120]!r}")
    head, plan, order, fills, *remarks = lines
    found, planned, ordered = _HEAD.fullmatch(head), _PLAN.fullmatch(plan), _ORDER.fullmatch(order)
    if found is None or planned is None or ordered is None or not fills.startswith("Fills: "):
        raise ValueError(f"not a position: {text[:120]!r}")
    return Position(
        symbol=found[2],
        direction="long" if found[1] == "Long" else "short",
        setup=found[3],
        band=found[4],
        reason=found[5],
        stop=Decimal(planned[1]),
        target=Decimal(planned[2]),
        horizon=int(planned[3]),
        order=Order(_side(ordered[1]), int(ordered[2]), ordered[3]) if ordered[1] else None,
        fills=tuple(
            Fill(date.fromisoformat(day), _side(side), int(shares), Decimal(price), action)
            for side, shares, price, day, action in _FILL.findall(fills)
        ),
        remarks=tuple(line.removeprefix("- ") for line in remarks),
    )


def outcome(direction: Direction, fills: Sequence[Fill]) -> Outcome:
    """Compute a finished trade's outcome from its fills; ValueError when it is not finished."""
    bought = [fill for fill in fills if fill.side == "buy"]
    sold = [fill for fill in fills if fill.side == "sell"]
    shares = sum(fill.shares for fill in bought)
    if not shares or shares != sum(fill.shares for fill in sold):
        raise ValueError("the trade is not finished")
    spent = sum((fill.shares * fill.price for fill in bought), Decimal(0))
    earned = sum((fill.shares * fill.price for fill in sold), Decimal(0))
    entry, leaving = (spent, earned) if direction == "long" else (earned, spent)
    pnl = to_cents(earned - spent)
    return Outcome(
        result="win" if pnl > 0 else "loss" if pnl < 0 else "flat",
        pnl=pnl,
        return_pct=to_cents((earned - spent) / entry * 100),
        exit_price=(leaving / shares).quantize(Decimal("0.0001")),
    )


def _side(word: str) -> Side:
    return "buy" if word == "buy" else "sell"
