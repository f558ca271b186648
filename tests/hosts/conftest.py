"""A home of its own for every test, and the command run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from server import cli

DESK = """
[store]
root = "ledgers"
[http]
port = 9000
[agents.trader]
profile = "trader"
token_env = "DESKBOOK_TRADER_TOKEN"
[agents.researcher]
profile = "researcher"
"""


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and an environment that names nothing else; a project is the current folder."""
    folder = tmp_path / "home"
    (tmp_path / "project").mkdir()
    folder.mkdir()
    for name in list(os.environ):
        if name not in {"PATH", "PYTHONPATH"} and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path / "project")
    return folder


@pytest.fixture
def desk(home: Path) -> Path:
    """A config of two agents."""
    path = home / "desk.toml"
    path.write_text(DESK, encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process."""

    def start(*words: str) -> Ran:
        monkeypatch.setattr("sys.argv", ["deskbook", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return Ran(end.value.code if isinstance(end.value.code, int) else 0, said.out, said.err)

    return start
