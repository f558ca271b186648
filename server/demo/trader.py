"""The trader: weighs proposals against the memory, opens, tends and closes theses, learns from outcomes.

It keeps nothing between two evenings: its positions are the open theses, read back from memory (`book`). It
decides after the close and is filled at the next open.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from .book import Order, Position, outcome, read_position
from .lessons import SORE_DAYS, lesson_text, read_experience, speaks_against
from .market import MarketView, to_cents, true_range
from .strategy import (
    CHANNEL_DAYS,
    Reply,
    Setup,
    ToolCall,
    Turn,
    as_json,
    ask,
    dated,
    find_setup,
    first_sentence,
)

RISK_DOLLARS = Decimal(1000)
LARGEST_TRADE_DOLLARS = Decimal(30000)
STOP_RANGES, TARGET_RANGES, TRAIL_RANGES = Decimal(2), Decimal(4), Decimal("2.5")
HORIZON_DAYS = 40
SMALLEST_STOP_MOVE = Decimal("0.01")
FRIDAY = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """What memory makes of a setup: the share of full size (0 is a skip), why, and which memories say so."""

    size: Decimal
    because: tuple[str, ...]
    cited: tuple[str, ...]


def trader_turn(view: MarketView) -> Turn:
    """One evening's work after the close of `view.day`."""
    state = yield from ask("get_memory_state")
    notes = yield from ask("search_memory", query="", kind="risk_note", status="active", limit=50)
    held: set[str] = set()
    for entry in state["open_theses"]:
        thesis = (yield from ask("get_memory", memory_id=entry["id"]))["memory"]
        position = read_position(thesis["text"])
        if (yield from _tend(view, thesis, position, notes)):
            held.add(position.symbol)
    today = f"{view.day}T00:00:00Z"
    proposals = yield from ask(
        "search_memory", query="", kind="proposal", status="proposed", since=today, limit=50
    )
    for proposal in proposals["hits"]:
        yield from _consider(view, proposal, notes, held)


def weigh(setup: Setup, day: date, notes: Iterable[Reply], lessons: Iterable[Reply]) -> Verdict:
    """Hold a setup against active risk notes and found lessons.

    Skip it when the same trade (symbol, direction, setup, volatility) was lost within 120 days; halve it for
    an active risk note on the symbol, and once more for a pattern against its conditions.
    """
    conditions = (setup.direction, setup.name, setup.band)
    size, because, cited = Decimal(1), list[str](), list[str]()
    for lesson in lessons:
        past, age = read_experience(lesson), _age(day, lesson)
        same = past is not None and past.lost and (past.symbol, past.conditions) == (setup.symbol, conditions)
        if same and age <= SORE_DAYS:
            reason = f"the same trade was lost {age} days ago: {first_sentence(lesson['text'])}"
            return Verdict(Decimal(0), (reason,), (lesson["id"],))
        if speaks_against(lesson, conditions):
            size /= 2
            because.append(first_sentence(lesson["text"]))
            cited.append(lesson["id"])
    warnings = [note for note in notes if note["symbol"] == setup.symbol]
    if warnings:
        size /= 2
        because += [first_sentence(note["text"]) for note in warnings]
        cited += [note["id"] for note in warnings]
    return Verdict(size, tuple(because), tuple(cited))


def plan(view: MarketView, setup: Setup, size: Decimal) -> Position | None:
    """Size a trade so that its stop, two average ranges away, costs 1,000 dollars; None below one share."""
    bars = view.bars[setup.symbol]
    close, swing = bars[-1].close, true_range(bars, CHANNEL_DAYS)
    sign = 1 if setup.direction == "long" else -1
    budget = min(RISK_DOLLARS / (STOP_RANGES * swing), LARGEST_TRADE_DOLLARS / close)
    shares = int((budget * size).to_integral_value(ROUND_FLOOR))
    if shares < 1:
        return None
    return Position(
        symbol=setup.symbol,
        direction=setup.direction,
        setup=setup.name,
        band=setup.band,
        reason=setup.reason,
        stop=to_cents(close - sign * STOP_RANGES * swing),
        target=to_cents(close + sign * TARGET_RANGES * swing),
        horizon=HORIZON_DAYS,
        order=Order("buy" if sign == 1 else "sell", shares),
    )


