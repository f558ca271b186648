"""A store that may not be written, may not be read, or cannot be made: said by name, and what can be read is read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Answer, Command, Server, StartServer

pytestmark = pytest.mark.faults

PROMPT = 0.5
LEFT_BEHIND = {
    "a ledger closed in order": (),
    "a ledger with its log": ("-wal", "-shm"),
    "a ledger with its log alone": ("-wal",),
}


@pytest.fixture(params=LEFT_BEHIND)
def read_only_root(
    request: pytest.FixtureRequest, start_server: StartServer, root: Path, ledger: Path, tmp_path: Path
) -> Iterator[Path]:
    """A root with one note, none of it writable; with and without what a killed server leaves behind."""
    server = start_server().open()
    server.remember("written before", symbol="IBM")
    copy = tmp_path / "copy"
    kept = LEFT_BEHIND[request.param]
    if kept:
        server.kill()
    else:
        assert server.end() == 0
    for name in ("", *kept):
        target = copy / "default" / (ledger.name + name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ledger.with_name(ledger.name + name), target)
    assert {path.name.removeprefix(ledger.name) for path in target.parent.iterdir()} == {"", *kept}
    seal(copy)
    yield copy
    unseal(copy)


def seal(root: Path) -> None:
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def unseal(root: Path) -> None:
    root.chmod(0o700)
    for path in root.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def assert_refused(answer: Answer, code: str) -> None:
    assert answer.is_error
    assert (answer.body["code"], answer.body["stored"]) == (code, "no"), answer.body
    assert answer.body["hint"]
    assert answer.seconds < PROMPT
    assert "sqlite" not in str(answer.body).casefold()


def test_a_read_only_store_is_read_and_refuses_what_would_write(
    start_server: StartServer, read_only_root: Path, powerless: tuple[str, ...], deskbook: Command
) -> None:
    """P020."""
    before = {path.name: path.stat().st_mtime_ns for path in read_only_root.rglob("*")}
    server = start_server(prefix=powerless, at=read_only_root).open()
    state = server.call("get_memory_state")
    assert not state.is_error, state.body
    assert state.body["counts"]["memories"] == 1
    assert state.body["recorded"] is False
    memory_id = state.body["recent"][0].split()[2]
    got = server.call("get_memory", memory_id=memory_id)
    assert got.body["memory"]["text"] == "written before"
    assert got.body["recorded"] is False
    for _ in range(2):
        search = server.call("search_memory", query="before")
        assert_refused(search, "not_recorded")
        assert "read-only" in search.body["message"]
        assert search.body["retryable"] is False
        assert "writable" in search.body["hint"]
        assert_refused(server.call("remember", text="cannot be"), "store_read_only")
    assert "result" in server.message(server.ask("tools/list"))
    assert server.end() == 0

    verified = deskbook("verify", prefix=powerless, at=read_only_root)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    told = deskbook("status", "--json", prefix=powerless, at=read_only_root)
    assert '"writable": false' in told.stdout
    assert {path.name: path.stat().st_mtime_ns for path in read_only_root.rglob("*")} == before


def test_a_root_that_cannot_be_made_is_said_by_every_call_and_the_server_lives(
    start_server: StartServer, tmp_path: Path, powerless: tuple[str, ...]
) -> None:
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    sealed.chmod(0o555)
    server = start_server(prefix=powerless, at=sealed / "below" / "root").open()
    for _ in range(2):
        assert_refused(server.call("remember", text="nowhere"), "store_read_only")
        assert_refused(server.call("get_memory_state"), "store_read_only")
    assert "result" in server.message(server.ask("tools/list"))
    assert server.end() == 0
    assert list(sealed.iterdir()) == []


@pytest.mark.parametrize("closed", ["file", "folder", "root", "lock"])
def test_a_store_that_may_not_be_opened_is_a_hard_error_and_nothing_takes_its_place(
    start_server: StartServer,
    root: Path,
    ledger: Path,
    powerless: tuple[str, ...],
    deskbook: Command,
    closed: str,
) -> None:
    """P024."""
    first = start_server().open()
    first.remember("kept")
    assert first.end() == 0
    lock = ledger.with_name(ledger.name + ".lock")
    place = {"file": ledger, "folder": ledger.parent, "root": root, "lock": lock}[closed]
    mode = place.stat().st_mode
    place.chmod(0)
    try:
        server = start_server(prefix=powerless, rooted=False, environ={"DESKBOOK_ROOT": str(root)}).open()
        for _ in range(2):
            refused = server.call("remember", text="volatile")
            assert refused.is_error
            assert refused.body["code"] in {"store_error", "store_read_only"}, refused.body
            assert refused.body["stored"] == "no"
            assert server.call("search_memory", query="kept").is_error
            assert server.call("get_memory_state").is_error
        assert deskbook("status", prefix=powerless).returncode != 0
        assert (deskbook("verify", prefix=powerless).returncode == 0) == (closed == "lock")
        assert server.end() == 0
    finally:
        place.chmod(mode)
    again: Server = start_server().open()
    assert again.call("search_memory", query="kept").body["total"] == 1
    assert again.call("search_memory", query="volatile").body["total"] == 0


def test_a_folder_in_the_ledgers_place_is_a_hard_error(start_server: StartServer, ledger: Path) -> None:
    """P024."""
    ledger.mkdir(parents=True)
    server = start_server().open()
    for tool, arguments in (("remember", {"text": "lost"}), ("search_memory", {"query": "lost"})):
        refused = server.call(tool, **arguments)
        assert refused.is_error
        assert refused.body["stored"] == "no"
        assert refused.body["code"] == "store_error"
    assert list(ledger.iterdir()) == []
