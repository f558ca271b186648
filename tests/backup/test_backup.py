"""Backup and restore: one consistent moment while others write, put back only when it is the same."""

from __future__ import annotations

import json
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from server import cli
from store import Book, Caller
from store.audit import verify
from store.backup.keeping import back_up, restore
from store.backup.manifest import manifest_path
from store.backup.portrait import portray
from store.commands import OpenThesis, Remember
from store.errors import ConfigError, ForeignFile, NotFound, StoreDamaged, StoreError
from store.paths import ledger_path
from store.redaction.register import Register

CALLER = Caller("trader", "trader", "ses_1", "remember")
NOW = 1_772_461_800_000_000
Backed = Callable[..., Path]


def unwatched(_done: int, _total: int) -> None:
    """Nobody watches."""


def write(root: Path, texts: list[str], strategy: str = "default", run: str | None = None) -> None:
    caller = CALLER if run is None else Caller("trader", "trader", "ses_1", "remember", now=NOW)
    with closing(Book.open(root, strategy, run, begins=NOW)) as book:
        for text in texts:
            book.execute(caller, Remember(text=text))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root whose ledger holds forty notes and a thesis."""
    root = tmp_path / "root"
    write(root, [f"note {number} on {'AAPL' if number % 2 else 'NVDA'} margins" for number in range(40)])
    with closing(Book.open(root, "default")) as book:
        book.execute(CALLER, OpenThesis(text="Services margin keeps rising.", symbol="AAPL"))
    return root


@pytest.fixture
def backed(root: Path, tmp_path: Path) -> Backed:
    """Makes a backup of that root's ledger."""

    def make(
        name: str = "kept.sqlite", strategy: str = "default", run: str | None = None, **options: Any
    ) -> Path:
        target = tmp_path / name
        back_up(
            ledger_path(root, strategy, run),
            target,
            product="deskbook 0",
            now=NOW,
            progress=unwatched,
            **options,
        )
        return target

    return make


def put_back(
    root: Path, backup: Path, strategy: str = "default", run: str | None = None, **options: Any
) -> Path:
    return restore(
        root, strategy, run, backup, register=Register(root / "none"), progress=unwatched, **options
    ).path


def test_a_backup_is_one_file_at_rest_that_proves_sound_with_a_manifest_beside_it(
    backed: Backed, root: Path, tmp_path: Path
) -> None:
    target = backed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.sqlite", "kept.sqlite.json", "root"]
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(manifest_path(target).stat().st_mode) == 0o600
    original, copy = (verify(path, "default", None) for path in (ledger_path(root, "default", None), target))
    assert copy.sound
    assert (copy.entries, copy.chain) == (original.entries, original.chain)
    told = json.loads(manifest_path(target).read_text())
    assert (told["portrait"]["sequence"], told["portrait"]["chain"]) == (copy.entries, copy.chain)
    assert len(told["portrait"]["searches"]) >= 20
    assert all(search["found"] for search in told["portrait"]["searches"])


def test_a_backup_taken_while_others_write_shows_one_moment(root: Path, tmp_path: Path) -> None:
    going, written = threading.Event(), []

    def work() -> None:
        with closing(Book.open(root, "default")) as book:
            while not going.is_set():
                written.append(book.execute(CALLER, Remember(text=f"meanwhile {len(written)}")).sequence)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        while not written:
            pass
        for number in range(5):
            target = tmp_path / f"kept-{number}.sqlite"
            made = back_up(
                ledger_path(root, "default", None), target, product="d", now=NOW, progress=unwatched
            )
            report = verify(target, "default", None)
            assert report.sound
            assert (report.entries, report.chain) == (made.portrait.sequence, made.portrait.chain)
    finally:
        going.set()
        writer.join()
    assert verify(ledger_path(root, "default", None), "default", None).sound


def test_a_backup_is_put_back_as_it_was_and_written_on(backed: Backed, root: Path, tmp_path: Path) -> None:
    target, elsewhere = backed(), tmp_path / "elsewhere"
    path = put_back(elsewhere, target)
    assert portray(path).differs_from(portray(ledger_path(root, "default", None))) is None
    write(elsewhere, ["and on"])
    assert verify(path, "default", None).sound
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert target.read_bytes()[:16] == b"SQLite format 3\0"


def test_what_stands_there_is_refused_and_with_force_moved_aside(backed: Backed, root: Path) -> None:
    target = backed()
    write(root, ["written since"])
    path = ledger_path(root, "default", None)
    with pytest.raises(ConfigError, match="A ledger stands"):
        put_back(root, target)
    since = verify(path, "default", None).entries
    done = restore(
        root, "default", None, target, register=Register(root / "none"), force=True, progress=unwatched
    )
    assert verify(path, "default", None).entries == since - 1
    (aside, *_log) = done.moved
    assert aside.name == "memory.sqlite.replaced-1"
    assert verify(aside, "default", None).entries == since
    again = restore(
        root, "default", None, target, register=Register(root / "none"), force=True, progress=unwatched
    )
    assert again.moved[0].name == "memory.sqlite.replaced-2"


def test_a_server_that_has_the_ledger_open_notices_that_it_was_replaced(backed: Backed, root: Path) -> None:
    target = backed()
    with closing(Book.open(root, "default")) as book:
        put_back(root, target, force=True)
        with pytest.raises(StoreError) as refused:
            book.execute(CALLER, Remember(text="into the void"))
    assert refused.value.code == "store_vanished"
    assert verify(ledger_path(root, "default", None), "default", None).sound


