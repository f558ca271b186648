"""Fixtures for the demo: the shipped prices, a notebook that answers calls without a server, one whole demo.

The notebook finds memories by their filters alone, newest first. It stands in for the server where a test is
about the agents' rules; what a real search returns is tested against real servers.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import anyio
import pytest
from rich.console import Console

from server.demo.broker import SEED, Broker
from server.demo.desk import AgentDesk, DemoClock, open_desk
from server.demo.harness import harness_turn
from server.demo.market import PriceHistory, load_prices
from server.demo.place import STRATEGY, TRADER, DemoPlace
from server.demo.researcher import researcher_turn
from server.demo.run import DemoReport, run_demo
from server.demo.strategy import WARM_UP_DAYS, ToolCall, Turn
from server.demo.trader import trader_turn
from store.book import Book
from store.entry import Entry
from store.rows import EntryFilter

RECORDS = {
    "remember": ("memory", "active"),
    "remember_proposal": ("proposal", "proposed"),
    "remember_risk_note": ("risk_note", "active"),
    "remember_decision": ("decision", "recorded"),
    "remember_lesson": ("lesson", "proposed"),
    "open_thesis": ("thesis", "open"),
}
ORDERS = {
    "record_order_intent", "record_order_outcome", "list_unreconciled_orders", "report_positions",
    "validate_lesson",
}  # fmt: skip


class Notebook:
    """Memories in a dictionary, and every call that was made: (day, agent, call, reply)."""

    def __init__(self) -> None:
        self.memories: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[date, str, ToolCall, Mapping[str, Any]]] = []
        self.positions: list[dict[str, Any]] = []
        self.day = date.min

    def play(self, turn: Turn, agent: str, day: date) -> list[ToolCall]:
        self.day = day
        before = len(self.calls)
        try:
            call = next(turn)
            while True:
                reply = dict(self.answer(agent, call))
                self.calls.append((day, agent, call, reply))
                call = turn.send(reply)
        except StopIteration:
            return [call for _, _, call, _ in self.calls[before:]]

    def answer(self, agent: str, call: ToolCall) -> Mapping[str, Any]:
        given = dict(call.arguments)
        if call.tool in RECORDS:
            return self.add(*RECORDS[call.tool], agent, given)
        if call.tool == "search_memory":
            return {"retrieval_id": f"retrieval-{len(self.calls)}", "hits": self.search(given)}
        if call.tool == "get_memory":
            memory = dict(self.memories[given["memory_id"]])
            return {"memory": memory, "history": memory.get("history", [])}
        if call.tool == "get_memory_state":
            return {"open_theses": self.search({"kind": "thesis", "status": "open", "limit": 8})}
        if call.tool in ORDERS:
            return self.order(agent, call.tool, given)
        changed = self.memories[given.pop("thesis_id", None) or given.pop("memory_id")]
        if call.tool == "update_thesis":
            assert given.pop("expected_version") == changed["version"]
        status = {"close_thesis": "closed"}.get(call.tool, given.pop("status", changed["status"]))
        changed.update({"status": status, "version": changed["version"] + 1, **given})
        return changed

    def order(self, agent: str, tool: str, given: dict[str, Any]) -> Mapping[str, Any]:
        if tool == "record_order_intent":
            assert len(given["reason"]) >= 200
            action = self.add("order_action", "intent", agent, given | {"text": given["reason"]})
            action |= {"details": {}, "history": []}
            return action | {"action_id": action["id"], "warnings": []}
        if tool == "list_unreconciled_orders":
            waiting = [m for m in self.memories.values() if m["status"] in {"intent", "unknown"}]
            return {"orders": [memory | {"action_id": memory["id"]} for memory in waiting]}
        if tool == "report_positions":
            self.positions = json.loads(given["positions"])
            return {"id": "positions"}
        if tool == "validate_lesson":
            lesson = self.memories[given["lesson_id"]]
            tally = lesson.setdefault("tally", Counter())
            tally[given["verdict"]] += len(given["outcome_ids"])
            lesson["status"] = "validated" if tally["supports"] > tally["contradicts"] else "contradicted"
            return lesson
        return self.outcome(agent, given)

    def outcome(self, agent: str, given: dict[str, Any]) -> Mapping[str, Any]:
        """What the journal knows of an order: an action's own status, and the order's apart from it."""
        action = self.memories[given["action_id"]]
        standing = "observed" if agent == "harness" else "claim"
        told = {"certainty": given["certainty"], "standing": standing}
        entry = {"event": "order.outcome", "event_id": f"event-{len(self.calls)}", "content": told}
        action["history"].append(entry)
        if given["certainty"] == "filled":
            assert action["status"] == "acknowledged"
            action["details"] = {"order": {"status": "filled", **given}}
        else:
            action["status"] = given["certainty"]
        return action

    def add(self, kind: str, status: str, agent: str, given: Mapping[str, Any]) -> dict[str, Any]:
        memory = {"id": f"{kind}-{len(self.memories) + 1}", "kind": kind, "status": status, "version": 1}
        memory |= {
            "agent": agent,
            "effective_at": f"{self.day}T21:00:00Z",
            "symbol": None,
            "tags": [],
            **given,
        }
        if "supersedes" in given:
            self.memories[given["supersedes"]]["status"] = "superseded"
        self.memories[memory["id"]] = memory
        return memory

    def search(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = [
            dict(memory)
            for memory in reversed(self.memories.values())
            if all(given.get(name) in (None, memory[name]) for name in ("kind", "status", "symbol", "agent"))
            and set(given.get("tags", ())) <= set(memory["tags"])
            and memory["effective_at"] >= given.get("since", "")
            and not (memory["kind"] == "order_action" and given.get("kind") is None)
        ]
        return found[: given.get("limit", 10)]


@pytest.fixture(scope="session")
def prices() -> PriceHistory:
    return load_prices()


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture(scope="session")
def live_through() -> Callable[..., Notebook]:
    def live(history: PriceHistory, days: int, seed: str = SEED) -> Notebook:
        notebook, broker = Notebook(), Broker(seed)
        for index in range(WARM_UP_DAYS, WARM_UP_DAYS + days):
            view = history.view(index)
            broker.open_market(view)
            notebook.play(harness_turn(view, broker), "harness", view.day)
            notebook.play(researcher_turn(view), "researcher", view.day)
            notebook.play(trader_turn(view, broker), "trader", view.day)
        return notebook

    return live


DAYS, SKIPPED = 40, 200  # from 2008-09-15: all that orders can go through happens in these weeks
KINDS = ("memory", "proposal", "risk_note", "decision", "lesson", "thesis")


@dataclass(frozen=True)
class Lived:
    """A finished demo: its report, what it printed, act one's memories as tools tell them, and its ledgers.

    `orders` are act one's order actions with their history, `state` is what its trader would start with, `waiting`
    what list_unreconciled_orders gives.
    """

    report: DemoReport
    printed: str
    memories: Mapping[str, list[dict[str, Any]]]
    orders: list[Mapping[str, Any]]
    state: Mapping[str, Any]
    waiting: list[Mapping[str, Any]]
    ledger: list[Entry]
    live: list[Entry]
    heir: list[Entry]


def entries_of(report: DemoReport, run: str | None) -> list[Entry]:
    book = Book.open(report.root, STRATEGY, run, create=False)
    try:
        return book.log(EntryFilter(limit=100_000))
    finally:
        book.close()


async def read_back(where: DemoPlace, last: date, ledger: list[Entry]) -> tuple[Any, ...]:
    clock = DemoClock()
    clock.begin(last + timedelta(days=1))
    intents = [entry.subject_id for entry in ledger if entry.event_type == "order_action.recorded"]
    async with open_desk(where, TRADER, clock) as trader:
        memories = {kind: await everything(trader, kind) for kind in KINDS}
        orders = [await trader.call("get_memory", {"memory_id": name}, "read-back") for name in intents]
        state = await trader.call("get_memory_state", {}, "read-back")
        waiting = await trader.call("list_unreconciled_orders", {}, "read-back")
    return memories, orders, state, waiting["orders"]


async def everything(reader: AgentDesk, kind: str) -> list[dict[str, Any]]:
    """Every memory of a kind, whole, oldest first."""
    asked = {"query": "", "kind": kind, "limit": 50}
    page = await reader.call("search_memory", asked, "read-back")
    hits = list(page["hits"])
    while page["cursor"]:
        page = await reader.call("search_memory", {**asked, "cursor": page["cursor"]}, "read-back")
        hits += page["hits"]
    assert len(hits) == page["total"]
    replies = [
        await reader.call("get_memory", {"memory_id": hit["id"]}, "read-back") for hit in reversed(hits)
    ]
    return [reply["memory"] for reply in replies]


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    screen = io.StringIO()
    report = run_demo(tmp_path_factory.mktemp("demo"), DAYS, Console(file=screen, width=200), SKIPPED)
    ledgers = [entries_of(report, run) for run in (report.run, None, report.heir.stem)]
    told = anyio.run(read_back, DemoPlace(report.root, report.run), report.last_day, ledgers[0])
    return Lived(report, screen.getvalue(), *told, *ledgers)
