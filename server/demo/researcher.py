"""The researcher: watches risk, proposes trades, sums up months and draws patterns from the trader's lessons.

It keeps nothing between two evenings: which warnings stand and what it proposed, it asks the memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .lessons import Experience, foretells_loss, pattern_text, read_experience, told_on
from .market import MarketView, average, drawdown, total_return, volatility
from .strategy import CHANNEL_DAYS, TREND_DAYS, Reply, Turn, as_json, ask, find_setup, first_sentence

DRAWDOWN_DAYS = 60
VOLATILITY_RAISED, VOLATILITY_CLEARED = 0.50, 0.35
DRAWDOWN_RAISED, DRAWDOWN_CLEARED = 0.20, 0.10
MONTH_DAYS = 21
PATTERN_TRADES, PATTERN_LOSS_SHARE = 3, 0.6
MONTH_TAG, PATTERN_TAG = "month-review", "pattern"


def researcher_turn(view: MarketView) -> Turn:
    """One evening's work after the close of `view.day`."""
    yield from _watch_risk(view)
    yield from _settle_proposals()
    yield from _propose(view)
    if view.day.month != view.yesterday().day.month:
        yield from _sum_up_month(view)
        yield from _draw_patterns()


def _watch_risk(view: MarketView) -> Turn:
    standing = yield from ask("search_memory", query="", kind="risk_note", status="active", limit=50)
    for symbol in view.symbols:
        bars = view.bars[symbol]
        annual, before = volatility(bars, CHANNEL_DAYS), volatility(bars[:-CHANNEL_DAYS], CHANNEL_DAYS)
        fall = drawdown(bars, DRAWDOWN_DAYS)
        peak = max(bars[-DRAWDOWN_DAYS:], key=lambda bar: bar.close)
        yield from _keep_warning(
            standing["hits"],
            symbol,
            "Volatility",
            f"20-day volatility is {annual:.0%} a year on {view.day}, it was {before:.0%} 20 trading days "
            f"before. Trade half size at most until it is under {VOLATILITY_CLEARED:.0%}.",
            raised=annual > VOLATILITY_RAISED,
            cleared=annual < VOLATILITY_CLEARED,
        )
        yield from _keep_warning(
            standing["hits"],
            symbol,
            "Drawdown",
            f"close {bars[-1].close} on {view.day} is {fall:.0%} under {peak.close}, the 60-day high of "
            f"{peak.day}. Trade half size at most until it is within {DRAWDOWN_CLEARED:.0%}.",
            raised=fall > DRAWDOWN_RAISED,
            cleared=fall < DRAWDOWN_CLEARED,
        )


def _keep_warning(
    standing: Iterable[Reply], symbol: str, hazard: str, finding: str, *, raised: bool, cleared: bool
) -> Turn:
    note = next((h for h in standing if h["symbol"] == symbol and h["text"].startswith(hazard)), None)
    if note is None and raised:
        text = f"{hazard} risk in {symbol}: {finding}"
        yield from ask("remember_risk_note", text=text, symbol=symbol, tags=[hazard.lower()])
    elif note is not None and cleared:
        closing = f"Over: {first_sentence(finding)}."
        yield from ask("resolve_memory", memory_id=note["id"], status="resolved", note=closing)


def _settle_proposals() -> Turn:
    """A proposal stands for one evening; the next one withdraws it and notes what the trader made of it."""
    standing = yield from ask("search_memory", query="", kind="proposal", status="proposed", limit=50)
    for proposal in standing["hits"]:
        answer = yield from ask(
            "search_memory",
            query="",
            kind="decision",
            symbol=proposal["symbol"],
            agent="trader",
            since=proposal["effective_at"],
            limit=1,
        )
        said = first_sentence(answer["hits"][0]["text"]) if answer["hits"] else "nothing"
        closing = f"Its day is over. The trader decided: {said}."
        yield from ask("resolve_memory", memory_id=proposal["id"], status="withdrawn", note=closing)


