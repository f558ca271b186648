"""verify: what stands in the file beside its rows, damage that leaves no value readable, and marks that are none."""

from __future__ import annotations

import dataclasses
import json
import lzma
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from server.commands.marks import MarkFile
from store import Book, Caller
from store.audit import Finding, verify
from store.audit_mark import Mark
from store.commands import Decide, Remember
from store.paths import ledger_path

CALLER = Caller("trader", "trader", "ses_1", "remember")
FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(Book.open(tmp_path, "default")) as book:
        for number in range(5):
            book.execute(CALLER, Remember(text=f"note {number}", symbol="AAPL", tags=("a",)))
        book.execute(CALLER, Decide(text="decision", action="buy", symbol="AAPL"))
    path = ledger_path(tmp_path, "default", None)
    assert verify(path, "default", None).sound
    return path


def change(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def first(path: Path) -> Finding:
    return verify(path, "default", None).findings[0]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_file_that_names_another_schema_than_it_has_is_not_sound(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    finding = first(path)
    assert f"the file says schema {version}" in finding.what
    assert not finding.derived


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_ledger_is_sound_when_it_was_upgraded(tmp_path: Path, version: int) -> None:
    path = ledger_path(tmp_path, "default", None)
    path.parent.mkdir(mode=0o700)
    path.write_bytes(lzma.decompress((FIXTURES / f"ledger_v{version}.sqlite.xz").read_bytes()))
    Book.open(tmp_path, "default").close()
    assert verify(path, "default", None).findings == ()


ORDER = "memory_versions_client_order"
ON_ORDER = (
    f"CREATE INDEX {ORDER} ON memory_versions (json_extract(details, '$.client_order_id'), sequence_from)"
)
MENDED = {
    "a unique index": ("CREATE UNIQUE INDEX more ON memory_versions (profile) WHERE sequence_from > 99",),
    "a view dropped": ("DROP VIEW memory_index",),
    "a view changed": (
        "DROP VIEW memory_index",
        "CREATE VIEW memory_index AS SELECT * FROM memory_versions WHERE ordinal > 2",
    ),
    "an index dropped": (f"DROP INDEX {ORDER}",),
    "an index made partial": (f"DROP INDEX {ORDER}", f"{ON_ORDER} WHERE 0"),
    "a table dropped": ("DROP TABLE memory_flags",),
    "a trigger on a projection": ("CREATE TRIGGER more AFTER INSERT ON memory_versions BEGIN SELECT 1; END",),
    "a key twice": (
        """UPDATE memory_versions SET details = '{"action":"x",' || substr(details, 2)
        WHERE kind = 'decision'""",
    ),
}
KEPT = {
    "a table": ("CREATE TABLE more (a)",),
    "a view": ("CREATE VIEW more AS SELECT * FROM memory_events",),
    "a full-text table": ("CREATE VIRTUAL TABLE more USING fts5 (a)",),
    "an index on the ledger": ("CREATE INDEX more ON memory_events (kind)",),
    "an index of the ledger dropped": ("DROP INDEX memory_events_call",),
}


@pytest.mark.parametrize("statements", MENDED.values(), ids=MENDED.keys())
def test_a_projection_that_is_made_otherwise_is_found_and_a_rebuild_mends_it(
    path: Path, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    change(path, *statements)
    assert verify(path, "default", None).mendable
    with closing(Book.open(tmp_path, "default")) as book:
        book.rebuild(lambda _: None)
    assert verify(path, "default", None).sound


@pytest.mark.parametrize("statements", KEPT.values(), ids=KEPT.keys())
def test_what_is_not_deskbooks_is_found_and_no_rebuild_promised(
    path: Path, statements: tuple[str, ...]
) -> None:
    change(path, *statements)
    assert not verify(path, "default", None).sound
    assert not first(path).derived


def test_what_sqlite_itself_keeps_is_no_fault(path: Path) -> None:
    change(path, "ANALYZE")
    assert verify(path, "default", None).findings == ()


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        (
            "trigger",
            (
                "CREATE TRIGGER sqlite_own BEFORE INSERT ON memory_events WHEN NEW.kind = 'risk_note'"
                " BEGIN SELECT RAISE(IGNORE); END"
            ),
        ),
        ("view", "CREATE VIEW sqlite_own AS SELECT 1"),
    ],
)
def test_what_only_bears_a_name_of_sqlites_own_is_found(path: Path, kind: str, statement: str) -> None:
    table = "memory_events" if kind == "trigger" else "sqlite_own"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_schema VALUES (?, 'sqlite_own', ?, 0, ?)", (kind, table, statement)
        )
    assert not verify(path, "default", None).sound


def flipped(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) > 0
    path.write_bytes(content.replace(old, new))


def test_a_list_of_tables_that_is_no_text_is_a_finding(path: Path) -> None:
    flipped(path, b"memory_events is append-only: no update", b"memory_events is append-only: no \xffpdate")
    finding = first(path)
    assert "list of tables" in finding.what
    assert not finding.derived


UNREADABLE = {
    "a time that is none": "UPDATE memory_clock SET sequence = NULL WHERE effective_at > 0",
    "JSON that is none": "UPDATE memory_versions SET details = NULL",
    "JSON of another kind": "UPDATE memory_versions SET details = '['",
    "text that is none": "UPDATE memory_versions SET tags = CAST(x'ff' AS TEXT)",
}


@pytest.mark.parametrize("statement", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_projection_that_cannot_be_read_is_a_finding_that_a_rebuild_mends(
    path: Path, statement: str
) -> None:
    table = statement.split()[1]
    with closing(apsw.Connection(str(path))) as connection:
        made = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get)
        loose = made.replace(" NOT NULL", "").replace(" STRICT", "")
        rewrite = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(rewrite, (loose, table))
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute(statement)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(rewrite, (made, table))
    assert verify(path, "default", None).mendable


@pytest.mark.parametrize("fault", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), TypeError("NULL")])
def test_a_full_text_index_that_cannot_be_read_is_a_finding(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def unreadable(_: object) -> str | None:
        raise fault

    monkeypatch.setattr("store.audit_text.ExpectedText.fault", unreadable)
    report = verify(path, "default", None)
    assert report.mendable
    assert "cannot be read" in report.findings[0].what


GOOD = Mark("store_1", 10, "0f" * 32, {"memory_versions": 3}, 3, 9, 10, 5)
BAD: dict[str, dict[str, object]] = {
    "a chain that is a number": {"chain": 5},
    "a chain that is no hex": {"chain": "zz"},
    "a sequence out of range": {"sequence": 2**70},
    "a list for counts": {"expected": []},
    "a table that is none": {"expected": {"other": 1}},
    "a latest that is text": {"latest": "x"},
}


@pytest.fixture
def mark_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, object]], MarkFile]:
    monkeypatch.setattr("server.commands.marks.user_cache_path", lambda _: tmp_path)

    def write(changes: dict[str, object]) -> MarkFile:
        file = MarkFile(tmp_path / "memory.sqlite")
        file.keep(GOOD)
        assert file.read() == GOOD
        file._path.write_text(json.dumps(dataclasses.asdict(GOOD) | changes))
        return file

    return write


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD.keys())
def test_a_mark_that_is_none_is_passed_over(
    mark_file: Callable[[dict[str, object]], MarkFile], changes: dict[str, object]
) -> None:
    assert mark_file(changes).read() is None
