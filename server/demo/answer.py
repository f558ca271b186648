"""Answers, from memory alone, what a person asks about a trade: which it was, what came of it, what it taught.

Everything said here came out of a tool call made now; nothing is carried over from the days lived through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .book import read_position
from .desk import AgentDesk, DemoFailed
from .strategy import Reply, dated

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Explanation:
    """One closed trade: headings flush left, answers indented; `topic` is what to search it by.

    `action_id` is its first order's, `decision_id` the decision behind that, `retrieval_id` the search before it.
    """

    symbol: str
    topic: str
    thesis_id: str
    action_id: str
    decision_id: str
    retrieval_id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Recall:
    """Asks the memory as one model call."""

    desk: AgentDesk
    model_call: str

    async def search(self, **arguments: Any) -> list[Reply]:
        asked = {"query": "", "limit": 50, "response_format": "detailed", **arguments}
        reply = await self.desk.call("search_memory", asked, self.model_call)
        return list(reply["hits"])

    async def get(self, memory_id: str) -> Reply:
        return await self.desk.call("get_memory", {"memory_id": memory_id}, self.model_call)


async def explain_a_trade(desk: AgentDesk) -> Explanation | None:
    """Pick the closed trade with the most to tell and say what came of it; None when no trade was closed yet."""
    recall = _Recall(desk, f"{desk.name}/explain")
    told = await _telling_trade(recall)
    if told is None:
        return None
    thesis, order = told
    position = read_position(thesis["text"])
    decision = (await recall.get(order["details"]["decision_id"]))["memory"]
    lines = [
        f"From memory: the {position.direction} trade in {position.symbol}, {thesis['id']}",
        INDENT + _ending(thesis),
        *(INDENT + line for line in await _lesson_lines(recall, thesis)),
    ]
    return Explanation(
        position.symbol,
        f"{position.direction} {position.setup} {position.symbol} {position.band} volatility",
        thesis["id"],
        order["id"],
        decision["id"],
        decision["details"]["retrieval_id"],
        tuple(lines),
    )


async def _telling_trade(recall: _Recall) -> tuple[Reply, Reply] | None:
    """The closed thesis with the most to tell, the newest among equals, and its first order.

    One whose orders all name the thesis comes first, then one with an order that stayed unknown for a while.
    """
    found = []
    for hit in await recall.search(kind="thesis", status="closed"):
        position = read_position(hit["text"])
        orders = [await recall.get(fill.action_id) for fill in position.fills]
        if orders:
            linked = all(order["memory"]["details"].get("thesis_id") == hit["id"] for order in orders)
            unknown = any(_was_unknown(order["history"]) for order in orders)
            weight = (linked, unknown, len(orders), len(position.remarks), dated(hit))
            found.append((weight, hit["id"], orders[0]["memory"]))
    if not found:
        return None
    _, thesis_id, order = max(found, key=lambda one: one[0])
    return (await recall.get(thesis_id))["memory"], order


def _was_unknown(history: Iterable[Reply]) -> bool:
    return any(entry["content"].get("certainty") == "unknown" for entry in history)


def _ending(thesis: Reply) -> str:
    outcome: Mapping[str, str] = thesis["details"]["outcome"]
    came = f"{outcome['result']} of {outcome['pnl']} dollars ({outcome['return_pct']}%)"
    return f"{dated(thesis)}: closed with a {came} at {outcome['exit_price']}. {outcome['note']}"


async def _lesson_lines(recall: _Recall, thesis: Reply) -> list[str]:
    found = await recall.search(kind="lesson", query=thesis["symbol"], since=thesis["effective_at"])
    own = [hit for hit in found if (hit["details"].get("outcome") or {}).get("thesis_id") == thesis["id"]]
    if not own:
        raise DemoFailed(f"Memory holds no lesson from {thesis['id']}.")
    return [f'lesson {hit["id"]} by {hit["agent"]} ({hit["status"]}): "{hit["text"]}"' for hit in own]
