"""A memory that Lumibot's own store writes now, imported; and the committed one is what it still writes."""

from __future__ import annotations

import lzma
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from store.audit import verify
from store.importers.lumibot import import_lumibot

pytestmark = pytest.mark.interop_more

MAKER = Path(__file__).resolve().parents[1] / "fixtures" / "make_lumibot_memory.py"
Make = Callable[..., Path]


@pytest.fixture
def make(install_client: Callable[[str], Path], tmp_path: Path) -> Make:
    """Let Lumibot's store write a memory."""
    python = install_client("lumibot_client")

    def run(name: str, *words: str) -> Path:
        target = tmp_path / name
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([python, MAKER, target, *words], check=True, cwd=tmp_path, env=environ, timeout=180)
        return target

    return run


def test_a_memory_as_lumibot_leaves_it_comes_in_whole(make: Make, tmp_path: Path) -> None:
    report = import_lumibot(make("memory.sqlite", "--clean"), tmp_path / "root")
    assert sum(report.rows.values()) == 41
    assert report.known == 0
    assert not {"broken_json", "hash_mismatch", "sequence_gap", "index_only", "projection_behind"} & set(
        report.defects.totals
    )
    assert {"phantom_thesis", "reopened_thesis", "out_of_order", "duplicate"} <= set(report.defects.totals)
    assert verify(Path(report.path), report.strategy, None).findings == ()
    grown = import_lumibot(make("grown.sqlite", "--clean", "--grown"), tmp_path / "root")
    assert grown.added == {"memory.recorded": 1, "memory.retrieved": 1, "thesis.updated": 1}
    assert verify(Path(grown.path), grown.strategy, None).findings == ()


def test_the_committed_memory_holds_what_lumibot_writes(make: Make, fixtures: Path, tmp_path: Path) -> None:
    committed = tmp_path / "committed.sqlite"
    committed.write_bytes(lzma.decompress((fixtures / "lumibot_memory.sqlite.xz").read_bytes()))
    first = import_lumibot(committed, tmp_path / "root")
    again = import_lumibot(make("memory.sqlite"), tmp_path / "root")
    assert (again.added, again.known) == ({}, sum(first.rows.values()))
    assert again.defects.content() == first.defects.content()
