"""The trader: weighs proposals against the memory, opens, tends and closes theses, learns from outcomes.

It keeps nothing between two evenings: its positions are the open theses, read back from memory (`book`), and what
became of its orders is what a harness observed. It decides after the close and is filled at the next open.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from .alarm import sound_alarm
from .book import Position, read_position
from .broker import Broker
from .closing import drop, finish, update
from .market import MarketView
from .orders import Purpose, Wish, journal, send, settle
from .reasons import change_reason, entry_reason, public_reason
from .rules import HORIZON_DAYS, Verdict, plan, reason_to_leave, trailed_stop, weigh
from .strategy import (
    Reply,
    Setup,
    ToolCall,
    Turn,
    as_json,
    ask,
    find_setup,
    first_sentence,
    this_evening,
)

FRIDAY = 4


@dataclass(frozen=True, slots=True)
class Evening:
    """What the trader has before it: the prices, the broker, and the search for active risk notes."""

    view: MarketView
    broker: Broker
    notes: Reply

    def fresh_notes(self, symbol: str) -> list[Reply]:
        """The symbol's risk notes of this evening."""
        return [n for n in self.notes["hits"] if n["symbol"] == symbol and this_evening(self.view, n)]


def trader_turn(view: MarketView, broker: Broker) -> Turn:
    """One evening's work after the close of `view.day`."""
    yield from sound_alarm(view, broker)
    state = yield from ask("get_memory_state")
    proposals = yield from ask(
        "search_memory",
        query="",
        kind="proposal",
        status="proposed",
        since=view.began.isoformat(),
        limit=50,
    )
    if not state["open_theses"] and not proposals["hits"]:
        return
    notes = yield from ask("search_memory", query="", kind="risk_note", status="active", limit=50)
    evening = Evening(view, broker, notes)
    held: set[str] = set()
    for entry in state["open_theses"]:
        thesis = entry
        if entry.get("text_truncated"):
            thesis = (yield from ask("get_memory", memory_id=entry["id"]))["memory"]
        if (yield from _tend(evening, thesis)):
            held.add(entry["symbol"])
    for proposal in proposals["hits"]:
        yield from _consider(evening, proposal, held)


def _tend(evening: Evening, thesis: Reply) -> Generator[ToolCall, Reply, bool]:
    """Learn what became of the order, then review the position; False when the thesis was closed."""
    view, before = evening.view, read_position(thesis["text"])
    settled = yield from settle(view, before)
    position = settled.position
    if position.order is not None:
        return True  # one order at a time: until it is known what became of it, nothing else is sent
    if not position.fills:
        yield from drop(thesis, position.remarks[-1])
        return False
    if not position.shares:
        yield from finish(view, thesis, settled)
        return False
    leaving, fresh = reason_to_leave(view, position), evening.fresh_notes(position.symbol)
    if leaving is not None:
        position = yield from _leave(evening, thesis, position, leaving)
    elif fresh and not position.reduced and position.shares > 1:
        position = yield from _reduce(evening, thesis, position, fresh)
    else:
        stop = trailed_stop(view, position)
        if stop != position.stop:
            moved = f"stop moved from {position.stop} to {stop}"
            position = replace(position, stop=stop).remarked(view.day, moved)
        elif view.day.weekday() == FRIDAY:
            yield from _hold(evening, thesis, position)
    if position != before:
        yield from update(thesis, position)
    return True


def _leave(
    evening: Evening, thesis: Reply, position: Position, reason: str
) -> Generator[ToolCall, Reply, Position]:
    view = evening.view
    found = yield from ask(
        "search_memory",
        query=f"{position.direction} {position.setup} {position.symbol} {position.band} volatility",
        symbol=position.symbol,
        limit=10,
    )
    decision = yield from ask(
        "remember_decision",
        text=f"Leave {position.direction} {position.symbol} ({position.shares}) at the next open: {reason}.",
        symbol=position.symbol,
        action=position.exit_side,
        evidence=as_json({**_standing(view, position), "reason": reason}),
        tags=["exit", position.direction, position.setup],
        thesis_id=thesis["id"],
        retrieval_id=found["retrieval_id"],
    )
    lessons = [hit for hit in found["hits"] if hit["kind"] == "lesson"]
    return (
        yield from _change(
            evening, "exit", position, position.shares, f"leaving: {reason}", lessons, decision, thesis
        )
    )


def _reduce(
    evening: Evening, thesis: Reply, position: Position, fresh: list[Reply]
) -> Generator[ToolCall, Reply, Position]:
    half = position.shares // 2
    why = first_sentence(fresh[0]["text"])
    decision = yield from ask(
        "remember_decision",
        text=f"Give back {half} of {position.shares} {position.symbol} at the next open: {why}.",
        symbol=position.symbol,
        action="reduce",
        evidence=as_json({**_standing(evening.view, position), "cited_ids": [note["id"] for note in fresh]}),
        tags=["reduce", position.direction, position.setup],
        thesis_id=thesis["id"],
        retrieval_id=evening.notes["retrieval_id"],
    )
    return (yield from _change(evening, "reduce", position, half, f"reducing: {why}", (), decision, thesis))


