"""A desk for people: the command in this process with a reviewer's token, and as a process in a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server import cli
from server.commands.place import find_place
from server.reviewer_file import reviewer_path
from server.reviewers import VARIABLE, add_passphrase, add_token
from store import Book, Caller

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60.0
PHRASE = "four words will do"
DESK = """
[agents.trader]
profile = "trader"
[agents.researcher]
profile = "researcher"
[approval]
proposal = "review"
lesson = "review"
thesis = "review"
"""


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out, parse_constant=pytest.fail)


Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "desk.toml"
    path.write_text(DESK, encoding="utf-8")
    return path


@pytest.fixture
def run(root: Path, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process on the test's config and root; `token` is the reviewer's that it holds."""

    def start(*words: str, token: str | None = None, **environ: str) -> Ran:
        place = ["--root", str(root), "--config", str(config)]
        with monkeypatch.context() as patch:
            patch.setattr("sys.argv", ["deskbook", *words, *place])
            for name, value in (environ | ({VARIABLE: token} if token else {})).items():
                patch.setenv(name, value)
            capsys.readouterr()
            with pytest.raises(SystemExit) as end:
                cli.main()
            said = capsys.readouterr()
        code = end.value.code
        return Ran(code if isinstance(code, int) else 0, said.out, said.err)

    return start


@pytest.fixture
def ann(root: Path) -> str:
    """The only reviewer, Ann, who has a passphrase; gives a token of hers."""
    path = reviewer_path(root)
    add_passphrase(path, "Ann", PHRASE)
    return add_token(path, "Ann")


@pytest.fixture
def book(root: Path, config: Path) -> Iterator[Book]:
    """The live ledger under the config's policy."""
    opened = find_place(config, root, None, None, environ={}).open(make=True)
    yield opened
    opened.close()


def agent(name: str = "trader", tool: str = "remember_proposal") -> Caller:
    return Caller(name, name, f"ses-{name}", tool)


class Terminal:
    """A command in a terminal of its own: what it shows, and what is typed."""

    def __init__(self, words: tuple[str, ...], environ: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "server", *words], stdin=slave, stdout=slave, stderr=slave, cwd="/",
            env=environ, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def wait_for(self, words: str) -> str:
        """What came up to and with these words since the last wait; fails when the command ends before.

        A hidden question is asked once its last blank is there: what is typed before is thrown away.
        """
        while words not in self.shown[self._seen :]:
            assert self._read(), f"ended without {words!r}:\n{self.shown}"
        end = self.shown.index(words, self._seen) + len(words)
        before, self._seen = self.shown[self._seen : end], end
        return before

    def type(self, line: str, end: str = "\n") -> None:
        os.write(self._master, f"{line}{end}".encode())

    def end(self) -> int:
        """Read to the end and give the exit code."""
        while self._read():
            pass
        return self.process.wait(GUARD)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], GUARD)
        assert ready, f"nothing came:\n{self.shown}"
        try:
            found = os.read(self._master, 65_536)
        except OSError:  # how a terminal says that nobody is on the other end
            return False
        self.shown += found.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(found)


OpenTerminal = Callable[..., Terminal]


@pytest.fixture
def bare_environ() -> dict[str, str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if (not name.startswith("DESKBOOK_") or name == "DESKBOOK_EMBEDDING")
        and name not in ("EDITOR", "VISUAL")
    }
    return own | {"PYTHONPATH": str(REPOSITORY), "TERM": "dumb"}


@pytest.fixture
def terminal(root: Path, config: Path, bare_environ: dict[str, str]) -> Iterator[OpenTerminal]:
    """Start commands on the test's config and root, each in a terminal."""
    started: list[Terminal] = []

    def start(*words: str, **environ: str) -> Terminal:
        place = ("--root", str(root), "--config", str(config))
        started.append(Terminal((*words, *place), bare_environ | environ))
        return started[-1]

    yield start
    for each in started:
        each.close()
