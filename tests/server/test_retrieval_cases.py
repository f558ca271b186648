"""What the ledger says a search handed over is what went over the wire: byte for byte, whatever became of it."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import apsw
import pytest

from server.fairness import Turns
from store.clock import parse_instant
from store.event_parts import Candidate
from store.paths import ledger_path
from store.readings import Readings

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk, PipedDesk, StartDesk

GUARD = 60.0
DESK = '[limits]\nreply_chars = 2000\ncalls_per_minute = 1000000\n[agents.a]\nprofile = "solo"\n'
NOTES = 60
PAST = "2001-01-01T00:00:00Z"
SEARCHES: dict[str, dict[str, Any]] = {
    "everything": {},
    "words": {"query": "margin 目标价"},
    "signs only": {"query": "🚀"},
    "narrowed by all there is": {
        "query": "margin",
        "kind": "memory",
        "symbol": "nesn",
        "status": "active",
        "tags": ["Swiss"],
        "agent": "a",
        "since": PAST,
        "until": "2200-01-01T00:00:00+01:00",
    },
    "a page": {"query": "margin", "limit": 3},
    "truncated": {"query": "margin", "limit": 50, "response_format": "detailed"},
    "nothing found": {"query": "margin", "symbol": "MSFT"},
    "before there was anything": {"query": "margin", "as_of": PAST},
    "as things stood just now": {"query": "margin", "as_of": "2200-01-01T00:00:00Z"},
}
REFUSED: dict[str, dict[str, Any]] = {
    "an argument that is none": {"query": "margin", "ticker": "NESN"},
    "a time without an offset": {"query": "margin", "as_of": "2026-03-02T14:30:00"},
    "a cursor that is none": {"query": "margin", "cursor": "AAAA"},
    "a limit out of bounds": {"query": "margin", "limit": 51},
    "a query too long": {"query": "m" * 20_000},
}


def retrievals(root: Path) -> list[dict[str, Any]]:
    """The rows of memory_retrievals, each with the content of its entry, as a program with SQLite sees them."""
    sql = (
        "SELECT r.*, e.content, e.retrieval_id AS named, e.subject_id, e.tool FROM memory_retrievals r"
        " JOIN memory_events e USING (sequence) ORDER BY sequence"
    )
    path = ledger_path(root, "default", None)
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        rows = connection.execute(sql)
        return [
            {column[0]: value for column, value in zip(rows.description, row, strict=True)} for row in rows
        ]


def check_row(row: dict[str, Any], asked: dict[str, Any], wire: str) -> None:
    """One row against the text that a client read from the wire."""
    body, content = json.loads(wire), json.loads(row["content"])
    assert content["rendered"] == wire
    assert row["retrieval_id"] == row["named"] == row["subject_id"] == body["retrieval_id"]
    assert (row["query"], row["agent"], row["tool"]) == (asked.get("query", ""), "a", "search_memory")
    told = json.loads(row["filters"])
    assert told == content["filters"]
    assert told.keys() == asked.keys() & {"kind", "symbol", "status", "tags", "agent", "since", "until"}
    for name, value in asked.items():
        if name in ("as_of", "since", "until"):
            assert (content | told)[name] == parse_instant(value, field=name)
    assert ("as_of" in content) == ("as_of" in asked)
    assert (content["query"], content["total"], content["cut"]) == (row["query"], row["total"], row["cut"])
    assert row["total"] == body["total"]

    selected = json.loads(row["selected"])
    assert [(one["id"], one["version"]) for one in selected] == [
        (hit["id"], hit.get("version", 1)) for hit in body["hits"]
    ]
    candidates = json.loads(row["candidates"])
    assert candidates == content["candidates"]
    assert all(one.keys() <= Candidate.model_fields.keys() for one in candidates)
    assert {one["id"] for one in selected} <= {one["id"] for one in candidates}
    assert [one["lexical_rank"] for one in candidates] == list(range(1, len(candidates) + 1))
    whole = min(row["total"], 50 if asked.get("query") else asked.get("limit", 10))
    assert len(candidates) == whole


@pytest.fixture
def wired(start_serve: StartDesk, tmp_path: Path, era: str) -> PipedDesk:
    """A server process with notes to find, spoken to in one era."""
    config = tmp_path / "desk.toml"
    config.write_text(DESK, encoding="utf-8")
    desk = start_serve("--config", str(config), "--agent", "a")
    desk.open(era)
    for number in range(NOTES):
        text = f'margin {number} 目标价 95 🚀 \u2028 "quoted" \\ {"x" * 200}'
        desk.send(desk.tool(era, f"n{number}", "remember", text=text, symbol="NESN", tags=["Swiss"]))
    for number in range(NOTES):
        assert desk.reply(f"n{number}")["result"]["isError"] is False
    return desk


def test_the_row_of_every_search_is_what_went_over_the_wire(
    wired: PipedDesk, tmp_path: Path, era: str
) -> None:
    """P205: hits, none, a page, a reply cut to its cap, filters and as-of."""
    texts = []
    for name, asked in SEARCHES.items():
        wired.send(wired.tool(era, name, "search_memory", **asked))
        texts.append(wired.text(name))
    rows = retrievals(tmp_path / "root")
    assert len(rows) == len(SEARCHES)
    for row, asked, text in zip(rows, SEARCHES.values(), texts, strict=True):
        check_row(row, asked, text)
    bodies = dict(zip(SEARCHES, (json.loads(text) for text in texts), strict=True))
    assert (bodies["truncated"]["truncated"], len(bodies["truncated"]["hits"]) < 50) == (True, True)
    assert [bodies[name]["total"] for name in ("nothing found", "before there was anything")] == [0, 0]
    narrowed = json.loads(rows[3]["filters"])
    assert (narrowed["symbol"], narrowed["tags"], narrowed["kind"]) == ("NESN", ["swiss"], "memory")


def test_every_page_of_a_truncated_search_is_a_row_of_its_own(
    wired: PipedDesk, tmp_path: Path, era: str
) -> None:
    """P205: page by page, the rows name every memory once, and none that was not handed over."""
    texts: list[str] = []
    asked: dict[str, Any] = {"query": "margin", "limit": 20}
    while not texts or json.loads(texts[-1])["cursor"]:
        onward = {"cursor": json.loads(texts[-1])["cursor"]} if texts else {}
        wired.send(wired.tool(era, len(texts), "search_memory", **asked, **onward))
        texts.append(wired.text(len(texts)))
    rows = retrievals(tmp_path / "root")
    assert [json.loads(row["content"])["rendered"] for row in rows] == texts
    handed = [one["id"] for row in rows for one in json.loads(row["selected"])]
    assert len(handed) == len(set(handed)) == NOTES


def test_a_search_that_is_refused_leaves_no_row(wired: PipedDesk, tmp_path: Path, era: str) -> None:
    """P205: nothing was handed over, and nothing says that it was."""
    for name, asked in REFUSED.items():
        wired.send(wired.tool(era, name, "search_memory", **asked))
        told = json.loads(wired.text(name))
        assert (told["code"], told["stored"]) == ("invalid_input", "no"), name
    assert retrievals(tmp_path / "root") == []


def test_a_search_that_cannot_be_recorded_is_not_answered(wired: PipedDesk, tmp_path: Path, era: str) -> None:
    """P205: no row, no text; once it can be recorded again, both."""
    path = ledger_path(tmp_path / "root", "default", None)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        wired.send(wired.tool(era, "held", "search_memory", query="margin"))
        told = json.loads(wired.text("held"))
        other.execute("ROLLBACK")
    assert (told["code"], told["stored"], "hits" in told) == ("not_recorded", "no", False)
    wired.send(wired.tool(era, "free", "search_memory", query="margin"))
    text = wired.text("free")
    (row,) = retrievals(tmp_path / "root")
    check_row(row, {"query": "margin"}, text)


@pytest.mark.anyio
async def test_a_search_that_its_client_cancels_under_way_is_recorded_whole(
    open_desk: OpenDesk, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P205: what was made ready for the client is on record, whether or not it still listened."""
    begun, gate = threading.Event(), threading.Event()
    record, rendered = Readings._record_search, list[str]()

    def held(self: Readings, caller: Any, draft: Any) -> None:
        rendered.append(draft.event.rendered)
        begun.set()
        assert gate.wait(GUARD)
        record(self, caller, draft)

    desk: InMemoryDesk = open_desk(DESK, "a")
    async with desk.client(era) as client:
        await desk.call(client, "remember", text="margin")
        monkeypatch.setattr(Readings, "_record_search", held)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.call, client, "search_memory")
            assert await anyio.to_thread.run_sync(begun.wait, GUARD)
            tasks.cancel_scope.cancel()
            gate.set()
        monkeypatch.setattr(Readings, "_record_search", record)
        seen = (await client.call_tool("search_memory", {"query": "margin"})).content[0].text  # type: ignore[union-attr]
    desk.server.drain()
    (given_up,) = rendered
    rows = {row["retrieval_id"]: row for row in retrievals(desk.root)}
    assert len(rows) == 2
    check_row(rows[json.loads(given_up)["retrieval_id"]], {}, given_up)
    check_row(rows[json.loads(seen)["retrieval_id"]], {"query": "margin"}, seen)


@pytest.mark.anyio
async def test_a_search_that_is_cancelled_before_its_turn_leaves_no_row(
    open_desk: OpenDesk, era: str
) -> None:
    """P205: nothing had been looked up for it yet."""
    desk: InMemoryDesk = open_desk(DESK, "a")
    places = desk.server._dispatch._waiters = Turns(1)
    async with desk.client(era) as client:
        await desk.call(client, "remember", text="margin")
        async with places.turn("somebody else"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(desk.call, client, "search_memory")
                while not places._waiting:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            while places._waiting:
                await anyio.lowlevel.checkpoint()
        assert retrievals(desk.root) == []
        seen = (await client.call_tool("search_memory", {"query": "margin"})).content[0].text  # type: ignore[union-attr]
    (row,) = retrievals(desk.root)
    check_row(row, {"query": "margin"}, seen)
