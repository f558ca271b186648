"""Rules of the house that no linter knows: sizes, names, imports and tests that always run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60
# They say nothing about the thing they name.
EMPTY_WORDS = {"data", "helper", "helpers", "manager", "process", "util", "utils"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _nodes(sources: dict[Path, str]) -> Iterator[tuple[Path, ast.AST]]:
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text, str(path))):
            yield path, node


def test_no_file_is_longer_than_400_lines(sources: dict[Path, str]) -> None:
    lengths = {str(path): len(text.splitlines()) for path, text in sources.items()}
    assert {path: length for path, length in lengths.items() if length > FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines(sources: dict[Path, str]) -> None:
    lengths = {
        f"{path}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, node in _nodes(sources)
        if isinstance(node, Function)
    }
    assert {function: length for function, length in lengths.items() if length > FUNCTION_LINES} == {}


def test_no_module_or_class_has_a_name_that_says_nothing(sources: dict[Path, str]) -> None:
    names = [(path, path.stem) for path in sources]
    names += [(path, node.name) for path, node in _nodes(sources) if isinstance(node, ast.ClassDef)]
    assert [f"{path}: {name}" for path, name in names if EMPTY_WORDS & _words(name)] == []


def test_a_package_imports_its_own_modules_relatively(sources: dict[Path, str]) -> None:
    shipped = {path: text for path, text in sources.items() if path.parts[0] in {"store", "server"}}
    absolute = [
        f"{path}:{node.lineno}"
        for path, node in _nodes(shipped)
        if isinstance(node, ast.Import | ast.ImportFrom) and path.parts[0] in _imported(node)
    ]
    assert absolute == []


def test_no_test_is_skipped_or_expected_to_fail(sources: dict[Path, str]) -> None:
    calls = re.compile(r"mark\.(?:ski[p]|xfai[l])|pytest\.(?:ski[p]|xfai[l]|importorski[p])|unittest\.ski[p]")
    tests = {path: text for path, text in sources.items() if path.parts[0] == "tests"}
    assert [str(path) for path, text in tests.items() if calls.search(text)] == []


def test_test_folders_are_no_packages(tracked: list[Path]) -> None:
    assert [str(path) for path in tracked if path.parts[0] == "tests" and path.name == "__init__.py"] == []


def test_the_layers_hold(root: Path) -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([linter, "--no-cache"], cwd=root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)}


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """The top-level packages that an absolute import names."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {(node.module or "").partition(".")[0]} if node.level == 0 else set()
