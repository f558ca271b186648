"""A store that is taken away or exchanged under a running server is said to have vanished, and is never made anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store import Book, Caller
from store.commands import Remember

if TYPE_CHECKING:
    from conftest import Answer, Look, Server, StartServer

pytestmark = pytest.mark.faults


def rm_root(root: Path, _ledger: Path) -> None:
    shutil.rmtree(root)


def move_root(root: Path, _ledger: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def rm_strategy(_root: Path, ledger: Path) -> None:
    shutil.rmtree(ledger.parent)


def rm_file(_root: Path, ledger: Path) -> None:
    for path in ledger.parent.iterdir():
        path.unlink()


def move_file(_root: Path, ledger: Path) -> None:
    ledger.rename(ledger.with_name("moved"))


TAKEN = (rm_root, move_root, rm_strategy, rm_file, move_file)


def other_root(root: Path, _ledger: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    write(root, "of another ledger")


def other_file(_root: Path, ledger: Path) -> None:
    beside = ledger.parent.parent.with_name("beside")
    write(beside, "of another ledger")
    for path in (beside / "default").iterdir():
        path.replace(ledger.parent / path.name)


def older_copy(_root: Path, ledger: Path) -> None:
    """The copy taken before the server's write, put back by renaming, as a restore does."""
    restored = ledger.with_name("restored")
    shutil.copy(ledger.parent.parent.with_name("backup.sqlite"), restored)
    restored.replace(ledger)


EXCHANGED = (other_root, other_file, older_copy)


def write(root: Path, text: str) -> None:
    book = Book.open(root, "default")
    book.execute(Caller(agent="other", profile="solo", session_id="s", tool="remember"), Remember(text=text))
    book.close()


def tree(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()
    }


def assert_vanished(server: Server) -> None:
    answers: list[Answer] = [
        server.call("remember", text="into nothing"),
        server.call("search_memory", query="kept"),
        server.call("get_memory_state"),
        server.result(server.ask("resources/read", uri="memory://state")),
    ]
    for answer in answers:
        assert answer.is_error, answer.body
        assert answer.body["code"] == "store_vanished"
        assert answer.body["stored"] == "no"
        assert "Restore" in answer.body["hint"]
    assert "result" in server.message(server.ask("tools/list"))


@pytest.mark.parametrize("take", TAKEN)
def test_a_store_that_is_taken_away_is_never_made_anew(
    start_server: StartServer, root: Path, ledger: Path, take: Callable[[Path, Path], None]
) -> None:
    server = start_server().open()
    server.remember("kept")
    take(root, ledger)
    for _ in range(2):
        assert_vanished(server)
    assert not ledger.exists()
    assert server.end() == 0
    assert not ledger.exists()


@pytest.mark.parametrize("exchange", EXCHANGED)
def test_a_store_that_is_exchanged_is_left_as_it_is(
    start_server: StartServer, root: Path, ledger: Path, exchange: Callable[[Path, Path], None]
) -> None:
    write(root, "before the backup")
    shutil.copy(ledger, root.with_name("backup.sqlite"))
    server = start_server().open()
    server.remember("kept")
    exchange(root, ledger)
    before = ledger.read_bytes()
    for _ in range(2):
        assert_vanished(server)
    assert server.end() == 0
    assert ledger.read_bytes() == before


def test_a_file_that_comes_back_is_served_on(start_server: StartServer, ledger: Path, look: Look) -> None:
    server = start_server().open()
    server.remember("kept")
    away = ledger.with_name("away")
    ledger.rename(away)
    assert_vanished(server)
    away.rename(ledger)
    server.remember("after its return")
    assert look.texts() == ["kept", "after its return"]
    look.assert_sound()


@pytest.mark.parametrize("take", [rm_root, move_root])
def test_a_root_that_goes_before_the_first_call_is_not_made_anew(
    start_server: StartServer, root: Path, ledger: Path, take: Callable[[Path, Path], None]
) -> None:
    write(root, "kept")
    server = start_server().open()
    take(root, ledger)
    assert_vanished(server)
    assert not root.exists()


def test_a_run_whose_root_goes_is_not_made_anew(
    start_server: StartServer, root: Path, tmp_path: Path
) -> None:
    config = tmp_path / "backtest.toml"
    config.write_text('[clock]\nmode = "simulated"\n[agents.a]\nprofile = "trader"\n')
    server = start_server("--config", str(config), "--agent", "a").open()

    def remember(run: str) -> Answer:
        meta = {"deskbook/now": "2026-03-02T21:00:00Z", "deskbook/run": run}
        return server.result(
            server.ask("tools/call", name="remember", arguments={"text": "in a run"}, _meta=meta)
        )

    assert not remember("first").is_error
    shutil.rmtree(root)
    for run in ("first", "second"):
        assert remember(run).body["code"] == "store_vanished"
    assert not root.exists()
