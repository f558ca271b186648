"""`deskbook doctor` as a process, real servers for it to call, and desks with one thing wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60
SERVE_HTTP = (sys.executable, "-P", "-m", "server", "serve", "--transport", "http", "--port", "0")
DESK = '[agents.researcher]\nprofile = "researcher"\n[agents.trader]\nprofile = "trader"\n'


@dataclass(frozen=True)
class Told:
    """What doctor said: its exit code, what it printed, and its findings where it printed JSON."""

    code: int
    out: str
    err: str

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)
        return found

    def marked(self, mark: str) -> list[dict[str, Any]]:
        """The findings with a mark."""
        return [finding for finding in self.findings if finding["mark"] == mark]

    def only_fault(self, check: str) -> dict[str, Any]:
        """The one fault, which must be of that check and say what to do."""
        (fault,) = self.marked("fail")
        assert fault["check"] == check, fault
        assert fault["next"]
        assert self.code == 1
        return fault

    def of(self, check: str) -> list[dict[str, Any]]:
        """The findings of a check."""
        return [finding for finding in self.findings if finding["check"] == check]


Doctor = Callable[..., Told]
Words = Callable[..., "subprocess.CompletedProcess[str]"]
StartHttp = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def desk(tmp_path: Path, root: Path) -> Path:
    """A config of two agents on the test's root."""
    path = tmp_path / "desk.toml"
    path.write_text(f'[store]\nroot = "{root}"\n{DESK}', encoding="utf-8")
    return path


@pytest.fixture
def deskbook(home: Path, tmp_path: Path) -> Words:
    """Run a command to its end, in a home of its own."""

    def run(*words: str, prefix: tuple[str, ...] = (), **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, sys.executable, "-P", "-m", "server", *words],
            env={"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(REPOSITORY), **environ},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD,
            check=False,
        )

    return run


@pytest.fixture
def doctor(deskbook: Words) -> Doctor:
    """Run doctor and give what it said as JSON."""

    def run(*words: str, prefix: tuple[str, ...] = (), **environ: str) -> Told:
        done = deskbook("doctor", *words, "--json", prefix=prefix, **environ)
        assert "Traceback" not in done.stderr, done.stderr
        return Told(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def start_http(home: Path, tmp_path: Path) -> Iterator[StartHttp]:
    """Start HTTP servers of a config on a free port; gives the address of each."""
    started: list[subprocess.Popen[str]] = []

    def start(config: Path, *words: str, **environ: str) -> str:
        process = subprocess.Popen(
            [*SERVE_HTTP, "--config", str(config), *words],
            env={"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(REPOSITORY), **environ},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"listening on (\S+)", line):
                return found[1]
        raise AssertionError(said)

    yield start
    for process in started:
        process.kill()
        process.wait(GUARD)
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture
def powerless() -> tuple[str, ...]:
    """The command prefix under which file permissions hold, also for root."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def contents(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every path below a folder with its mode and bytes; the index of a log in use changes with every reader."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() and not path.name.endswith("-shm") else None,
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def contents_of() -> Callable[[Path], dict[str, tuple[int, bytes | None]]]:
    """Looks at all that lies below a folder."""
    return contents
