"""Ledgers with a home outside them for keys and notes, and whoever owns the disk and knows every rule."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.commands import Decide, OpenThesis, Remember
from store.entry import COLUMNS, Entry, leaf_of
from store.paths import ledger_path
from store.proofs.note import Signer

WHO = Caller("ann", "solo", "ses-1", "remember")


def write_notes(root: Path, count: int, strategy: str = "default", run: str | None = None) -> None:
    """Add so many notes; the first adds the genesis entry and the session's start."""
    begins = 1_772_461_800_000_000 if run else None
    book = Book.open(root, strategy, run, durability="normal", begins=begins)
    who = replace(WHO, now=begins)
    last = book.head().sequence
    later = f", after entry {last}" if last > 1 else ""  # an exact repeat would be no note of its own
    for number in range(count):
        text = f"note {number} of {strategy}{later}"
        if number % 7 == 3:
            book.execute(who, OpenThesis(text=text + " – held, 目标价 95", symbol="AAPL"))
        elif number % 7 == 5:
            book.execute(who, Decide(text=text, action="buy", evidence={"close": "101.25", "ratio": 0.1}))
        else:
            book.execute(who, Remember(text=text, tags=("a", "b")))
    book.close()


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder under which the user's configuration lies."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.fixture
def keys(home: Path) -> Path:
    """The folder of keys, with the desk's key in it."""
    return home / ".config/deskbook/checkpoint-keys"


@pytest.fixture
def run(root: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process on the test's root."""
    from server import cli

    def start(*words: object, on: Path | None = None) -> Ran:
        monkeypatch.setattr("sys.argv", ["deskbook", *map(str, words), "--root", str(on or root)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        code = end.value.code
        assert "Traceback" not in said.err
        return Ran(code if isinstance(code, int) else 0, said.out, said.err)

    return start


@pytest.fixture
def signed(run: Run, root: Path, tmp_path: Path) -> Path:
    """A ledger of 42 entries, signed at 42; the note's copy outside."""
    write_notes(root, 40)
    assert run("checkpoint", "--new-key").code == 0
    note = tmp_path / "outside" / "desk.note"
    done = run("checkpoint", "--to", note)
    assert (done.code, done.err, done.out) == (0, "", note.read_text())
    return note


@pytest.fixture
def signer() -> Signer:
    return Signer("desk.example/one", bytes(range(32)))


@pytest.fixture(scope="session")
def more() -> Callable[..., None]:
    """Write more notes to a ledger."""
    return write_notes


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """The file with its guards off, as somebody opens it who owns the disk, and with them on again."""
    with closing(apsw.Connection(str(path))) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.execute(sql)


class Attacker:
    """Owns the disk and knows every rule of the ledger: what it leaves behind is sound in itself."""

    def __init__(self, root: Path, strategy: str = "default", run: str | None = None) -> None:
        self.root = root
        self.where = (strategy, run)
        self.path = ledger_path(root, strategy, run)

    def raw(self, sql: str, *bindings: Any) -> None:
        """Change the file as it stands, without making good the hashes."""
        with opened(self.path) as connection:
            connection.execute(sql, bindings)

    def entries(self) -> list[Entry]:
        with closing(apsw.Connection(str(self.path))) as connection:
            names = ", ".join(COLUMNS)
            rows = connection.execute(f"SELECT {names} FROM memory_events ORDER BY sequence")
            return [Entry(*row) for row in rows]

    def rewrite(self, change: Callable[[list[Entry]], Sequence[Entry]]) -> None:
        """Put other entries in the ledger's place: every hash anew, and every projection."""
        from store.canonical import ZERO_CHAIN, chain_hash, content_hash

        chain, sealed = ZERO_CHAIN, []
        for sequence, entry in enumerate(change(self.entries()), 1):
            salted = content_hash(entry.content_salt, entry.content.encode())
            moved = replace(entry, sequence=sequence, content_sha256=salted)
            leaf = leaf_of(moved)
            chain = chain_hash(chain, leaf)
            sealed.append(replace(moved, leaf_sha256=leaf, chain_sha256=chain))
        with opened(self.path) as connection:
            connection.execute("DELETE FROM memory_events")
            marks = ", ".join("?" * len(COLUMNS))
            for entry in sealed:
                values = tuple(getattr(entry, name) for name in COLUMNS)
                connection.execute(f"INSERT INTO memory_events VALUES ({marks})", values)
        book = Book.open(self.root, *self.where, create=False)
        book.rebuild(lambda _sequence: None)
        book.close()

    def cut(self, count: int) -> None:
        """Take the last entries away."""
        self.rewrite(lambda entries: entries[:-count])

    def say_otherwise(self, sequence: int) -> None:
        """Have always said something else in one entry."""

        def change(entries: list[Entry]) -> list[Entry]:
            old = entries[sequence - 1]
            new = replace(old, content=old.content.replace("note", "NOTE"))
            assert new != old
            return [*entries[: sequence - 1], new, *entries[sequence:]]

        self.rewrite(change)


@pytest.fixture
def attacker(root: Path) -> Attacker:
    return Attacker(root)


@pytest.fixture
def attacker_of() -> type[Attacker]:
    return Attacker


@pytest.fixture
def put_in_place() -> Callable[[Path, Path], None]:
    """Put one ledger's file in another's place."""

    def move(source: Path, target: Path) -> None:
        with closing(apsw.Connection(str(source))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for suffix in ("-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        shutil.copy(source, target)

    return move
