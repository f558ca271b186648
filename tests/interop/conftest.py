"""An environment of its own for a client of another SDK version, and a desk for it to connect to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENT = REPOSITORY / ".venv-interop"
SESSION_CLIENT = Path(__file__).with_name("session_client.py")
OLDER_SDK = "mcp==1.30.0"
GUARD = 120
RunClient = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def older_python() -> Path:
    """The interpreter of an environment that holds the older SDK; made once, kept, ignored by git."""
    python = ENVIRONMENT / "bin" / "python"
    ready = ENVIRONMENT / ".ready"
    if not ready.exists() or ready.read_text() != OLDER_SDK:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", OLDER_SDK],
            check=True,
        )
        ready.write_text(OLDER_SDK)
    return python


@pytest.fixture
def run_older_client(older_python: Path, tmp_path: Path) -> RunClient:
    """Run the client script of the older SDK against a server of its own on the test's root."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("DESKBOOK_")}

    def run(config: str, agent: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "desk.toml"
        path.write_text(config, encoding="utf-8")
        server = [sys.executable, "-m", "server", "serve", "--config", str(path), "--agent", agent]
        command = [str(older_python), str(SESSION_CLIENT), *server, "--root", str(tmp_path / "root")]
        environ: dict[str, Any] = own | {"PYTHONPATH": "", "SERVER_PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/", env=environ, timeout=GUARD
        )

    return run
