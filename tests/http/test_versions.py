"""One request alone, as protocol 2026-07-28 sends it: served, and one of another version is told which there are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from conftest import HttpDesk

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "2027-01-01"


def alone_on_stdio(root: Path, body: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fresh server whose only input is this one request."""
    done = subprocess.run(
        [sys.executable, "-m", "server", "serve", "--root", str(root)],
        input=json.dumps(body) + "\n",
        capture_output=True,
        text=True,
        cwd="/",
        env={"HOME": str(root), "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def test_a_single_modern_request_is_served_on_both_transports(desk: HttpDesk, tmp_path: Path) -> None:
    """P240."""
    body, headers = desk.modern("tools/list")
    with desk.raw("trader") as http:
        answered = http.post("/mcp", json=body, headers=headers)
    assert answered.status_code == 200
    for answer in (desk.answer(answered), alone_on_stdio(tmp_path, body)):
        names = {tool["name"] for tool in answer["result"]["tools"]}
        assert {"remember", "search_memory"} <= names


def test_a_single_request_of_an_unknown_version_is_told_the_versions_there_are(
    desk: HttpDesk, tmp_path: Path
) -> None:
    """P240."""
    body, headers = desk.modern("tools/list", _meta={PROTOCOL_VERSION_META_KEY: UNKNOWN})
    with desk.raw("trader") as http:
        answered = http.post("/mcp", json=body, headers={**headers, "MCP-Protocol-Version": UNKNOWN})
    assert answered.status_code == 400
    for answer in (desk.answer(answered), alone_on_stdio(tmp_path, body)):
        assert answer["error"]["data"]["requested"] == UNKNOWN
        assert set(MODERN_PROTOCOL_VERSIONS) <= set(answer["error"]["data"]["supported"])
