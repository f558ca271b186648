"""Every strategy and run has a folder of its own below the root, and nothing is reached outside of it."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.audit import verify
from store.commands import OpenThesis, Remember
from store.errors import NotFound, StoreError
from store.paths import folder_name, ledger_path

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
NASTY = [
    "a b", "a/b", "a\\b", "日本", "..", ".", "...", "/", "~", "~root", "CON", "con", "nul.txt", "COM1",
    "a.", "a ", " a",
    "A", "a", "%2f", "%", "runs", "memory.sqlite", "-rf", "\x00", "\n", "é", "e\u0301", "ß", "SS", "İ", "ı",
    "x" * 300, "X" * 300, "x" * 299 + "y", "日" * 128,
]  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_a_folder_name_is_one_plain_safe_component(name: str) -> None:
    folder = folder_name(name)
    assert set(folder) <= set(string.ascii_lowercase + string.digits + "-_%~")
    assert 1 <= len(folder.encode()) <= 255
    assert folder not in (".", "..")
    assert not folder.startswith("~")


def test_nasty_names_have_folders_of_their_own_also_where_case_does_not_count() -> None:
    folders = [folder_name(name).casefold() for name in NASTY]
    assert len(set(folders)) == len(NASTY)


@given(NAMES, NAMES)
def test_two_names_never_share_a_folder(one: str, other: str) -> None:
    assert (folder_name(one).casefold() == folder_name(other).casefold()) == (one == other)


@given(NAMES, NAMES)
def test_a_ledger_lies_below_its_root_whatever_it_is_called(strategy: str, run: str) -> None:
    root = Path("/srv/desk")
    for path in (ledger_path(root, strategy, None), ledger_path(root, strategy, run)):
        assert os.path.normpath(path) == str(path)
        assert path.is_relative_to(root)
    assert ledger_path(root, strategy, None) != ledger_path(root, strategy, run)


def test_strategies_and_runs_are_ledgers_apart(open_seat: Any) -> None:
    """P133: the same name elsewhere, another spelling and a run share nothing."""
    seats = {name: open_seat(name) for name in ("a b", "a/b", "日本", "A b")}
    seats["run"] = open_seat("a b", "run")
    now = {"now": seats["run"].clock.us}
    for name, seat in seats.items():
        seat.do(OpenThesis(text=f"thesis of {name}", symbol="AAPL"), **(now if name == "run" else {}))
    for name, seat in seats.items():
        who = seat.caller(**(now if name == "run" else {}))
        assert [hit["text"] for hit in seat.find(symbol="AAPL", who=who)["hits"]] == [f"thesis of {name}"]


def test_two_roots_with_one_strategy_of_the_same_name_are_ledgers_apart(
    open_seat: Any, tmp_path: Path
) -> None:
    """P133"""
    one, other = (open_seat("alpha", root=tmp_path / name) for name in ("one", "other"))
    one.do(OpenThesis(text="mine", symbol="AAPL"))
    assert other.find(symbol="AAPL")["total"] == 0
    assert other.state()["open_theses"] == []
    assert one.book.genesis.store_id != other.book.genesis.store_id


def test_folders_and_files_are_for_their_owner_only(open_seat: Any, tmp_path: Path) -> None:
    seats = [open_seat(root=tmp_path / "root"), open_seat("default", "run", root=tmp_path / "root")]
    seats[0].do(Remember(text="kept"))
    seats[1].do(Remember(text="kept"), now=seats[1].clock.us)
    below = list((tmp_path / "root").rglob("*"))
    modes = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777 for path in below}
    assert {path for path in below if path.suffix} >= {seats[0].path, Path(f"{seats[0].path}-wal")}
    names = {path.name for path in below}
    assert names >= {"memory.sqlite", "memory.sqlite-wal", "memory.sqlite-shm", "memory.sqlite.lock"}
    wanted = {str(path.relative_to(tmp_path)): 0o700 if path.is_dir() else 0o600 for path in below}
    assert modes == wanted
    assert (tmp_path / "root").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("link", ["strategy folder", "runs folder", "run folder", "file"])
@pytest.mark.parametrize("filled", [True, False], ids=["to a ledger", "to nothing"])
def test_no_link_below_the_root_is_followed(open_seat: Any, tmp_path: Path, link: str, filled: bool) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "root"
    if filled:
        seat = open_seat("s", "r", root=elsewhere)
        seat.book.close()
    theirs, ours = (ledger_path(base, "s", "r") for base in (elsewhere, root))
    place = {
        "strategy folder": ours.parents[2],
        "runs folder": ours.parents[1],
        "run folder": ours.parent,
        "file": ours,
    }[link]
    place.parent.mkdir(parents=True)
    place.symlink_to(theirs if link == "file" else elsewhere / place.relative_to(root))
    before = sorted(elsewhere.rglob("*")) if filled else None
    for create in (True, False):
        with pytest.raises((StoreError, NotFound)):
            open_seat("s", "r", root=root, create=create)
    assert elsewhere.exists() == filled
    assert before is None or sorted(elsewhere.rglob("*")) == before


def test_the_root_itself_may_be_a_link(open_seat: Any, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    seat = open_seat(root=tmp_path / "link")
    seat.do(Remember(text="kept"))
    assert verify(tmp_path / "real" / "default" / "memory.sqlite", "default", None).sound


def test_a_file_where_a_folder_should_be_is_named(open_seat: Any, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "default").write_text("in the way")
    with pytest.raises(StoreError, match="not a folder") as refused:
        open_seat(root=tmp_path / "root")
    assert refused.value.where == tmp_path / "root" / "default"
    assert str(tmp_path) not in refused.value.message  # a client reads it, the operator reads `where`
    assert (tmp_path / "root" / "default").read_text() == "in the way"
