"""What a restore meets in a ledger's place: old logs and exports, another ledger, another restore, a cut."""

from __future__ import annotations

import json
import lzma
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.audit import verify
from store.backup.keeping import back_up, restore
from store.backup.manifest import manifest_path
from store.commands import Remember
from store.errors import ConfigError, ForeignFile, NotFound, StoreDamaged, StoreError
from store.paths import ledger_path
from store.redaction.register import Register

CALLER = Caller("trader", "trader", "ses_1", "remember")
NOW = 1_772_461_800_000_000
FIXTURES = Path(__file__).parents[1] / "fixtures"


def unwatched(_done: int, _total: int) -> None:
    """Nobody watches."""


def write(root: Path, *texts: str) -> None:
    with closing(Book.open(root, "default")) as book:
        for text in texts:
            book.execute(CALLER, Remember(text=text))


def put_back(root: Path, kept: Path, **options: Any) -> tuple[Path, ...]:
    given = {"progress": unwatched, "register": Register(root / "none")} | options
    return restore(root, "default", None, kept, **given).moved


def sound(root: Path) -> bool:
    return verify(ledger_path(root, "default", None), "default", None).sound


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the ledger of the root `root` belongs; nothing is there yet."""
    return ledger_path(tmp_path / "root", "default", None)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A backup of another root's ledger."""
    write(tmp_path / "origin", *(f"note {number}" for number in range(40)))
    return keep(ledger_path(tmp_path / "origin", "default", None), tmp_path / "kept.sqlite")


def keep(ledger: Path, target: Path) -> Path:
    back_up(ledger, target, product="d", now=NOW, progress=unwatched)
    return target


def kill_a_writer(ledger: Path) -> None:
    """Leave the rollback journal of a transaction whose process was killed."""
    child = os.fork()
    if child == 0:
        connection = apsw.Connection(str(ledger))
        connection.execute("PRAGMA cache_size = 5")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM memory_versions")
        connection.execute("DROP TABLE memory_retrievals")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("gone", [False, True], ids=["with its ledger", "alone"])
def test_the_journal_of_the_old_ledger_is_never_rolled_into_the_restored_one(
    tmp_path: Path, kept: Path, place: Path, gone: bool
) -> None:
    root = tmp_path / "root"
    put_back(root, kept)
    kill_a_writer(place)
    assert place.with_name("memory.sqlite-journal").stat().st_size > 512
    write(tmp_path / "origin", *(f"since {number}" for number in range(30)))
    later = keep(ledger_path(tmp_path / "origin", "default", None), tmp_path / "later.sqlite")
    if gone:
        place.unlink()
    moved = put_back(root, later, force=not gone)
    assert place.with_name("memory.sqlite.replaced-1-journal") in moved
    assert place.read_bytes() == later.read_bytes()
    assert sound(root)


def test_a_ledger_that_is_made_during_a_restore_is_not_displaced(
    tmp_path: Path, kept: Path, place: Path
) -> None:
    root = tmp_path / "root"
    begun: list[bool] = []

    def begin(_done: int, _total: int) -> None:
        if not begun:
            begun.append(True)
            write(root, "a trade that matters")

    with pytest.raises(ConfigError, match="A ledger stands"):
        put_back(root, kept, progress=begin)
    assert verify(place, "default", None).entries < 5
    assert not [
        file for file in place.parent.iterdir() if "restoring" in file.name or "replaced" in file.name
    ]


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, kept: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Path.hardlink_to

    def appear(name: Path, file: Path) -> None:
        place.write_bytes(b"")
        link(name, file)

    monkeypatch.setattr(Path, "hardlink_to", appear)
    with pytest.raises(ConfigError, match="A ledger stands"):
        put_back(tmp_path / "root", kept)
    assert place.read_bytes() == b""


def test_two_restores_at_once_do_not_meet_in_one_file(tmp_path: Path, kept: Path, place: Path) -> None:
    root = tmp_path / "root"
    begun: list[bool] = []

    def begin_another(_done: int, _total: int) -> None:
        if not begun:
            begun.append(True)
            put_back(root, kept)

    with pytest.raises(ConfigError, match="A ledger stands"):
        put_back(root, kept, progress=begin_another)
    assert place.read_bytes() == kept.read_bytes()
    assert sound(root)


def test_a_file_system_without_second_names_takes_a_restore(
    tmp_path: Path, kept: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_name: Path, _file: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    put_back(tmp_path / "root", kept)
    moved = put_back(tmp_path / "root", kept, force=True)
    assert moved == (place.with_name("memory.sqlite.replaced-1"),)
    assert sound(tmp_path / "root")


def test_the_exports_of_the_old_ledger_are_moved_aside(tmp_path: Path, kept: Path, place: Path) -> None:
    root = tmp_path / "root"
    put_back(root, kept)
    place.with_name("memory.sqlite.replaced-1").write_bytes(b"an earlier one")
    exports = place.with_name("exports")
    exports.mkdir()
    (exports / "manifest.json").write_text("ahead")
    moved = put_back(root, kept, force=True)
    assert moved == (place.with_name("memory.sqlite.replaced-2"), place.with_name("exports.replaced-2"))
    assert (moved[1] / "manifest.json").read_text() == "ahead"
    assert not exports.exists()


def test_a_restore_that_is_cut_off_leaves_no_place_for_a_new_ledger(
    tmp_path: Path, kept: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    put_back(root, kept)
    place.with_name("exports").mkdir()

    def cut(_file: Path, _end: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", cut)
        with pytest.raises(KeyboardInterrupt):
            put_back(root, kept, force=True)
    with pytest.raises(ForeignFile):
        Book.open(root, "default")
    assert place.with_name("memory.sqlite.replaced-1").read_bytes() == kept.read_bytes()
    put_back(root, kept, force=True)
    assert sound(root)


def test_a_ledger_of_an_older_schema_is_backed_up_once_it_is_brought_up(tmp_path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_bytes(lzma.decompress((FIXTURES / "ledger_v2.sqlite.xz").read_bytes()))
    with pytest.raises(StoreError, match="schema 2") as refused:
        keep(place, tmp_path / "kept.sqlite")
    assert "deskbook status" in (refused.value.hint or "")
    assert [file.name for file in tmp_path.iterdir()] == ["root"]


def test_an_empty_file_is_no_ledger_to_back_up(tmp_path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    with pytest.raises(NotFound):
        keep(place, tmp_path / "kept.sqlite")
    assert [file.name for file in tmp_path.iterdir()] == ["root"]


def portrayed(told: dict[str, Any], **changed: Any) -> None:
    told["portrait"] |= changed


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "size": lambda told: told.update(size_bytes="x"),
    "query": lambda told: portrayed(told, searches=[{"query": 5, "total": 1, "found": []}]),
    "surrogate": lambda told: portrayed(told, searches=[{"query": "\ud800", "total": 1, "found": []}]),
    "found": lambda told: portrayed(told, searches=[{"query": "note", "total": 1, "found": 3}]),
    "run": lambda told: portrayed(told, run=["one"]),
    "searches": lambda told: portrayed(told, searches=None),
    "portrait": lambda told: told.update(portrait=[]),
    "nothing": lambda told: told.pop("sha256"),
}


@pytest.mark.parametrize("spoil", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_manifest_of_other_types_is_refused(
    tmp_path: Path, kept: Path, spoil: Callable[[dict[str, Any]], object]
) -> None:
    told = json.loads(manifest_path(kept).read_text())
    spoil(told)
    manifest_path(kept).write_text(json.dumps(told))
    with pytest.raises(StoreDamaged):
        put_back(tmp_path / "root", kept)
