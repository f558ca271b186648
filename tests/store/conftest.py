"""Ledgers of an older schema, and connections of somebody who knows nothing of Deskbook."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store.errors import DeskbookError


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
def ledger_v2(tmp_path: Path, fixtures: Path) -> Path:
    """The committed ledger of schema 2 where a live ledger of the default strategy lies."""
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(lzma.decompress((fixtures / "ledger_v2.sqlite.xz").read_bytes()))
    return path


@pytest.fixture
def ledger_v3(tmp_path: Path, fixtures: Path) -> Path:
    """The committed ledger of schema 3 where a live ledger of the default strategy lies."""
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(lzma.decompress((fixtures / "ledger_v3.sqlite.xz").read_bytes()))
    return path


@pytest.fixture
def raw() -> Callable[[Path], apsw.Connection]:
    return lambda path: apsw.Connection(str(path))


@pytest.fixture
def refused() -> Callable[..., AbstractContextManager[pytest.ExceptionInfo[Any]]]:
    """The call inside is refused by field with a next step, and leaves no entry."""

    @contextmanager
    def expect(
        seat: Any, kind: type[DeskbookError], field: str, match: str | None = None
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        before = seat.entries()
        with pytest.raises(kind, match=match) as fault:
            yield fault
        assert fault.value.field == field
        assert fault.value.hint
        assert fault.value.stored == "no"
        assert seat.entries() == before

    return expect
