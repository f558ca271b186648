"""doctor --repair: what is derived is made anew, the ledger is never touched."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from server.doctor.findings import Finding, Mark
from server.doctor.repairing import repair
from server.doctor.subject import Subject
from server.identity import launch_identity
from server.settings import load_settings
from store import Book, Caller
from store.audit import verify
from store.commands import Remember
from store.paths import ledger_path
from store.proofs.cache import FILE as TREE_CACHE

CALLER = Caller("local", "solo", "ses_1", "remember")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(Book.open(tmp_path, "default")) as book:
        for number in range(12):
            book.execute(CALLER, Remember(text=f"note {number}"))
    return ledger_path(tmp_path, "default", None)


def repaired(root: Path) -> list[Finding]:
    settings = load_settings(config=None, flags={"root": str(root)}, environ={})
    return list(repair(Subject(settings, (launch_identity(settings),), {})))


def change(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def entries_of(path: Path) -> str:
    with closing(apsw.Connection(str(path))) as connection:
        return hashlib.sha256(
            repr(connection.execute("SELECT * FROM memory_events").fetchall()).encode()
        ).hexdigest()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_versions SET text = 'forged' WHERE ordinal = 3",
        "DELETE FROM memory_versions WHERE ordinal = 3",
        "DELETE FROM memory_text WHERE rowid = 5",
        "DELETE FROM memory_clock",
        "DELETE FROM memory_sessions",
    ],
)
def test_projections_that_are_wrong_are_made_anew(path: Path, tmp_path: Path, statement: str) -> None:
    before = entries_of(path)
    change(path, statement)
    assert verify(path, "default", None).mendable
    (found,) = repaired(tmp_path)
    assert (found.mark, "made the projections anew" in found.found) == (Mark.OK, True)
    assert verify(path, "default", None).sound
    assert entries_of(path) == before


def test_a_ledger_that_is_not_sound_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    change(
        path,
        "DROP TRIGGER memory_events_no_update",
        "UPDATE memory_events SET content = '{}' WHERE sequence = 4",
        "DELETE FROM memory_clock",
    )
    before = path.read_bytes()
    (found,) = repaired(tmp_path)
    assert found.mark is Mark.FAIL
    assert "Nothing was changed" in (found.next or "")
    assert path.read_bytes() == before


@pytest.mark.parametrize("folder", [False, True])
def test_caches_and_copies_go_and_only_wrong_copies(path: Path, tmp_path: Path, folder: bool) -> None:
    cache, copies = path.with_name(TREE_CACHE), path.parent / "exports"
    cache.mkdir() if folder else cache.write_bytes(b"whatever")
    copies.mkdir()
    (copies / "manifest.json").write_text("{")
    said = " ".join(found.found for found in repaired(tmp_path))
    assert "removed the tree's cache" in said
    assert "removed the Parquet copies" in said
    assert not cache.exists()
    assert not copies.exists()
    assert [found.found for found in repaired(tmp_path)] == ["the ledger and its projections are sound"]
