"""How a trade ends in memory: its thesis is closed, its observed outcome judges older lessons, and it leaves one."""

from __future__ import annotations

from .book import Outcome, Position, outcome
from .lessons import foretells_loss, lesson_text
from .market import MarketView
from .orders import Settled
from .strategy import Reply, Turn, as_json, ask, this_evening


def finish(view: MarketView, thesis: Reply, settled: Settled) -> Turn:
    """Close the thesis of a trade whose last share is gone, and learn from it."""
    position = settled.position
    done = outcome(position.direction, position.fills)
    yield from update(thesis, position)
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
    if settled.event_id is not None and done.result != "flat":
        yield from _judge_lessons(view, position, done, settled.event_id)
    # It is about such trades, whatever the symbol; with a symbol, only outcomes on that one could judge it.
    yield from ask(
        "remember_lesson",
        text=lesson_text(position, done, view.day, days, why),
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


def drop(thesis: Reply, why: str) -> Turn:
    """Close the thesis of a trade that never came about; it teaches nothing about the market."""
    yield from ask("close_thesis", thesis_id=thesis["id"], result="flat", note=f"Never entered: {why}.")


def update(thesis: Reply, position: Position) -> Turn:
    """Write the position as it stands into its thesis."""
    yield from ask(
        "update_thesis",
        thesis_id=thesis["id"],
        text=position.text(),
        invalidation=position.invalidation,
        expected_version=thesis["version"],
    )


def _judge_lessons(view: MarketView, position: Position, done: Outcome, event_id: str) -> Turn:
    """Hold the observed fill that ended the trade against what older lessons on its symbol, or on none, say of it."""
    conditions = (position.direction, position.setup, position.band)
    found = yield from ask(
        "search_memory", query=f"{' '.join(conditions)} volatility", kind="lesson", limit=20
    )
    for lesson in found["hits"]:
        if lesson["symbol"] not in (None, position.symbol) or this_evening(view, lesson):
            continue
        foretold = foretells_loss(lesson, conditions)
        if foretold is not None:
            yield from ask(
                "validate_lesson",
                lesson_id=lesson["id"],
                verdict="supports" if foretold == (done.result == "loss") else "contradicts",
                outcome_ids=[event_id],
                note=f"{position.symbol}: {done.result} of {done.return_pct}%, out at {done.exit_price}.",
            )
