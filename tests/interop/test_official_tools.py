"""The official conformance suite and the official inspector against the real server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Node, StartHttp

pytestmark = pytest.mark.interop

HERE = Path(__file__).resolve().parent
GUARD = 300
SOLO = '[agents.solo]\nprofile = "solo"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "desk.toml"
    path.write_text(SOLO, encoding="utf-8")
    return path


def run(command: list[str], home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "NO_COLOR": "1", **environ}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=home, env=env, timeout=GUARD
    )


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_conformance_suite_finds_nothing_but_what_is_expected(
    revision: str, node: Node, start_http: StartHttp, config: Path, tmp_path: Path
) -> None:
    desk = start_http("--config", str(config), "--agent", "solo")
    expected = HERE / f"conformance-{revision}.yml"
    words = ["server", "--url", f"{desk.url}/mcp", "--requirements", revision]
    words += ["--expected-failures", str(expected), "--output-dir", str(tmp_path / "results")]
    ran = run(node.command("@modelcontextprotocol/conformance", "dist/index.js", *words), tmp_path)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert any((tmp_path / "results").iterdir())


def inspect(node: Node, home: Path, target: list[str], *words: str) -> dict[str, Any]:
    """What the inspector reads by one method; a word of complaint fails."""
    launcher = "clients/launcher/build/index.js"
    command = node.command(
        "@modelcontextprotocol/inspector", launcher, "--cli", *target, *words, "--format", "json"
    )
    ran = run(command, home)
    assert (ran.returncode, ran.stderr.strip()) == (0, ""), ran.stdout + ran.stderr
    return dict(json.loads(ran.stdout)["result"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_the_inspector_has_nothing_to_say_against_us(
    transport: str,
    era: str,
    node: Node,
    start_http: StartHttp,
    config: Path,
    tmp_path: Path,
    deskbook_command: list[str],
) -> None:
    if transport == "stdio":
        # By variables, as the inspector would take a --config for its own.
        told = {"CONFIG": config, "AGENT": "solo", "ROOT": tmp_path / "root"}
        target = [word for name, value in told.items() for word in ("-e", f"DESKBOOK_{name}={value}")]
        target += [*deskbook_command, "serve"]
    else:
        desk = start_http("--config", str(config), "--agent", "solo")
        target = ["--server-url", desk.url + {"http": "/mcp", "sse": "/sse"}[transport]]
    look = ("--protocol-era", era, "--method")
    listed = inspect(node, tmp_path, target, *look, "tools/list", "--strict")
    assert len(listed["tools"]) == 18
    written = ("tools/call", "--tool-name", "remember", "--tool-arg", "text=Seen by the inspector")
    assert inspect(node, tmp_path, target, *look, *written)["structuredContent"]["kind"] == "memory"
    read = inspect(node, tmp_path, target, *look, "resources/read", "--uri", "memory://state")
    assert json.loads(read["contents"][0]["text"])["counts"]["memories"] == 1
    listed = inspect(node, tmp_path, target, *look, "prompts/list")
    assert [each["name"] for each in listed["prompts"]] == ["decision_journal", "review_open_thesis"]