def test_a_run_is_backed_up_and_never_restored_as_another_or_as_live(
    root: Path, backed: Backed, tmp_path: Path
) -> None:
    write(root, ["in a run"], run="one")
    target = backed("run.sqlite", run="one")
    for strategy, run in (("default", None), ("default", "two"), ("other", "one")):
        with pytest.raises(ForeignFile) as refused:
            put_back(tmp_path / "elsewhere", target, strategy, run)
        assert "--run one" in (refused.value.hint or "")
    assert not (tmp_path / "elsewhere").exists()
    assert verify(put_back(tmp_path / "elsewhere", target, run="one"), "default", "one").sound


def change_a_byte(target: Path) -> None:
    raw = bytearray(target.read_bytes())
    raw[len(raw) // 2] ^= 1
    target.write_bytes(raw)


def forge(target: Path, **changed: Any) -> None:
    told = json.loads(manifest_path(target).read_text())
    told["portrait"] |= changed
    manifest_path(target).write_text(json.dumps(told))


def rewrite_a_row(target: Path) -> None:
    """Change a text, and let the manifest vouch for the changed file."""
    with closing(apsw.Connection(str(target))) as connection:
        connection.execute("UPDATE memory_versions SET text = 'forged' WHERE ordinal = 7")
    import hashlib

    told = json.loads(manifest_path(target).read_text())
    told |= {"sha256": hashlib.sha256(target.read_bytes()).hexdigest(), "size_bytes": target.stat().st_size}
    manifest_path(target).write_text(json.dumps(told))


SPOILED: dict[str, Callable[[Path], object]] = {
    "a byte": change_a_byte,
    "cut short": lambda target: target.write_bytes(target.read_bytes()[:-4096]),
    "a row": rewrite_a_row,
    "another head": lambda target: forge(target, chain="00" * 32),
    "another length": lambda target: forge(target, sequence=3),
    "other counts": lambda target: forge(target, counts={"memory_events": 1}),
    "other searches": lambda target: forge(
        target, searches=[{"query": "note", "total": 1, "found": ["mem_1"]}]
    ),
    "another store": lambda target: forge(target, store_id="store_other"),
    "no JSON": lambda target: manifest_path(target).write_text("{"),
    "a list": lambda target: manifest_path(target).write_text("[]"),
    "another version": lambda target: manifest_path(target).write_text(
        manifest_path(target).read_text().replace('"version": 1', '"version": 2')
    ),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_a_backup_that_is_not_what_it_was_is_never_put_in_place(
    backed: Backed, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    target = backed()
    spoil(target)
    with pytest.raises(StoreDamaged):
        put_back(tmp_path / "elsewhere", target)
    assert not ledger_path(tmp_path / "elsewhere", "default", None).exists()
    assert not list((tmp_path / "elsewhere").rglob("*.restoring"))


def test_a_backup_without_its_file_or_manifest_is_told_which(backed: Backed, tmp_path: Path) -> None:
    target = backed()
    for missing in (manifest_path(target), target):
        missing.rename(missing.with_name("away"))
        with pytest.raises(NotFound, match=missing.name):
            put_back(tmp_path / "elsewhere", target)
        missing.with_name("away").rename(missing)


def test_a_target_in_the_way_is_refused_and_with_force_replaced(
    backed: Backed, root: Path, tmp_path: Path
) -> None:
    target = backed()
    with pytest.raises(ConfigError, match="exists"):
        backed()
    write(root, ["one more"])
    backed(force=True)
    assert (
        verify(target, "default", None).entries
        == verify(ledger_path(root, "default", None), "default", None).entries
    )
    (tmp_path / "folder").mkdir()
    for name in ("folder", "missing/kept.sqlite", "root/default/kept.sqlite", "kept-wal"):
        with pytest.raises(ConfigError):
            backed(name)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError):
        backed("link", force=True)


def test_without_a_ledger_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        back_up(tmp_path / "none", tmp_path / "kept", product="d", now=NOW, progress=unwatched)


def test_the_commands_say_what_they_did(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["deskbook", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code in (0, None)
        return capsys.readouterr().out

    target = tmp_path / "kept.sqlite"
    said = run("backup", str(target), "--root", str(root))
    assert f"wrote {target}" in said
    chain = said.split("chain ")[1].strip()
    said = run("restore", str(target), "--root", str(tmp_path / "elsewhere"))
    assert "are as they were" in said
    assert chain in said
    assert (
        json.loads(run("backup", str(target), "--root", str(root), "--force", "--json"))["portrait"]["chain"]
        == chain
    )


def test_a_file_copied_without_its_log_opens_as_it_stood_then_and_says_how_far_p236(
    root: Path, tmp_path: Path
) -> None:
    """Case P236: a naive copy of memory.sqlite alone, made while a server writes."""
    write(root, ["one", "two"])
    with closing(Book.open(root, "default")) as book:
        moved = book.head().sequence
        book.execute(CALLER, Remember(text="still in the log"))
        copied = tmp_path / "copied"
        (copied / "default").mkdir(parents=True)
        shutil.copy(ledger_path(root, "default", None), ledger_path(copied, "default", None))
        assert book.head().sequence > moved
    report = verify(ledger_path(copied, "default", None), "default", None)
    assert (report.sound, report.entries) == (True, moved)
    with closing(Book.open(copied, "default", create=False)) as copy:
        assert copy.status().entries == moved
