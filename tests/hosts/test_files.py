"""A host's file on disk: copied, replaced whole or not at all, and never over what another program wrote."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from server.hosts.files import change
from store.errors import ConfigError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kept" / "mcp.json"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def test_a_change_leaves_a_copy_and_keeps_the_mode_bits(file: Path) -> None:
    changed = change(file, lambda text: text + "+", private=True)
    assert (file.read_bytes(), mode(file)) == (b"old+", 0o640)
    assert changed.written == file
    assert changed.backup is not None
    assert (changed.backup.read_bytes(), mode(changed.backup)) == (b"old", 0o640)
    again = change(file, lambda text: text + "+", private=True)
    assert again.backup is not None
    assert again.backup != changed.backup
    assert (again.backup.read_bytes(), changed.backup.read_bytes()) == (b"old+", b"old")
    assert len(names(file.parent)) == 3


def test_nothing_is_written_where_nothing_changes(file: Path, tmp_path: Path) -> None:
    before = file.stat()
    assert change(file, str, private=True).written is None
    assert file.stat() == before
    assert names(file.parent) == {"mcp.json"}
    assert change(tmp_path / "none" / "mcp.json", str, private=True).written is None
    assert not (tmp_path / "none").exists()


def test_a_byte_order_mark_and_line_endings_stay(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfa\r\n")
    change(file, lambda text: text + "b\r\n", private=True)
    assert file.read_bytes() == b"\xef\xbb\xbfa\r\nb\r\n"


@pytest.mark.parametrize(
    ("private", "folder_mode", "file_mode"), [(True, 0o700, 0o600), (False, 0o755, 0o644)]
)
def test_a_missing_file_and_its_folders_are_made_for_the_user_alone_or_as_the_umask_says(
    tmp_path: Path, private: bool, folder_mode: int, file_mode: int
) -> None:
    path = tmp_path / "one" / "two" / "mcp.json"
    old = os.umask(0o022)
    try:
        changed = change(path, lambda _: "new", private=private)
    finally:
        os.umask(old)
    assert changed.made == (tmp_path / "one", tmp_path / "one" / "two")
    assert changed.backup is None
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (file_mode, folder_mode, folder_mode)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(file: Path, tmp_path: Path, exists: bool) -> None:
    if not exists:
        file.unlink()
    link = tmp_path / "mcp.json"
    link.symlink_to(os.path.relpath(file, tmp_path))
    changed = change(link, lambda text: text + "+", private=True)
    assert link.is_symlink()
    assert file.read_bytes() == (b"old+" if exists else b"+")
    assert changed.written == file
    assert names(tmp_path) >= {"kept", "mcp.json"}
    assert not list(tmp_path.glob("mcp.json.bak*"))


def test_a_change_by_another_program_in_between_is_kept(file: Path) -> None:
    writes = iter(["theirs"])

    def edit(text: str) -> str:
        for theirs in writes:
            file.write_text(theirs)
        return text + "+ours"

    change(file, edit, private=True)
    assert file.read_text() == "theirs+ours"
    assert names(file.parent) == {"mcp.json", "mcp.json.bak-1"}


def test_a_file_that_comes_into_being_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    writes = iter(["theirs"])

    def edit(text: str) -> str:
        for theirs in writes:
            path.write_text(theirs)
        return text + "+ours"

    change(path, edit, private=True)
    assert path.read_text() == "theirs+ours"


def test_a_file_that_never_rests_is_refused_and_left_alone(file: Path) -> None:
    def edit(text: str) -> str:
        file.write_text(text + "!")
        return text + "+ours"

    with pytest.raises(ConfigError, match="all the time"):
        change(file, edit, private=True)
    assert file.read_text() == "old!!!"
    assert names(file.parent) == {"mcp.json"}


def test_a_failure_at_the_last_step_leaves_the_file_and_nothing_beside_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ConfigError, match="No space left"):
        change(file, lambda text: text + "+", private=True)
    assert file.read_bytes() == b"old"
    assert names(file.parent) == {"mcp.json"}


@pytest.mark.parametrize("kind", ["folder", "pipe", "bytes", "circle"])
def test_what_is_no_file_of_text_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mcp.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "bytes":
        path.write_bytes(b"{\n\xff}")
    else:
        path.symlink_to(path)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        change(path, lambda text: text + "+", private=True)
    assert names(tmp_path) >= {"mcp.json"}
    assert not list(tmp_path.glob("*.bak*"))
