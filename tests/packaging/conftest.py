"""The checkout as the packaging tests look at it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = (".", "__pycache__", "build", "dist")


def _listed_by_git(root: Path) -> list[str]:
    # safe.directory: CI may run as another user than the one who owns the clone.
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\0").split("\0")


def _found_on_disk(root: Path) -> list[str]:
    """For an unpacked archive, where no git tells what is tracked: all but hidden and generated folders."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name == ".ci" or not name.startswith(GENERATED)]
        found += [str(Path(folder, name).relative_to(root)) for name in files]
    return found


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[Path]:
    """Every tracked file that is still there, relative to the top folder."""
    names = _listed_by_git(root) if (root / ".git").exists() else _found_on_disk(root)
    return sorted(Path(name) for name in names if (root / name).is_file())


@pytest.fixture(scope="session")
def sources(root: Path, tracked: list[Path]) -> dict[Path, str]:
    """The text of every tracked Python file, by its path relative to the top folder."""
    return {path: (root / path).read_text("utf-8") for path in tracked if path.suffix == ".py"}
