"""Every code block of the documents is run or read; a block in a language that nothing tries is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from server.errors import describe
from server.identity import launch_identity
from server.settings import load_settings
from server.tools import TOOLS
from store import Book, Caller, Filter, SearchRequest
from store.commands import OpenThesis
from store.errors import AlreadyClosed

# What is tried elsewhere is nginx, in tests/http/test_proxy.py, and sql, in tests/docs/test_queries.py.
TRIED = {"sh", "toml", "json", "python", "nginx", "sql"}
SHOWN = {"text"}
GUARD = 120
PLACEHOLDER = "/home/you/"


def _with_language(documents: dict[str, Any], language: str) -> list[Any]:
    return [document for document in documents.values() if document.blocks(language)]


def test_every_block_names_a_language_that_is_tried(documents: dict[str, Any]) -> None:
    for document in documents.values():
        assert document.languages() <= TRIED | SHOWN, document.name
        fences = re.findall(r"^```.*$", document.text, re.MULTILINE)
        opened = sum(len(document.blocks(language)) for language in TRIED | SHOWN)
        assert len(fences) == 2 * opened, document.name


def test_every_shell_block_runs_in_order(
    documents: dict[str, Any], home: Path, command: Path, tmp_path: Path
) -> None:
    _seed(home)
    for document in _with_language(documents, "sh"):
        place = tmp_path / document.path.stem
        place.mkdir()
        for block in document.blocks("sh"):
            script = "\n".join(line for line in block.splitlines() if not line.startswith("make "))
            done = subprocess.run(
                ["/bin/bash", "-euo", "pipefail", "-c", script],
                cwd=place,
                env={"HOME": str(home), "PATH": f"{command.parent}:/usr/bin:/bin"},
                capture_output=True,
                text=True,
                timeout=GUARD,
                check=False,
            )
            assert done.returncode == 0, f"{document.name}:\n{block}\n{done.stdout}{done.stderr}"
            assert done.stderr == "", f"{document.name}:\n{block}\n{done.stderr}"


def test_every_make_target_that_is_named_exists(documents: dict[str, Any], root: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    shells = [block for document in documents.values() for block in document.blocks("sh")]
    named = {target for block in shells for target in re.findall(r"^make ([a-z]+)$", block, re.MULTILINE)}
    for document in documents.values():
        named |= {span.split()[1] for span in document.spans() if re.fullmatch(r"make [a-z]+", span)}
    assert {"demo", "test", "setup"} <= named <= targets


def test_every_toml_block_is_valid_and_a_config_of_ours_starts_each_of_its_agents(
    documents: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    started = []
    for document in _with_language(documents, "toml"):
        for number, block in enumerate(document.blocks("toml")):
            if "mcp_servers" in tomllib.loads(block):
                continue  # the host's own file, tried in the first minute
            path = tmp_path / f"{document.path.stem}-{number}.toml"
            path.write_text(block, encoding="utf-8")
            settings = load_settings(config=path, flags={}, environ={})
            started += [launch_identity(settings, name).agent for name in settings.agents]
    configuration, http, security = (
        ["researcher", "trader", "tester"],
        ["researcher", "trader", "trader"],
        ["risk"],
    )
    assert started == ["researcher", *configuration, *http, *security]


def test_every_json_block_is_valid(documents: dict[str, Any]) -> None:
    blocks = [json.loads(b) for d in _with_language(documents, "json") for b in d.blocks("json")]
    assert all(isinstance(block, dict | list) for block in blocks)


def test_the_error_shown_is_the_error_that_is_sent(readme: Any) -> None:
    shown = json.loads(readme.blocks("json")[-1])
    fault = AlreadyClosed(shown["message"], field=shown["field"], hint=shown["hint"])
    assert describe(fault) == shown
    assert list(describe(fault)) == list(shown)


def test_the_worked_vector_is_checked_by_the_code_beside_it(documents: dict[str, Any]) -> None:
    ledger = documents["docs/ledger.md"]
    (vector,), (code,) = ledger.blocks("json"), ledger.blocks("python")
    exec(compile(code, ledger.name, "exec"), {"vector": json.loads(vector)})
    forged = vector.replace('"agent": "trader"', '"agent": "harness"')
    assert forged != vector
    with pytest.raises(AssertionError):
        exec(compile(code, ledger.name, "exec"), {"vector": json.loads(forged)})


@pytest.fixture
def call(home: Path, command: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Calls a tool of a real server that was started without a config."""
    client = Client(StdioServerParameters(command=str(command), args=["serve"], cwd="/"))

    def make(name: str, **arguments: Any) -> dict[str, Any]:
        result = portal.call(client.call_tool, name, arguments)
        assert not result.is_error, (name, arguments, result.content)
        reply: dict[str, Any] = result.structured_content
        return reply

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield make


def test_the_usage_patterns_run_against_a_server_and_do_what_they_say(
    readme: Any, call: Callable[..., dict[str, Any]]
) -> None:
    names: dict[str, Any] = {tool: partial(call, tool) for tool in TOOLS}
    blocks = readme.blocks("python")
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, readme.name, "exec"), names)
    (decision,) = call("search_memory", kind="decision", response_format="detailed")["hits"]
    assert decision["details"]["retrieval_id"] == names["found"]["retrieval_id"]
    order = call("get_memory", memory_id=names["order"]["id"], response_format="detailed")
    assert order["memory"]["details"]["order"]["status"] == "filled"
    assert order["memory"]["details"]["decision_id"] == decision["id"]
    assert names["order"]["warnings"] == []
    assert names["state"]["unreconciled_orders"] == []
    said = [step["what"] for step in order["explanation"]["steps"] if step["event"] == "order.outcome"]
    assert [what.split()[1] for what in said] == ["unknown", "acknowledged", "filled"]
    assert call("get_memory", memory_id=names["thesis"]["id"])["memory"]["status"] == "closed"
    assert call("search_memory", query="margin", kind="lesson", status="proposed")["total"] == 1
    assert call("search_memory", symbol="AAPL", kind="risk_note", status="active")["total"] == 1
    assert names["state"]["validated_lessons"] == []
    assert len(names["state"]["recent"]) == 5


def test_no_block_names_a_home_but_the_placeholder(documents: dict[str, Any]) -> None:
    for document in documents.values():
        homes = set(re.findall(r"/(?:home|Users)/[^/\s\"`]+/", document.text))
        assert homes <= {PLACEHOLDER}, document.name


def _seed(home: Path) -> None:
    """Something to look at for the commands that need a ledger."""
    root = home / ".local" / "share" / "deskbook"
    assert str(home) == os.environ["HOME"]
    book = Book.open(root, "default")
    trader = Caller("trader", "trader", "ses_1", "open_thesis")
    book.execute(trader, OpenThesis(text="Long AAPL.", symbol="AAPL"))
    book.search(trader, SearchRequest(query="long", conditions=Filter(symbol="AAPL")))
    book.close()
