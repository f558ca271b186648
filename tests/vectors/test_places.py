"""What lies in the vectors' place and does not belong there: said, never followed, and no search ends by it."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.commands import Remember
from store.embedding.loading import Encoder
from store.errors import EmbeddingFailed, StoreError


def write(desk: Any, agent: str = "ann") -> None:
    for number in range(4):
        desk.seat.do(Remember(text=f"note number{number} of the desk"), agent)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def outside(desk: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound vectors of this very ledger, in another place, and texts that are not embedded yet."""
    write(desk)
    desk.embed()
    place = tmp_path_factory.mktemp("outside") / "vectors"
    shutil.move(desk.folder, place)
    write(desk, "bob")
    return place


def assert_refused(desk: Any, match: str) -> None:
    """Embedding says why; searching goes on without vectors, in a process that has just begun too."""
    for index in (desk.index, desk.another()):
        with pytest.raises(StoreError, match=match) as fault:
            desk.embed(index=index)
        assert fault.value.hint
        assert desk.near("note number1 of the desk", index=index) == []
        assert desk.reach(index) < 3
        with desk.seat.book.snapshot() as snapshot:
            assert index.backlog(snapshot, desk.seat.book.head().sequence) == 8


def test_a_link_in_the_folders_place_is_not_followed(desk: Any, outside: Path) -> None:
    desk.folder.symlink_to(outside)
    before = contents(outside)
    assert_refused(desk, "symbolic link")
    with pytest.raises(StoreError, match="symbolic link"):
        desk.index.forget()
    assert contents(outside) == before


def test_a_link_that_leads_nowhere_makes_nothing(desk: Any, outside: Path) -> None:
    desk.folder.symlink_to(outside.with_name("nothing"))
    assert_refused(desk, "symbolic link")
    assert not outside.with_name("nothing").exists()


def test_a_file_in_the_folders_place_is_named_and_left(desk: Any, outside: Path) -> None:
    desk.folder.write_text("somebody's notes")
    assert_refused(desk, "not a folder")
    assert desk.folder.read_text() == "somebody's notes"


def test_a_link_in_the_locks_place_is_not_followed(desk: Any, outside: Path) -> None:
    desk.folder.mkdir()
    (desk.folder / "lock").symlink_to(outside.with_name("made"))
    assert_refused(desk, "symbolic link")
    assert not outside.with_name("made").exists()


def test_a_link_in_the_files_place_is_replaced_and_its_target_left(desk: Any, outside: Path) -> None:
    desk.folder.mkdir()
    (target,) = outside.glob("*.vectors")
    (desk.folder / target.name).symlink_to(target)
    before = contents(outside)
    assert desk.near("note number1 of the desk") == []
    assert desk.embed() == 8
    assert contents(outside) == before
    assert not desk.path.is_symlink()


def test_a_folder_in_the_files_place_is_an_error_that_changes_nothing(desk: Any, outside: Path) -> None:
    (target,) = outside.glob("*.vectors")
    (desk.folder / target.name).mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(IsADirectoryError):
            desk.embed()
    assert desk.near("note number1 of the desk") == []
    assert sorted(path.name for path in desk.folder.iterdir()) == sorted([target.name, "lock"])


@pytest.mark.parametrize("put", ["link", "file"])
def test_no_search_and_no_write_ends_by_what_is_in_the_way(
    put: str, open_seat: Any, make_embedder: Any, tmp_path: Path
) -> None:
    encoder = Encoder("fake", make_embedder)
    encoder.ready(60)
    seat = open_seat(encoder=encoder)
    folder = seat.path.parent / "vectors"
    if put == "link":
        folder.symlink_to(tmp_path)
    else:
        folder.write_text("")
    note = seat.do(Remember(text="exporters gain"))
    with pytest.raises(StoreError):
        seat.book.embed_next()
    assert seat.ids("exporters") == [note.id]
    assert seat.book.embedding_backlog() == 1


def test_what_is_made_is_for_its_owner_alone(desk: Any) -> None:
    umask = os.umask(0)
    try:
        write(desk)
        desk.embed()
    finally:
        os.umask(umask)
    assert desk.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in desk.folder.iterdir()} == {0o600}


def test_a_batch_that_fails_leaves_no_file_open(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint may be out of reach for days, and is asked every few seconds."""
    write(desk)
    desk.embed()
    write(desk, "bob")

    def fail(texts: Any) -> Any:
        raise EmbeddingFailed("gone")

    def still_open() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    monkeypatch.setattr(desk.embedder, "embed", fail)
    counts = []
    for _ in range(2):
        for _ in range(20):
            with pytest.raises(EmbeddingFailed):
                desk.embed()
        counts.append(still_open())
    assert counts[1] <= counts[0]
