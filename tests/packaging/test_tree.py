"""What may lie in the tree, and what no tracked file may say."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

# The layout in the design, the files that git and CI read, and the pages a forge shows.
TOP_LEVEL = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "configs",
    "constraints.txt",
    "docs",
    "pyproject.toml",
    "server",
    "store",
    "tests",
}
LOCK_FILES = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json", "yarn.lock"}
# Spelt with one-letter classes, so that these lines do not find themselves.
REGISTRY_HOST = re.compile(rb"pyp[i]\.org|pythonhoste[d]|npmj[s]\.(org|com)|debia[n]\.org|crate[s]\.io")
MACHINE_PATH = re.compile(rb"/roo[t]/|/(wor[k]|far[m])/(main|steering|in)\b|/tm[p]/bash_jobs")


def _lines_with(pattern: re.Pattern[bytes], root: Path, tracked: list[Path]) -> list[str]:
    return [
        f"{path}:{number}"
        for path in tracked
        for number, line in enumerate((root / path).read_bytes().splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_top_level_holds_only_what_the_design_names(tracked: list[Path]) -> None:
    assert {path.parts[0] for path in tracked} <= TOP_LEVEL


def test_the_files_that_every_release_carries_are_there(tracked: list[Path]) -> None:
    needed = {".ci/run", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "constraints.txt"}
    assert needed - {str(path) for path in tracked} == set()


def test_no_tracked_file_names_a_package_registrys_host(root: Path, tracked: list[Path]) -> None:
    assert _lines_with(REGISTRY_HOST, root, tracked) == []


def test_no_tracked_file_names_a_path_of_one_machine(root: Path, tracked: list[Path]) -> None:
    assert _lines_with(MACHINE_PATH, root, tracked) == []


def test_pins_stand_in_the_constraints_file_and_in_no_lock_file(tracked: list[Path]) -> None:
    assert [str(path) for path in tracked if path.name in LOCK_FILES] == []


def test_the_constraints_file_pins_one_exact_version_a_line(root: Path) -> None:
    pins = _pins(root)
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+ [A-Za-z0-9.!+]+", " ".join(pin))] == []
    assert len(pins) == len({_normal(name) for name, _ in pins})


def test_every_declared_dependency_is_pinned(root: Path) -> None:
    project = _project(root)
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    wanted = {_normal(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in declared}
    assert wanted - {_normal(name) for name, _ in _pins(root)} == set()


def test_the_changelogs_top_version_is_the_packages_version(root: Path) -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert versions[0] == importlib.metadata.version("deskbook")


def test_the_installed_version_is_the_one_in_the_tree(root: Path) -> None:
    assert _project(root)["version"] == importlib.metadata.version("deskbook")


def _project(root: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return project


def _pins(root: Path) -> list[tuple[str, str]]:
    lines = (root / "constraints.txt").read_text().splitlines()
    return [(line.partition("==")[0], line.partition("==")[2]) for line in lines if not line.startswith("#")]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
