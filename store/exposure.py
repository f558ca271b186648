"""What is at stake: what is held, and whether an agent was shown the thesis behind it before it acts."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .caller import Caller
from .engines.base import Transaction
from .event_parts import Position
from .lifecycle import THESIS
from .rows import Filter
from .view import View

_THESES = 20
_RETRIEVED = 5


@dataclass(frozen=True, slots=True)
class Unseen:
    """Open theses on a symbol that the agent was not shown, and what it retrieved instead."""

    thesis_ids: tuple[str, ...]
    retrieved: tuple[str, ...]
    told: str = ""
    """Since when they were not shown, and when they last were, in words."""


def held_symbols(view: View) -> dict[str, Position]:
    """What the latest report of positions holds, by symbol; nothing before the first report."""
    holdings = view.holdings()
    if holdings is None:
        return {}
    rows = [Position.model_validate(row) for row in json.loads(holdings.positions)]
    return {view.instrument(row.symbol, holdings.effective_at): row for row in rows}


def unseen_theses(transaction: Transaction, caller: Caller, view: View, symbol: str) -> Unseen | None:
    """What the caller should have looked at before acting on a symbol; None when it was shown every open thesis.

    Only recorded searches and showings count: those of the same model call or, without one, those of the same
    session (in a run: of the run) since the agent's previous order action on that symbol.
    """
    theses = view.versions(Filter(kind=THESIS, status="open", symbol=symbol), limit=_THESES)
    after = (
        0
        if caller.model_call_id is not None
        else transaction.last_intent(caller.agent, view.spellings(symbol), view.cut)
    )
    session = None if view.in_run or caller.model_call_id is not None else caller.session_id
    shown = transaction.shown(caller.agent, caller.model_call_id, session, after)
    unseen = tuple(thesis.memory_id for thesis in theses if thesis.memory_id not in shown)
    if theses and not unseen:
        return None
    retrieved = tuple(name for name in shown if name not in unseen)[:_RETRIEVED]
    return Unseen(
        unseen, retrieved, _told(transaction, caller, view, unseen, after, symbol) if unseen else ""
    )


def _told(
    transaction: Transaction, caller: Caller, view: View, unseen: tuple[str, ...], after: int, symbol: str
) -> str:
    """What a warning says of the showings that were missing."""
    ever = transaction.shown(caller.agent, None, None, 0)
    last = {name: ever[name] for name in unseen if name in ever}
    if not last:
        return f"never shown to {caller.agent}"
    since = f" since its last order action on {symbol}" if after else ""
    if caller.model_call_id is not None:
        since = " in this model call"
    elif not view.in_run and (not after or max(last.values()) > after):
        since = f" in this session{since}"
    when = [f"last shown at sequence {last[name]}" if name in last else "never shown" for name in unseen]
    if len(unseen) > 1:
        when = [f"{name} {told}" for name, told in zip(unseen, when, strict=True)]
    return f"not shown to {caller.agent}{since} ({', '.join(when)})"