def reason_to_leave(view: MarketView, position: Position) -> str | None:
    """Why the trade is over at today's close, or None: target reached, stop broken, or out of time."""
    close, long = view.today(position.symbol).close, position.direction == "long"
    if (close <= position.stop) if long else (close >= position.stop):
        return f"close {close} broke the stop {position.stop}"
    if (close >= position.target) if long else (close <= position.target):
        return f"close {close} reached the target {position.target}"
    entry = position.entry
    if entry is not None and view.days_since(position.symbol, entry.day) >= position.horizon:
        return f"{position.horizon} trading days are over at {close}"
    return None


def trailed_stop(view: MarketView, position: Position) -> Decimal:
    """The stop after today's close: once the trade is ahead, two and a half ranges behind, and never back."""
    bars = view.bars[position.symbol]
    close, swing = bars[-1].close, true_range(bars, CHANNEL_DAYS)
    if position.gain(close) < STOP_RANGES * swing:
        return position.stop
    if position.direction == "long":
        behind, better = to_cents(close - TRAIL_RANGES * swing), max
    else:
        behind, better = to_cents(close + TRAIL_RANGES * swing), min
    moved = better(position.stop, behind)
    return moved if abs(moved - position.stop) >= SMALLEST_STOP_MOVE * close else position.stop


def _tend(
    view: MarketView, thesis: Reply, before: Position, notes: Reply
) -> Generator[ToolCall, Reply, bool]:
    """Fill yesterday's order, then review the position; False when the thesis was closed."""
    position = before.filled(view.day, view.today(before.symbol).open) if before.order else before
    if position.fills and not position.shares:
        yield from _finish(view, thesis, position)
        return False
    leaving = reason_to_leave(view, position)
    fresh = [n for n in notes["hits"] if n["symbol"] == position.symbol and dated(n) == view.day.isoformat()]
    if leaving is not None:
        position = yield from _leave(view, thesis, position, leaving)
    elif fresh and not position.reduced and position.shares > 1:
        position = yield from _reduce(view, thesis, position, fresh, notes)
    else:
        stop = trailed_stop(view, position)
        if stop != position.stop:
            moved = f"stop moved from {position.stop} to {stop}"
            position = replace(position, stop=stop).remarked(view.day, moved)
        elif view.day.weekday() == FRIDAY:
            yield from _hold(view, thesis, position, notes)
    if position != before:
        yield from _update(thesis, position)
    return True


def _update(thesis: Reply, position: Position) -> Turn:
    yield from ask(
        "update_thesis",
        thesis_id=thesis["id"],
        text=position.text(),
        invalidation=position.invalidation,
        expected_version=thesis["version"],
    )


def _leave(
    view: MarketView, thesis: Reply, position: Position, reason: str
) -> Generator[ToolCall, Reply, Position]:
    found = yield from ask(
        "search_memory",
        query=f"{position.direction} {position.setup} {position.symbol} {position.band} volatility",
        symbol=position.symbol,
        limit=10,
    )
    yield from ask(
        "remember_decision",
        text=f"Leave {position.direction} {position.symbol} ({position.shares}) at the next open: {reason}.",
        symbol=position.symbol,
        action=position.exit_side,
        evidence=as_json({**_standing(view, position), "reason": reason}),
        tags=["exit", position.direction, position.setup],
        thesis_id=thesis["id"],
        retrieval_id=found["retrieval_id"],
    )
    order = Order(position.exit_side, position.shares)
    return replace(position, order=order).remarked(view.day, f"leaving: {reason}")


def _reduce(
    view: MarketView, thesis: Reply, position: Position, fresh: list[Reply], notes: Reply
) -> Generator[ToolCall, Reply, Position]:
    half = position.shares // 2
    why = first_sentence(fresh[0]["text"])
    yield from ask(
        "remember_decision",
        text=f"Give back {half} of {position.shares} {position.symbol} at the next open: {why}.",
        symbol=position.symbol,
        action="reduce",
        evidence=as_json({**_standing(view, position), "cited_ids": [note["id"] for note in fresh]}),
        tags=["reduce", position.direction, position.setup],
        thesis_id=thesis["id"],
        retrieval_id=notes["retrieval_id"],
    )
    return replace(position, order=Order(position.exit_side, half)).remarked(view.day, f"reducing: {why}")


def _hold(view: MarketView, thesis: Reply, position: Position, notes: Reply) -> Turn:
    close = view.today(position.symbol).close
    yield from ask(
        "remember_decision",
        text=(
            f"Hold {position.direction} {position.symbol}: close {close} on {view.day} lies between the stop "
            f"{position.stop} and the target {position.target}; {position.gain(close):+} a share so far."
        ),
        symbol=position.symbol,
        action="hold",
        evidence=as_json(_standing(view, position)),
        tags=["weekly", position.direction, position.setup],
        thesis_id=thesis["id"],
        retrieval_id=notes["retrieval_id"],
    )


