"""The documents as a reader finds them: their code blocks and tables, and a home of its own to try them in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("deskbook")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Document:
    """One Markdown file."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def prose(self) -> str:
        """The text without its code blocks."""
        return _BLOCK.sub("", self.text)

    def blocks(self, language: str) -> list[str]:
        """The code blocks in a language, in order."""
        return [body for found, body in _BLOCK.findall(self.text) if found == language]

    def languages(self) -> set[str]:
        return {language for language, _ in _BLOCK.findall(self.text)}

    def spans(self) -> list[str]:
        """Every piece of inline code."""
        return _SPAN.findall(self.prose)

    def table(self, heading: str) -> list[dict[str, str]]:
        """The rows of the first table under a heading, each by its column's title."""
        _, found, rest = f"\n{self.text}".partition(f"\n{heading}\n")
        assert found, f"{self.name} has no heading {heading}"
        lines = [line for line in rest.split("\n#")[0].splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        titles = rows[0]
        assert all(len(row) == len(titles) for row in rows), (
            f"{self.name}: a row of {heading} has other cells"
        )
        return [dict(zip(titles, row, strict=True)) for row in rows[2:]]


def coded(cell: str) -> list[str]:
    """The pieces of inline code in a table's cell."""
    return _SPAN.findall(cell)


Documents = dict[str, Document]


@pytest.fixture(scope="session")
def documents() -> Documents:
    """README, changelog and every page of docs, by path."""
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    found = [Document(path, path.read_text(encoding="utf-8")) for path in paths]
    return {document.name: document for document in found}


@pytest.fixture(scope="session")
def readme(documents: Documents) -> Document:
    return documents["README.md"]


@pytest.fixture(scope="session")
def codes() -> Callable[[str], list[str]]:
    """Reads the inline code out of a table's cell."""
    return coded


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def command() -> Path:
    """The `deskbook` command of the environment under test."""
    assert COMMAND.exists(), f"{COMMAND} is missing: install the package into this environment"
    return COMMAND


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own; the environment holds nothing else, not even a PATH."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in list(os.environ):
        if not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder
