"""Lumibot through configs/hosts/lumibot.py as a user copies it: its memory tools replaced, its clock in headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.permissions import PROFILES, TOOL_ACTIONS
from store import Book
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import DriveClient, StartHttp

pytestmark = pytest.mark.interop_more

EXAMPLE = Path(__file__).resolve().parents[2] / "configs" / "hosts" / "lumibot.py"
TRADER_TOOLS = {tool for tool, action in TOOL_ACTIONS.items() if PROFILES["trader"].allows(action)}
REPLACED = {
    "remember", "search_memory", "remember_proposal", "remember_risk_note", "remember_decision",
    "remember_lesson", "open_thesis", "update_thesis", "close_thesis",
}  # fmt: skip
CONFIG = """
[agents.trader]
profile = "trader"
token_env = "DESKBOOK_TRADER_TOKEN"
clock = { mode = "simulated" }
"""
FIRST = "2026-03-02T16:00:00-05:00"
TOKEN = "a-token-of-the-trader-for-tests-only"


def test_our_nine_replace_lumibots_own_and_its_clock_goes_by_headers_and_never_back(
    start_http: StartHttp, drive_client: DriveClient, tmp_path: Path
) -> None:
    config = tmp_path / "backtest.toml"
    config.write_text(CONFIG, encoding="utf-8")
    desk = start_http("--config", str(config), DESKBOOK_TRADER_TOKEN=TOKEN)
    to = {"url": f"{desk.url}/mcp", "example": str(EXAMPLE), "first": FIRST, "run": "run-1"}
    seen = drive_client("lumibot_client", "lumibot_clock", to, DESKBOOK_TRADER_TOKEN=TOKEN)
    assert set(seen["tools"]) == TRADER_TOOLS
    assert set(seen["tools"]) >= REPLACED
    assert not set(seen["own"]) & set(seen["tools"])
    early, later = json.loads(seen["early"]), json.loads(seen["later"])
    assert early["effective_at"] == "2026-03-02T21:00:00Z"
    assert later["effective_at"] == "2026-03-03T21:00:00Z"
    hits = json.loads(seen["found"])["hits"]
    assert {hit["id"] for hit in hits} == {early["id"], later["id"]}
    assert (seen["late"], seen["late_for_the_first"] != []) == ([], True)
    assert "clock_error" in seen["back"]
    book = Book.open(tmp_path / "root", "default", "run-1", create=False)
    try:
        entries = book.log(EntryFilter(limit=1_000))
    finally:
        book.close()
    written = [entry for entry in entries if entry.event_type == "memory.recorded"]
    assert [entry.subject_id for entry in written] == [early["id"], later["id"]]
    assert {entry.session_id for entry in written} == {"run-1"}
    assert len({entry.model_call_id for entry in written}) == 2
