"""A client of the SDK's first generation (1.30, protocol 2025-11-25) against the real server over stdio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.permissions import PROFILES, TOOL_ACTIONS
from store.audit import verify

TRADER_TOOLS = {tool for tool, action in TOOL_ACTIONS.items() if PROFILES["trader"].allows(action)}

if TYPE_CHECKING:
    from conftest import RunClient

pytestmark = pytest.mark.interop

TRADER = '[agents.a]\nprofile = "trader"'
RESEARCHER = '[agents.a]\nprofile = "researcher"'


def visit(run_older_client: RunClient, config: str) -> dict[str, Any]:
    ran = run_older_client(config, "a")
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def test_an_older_client_lists_writes_searches_reads_and_is_told_what_is_wrong(
    run_older_client: RunClient, tmp_path: Path
) -> None:
    seen = visit(run_older_client, TRADER)
    assert (seen["sdk"], seen["protocol"]) == ("1.30.0", "2025-11-25")
    assert "search_memory" in seen["instructions"]
    assert set(seen["tools"]) == TRADER_TOOLS
    assert seen["pages_left"] is None
    assert seen["resources"] == ["memory://state"]
    assert seen["templates"] == ["memory://memory/{id}", "memory://thesis/{id}"]
    assert seen["prompts"] == ["decision_journal", "review_open_thesis"]
    for name in ("written", "nulls", "found", "denied"):
        assert seen[name]["is_error"] is False, seen[name]
        assert seen[name]["text"] == seen[name]["structured"]
    (hit,) = seen["found"]["text"]["hits"]
    assert (hit["text"], hit["symbol"], hit["agent"]) == ("unicorn margins 目标价", "AAPL", "a")
    for name, field in (("wrong", "ticker"), ("blank", "text")):
        told = seen[name]
        assert (told["is_error"], told["blocks"], told["structured"]) == (True, 1, None)
        assert (told["text"]["code"], told["text"]["field"]) == ("invalid_input", field)
    assert "did you mean 'symbol'?" in seen["wrong"]["text"]["message"]
    assert seen["state"]["counts"]["memories"] == 3
    assert seen["item"]["memory"]["text"] == "unicorn margins 目标价"
    assert seen["missing"]["refused"]["code"] == "not_found"
    assert len(set(seen["burst"])) == 25
    assert verify(tmp_path / "root" / "default" / "memory.sqlite", "default", None).sound


def test_an_older_client_is_shown_and_allowed_only_what_its_profile_allows(
    run_older_client: RunClient,
) -> None:
    seen = visit(run_older_client, RESEARCHER)
    assert "remember_decision" not in seen["tools"]
    assert seen["prompts"] == []
    assert seen["denied"]["is_error"] is True
    assert seen["denied"]["text"]["code"] == "permission_denied"
