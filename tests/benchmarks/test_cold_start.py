"""From starting the process to the first tools/list, beside the least server of the same SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Print

pytestmark = pytest.mark.bench

ROUNDS = 9
REPOSITORY = Path(__file__).resolve().parents[2]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
FRAMES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
]


def start(command: list[str]) -> tuple[float, float]:
    """Seconds to the first tools/list, and seconds of processor time up to the exit."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in FRAMES))
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    taken = time.perf_counter() - began
    assert answers[1]["result"]["tools"]
    process.stdin.close()
    process.wait(60)
    process.stdout.close()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return taken, cpu


def test_cold_start(show: Print, median: Callable[[Sequence[float]], float], tmp_path: Path) -> None:
    bare = [sys.executable, "-P", str(Path(__file__).with_name("bare_server.py"))]
    ours = [sys.executable, "-P", "-m", "server", "serve", "--root", str(tmp_path)]
    start(bare)
    start(ours)
    times: dict[str, list[tuple[float, float]]] = {"bare MCPServer, one tool": [], "deskbook serve": []}
    for _ in range(ROUNDS):
        for name, command in zip(times, (bare, ours), strict=True):
            times[name].append(start(command))
    walls = {name: median([wall for wall, _ in found]) for name, found in times.items()}
    cpus = {name: median([cpu for _, cpu in found]) for name, found in times.items()}
    base = "bare MCPServer, one tool"
    show(
        f"Cold start to the first tools/list, median of {ROUNDS} interleaved runs (goal: 1.25 times)",
        ("", "wall s", "times", "cpu s", "times"),
        [
            (
                name,
                *(f"{walls[name]:.3f}", f"{walls[name] / walls[base]:.2f}"),
                *(f"{cpus[name]:.3f}", f"{cpus[name] / cpus[base]:.2f}"),
            )
            for name in times
        ],
    )
