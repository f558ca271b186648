"""The file of reviewers: what is kept of a credential, and that nobody reviews where it cannot be trusted."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server import reviewer_file
from server.reviewer_file import (
    Passphrase,
    hashed,
    held,
    opens,
    read_reviewers,
    reviewer_path,
    token_hash,
)
from server.reviewers import add_passphrase, add_token, remove_reviewer
from store.errors import Conflict, NotFound, SchemaTooNew, StoreDamaged, StoreError

PHRASE = "four words will do"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return reviewer_path(tmp_path / "root")


def _change(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


FAULTS: dict[str, Callable[[Path], object]] = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "no JSON": lambda path: path.write_text("reviewers!"),
    "a list": lambda path: path.write_text("[]"),
    "no version": lambda path: _change(path, lambda stored: stored.pop("version")),
    "newer": lambda path: path.write_text('{"version": 2}'),
    "an unknown key": lambda path: _change(path, lambda stored: stored.update(open=True)),
    "no proof": lambda path: _change(
        path, lambda stored: stored["reviewers"][0].update(passphrase=None, token_sha256=None)
    ),
    "a name twice": lambda path: _change(
        path, lambda stored: stored["reviewers"].append(stored["reviewers"][0])
    ),
    "a cheap hash": lambda path: _change(
        path, lambda stored: stored["reviewers"][0]["passphrase"].update(n=2)
    ),
    "a dear hash": lambda path: _change(
        path, lambda stored: stored["reviewers"][0]["passphrase"].update(n=2**30)
    ),
    "open to the group": lambda path: path.chmod(0o640),
    "writable by others": lambda path: path.chmod(0o602),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path, 0o600)),
    "a link": lambda path: path.rename(path.with_name("t")) and path.symlink_to(path.with_name("t")),
}


@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS.keys())
def test_a_file_that_cannot_be_trusted_is_neither_used_nor_written_over(
    path: Path, spoil: Callable[[Path], object]
) -> None:
    add_passphrase(path, "Ann", PHRASE)
    spoil(path)
    before = path.lstat()
    for attempt in (
        lambda: read_reviewers(path),
        lambda: add_token(path, "Bob"),
        lambda: remove_reviewer(path, "Ann"),
    ):
        with pytest.raises(StoreError):
            attempt()
    after = path.lstat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_size,
    )


def test_a_newer_file_says_so_a_damaged_one_too_and_an_open_one_names_what_mends_it(path: Path) -> None:
    add_passphrase(path, "Ann", PHRASE)
    path.write_text('{"version": 2}')
    with pytest.raises(SchemaTooNew, match="version 2"):
        read_reviewers(path)
    path.write_text("{}")
    with pytest.raises(StoreDamaged, match="nobody can review"):
        read_reviewers(path)
    path.chmod(0o644)
    with pytest.raises(StoreError, match=f"chmod 600 {path}"):
        read_reviewers(path)


def test_a_passphrase_is_kept_as_scrypt_with_its_parameters_and_a_salt_of_its_own_p158(path: Path) -> None:
    add_passphrase(path, "Ann", PHRASE)
    add_passphrase(path, "Bob", PHRASE)
    stored = json.loads(path.read_text())
    ann, bob = (each["passphrase"] for each in stored["reviewers"])
    assert {name: ann[name] for name in ("n", "r", "p")} == {"n": 2**15, "r": 8, "p": 1}
    assert len(bytes.fromhex(ann["salt"])) == 16
    assert (ann["salt"], ann["scrypt"]) != (bob["salt"], bob["scrypt"])
    assert PHRASE not in path.read_text()
    assert PHRASE not in repr(read_reviewers(path))
    assert ann["scrypt"] not in repr(read_reviewers(path))


def test_a_token_is_kept_as_a_hash_alone_and_printed_by_nothing(path: Path) -> None:
    token = add_token(path, "Ann")
    assert token.startswith("dbr_")
    assert len(token) == 4 + 52
    assert token[4:] not in path.read_text()
    (ann,) = read_reviewers(path).reviewers
    assert ann.token_sha256 == token_hash(token)
    assert token_hash(token) not in repr(ann)


def test_root_file_and_lock_are_for_their_owner_alone_whatever_the_umask_p158(path: Path) -> None:
    before = os.umask(0)
    try:
        add_token(path, "Ann")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {
        "reviewers.json": 0o600,
        "reviewers.lock": 0o600,
    }


def test_one_name_may_have_both_and_the_last_reviewer_stays(path: Path) -> None:
    add_passphrase(path, "Ann", PHRASE)
    add_token(path, "Ann")
    (ann,) = read_reviewers(path).reviewers
    assert ann.passphrase
    assert ann.token_sha256
    with pytest.raises(Conflict, match="only reviewer"):
        remove_reviewer(path, "Ann")
    add_token(path, "Bob")
    remove_reviewer(path, "Ann")
    assert [each.name for each in read_reviewers(path).reviewers] == ["Bob"]
    with pytest.raises(NotFound):
        remove_reviewer(path, "Ann")


def test_many_who_are_added_at_once_are_all_there(path: Path) -> None:
    names = [f"person {number}" for number in range(12)]
    threads = [threading.Thread(target=add_token, args=(path, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.name for each in read_reviewers(path).reviewers) == sorted(names)


def test_a_process_that_died_holding_the_lock_is_in_nobodys_way(path: Path) -> None:
    with held(path):
        path.with_name("reviewers.json.new").write_text("half of it")
    add_token(path, "Ann")
    assert sorted(each.name for each in path.parent.iterdir()) == ["reviewers.json", "reviewers.lock"]


@pytest.fixture(scope="module")
def kept() -> Passphrase:
    return hashed("Caf\u00e9 au lait, bien s\u00fbr")


def test_an_accent_may_be_typed_whole_or_in_parts(kept: Passphrase) -> None:
    assert opens(kept, "Cafe\u0301 au lait, bien su\u0302r")


@settings(max_examples=10)
@given(st.text(max_size=40))
def test_nothing_else_opens(kept: Passphrase, other: str) -> None:
    assert not opens(kept, other)


def test_a_name_that_is_not_there_costs_as_much_as_one_that_is(
    kept: Passphrase, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, int]] = []
    whole = reviewer_file.hashlib.scrypt

    def count(*args: Any, **terms: Any) -> bytes:
        asked.append((terms["n"], terms["r"], terms["p"]))
        return whole(*args, **terms)

    monkeypatch.setattr(reviewer_file.hashlib, "scrypt", count)
    assert not opens(kept, "wrong")
    assert not opens(None, "wrong")
    assert asked == [(2**15, 8, 1)] * 2