def _propose(view: MarketView) -> Turn:
    for symbol in view.symbols:
        setup = find_setup(view, symbol)
        if setup is None:
            continue
        known = yield from ask(
            "search_memory",
            query=f"{setup.direction} {setup.name} {symbol}",
            kind="lesson",
            limit=20,
        )
        verb = "Buy" if setup.direction == "long" else "Sell short"
        own = [hit for hit in known["hits"] if (past := read_experience(hit)) and past.symbol == symbol][:5]
        lessons = [f"{told_on(hit)}: {first_sentence(hit['text'])}" for hit in own]
        history = f"Lessons so far: {'; '.join(lessons)}." if lessons else "No lesson on it so far."
        what = f"{verb} {symbol} at the next open: {setup.name} in {setup.band} volatility."
        yield from ask(
            "remember_proposal",
            text=f"{what} {setup.reason} {history}",
            symbol=symbol,
            action="buy" if setup.direction == "long" else "sell",
            tags=[setup.direction, setup.name, setup.band],
        )


def _sum_up_month(view: MarketView) -> Turn:
    """On a month's first trading day, replace the standing summary by one of the month that ended."""
    past = view.yesterday()
    standing = yield from ask(
        "search_memory", query="", kind="memory", status="active", tags=[MONTH_TAG], limit=1
    )
    lines = []
    for symbol in past.symbols:
        bars = past.bars[symbol]
        side = "above" if bars[-1].close > average(bars, TREND_DAYS) else "below"
        change, annual = total_return(bars, MONTH_DAYS), volatility(bars, CHANNEL_DAYS)
        lines.append(
            f"{symbol} {change:+.1%} in {MONTH_DAYS} trading days to {bars[-1].close}, "
            f"{side} its 50-day average, volatility {annual:.0%}"
        )
    more = {"supersedes": standing["hits"][0]["id"]} if standing["hits"] else {}
    yield from ask(
        "remember",
        text=f"Month to {past.day}: {'; '.join(lines)}.",
        category="market",
        tags=[MONTH_TAG],
        **more,
    )


def _draw_patterns() -> Turn:
    """Count the trader's lessons by conditions; where most were losses, keep one lesson that says so."""
    own = yield from ask("search_memory", query="", kind="lesson", agent="researcher", limit=50)
    seen = yield from ask("search_memory", query="", kind="lesson", agent="trader", limit=50)
    groups: defaultdict[tuple[str, str, str], list[Experience]] = defaultdict(list)
    for hit in seen["hits"]:
        experience = read_experience(hit)
        if experience is not None:
            groups[experience.conditions].append(experience)
    for conditions, trades in sorted(groups.items()):
        if _mostly_lost(trades):
            standing = [hit for hit in own["hits"] if foretells_loss(hit, conditions)]
            yield from _keep_pattern(conditions, trades, standing)


def _mostly_lost(trades: Sequence[Experience]) -> bool:
    losses, result = sum(trade.lost for trade in trades), sum(trade.return_pct for trade in trades)
    return len(trades) >= PATTERN_TRADES and losses / len(trades) >= PATTERN_LOSS_SHARE and result < 0


def _keep_pattern(
    conditions: tuple[str, str, str], trades: Sequence[Experience], standing: Sequence[Reply]
) -> Turn:
    text = pattern_text(conditions, trades)
    # What outcomes have judged stays as it is: newer numbers would throw its tally away.
    if any(hit["text"] == text or hit["status"] != "proposed" for hit in standing):
        return
    evidence = {
        "trades": len(trades),
        "losses": sum(trade.lost for trade in trades),
        "lessons": [trade.memory_id for trade in trades],
    }
    yield from ask("remember_lesson", text=text, tags=[PATTERN_TAG, *conditions], outcome=as_json(evidence))
    for hit in standing:
        closing = "Newer numbers replace it."
        yield from ask("resolve_memory", memory_id=hit["id"], status="retired", note=closing)
