"""What a backtest taught, found by search in its run, and written down on a live desk that knows it not yet."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .lessons import Experience, read_experience
from .researcher import PATTERN_TAG
from .strategy import Reply, ToolCall, as_json, ask, dated, first_sentence

LESSONS_CARRIED, PATTERNS_CARRIED = 3, 1
CARRIED_TAG = "backtest"

Gathering: TypeAlias = Generator[ToolCall, Reply, tuple[ToolCall, ...]]
KIND_OF = {"remember_lesson": "lesson", "remember_risk_note": "risk_note", "remember": "memory"}


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory as it stands on the live desk; `known` when it stood there before, from an earlier demo."""

    memory_id: str
    kind: str
    text: str
    written_at: str
    known: bool


def gather(topic: str, run: str) -> Gathering:
    """Search a finished run for what it taught, first about `topic`; the calls that would write it down."""
    near = yield from ask(
        "search_memory",
        query=topic,
        kind="lesson",
        agent="trader",
        limit=LESSONS_CARRIED,
        response_format="detailed",
    )
    patterns = yield from ask(
        "search_memory",
        query="",
        kind="lesson",
        status="proposed",
        tags=[PATTERN_TAG],
        limit=PATTERNS_CARRIED,
        response_format="detailed",
    )
    every = yield from ask("search_memory", query="", kind="lesson", agent="trader", limit=50)
    trades = [experience for hit in every["hits"] if (experience := read_experience(hit)) is not None]
    span = f"{dated(every['hits'][-1])} to {dated(every['hits'][0])}"
    lessons = [_lesson(hit, run) for hit in (*near["hits"], *patterns["hits"])]
    return (*lessons, *_warning(trades, span), _summary(trades, span))


def write_down(notes: Sequence[ToolCall]) -> Generator[ToolCall, Reply, list[Kept]]:
    """Search live memory for each note and write what is not there yet."""
    kept = []
    for note in notes:
        text, kind = note.arguments["text"], KIND_OF[note.tool]
        found = yield from ask(
            "search_memory", query=first_sentence(text), kind=kind, limit=50, response_format="detailed"
        )
        same = next((hit for hit in found["hits"] if hit["text"] == text), None)
        told = same or (yield from ask(note.tool, **note.arguments))
        kept.append(Kept(told["id"], kind, text, told["effective_at"], same is not None))
    return kept


def _lesson(hit: Reply, run: str) -> ToolCall:
    learned = {"run": run, "memory_id": hit["id"], "learned_at": hit["effective_at"]}
    arguments = {"text": hit["text"], "tags": [CARRIED_TAG, *hit["tags"]], "outcome": as_json(learned)}
    return ToolCall("remember_lesson", arguments | ({"symbol": hit["symbol"]} if hit["symbol"] else {}))


def _warning(trades: Sequence[Experience], span: str) -> list[ToolCall]:
    """A risk note on the symbol in which the backtest lost most, when it lost in any."""
    results = {
        symbol: sum(trade.return_pct for trade in trades if trade.symbol == symbol)
        for symbol in sorted({trade.symbol for trade in trades})
    }
    worst = min(results, key=lambda symbol: results[symbol])
    if results[worst] >= 0:
        return []
    mine = [trade for trade in trades if trade.symbol == worst]
    text = (
        f"Backtest risk in {worst}: from {span} it lost {sum(trade.lost for trade in mine)} of {len(mine)} "
        f"trades, {results[worst]:+.2f}% in sum. Trade half size at most."
    )
    return [ToolCall("remember_risk_note", {"text": text, "symbol": worst, "tags": [CARRIED_TAG]})]


def _summary(trades: Sequence[Experience], span: str) -> ToolCall:
    won = sum(not trade.lost for trade in trades)
    text = (
        f"Backtest {span}: {len(trades)} trades finished, {won} of them won, "
        f"{sum(trade.return_pct for trade in trades):+.2f}% in sum of the trades' own returns."
    )
    return ToolCall("remember", {"text": text, "category": "backtest", "tags": [CARRIED_TAG]})
