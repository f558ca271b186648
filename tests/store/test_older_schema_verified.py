"""Verify proves the entries of a ledger that no start has upgraded yet, and what is no file hangs nothing."""

import lzma
import os
from pathlib import Path

import pytest

from store.audit import verify

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize("name", [path.name for path in sorted(FIXTURES.glob("ledger_v*.sqlite.xz"))])
def test_a_ledger_of_an_older_schema_is_sound_before_it_is_upgraded(tmp_path: Path, name: str) -> None:
    path = tmp_path / "memory.sqlite"
    path.write_bytes(lzma.decompress((FIXTURES / name).read_bytes()))
    report = verify(path, "default", None)
    assert report.findings == ()
    assert report.entries > 0


def test_a_pipe_in_the_place_of_a_ledger_is_told_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    os.mkfifo(path)
    assert [finding.sequence for finding in verify(path, "desk", None).findings] == [None]
