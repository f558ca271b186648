"""A file system that takes no write-ahead log: refused with the reason, never served in an unsafe way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import StartServer

pytestmark = pytest.mark.faults

NO_LOG = str(Path(__file__).with_name("no_log.py"))


@pytest.mark.parametrize("there_before", [False, True])
def test_a_store_without_a_write_ahead_log_is_refused_with_the_reason(
    start_server: StartServer, ledger: Path, there_before: bool
) -> None:
    """P026."""
    if there_before:
        first = start_server().open()
        first.remember("kept")
        assert first.end() == 0
    before = ledger.read_bytes() if there_before else None
    server = start_server(launch=("-P", NO_LOG)).open()
    for tool, arguments in (("remember", {"text": "unsafe"}), ("search_memory", {"query": "kept"})):
        for _ in range(2):
            answer = server.call(tool, **arguments)
            assert answer.is_error
            assert answer.body["code"] == "store_error", answer.body
            assert answer.body["stored"] == "no"
            assert "log" in answer.body["message"] + answer.body["hint"]
            assert "local disk" in answer.body["hint"]
    assert "result" in server.message(server.ask("tools/list"))
    assert server.end() == 0
    if before is not None:
        assert ledger.read_bytes() == before
    after = start_server().open()
    after.remember("on a good disk")
    assert after.call("search_memory", query="unsafe").body["total"] == 0
