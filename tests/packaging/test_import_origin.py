"""`store` and `server` are common names: what is imported under them must be ours and nothing else's."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

PACKAGES = ("store", "server")


def _home(name: str, root: Path) -> Path:
    """Where it has to come from: the installed wheel, or this checkout when that is installed editable."""
    distribution = importlib.metadata.distribution("deskbook")
    installed = Path(str(distribution.locate_file(name)))
    return (installed if installed.is_dir() else root / name).resolve()


@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_is_imported_from_this_checkout_or_its_wheel(name: str, root: Path) -> None:
    package = importlib.import_module(name)
    assert package.__file__ is not None, f"{name} is a namespace package: its __init__.py is missing"
    assert Path(package.__file__).resolve().parent == _home(name, root)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_package_of_the_same_name_lies_on_the_import_path(name: str, root: Path) -> None:
    specs = {entry: PathFinder.find_spec(name, [entry]) for entry in sys.path}
    origins = {Path(spec.origin).resolve() for spec in specs.values() if spec and spec.origin}
    assert origins == {_home(name, root) / "__init__.py"}


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_claims_the_package(name: str) -> None:
    assert set(importlib.metadata.packages_distributions().get(name, ["deskbook"])) == {"deskbook"}


def test_the_command_is_not_shadowed_by_modules_in_the_working_directory(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed by the working directory')\n")
    command = Path(sys.executable).with_name("deskbook")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ran = subprocess.run(
        [command, "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert importlib.metadata.version("deskbook") in ran.stdout
