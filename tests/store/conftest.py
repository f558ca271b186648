"""Ledgers of an older schema, and connections of somebody who knows nothing of Deskbook."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest


@pytest.fixture(scope="session")
def ledger_v1_bytes(fixtures: Path) -> bytes:
    """The committed ledger of schema 1, whole."""
    return lzma.decompress((fixtures / "ledger_v1.sqlite.xz").read_bytes())


@pytest.fixture
def ledger_v1(tmp_path: Path, ledger_v1_bytes: bytes) -> Path:
    """The ledger of schema 1 where a live ledger of the default strategy lies."""
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(ledger_v1_bytes)
    return path


@pytest.fixture
def raw() -> Callable[[Path], apsw.Connection]:
    return lambda path: apsw.Connection(str(path))
