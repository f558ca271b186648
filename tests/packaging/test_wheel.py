"""The wheel, built from this checkout, works in an empty environment at the pinned versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.packaging

CHECKOUTS_COMMAND = "/home/you/deskbook/.venv/bin/deskbook"
DOCUMENTED_CONFIG = "/home/you/desk.toml"
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "packaging", "version": "1"},
}


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel and what it needs, and nothing else."""

    bin: Path
    home: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one of the environment's commands from /, with a home folder of its own."""
        environment = {
            "COLUMNS": "200",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "PATH": f"{self.bin}{os.pathsep}{os.defpath}",
            "TERM": "dumb",
        }
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def serves(self, *command: str | Path) -> bool:
        """Whether a command line starts a server that answers, with a PATH that knows nothing of this."""
        frames = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
        ]
        ran = subprocess.run(
            command,
            cwd="/",
            env={"HOME": str(self.home), "PATH": "/usr/bin"},
            input="".join(json.dumps(frame) + "\n" for frame in frames),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        answers = {answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines())}
        return bool(answers[2]["result"]["tools"])


def _pip(python: Path | str, *arguments: str | Path, cwd: Path) -> None:
    ran = subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ".", cwd=root)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    _pip(folder / "venv/bin/python", "install", "--constraint", root / "constraints.txt", wheel, cwd=folder)
    return Installed(folder / "venv/bin", folder)


def test_the_wheel_holds_every_tracked_file_of_both_packages_and_nothing_else(
    wheel: Path, tracked: list[Path]
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name) for name in archive.namelist()}
    shipped = {path for path in tracked if path.parts[0] in {"store", "server"}}
    assert {path for path in names if not path.parts[0].endswith(".dist-info")} == shipped


def test_the_wheel_carries_the_license(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert archive.read(name) == (root / "LICENSE").read_bytes()


def test_the_installed_command_says_its_version(installed: Installed, wheel: Path) -> None:
    ran = installed.run("deskbook", "--version")
    assert ran.returncode == 0, ran.stderr
    assert wheel.name.split("-")[1] in ran.stdout


def test_the_installed_command_explains_how_to_serve(installed: Installed) -> None:
    ran = installed.run("deskbook", "serve", "--help")
    assert ran.returncode == 0, ran.stderr
    assert {word for word in ("--config", "--agent", "--transport") if word not in ran.stdout} == set()


def test_the_installed_packages_are_imported_from_the_environment_alone(installed: Installed) -> None:
    ran = installed.run("python", "-c", "import store, server; print(store.__file__); print(server.__file__)")
    assert ran.returncode == 0, ran.stderr
    homes = [Path(line).resolve().parents[1] for line in ran.stdout.splitlines()]
    assert [home.name for home in homes] == ["site-packages", "site-packages"]
    assert all(home.is_relative_to(installed.home.resolve()) for home in homes)


def test_the_installed_packages_need_nothing_of_the_developers_tools(installed: Installed) -> None:
    ran = installed.run("python", "-m", "pip", "check")
    assert ran.returncode == 0, ran.stdout
    find = "import importlib.util as u; print([n for n in ('pytest', 'hypothesis') if u.find_spec(n)])"
    assert installed.run("python", "-c", find).stdout.strip() == "[]"


def test_the_command_has_the_distributions_name(installed: Installed) -> None:
    """P238."""
    look = "from importlib.metadata import entry_points as e; print([p.name for p in e(module='server.__main__')])"
    ran = installed.run("python", "-c", look)
    assert ran.stdout.strip() == "['deskbook']", ran.stderr


def test_every_documented_way_to_start_the_server_works_without_a_path(
    installed: Installed, root: Path
) -> None:
    """P238."""
    config = root / "configs" / "desk.toml"
    own = {CHECKOUTS_COMMAND: str(installed.bin / "deskbook"), DOCUMENTED_CONFIG: str(config)}
    documented = [[own.get(word, word) for word in words] for words in _documented_commands(root)]
    assert len(documented) >= 8
    assert all(words[0] == str(installed.bin / "deskbook") for words in documented)
    for words in {tuple(words) for words in documented}:
        assert installed.serves(*words)
    assert installed.serves(installed.bin / "deskbook", "serve")
    assert installed.serves(installed.bin / "python", "-m", "server", "serve")


def _documented_commands(root: Path) -> Iterator[list[str]]:
    """The command line in every host's file that starts a server itself."""
    for path in sorted((root / "configs" / "hosts").iterdir()):
        if path.suffix not in {".json", ".toml"} or path.stem.endswith("-http"):
            continue
        table: Any = (tomllib.loads if path.suffix == ".toml" else json.loads)(path.read_text())
        while "command" not in table:
            (table,) = (value for value in table.values() if isinstance(value, dict))
        command = table["command"]
        yield [*([command] if isinstance(command, str) else command), *table.get("args", [])]