def _change(
    evening: Evening,
    purpose: Purpose,
    position: Position,
    shares: int,
    remark: str,
    lessons: Sequence[Reply],
    decision: Reply,
    thesis: Reply,
) -> Generator[ToolCall, Reply, Position]:
    """Send an order that makes a position smaller."""
    view, why = evening.view, remark.split(": ", 1)[-1]
    wish = Wish(
        view=view,
        purpose=purpose,
        symbol=position.symbol,
        direction=position.direction,
        shares=shares,
        reason=change_reason(view, position, shares, why, lessons),
        public_reason=public_reason(position, purpose),
        evidence=_standing(view, position),
        thesis_id=thesis["id"],
        decision_id=decision["id"],
    )
    intent = yield from journal(wish)
    order, said = yield from send(evening.broker, wish, intent["action_id"])
    remark = remark if order is not None else f"{remark}, but {said}"
    return replace(position, order=order).remarked(view.day, remark)


def _hold(evening: Evening, thesis: Reply, position: Position) -> Turn:
    view = evening.view
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
        retrieval_id=evening.notes["retrieval_id"],
    )


def _consider(evening: Evening, proposal: Reply, held: set[str]) -> Turn:
    symbol, setup = proposal["symbol"], find_setup(evening.view, proposal["symbol"])
    wanted = f"{setup.direction} {setup.name} {setup.band} volatility lost" if setup else "lost"
    query = f"{wanted} {symbol}"
    lessons = yield from ask("search_memory", query=query, kind="lesson", limit=20)
    links = {"retrieval_id": lessons["retrieval_id"]}
    evidence: dict[str, Any] = {
        "proposal_id": proposal["id"],
        "searched": {"query": query, "kind": "lesson", "found": [hit["id"] for hit in lessons["hits"]]},
        "risk_notes_retrieval_id": evening.notes["retrieval_id"],
    }
    if symbol in held or setup is None:
        because = "a thesis on it is open already" if symbol in held else "the chart does not show it"
        yield from _decide(symbol, "skip", f"Skip {symbol}: {because}.", evidence, links)
        return
    verdict = weigh(setup, evening.view.day, evening.notes["hits"], lessons["hits"])
    planned = plan(evening.view, setup, verdict.size)
    evidence |= {**setup.evidence, "cited_ids": verdict.cited}
    if planned is None:
        because = "; ".join(verdict.because) or "not one share fits the risk"
        yield from _decide(symbol, "skip", f"Skip {symbol}: {because}.", evidence, links)
        return
    held.add(symbol)
    yield from _enter(evening, setup, *planned, verdict, lessons, evidence)


def _enter(
    evening: Evening,
    setup: Setup,
    position: Position,
    shares: int,
    verdict: Verdict,
    lessons: Reply,
    evidence: dict[str, Any],
) -> Turn:
    """Open the thesis, decide, and send the order; without an order the thesis is closed again."""
    view, because = evening.view, "; ".join(verdict.because)
    opened = yield from _open(view, position)
    verb = "Buy" if position.direction == "long" else "Sell short"
    memory = f"Smaller because of memory: {because}." if because else "Nothing in memory speaks against it."
    decision = yield from _decide(
        setup.symbol,
        position.entry_side,
        f"{verb} {shares} {setup.symbol} at the next open: {setup.name} in {setup.band} volatility. "
        f"{setup.reason} {memory}",
        evidence | {"shares": shares, "stop": position.stop, "target": position.target},
        {"retrieval_id": lessons["retrieval_id"], "thesis_id": opened["id"]},
    )
    # Read back what stands: the journal wants the thesis seen before the order, not only written.
    thesis = (yield from ask("get_memory", memory_id=opened["id"]))["memory"]
    wish = Wish(
        view=view,
        purpose="entry",
        symbol=setup.symbol,
        direction=position.direction,
        shares=shares,
        reason=entry_reason(view, setup, position, shares, verdict, lessons["hits"]),
        public_reason=public_reason(position, "entry"),
        evidence={**setup.evidence, "cited_ids": verdict.cited},
        thesis_id=opened["id"],
        decision_id=decision["id"],
    )
    intent = yield from journal(wish)
    order, said = yield from send(evening.broker, wish, intent["action_id"])
    if order is None:
        yield from drop(thesis, said)
    else:
        yield from update(thesis, replace(position, order=order))


def _open(view: MarketView, position: Position) -> Generator[ToolCall, Reply, Reply]:
    review = view.began + timedelta(days=HORIZON_DAYS * 7 // 5)
    return (
        yield from ask(
            "open_thesis",
            text=position.text(),
            symbol=position.symbol,
            direction=position.direction,
            horizon=f"{HORIZON_DAYS} trading days",
            target=str(position.target),
            invalidation=position.invalidation,
            review_by=review.isoformat(),
            tags=[position.setup, position.band],
        )
    )


def _decide(
    symbol: str, action: str, text: str, evidence: dict[str, Any], links: dict[str, str]
) -> Generator[ToolCall, Reply, Reply]:
    return (
        yield from ask(
            "remember_decision",
            text=text,
            symbol=symbol,
            action=action,
            evidence=as_json(evidence),
            tags=["entry"],
            **links,
        )
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
