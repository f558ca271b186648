"""Answers, from memory alone, what a person asks about a trade: why, on what evidence, what came of it.

Everything said here came out of a tool call made now; nothing is carried over from the days lived through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .book import Position, read_position
from .desk import AgentDesk, DemoFailed
from .strategy import Reply, dated

INDENT = "  "
LESSONS_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Explanation:
    """One closed trade, explained: headings flush left, answers indented; `topic` is what to search it by."""

    symbol: str
    topic: str
    thesis_id: str
    decision_id: str
    retrieval_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Recall:
    """Asks the memory as one model call."""

    desk: AgentDesk
    model_call: str

    async def search(self, **arguments: Any) -> list[Reply]:
        reply = await self.desk.call("search_memory", arguments, self.model_call)
        return list(reply["hits"])

    async def get(self, memory_id: str) -> Reply:
        reply = await self.desk.call("get_memory", {"memory_id": memory_id}, self.model_call)
        memory: Reply = reply["memory"]
        return memory


async def explain_a_trade(desk: AgentDesk) -> Explanation:
    """Pick the closed trade with the most to tell and explain it; DemoFailed when memory cannot."""
    recall = _Recall(desk, f"{desk.name}/explain")
    thesis = await _telling_trade(recall)
    position = read_position(thesis["text"])
    decisions = await _decisions(recall, thesis)
    entry = decisions[0]
    lines = [
        f"From memory: the {position.direction} trade in {position.symbol}, {thesis['id']}",
        "Why was it made?",
        *_indented([entry["text"]]),
        "On what evidence?",
        *_indented(await _evidence_lines(recall, entry)),
        "What was searched before?",
        *_indented(await _search_lines(recall, entry)),
        "What came of it?",
        *_indented(_course_lines(thesis, decisions[1:], position)),
        *_indented(await _lesson_lines(recall, thesis)),
    ]
    return Explanation(
        position.symbol,
        f"{position.direction} {position.setup} {position.symbol} {position.band} volatility",
        thesis["id"],
        entry["id"],
        entry["details"]["retrieval_id"],
        tuple(lines),
    )


async def _telling_trade(recall: _Recall) -> Reply:
    """The closed thesis with the most fills and remarks, the newest among equals."""
    closed = await recall.search(
        query="", kind="thesis", status="closed", limit=50, response_format="detailed"
    )
    if not closed:
        raise DemoFailed(
            "Memory holds no closed trade to explain.", hint="Let the demo run for 40 days or more."
        )

    def telling(hit: Reply) -> tuple[int, int, str]:
        position = read_position(hit["text"])
        return len(position.fills), len(position.remarks), dated(hit)

    return await recall.get(max(closed, key=telling)["id"])


async def _decisions(recall: _Recall, thesis: Reply) -> list[Reply]:
    """The decisions that name the thesis, oldest first."""
    found = await recall.search(
        query="",
        kind="decision",
        symbol=thesis["symbol"],
        since=thesis["created_at"],
        until=thesis["effective_at"],
        limit=50,
        response_format="detailed",
    )
    mine = [hit for hit in reversed(found) if hit["details"].get("thesis_id") == thesis["id"]]
    if not mine:
        raise DemoFailed(f"Memory holds no decision for {thesis['id']}.")
    return [await recall.get(hit["id"]) for hit in mine]


async def _evidence_lines(recall: _Recall, decision: Reply) -> list[str]:
    evidence = decision["details"]["evidence"]
    facts = {name: value for name, value in evidence.items() if isinstance(value, str | int | float)}
    lines = [", ".join(f"{name} {value}" for name, value in facts.items() if "_id" not in name)]
    cited = [await recall.get(name) for name in (evidence["proposal_id"], *evidence["cited_ids"])]
    return [*lines, *map(_quoted, cited)]


async def _search_lines(recall: _Recall, decision: Reply) -> list[str]:
    evidence = decision["details"]["evidence"]
    query, found = evidence["searched"]["query"], evidence["searched"]["found"]
    nearest = [await recall.get(memory_id) for memory_id in found[:LESSONS_SHOWN]]
    search = f"search {decision['details']['retrieval_id']}"
    return [
        f'Lessons for "{query}" ({search}): {len(found) or "none"}{", the nearest:" if found else "."}',
        *map(_quoted, nearest),
        f"All active risk notes (search {evidence['risk_notes_retrieval_id']}).",
    ]


def _course_lines(thesis: Reply, later: Iterable[Reply], position: Position) -> list[str]:
    lines = [f"{fill.day}: {fill.side} {fill.shares} at {fill.price}" for fill in position.fills]
    lines += [f"{dated(decision)}: {decision['text']}" for decision in later]
    outcome: Mapping[str, str] = thesis["details"]["outcome"]
    came = f"{outcome['result']} of {outcome['pnl']} dollars ({outcome['return_pct']}%)"
    return [
        *sorted(lines),
        f"{dated(thesis)}: closed with a {came} at {outcome['exit_price']}. {outcome['note']}",
    ]


async def _lesson_lines(recall: _Recall, thesis: Reply) -> list[str]:
    found = await recall.search(
        query="",
        kind="lesson",
        symbol=thesis["symbol"],
        since=thesis["effective_at"],
        limit=50,
        response_format="detailed",
    )
    own = [hit for hit in found if (hit["details"].get("outcome") or {}).get("thesis_id") == thesis["id"]]
    if not own:
        raise DemoFailed(f"Memory holds no lesson from {thesis['id']}.")
    return [f"{_quoted(hit)} ({hit['status']})" for hit in own]


def _quoted(memory: Reply) -> str:
    text = " ".join(str(memory["text"]).split())
    return f'{memory["kind"]} {memory["id"]} by {memory["agent"]}, {memory["created_at"][:10]}: "{text}"'


def _indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]
