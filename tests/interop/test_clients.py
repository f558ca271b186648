"""Clients that nobody here wrote, on every transport they have, against the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.permissions import PROFILES, TOOL_ACTIONS
from store import Book
from store.audit import verify
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import Row, Visit

TRADER = """
[agents.trader]
profile = "trader"
token_env = "DESKBOOK_TRADER_TOKEN"
"""
TRADER_TOOLS = {tool for tool, action in TOOL_ACTIONS.items() if PROFILES["trader"].allows(action)}


def read(text: str) -> dict[str, Any]:
    """The JSON that a client handed on, whatever words the framework put around it."""
    return dict(json.loads(text[text.index("{") : text.rindex("}") + 1]))


def sessions(root: Path) -> list[dict[str, Any]]:
    """What the ledger says of each session: by whom, over what, in which protocol version."""
    book = Book.open(root, "default", None, create=False)
    try:
        entries = book.log(EntryFilter(event_type="session.started", limit=1_000))
    finally:
        book.close()
    return [{"agent": entry.agent, **json.loads(entry.content)} for entry in entries]


def assert_told(row: Row, seen: dict[str, Any]) -> None:
    """Both mistakes reached the model with their code, what was wrong and, where the client lets it, what to do."""
    assert "not_found" in seen["missing"]
    assert "thesis_id names no thesis" in seen["missing"]
    if row.refuses_unknown:
        assert "ticker" in seen["unknown"]
    else:
        assert "invalid_input" in seen["unknown"]
        assert "did you mean 'symbol'?" in seen["unknown"]
    if row.hints:
        missing = read(seen["missing"])
        assert (missing["code"], missing["stored"]) == ("not_found", "no")
        assert missing["hint"].startswith("Open theses: ths_")


def test_a_client_works_and_is_told_of_its_mistakes(
    row: Row, transport: str, visit: Visit, tmp_path: Path
) -> None:
    seen = visit(row, transport, TRADER, expected=sorted(TRADER_TOOLS))
    assert set(seen["tools"]) == TRADER_TOOLS
    assert len(seen["tools"]) == len(TRADER_TOOLS)
    written, opened = read(seen["written"]), read(seen["opened"])
    assert (written["kind"], written["status"]) == ("memory", "active")
    hits = {hit["id"]: hit for hit in read(seen["found"])["hits"]}
    assert hits[written["id"]]["text"] == "Unicorn margins rise 目标价"
    assert (hits[written["id"]]["symbol"], hits[written["id"]]["agent"]) == ("AAPL", "trader")
    states = [seen["state"], *([seen["read"]] if row.resources else [])]
    for state in states:
        assert [thesis["id"] for thesis in read(state)["open_theses"]] == [opened["id"]]
    assert_told(row, seen)
    told = sessions(tmp_path / "root")
    assert {each["agent"] for each in told} == {"trader"}
    assert {each["transport"] for each in told} == {transport}
    assert {each["protocol_version"] for each in told} == {row.protocol(transport)}
    assert all(each["client_name"] for each in told)
    assert verify(tmp_path / "root" / "default" / "memory.sqlite", "default", None).sound
