"""A disk without space: nothing is stored, everything is still read, and it goes on once there is space again."""

from __future__ import annotations

import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Answer, Look, LookAt, Server, StartServer

pytestmark = pytest.mark.faults

DISK = "/mnt"
LONG = "every word of this note takes space " * 2_700  # 97,200 characters
CLOSE_TO_FULL = 64 * 1024


class SmallDisk:
    """A server on a 16 MiB file system of its own, seen from outside through its process."""

    def __init__(self, start_server: StartServer) -> None:
        mount = f'mount -t tmpfs -o size=16m,mode=0700 tmpfs {DISK} && exec "$@"'
        alone = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
        # Without exports: a pass that gives up frees the room it had taken, and so a write would fit again.
        quiet = {"DESKBOOK_EXPORT": "0"}
        self.server: Server = start_server(prefix=alone, at=Path(DISK), environ=quiet).open()
        self.root = Path(f"/proc/{self.server.process.pid}/root{DISK}")
        self.ledger = self.root / "default" / "memory.sqlite"
        self.filler = self.root / "filler"

    def fill(self, leave: int = 0) -> None:
        """Take all space but the last bytes."""
        with self.filler.open("ab", buffering=0) as filler:
            for size in (2**20, 2**16, 2**12):
                with suppress(OSError):
                    while self._free() - leave >= size:
                        filler.write(b"\0" * size)

    def _free(self) -> int:
        told = os.statvfs(self.root)
        return told.f_bavail * told.f_frsize

    def copy(self, place: Path) -> Path:
        """The ledger as its server has left it so far; SQLite cannot open it through the process."""
        place.mkdir()
        for name in ("", "-wal"):
            shutil.copy(self.ledger.with_name(self.ledger.name + name), place / ("memory.sqlite" + name))
        return place / "memory.sqlite"

    def free(self) -> None:
        self.filler.unlink()


@pytest.fixture
def disk(start_server: StartServer) -> SmallDisk:
    return SmallDisk(start_server)


def assert_full(answer: Answer) -> None:
    assert answer.is_error
    assert (answer.body["code"], answer.body["stored"]) == ("store_full", "no")
    assert answer.body["retryable"] is True
    assert "space" in answer.body["hint"]
    assert "sqlite" not in str(answer.body).casefold()


def write_until_refused(server: Server) -> list[str]:
    stored: list[str] = []
    for number in range(500):
        answer = server.call("remember", text=f"number{number} {LONG}")
        if answer.is_error:
            assert_full(answer)
            return stored
        stored.append(answer.body["id"])
    pytest.fail("the disk was never full")


def test_a_full_disk_is_said_reads_go_on_and_freed_space_ends_it(
    disk: SmallDisk, look_at: LookAt, tmp_path: Path
) -> None:
    """P018."""
    server = disk.server
    disk.fill(leave=10 * 2**20)
    stored = write_until_refused(server)
    assert len(stored) > 5
    disk.fill()
    for _ in range(3):
        assert_full(server.call("remember", text="one more " + LONG))

    state = server.call("get_memory_state")
    assert not state.is_error
    assert state.body["recorded"] is False
    got = server.call("get_memory", memory_id=stored[0])
    assert got.body["memory"]["text"].startswith("number0 ")
    search = server.call("search_memory", query="number3")
    assert (search.body["code"], search.body["retryable"]) == ("not_recorded", True)
    assert "full" in search.body["message"]
    assert "result" in server.message(server.ask("tools/list"))

    disk.free()
    server.remember("there is space again")
    found = server.call("search_memory", query="number3")
    assert [hit["id"] for hit in found.body["hits"]] == [stored[3]]
    look = look_at(disk.copy(tmp_path / "copy"))
    look.assert_sound()
    kept = {memory_id for (memory_id,) in look.rows("SELECT memory_id FROM memory_versions")}
    assert set(stored) <= kept
    assert len(kept) == len(stored) + 1
    assert server.end() == 0


def test_small_writes_up_to_the_last_byte_are_stored_whole_or_not_at_all(
    disk: SmallDisk, look_at: LookAt, tmp_path: Path
) -> None:
    server = disk.server
    server.remember("the first")
    disk.fill(leave=CLOSE_TO_FULL)
    stored, refused = 0, 0
    while refused < 20:
        asked = [server.begin("remember", text=f"small {stored} {n}") for n in range(8)]
        for answer in [server.result(request) for request in asked]:
            if answer.is_error:
                assert_full(answer)
                refused += 1
            else:
                stored += 1
    disk.free()
    server.remember("the last")
    look = look_at(disk.copy(tmp_path / "copy"))
    assert len(look.texts()) == stored + 2
    look.assert_sound()


def test_a_ledger_that_could_not_be_made_on_a_full_disk_is_made_once_there_is_space(
    disk: SmallDisk, look_at: LookAt, tmp_path: Path
) -> None:
    disk.fill()
    assert_full(disk.server.call("remember", text="no space from the start"))
    assert_full(disk.server.call("get_memory_state"))
    disk.free()
    disk.server.remember("now there is")
    look = look_at(disk.copy(tmp_path / "copy"))
    assert look.texts() == ["now there is"]
    look.assert_sound()


def test_a_file_that_may_not_grow_is_refused_by_name_and_loses_nothing(
    start_server: StartServer, look: Look
) -> None:
    """A limit on file size, which SQLite takes for a failing disk rather than a full one."""
    server = start_server().open()
    server.remember("the first")
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (2**21, resource.RLIM_INFINITY))
    stored = 1
    while not (answer := server.call("remember", text=f"{stored} {LONG}")).is_error:
        stored += 1
        assert stored < 500
    assert answer.body["code"] in {"store_full", "store_error", "outcome_unknown"}
    assert not server.call("get_memory_state").is_error
    resource.prlimit(
        server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    server.remember("the last")
    kept = len(look.texts())
    assert kept == stored + 1 if answer.body["stored"] == "no" else kept in {stored + 1, stored + 2}
    look.assert_sound()