def _finish(view: MarketView, thesis: Reply, position: Position) -> Turn:
    done = outcome(position.direction, position.fills)
    yield from _update(thesis, position)
    days = view.days_since(position.symbol, position.fills[0].day)
    why = position.remarks[-1].split(": ", 1)[-1]
    yield from ask(
        "close_thesis",
        thesis_id=thesis["id"],
        result=done.result,
        pnl=str(done.pnl),
        return_pct=str(done.return_pct),
        exit_price=str(done.exit_price),
        note=f"Filled at the open of {view.day} after {why}.",
    )
    yield from ask(
        "remember_lesson",
        text=lesson_text(position, done, view.day, days, why),
        symbol=position.symbol,
        tags=[position.direction, position.setup, position.band, done.result],
        outcome=as_json(
            {
                "thesis_id": thesis["id"],
                "result": done.result,
                "pnl": done.pnl,
                "return_pct": done.return_pct,
                "exit_price": done.exit_price,
            }
        ),
    )


def _consider(view: MarketView, proposal: Reply, notes: Reply, held: set[str]) -> Turn:
    symbol, setup = proposal["symbol"], find_setup(view, proposal["symbol"])
    wanted = f"{setup.direction} {setup.name} {setup.band} volatility lost" if setup else "lost"
    query = f"{wanted} {symbol}"
    lessons = yield from ask("search_memory", query=query, kind="lesson", limit=20)
    links = {"retrieval_id": lessons["retrieval_id"]}
    evidence: dict[str, Any] = {
        "proposal_id": proposal["id"],
        "searched": {"query": query, "kind": "lesson", "found": [hit["id"] for hit in lessons["hits"]]},
        "risk_notes_retrieval_id": notes["retrieval_id"],
    }
    if symbol in held or setup is None:
        because = "a thesis on it is open already" if symbol in held else "the chart does not show it"
        yield from _decide(symbol, "skip", f"Skip {symbol}: {because}.", evidence, links)
        return
    verdict = weigh(setup, view.day, notes["hits"], lessons["hits"])
    position = plan(view, setup, verdict.size)
    because = "; ".join(verdict.because)
    evidence |= {**setup.evidence, "cited_ids": verdict.cited}
    if position is None or position.order is None:
        because = because or "not one share fits the risk"
        yield from _decide(symbol, "skip", f"Skip {symbol}: {because}.", evidence, links)
        return
    opened = yield from _open(view, position)
    held.add(symbol)
    verb = "Buy" if position.direction == "long" else "Sell short"
    memory = f"Smaller because of memory: {because}." if because else "Nothing in memory speaks against it."
    yield from _decide(
        symbol,
        position.entry_side,
        f"{verb} {position.order.shares} {symbol} at the next open: {setup.name} in {setup.band} volatility. "
        f"{setup.reason} {memory}",
        evidence | {"shares": position.order.shares, "stop": position.stop, "target": position.target},
        links | {"thesis_id": opened["id"]},
    )


def _open(view: MarketView, position: Position) -> Generator[ToolCall, Reply, Reply]:
    review = view.day + timedelta(days=HORIZON_DAYS * 7 // 5)
    return (
        yield from ask(
            "open_thesis",
            text=position.text(),
            symbol=position.symbol,
            direction=position.direction,
            horizon=f"{HORIZON_DAYS} trading days",
            target=str(position.target),
            invalidation=position.invalidation,
            review_by=f"{review}T21:00:00Z",
            tags=[position.setup, position.band],
        )
    )


def _decide(symbol: str, action: str, text: str, evidence: dict[str, Any], links: dict[str, str]) -> Turn:
    yield from ask(
        "remember_decision",
        text=text,
        symbol=symbol,
        action=action,
        evidence=as_json(evidence),
        tags=["entry"],
        **links,
    )


def _standing(view: MarketView, position: Position) -> dict[str, Any]:
    close = view.today(position.symbol).close
    return {
        "day": view.day,
        "close": close,
        "stop": position.stop,
        "target": position.target,
        "shares": position.shares,
        "gain_per_share": position.gain(close),
        "days_held": view.days_since(position.symbol, position.fills[0].day) if position.fills else 0,
    }


def _age(day: date, memory: Reply) -> int:
    return (day - date.fromisoformat(dated(memory))).days
