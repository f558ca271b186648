"""The file of hashes: who may read it, what it survives, and that nobody gets in where it cannot be trusted."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server import private_file, token_file, tokens
from server.sections import AgentSettings
from server.token_file import lock_path, mark_of, read_records
from server.tokens import Bearer, TokenFault, new_token, revoke
from store.errors import ConfigError, SchemaTooNew, StoreBusy, StoreDamaged, StoreError

if TYPE_CHECKING:
    from conftest import Open

REPOSITORY = Path(__file__).resolve().parents[2]
GUARD = 60
BY_VARIABLE = {
    "trader": AgentSettings(profile="trader", token_env="TRADER_TOKEN"),
    "researcher": AgentSettings(profile="researcher", token_env="RESEARCHER_TOKEN"),
}
LONG = "correct-horse-battery-staple"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _damage(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


FAULTS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_text(""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "no JSON": lambda path: path.write_text("tokens!"),
    "not UTF-8": lambda path: path.write_bytes(b'{"version": 1, "tokens": [], "\xff": 1}'),
    "nested": lambda path: path.write_text("[" * 100_000),
    "a list": lambda path: path.write_text("[]"),
    "no version": lambda path: _damage(path, lambda stored: stored.pop("version")),
    "version 0": lambda path: _damage(path, lambda stored: stored.update(version=0)),
    "a version in words": lambda path: _damage(path, lambda stored: stored.update(version="1")),
    "newer": lambda path: path.write_text('{"version": 2, "bearers": []}'),
    "no tokens": lambda path: _damage(path, lambda stored: stored.pop("tokens")),
    "an unknown key": lambda path: _damage(path, lambda stored: stored["tokens"][0].update(admin=True)),
    "a missing key": lambda path: _damage(path, lambda stored: stored["tokens"][0].pop("revoked")),
    "a short hash": lambda path: _damage(path, lambda stored: stored["tokens"][0].update(sha256="00")),
    "an odd time": lambda path: _damage(path, lambda stored: stored["tokens"][0].update(expires=2**60)),
    "an id twice": lambda path: _damage(path, lambda stored: stored["tokens"].append(stored["tokens"][0])),
    "open to the group": lambda path: path.chmod(0o640),
    "open to all": lambda path: path.chmod(0o604),
    "writable by others": lambda path: path.chmod(0o602),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
    "a link": lambda path: path.rename(path.with_name("t")) and path.symlink_to(path.with_name("t")),
    "a link to nowhere": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}
VARIED = pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS.keys())


@VARIED
def test_a_file_that_cannot_be_trusted_does_not_start(
    path: Path, opened: Open, spoil: Callable[[Path], object]
) -> None:
    new_token(path, "trader")
    spoil(path)
    with pytest.raises(ConfigError):
        opened()


@VARIED
def test_a_file_that_goes_bad_under_a_server_lets_nobody_in_and_is_logged_once(
    path: Path, opened: Open, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    made = new_token(path, "trader")
    known = opened(BY_VARIABLE, RESEARCHER_TOKEN=LONG)
    spoil(path)
    for _ in range(3):
        assert isinstance(known.check(made.token), TokenFault)
        assert isinstance(known.check(LONG), TokenFault), "the file might say that it was revoked"
        assert not known.alive(made.record.id)
        assert not known.alive("env:researcher")
        assert known.required
        assert not known.usable
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@VARIED
def test_no_command_writes_over_a_file_that_cannot_be_trusted(
    path: Path, spoil: Callable[[Path], object]
) -> None:
    made = new_token(path, "trader")
    spoil(path)
    before = mark_of(path)
    with pytest.raises(StoreError):
        new_token(path, "trader")
    with pytest.raises(StoreError):
        revoke(path, ids=[made.record.id])
    assert mark_of(path) == before


def test_a_file_open_to_others_is_refused_with_the_command_that_mends_it_p158(
    path: Path, opened: Open
) -> None:
    made = new_token(path, "trader")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        opened()
    path.chmod(0o600)
    assert isinstance(opened().check(made.token), Bearer)


def test_a_newer_file_says_so_and_a_damaged_one_too(path: Path) -> None:
    new_token(path, "trader")
    path.write_text('{"version": 2}')
    with pytest.raises(SchemaTooNew, match="version 2"):
        read_records(path)
    path.write_text("{}")
    with pytest.raises(StoreDamaged):
        read_records(path)


@pytest.mark.parametrize("make", [lambda path: path.mkdir(0o700), lambda path: os.mkfifo(path, 0o600)])
def test_what_is_no_file_in_its_place_is_told(path: Path, make: Callable[[Path], object]) -> None:
    path.parent.mkdir()
    make(path)
    with pytest.raises(StoreError, match="is not a file"):
        read_records(path)


def test_a_file_that_vanishes_lets_nobody_in_until_it_is_back(
    path: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    made = new_token(path, "trader")
    known = opened(BY_VARIABLE, RESEARCHER_TOKEN=LONG)
    away = path.rename(path.with_name("away"))
    lock_path(path).unlink()
    for _ in range(3):
        assert known.required
        assert not known.usable
        assert isinstance(known.check(made.token), TokenFault)
        assert isinstance(known.check(LONG), TokenFault)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    away.rename(path)
    assert isinstance(known.check(made.token), Bearer)
    assert isinstance(known.check(LONG), Bearer)
    assert "can be used again" in caplog.text


def test_a_file_that_vanishes_while_it_is_read_lets_nobody_in(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_token(path, "trader")
    known = opened(BY_VARIABLE, TRADER_TOKEN=made.token)
    revoke(path, ids=[made.record.id])

    def vanish(at: Path) -> object:
        at.unlink(missing_ok=True)
        return read_records(at)

    monkeypatch.setattr(tokens, "read_records", vanish)
    assert known.check(made.token) is TokenFault.UNKNOWN
    assert not known.usable


def test_without_its_file_a_server_still_knows_that_tokens_were_made(path: Path, opened: Open) -> None:
    new_token(path, "trader")
    path.unlink()
    assert opened().required
    assert not opened().usable
    lock_path(path).unlink()
    assert not opened().required


def test_an_edit_that_keeps_length_and_time_is_seen(path: Path, opened: Open) -> None:
    made = new_token(path, "trader")
    known = opened()
    assert isinstance(known.check(made.token), Bearer)
    before = path.stat()
    path.write_text(path.read_text().replace('"agent": "trader"', '"agent": "tradex"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known.check(made.token) is TokenFault.UNKNOWN


def test_a_file_that_did_not_change_is_not_read_again(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_token(path, "trader")
    known = opened()
    monkeypatch.setattr(tokens, "read_records", lambda _: pytest.fail("read again"))
    assert isinstance(known.check(made.token), Bearer)
    assert known.alive(made.record.id)


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_root_file_and_lock_are_for_their_owner_alone_whatever_the_umask_p158(
    path: Path, no_umask: None
) -> None:
    made = new_token(path, "trader")
    revoke(path, ids=[made.record.id])
    assert mode_of(path.parent) == 0o700
    assert {each.name: mode_of(each) for each in path.parent.iterdir()} == {
        "tokens.json": 0o600,
        "tokens.lock": 0o600,
    }


def test_a_umask_that_takes_all_rights_away_leaves_the_owner_his(path: Path) -> None:
    path.parent.mkdir()
    lock_path(path).touch(0o600)
    before = os.umask(0o777)
    try:
        new_token(path, "trader")
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600


@pytest.mark.parametrize("name", ["tokens.json", "tokens.lock"])
def test_a_link_in_the_place_of_file_or_lock_is_refused_p158(path: Path, tmp_path: Path, name: str) -> None:
    path.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (path.parent / name).symlink_to(elsewhere)
    with pytest.raises(StoreError):
        new_token(path, "trader")
    assert elsewhere.read_text() == "mine"
    assert not path.exists() or path.is_symlink()


def test_what_a_killed_command_left_behind_is_in_nobodys_way(path: Path) -> None:
    first = new_token(path, "trader")
    path.with_name("tokens.json.new").write_text("half of it")
    second = new_token(path, "trader")
    assert [record.id for record in read_records(path)] == [first.record.id, second.record.id]
    assert sorted(each.name for each in path.parent.iterdir()) == ["tokens.json", "tokens.lock"]


def test_a_disk_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_token(path, "trader")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_file.os, "fsync", fail)
    with pytest.raises(StoreError) as caught:
        revoke(path, ids=[made.record.id])
    assert caught.value.code == "store_full"
    monkeypatch.undo()
    assert read_records(path) == (made.record,)
    assert not path.with_name("tokens.json.new").exists()


MAKER = """
import sys
from pathlib import Path
from server.tokens import new_token
sys.stdin.readline()
for _ in range(20):
    print(new_token(Path(sys.argv[1]), "trader").token)
"""


def test_two_processes_that_make_tokens_at_once_lose_none(path: Path, opened: Open) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd="/", env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        for _ in range(2)
    ]  # fmt: skip
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    made = [token for maker in makers for token in maker.communicate(timeout=GUARD)[0].split()]
    assert [maker.returncode for maker in makers] == [0, 0]
    assert len(set(made)) == 40
    known = opened()
    assert all(isinstance(known.check(token), Bearer) for token in made)
    assert len(read_records(path)) == 40


def test_readers_see_the_file_before_a_change_or_after_it(path: Path, opened: Open) -> None:
    kept = new_token(path, "trader")
    known = opened()
    refused = []
    writer = threading.Thread(target=lambda: [new_token(path, "researcher") for _ in range(20)])
    writer.start()
    while writer.is_alive():
        if not isinstance(known.check(kept.token), Bearer):
            refused.append(time.monotonic())
    writer.join(GUARD)
    assert refused == []
    assert len(read_records(path)) == 21


def test_a_lock_that_is_held_too_long_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_file, "LOCK_SECONDS", 0.0)
    with token_file.held(path), pytest.raises(StoreBusy, match="nothing was changed"):
        new_token(path, "trader")
    assert not path.exists()
