"""Verify finds any change to a ledger, says at which entry, and shares no code with what writes it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller, SearchRequest
from store.audit import Report, verify
from store.commands import (
    CloseThesis,
    Decide,
    FlagMemory,
    OpenThesis,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.engines.sqlite import schema
from store.entry import COLUMNS

POSITIONS = (1, 2, 5, 12)


def _columns() -> list[tuple[str, str, bool]]:
    """Name, type and whether it must be there, of every column, as the schema itself says."""
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    rows = connection.execute("PRAGMA table_info (memory_events)").fetchall()
    return [(row[1], row[2], bool(row[3])) for row in rows]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with entries of most types, of which each test takes a copy."""
    root = tmp_path_factory.mktemp("written")
    book = Book.open(root, "default", durability="normal")
    who = Caller("ann", "solo", "ses-1", "tool", model_call_id="call-1")
    thesis = book.execute(who, OpenThesis(text="thesis", symbol="AAPL", tags=("a",)), idempotency_key="k1")
    note = book.execute(who, Remember(text="note"))
    retrieval_id = book.search(who, SearchRequest(query="thesis")).body["retrieval_id"]
    book.execute(who, Decide(text="decision", action="buy", thesis_id=thesis.id, retrieval_id=retrieval_id))
    book.execute(who, UpdateThesis(thesis_id=thesis.id, text="thesis again"))
    book.state(who)
    book.execute(who, FlagMemory(memory_id=note.id, reason="stale"))
    book.get(who, note.id)
    book.execute(who, ResolveMemory(memory_id=note.id, status="retired"))
    book.execute(who, CloseThesis(thesis_id=thesis.id, result="win"))
    assert book.head().sequence >= max(POSITIONS)
    book.close()
    return root / "default" / "memory.sqlite"


@pytest.fixture
def ledger(written: Path, tmp_path: Path) -> Path:
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir()
    shutil.copy(written, path)
    assert verify(path, "default", None).findings == ()
    return path


@contextmanager
def unguarded(path: Path) -> Iterator[apsw.Connection]:
    """Change the ledger as somebody would who knows SQLite: triggers off, change, triggers on again."""
    connection = apsw.Connection(str(path))
    guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    yield connection
    for _, sql in guards:
        connection.execute(sql)
    connection.close()


def _found(path: Path, sequence: int | None = None) -> Report:
    report = verify(path, "default", None)
    assert not report.sound
    if sequence is not None:
        assert report.findings[0].sequence == sequence, report.findings
    return report


def _changes(value: Any, kind: str, needed: bool) -> list[Any]:
    """Other values that the column takes, from a single bit to nothing at all."""
    if value is None:
        return {"TEXT": ["x", ""], "INTEGER": [0, 1], "BLOB": [b"x", b""]}[kind]
    if kind == "TEXT":
        other = [
            value + " ",
            value[:-1],
            value.swapcase(),
            "é" + value[1:],
            value + "\0",
            "other",
            "",
            b"\xff" + value.encode(),
        ]
    elif kind == "INTEGER":
        other = [value + 1_000, value - 1_000, -value, value + 1, 2**62]
    else:
        other = [bytes([value[0] ^ 1]) + value[1:], value[1:], value + b"\0", b"", bytes(len(value))]
    return [new for new in other if new != value] + ([] if needed else [None])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("column", "kind", "needed"), _columns(), ids=COLUMNS)
def test_any_single_change_of_any_column_is_found_and_its_entry_named(
    ledger: Path, column: str, kind: str, needed: bool, position: int
) -> None:
    pristine = ledger.read_bytes()
    connection = apsw.Connection(str(ledger))
    (value,) = connection.execute(
        f"SELECT {column} FROM memory_events WHERE sequence = ?", (position,)
    ).fetchone()
    connection.close()
    tried = 0
    for new in _changes(value, kind, needed):
        ledger.write_bytes(pristine)
        place = "CAST(? AS TEXT)" if kind == "TEXT" and isinstance(new, bytes) else "?"
        with unguarded(ledger) as connection:
            try:
                connection.execute(
                    f"UPDATE memory_events SET {column} = {place} WHERE sequence = ?", (new, position)
                )
            except (
                apsw.ConstraintError,
                apsw.MismatchError,
            ):  # taken by another entry, or no sequence at all
                continue
        report = _found(ledger)
        named = {finding.sequence for finding in report.findings}
        assert position in named if column != "sequence" else named & {position, min(position, new), 1}
        tried += 1
    assert tried >= 2


def test_the_columns_that_are_tried_are_all_there_are() -> None:
    assert tuple(name for name, _, _ in _columns()) == COLUMNS


def _renumber(connection: apsw.Connection, *moves: tuple[int, int]) -> None:
    for old, new in moves:
        connection.execute("UPDATE memory_events SET sequence = ? WHERE sequence = ?", (new, old))


@pytest.mark.parametrize("position", [2, 5, 9])
@pytest.mark.parametrize("closed_up", [True, False], ids=["and the rest renumbered", "leaving a gap"])
def test_a_deleted_entry_is_found(ledger: Path, position: int, closed_up: bool) -> None:
    with unguarded(ledger) as connection:
        (last,) = connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        connection.execute("DELETE FROM memory_events WHERE sequence = ?", (position,))
        if closed_up:
            _renumber(connection, *((old, old - 1) for old in range(position + 1, last + 1)))
    _found(ledger, position)


def test_a_cut_tail_is_found_while_its_projection_is_still_there(ledger: Path) -> None:
    with unguarded(ledger) as connection:
        connection.execute(
            "DELETE FROM memory_events WHERE sequence = (SELECT max(sequence) FROM memory_events)"
        )
    _found(ledger)


def test_two_swapped_entries_are_found(ledger: Path) -> None:
    with unguarded(ledger) as connection:
        _renumber(connection, (4, -1), (7, 4), (-1, 7))
    _found(ledger, 4)


def test_an_inserted_entry_is_found(ledger: Path) -> None:
    names = ", ".join(COLUMNS)
    chosen = ", ".join(
        {"event_id": "'ev_forged'", "idempotency_key": "NULL"}.get(name, name) for name in COLUMNS
    )
    with unguarded(ledger) as connection:
        (last,) = connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        _renumber(connection, *((old, old + 1) for old in range(last, 5, -1)))
        connection.execute(
            f"INSERT INTO memory_events ({names}) SELECT {chosen.replace('sequence', '6', 1)} FROM memory_events"
            " WHERE sequence = 5"
        )
    _found(ledger, 6)


def test_a_change_with_all_later_hashes_made_anew_is_found_by_the_last_chain(ledger: Path) -> None:
    """A rewritten chain is sound in itself: only a note of the last hash, kept elsewhere, tells."""
    before = verify(ledger, "default", None)
    with unguarded(ledger) as connection:
        chain, hexed = bytes(32), {"content", "content_salt", "leaf_sha256", "chain_sha256"}
        for row in connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM memory_events ORDER BY sequence"
        ).fetchall():
            entry = dict(zip(COLUMNS, row, strict=True))
            if entry["sequence"] == 3:
                entry["recorded_at"] += 1
            covered = {name: value.hex() if isinstance(value, bytes) else value
                       for name, value in entry.items() if name not in hexed}  # fmt: skip
            written = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            leaf = hashlib.sha256(b"\x00" + written.encode()).digest()
            chain = hashlib.sha256(b"\x01" + chain + leaf).digest()
            connection.execute(
                "UPDATE memory_events SET recorded_at = ?, leaf_sha256 = ?, chain_sha256 = ? WHERE sequence = ?",
                (entry["recorded_at"], leaf, chain, entry["sequence"]),
            )
    after = verify(ledger, "default", None)
    assert after.sound
    assert (after.entries, after.chain == before.chain) == (before.entries, False)


GUARDS = [
    "memory_events_no_update",
    "memory_events_no_delete",
    "memory_events_no_gap",
    "memory_events_no_replace",
]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_missing_or_does_nothing_is_named(ledger: Path, guard: str) -> None:
    connection = apsw.Connection(str(ledger))
    connection.execute(f"DROP TRIGGER {guard}")
    assert guard in _found(ledger).findings[0].what
    connection.execute(f"CREATE TRIGGER {guard} BEFORE UPDATE ON memory_events WHEN 0 BEGIN SELECT 1; END")
    assert guard in _found(ledger).findings[0].what
    connection.close()


def test_a_trigger_or_index_that_is_not_ours_or_gone_is_named(ledger: Path) -> None:
    connection = apsw.Connection(str(ledger))
    connection.execute("CREATE TRIGGER theirs AFTER INSERT ON memory_events BEGIN SELECT 1; END")
    assert "theirs" in _found(ledger).findings[0].what
    connection.execute("DROP TRIGGER theirs; DROP INDEX memory_events_idempotency")
    assert "memory_events_idempotency" in _found(ledger).findings[0].what
    connection.close()


PROJECTED = ["memory_versions", "memory_retrievals", "memory_deliveries", "memory_sessions", "memory_flags",
             "memory_clock"]  # fmt: skip


def _projected_columns() -> list[Any]:
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    return [
        pytest.param(table, row[1], row[2], id=f"{table}.{row[1]}")
        for table in PROJECTED
        for row in connection.execute(f"PRAGMA table_info ({table})").fetchall()
    ]


@pytest.mark.parametrize(("table", "column", "kind"), _projected_columns())
def test_any_change_of_a_projection_is_found_and_a_rebuild_mends_it(
    ledger: Path, open_seat: Any, table: str, column: str, kind: str
) -> None:
    connection = apsw.Connection(str(ledger))
    change = f"coalesce({column}, 0) + 1000" if kind == "INTEGER" else f"coalesce({column}, '') || ' '"
    if column in ("tags", "details"):
        change = """'["forged"]'""" if column == "tags" else """'{"forged":1}'"""
    connection.execute(f"UPDATE {table} SET {column} = {change} WHERE rowid = (SELECT max(rowid) FROM {table})"
                       if table != "memory_sessions" else f"UPDATE {table} SET {column} = {change}")  # fmt: skip
    connection.close()
    _found(ledger)
    open_seat().book.rebuild(lambda _: None)
    assert verify(ledger, "default", None).findings == ()


@pytest.mark.parametrize("table", [*PROJECTED, "memory_text"])
def test_a_projection_row_that_is_gone_is_found_and_a_rebuild_mends_it(
    ledger: Path, open_seat: Any, table: str
) -> None:
    """P039: also the rows of the full-text index, with how many are missing."""
    connection = apsw.Connection(str(ledger))
    before = open_seat().ids("thesis")
    connection.execute(f"DELETE FROM {table}")
    report = _found(ledger)
    if table == "memory_text":
        (versions,) = connection.execute("SELECT count(*) FROM memory_versions").fetchone()
        assert report.findings[0].what.startswith(f"{versions} versions are missing")
    connection.close()
    open_seat().book.rebuild(lambda _: None)
    assert verify(ledger, "default", None).findings == ()
    assert open_seat().ids("thesis") == before


ADDED: dict[str, str] = {
    "memory_text": "INSERT INTO memory_text (rowid, body, labels, facets) VALUES (9999, 'phantom', '', '')",
    "memory_clock": "INSERT INTO memory_clock VALUES (1, 1)",
    "memory_sessions": "INSERT INTO memory_sessions VALUES ('forged', 'ann', 2)",
    "memory_flags": "INSERT INTO memory_flags VALUES (9999, 'mem_x', 'wrong', NULL, NULL, 'eve', 1)",
    "memory_deliveries": "INSERT INTO memory_deliveries VALUES (9999, 'eve', NULL, NULL, 'state', 's', NULL, '')",
}


@pytest.mark.parametrize("statement", ADDED.values(), ids=ADDED)
def test_a_projection_row_without_an_entry_is_found(ledger: Path, statement: str) -> None:
    connection = apsw.Connection(str(ledger))
    connection.execute(statement)
    connection.close()
    _found(ledger)


def test_a_version_without_an_entry_is_found(ledger: Path) -> None:
    connection = apsw.Connection(str(ledger))
    names = [row[1] for row in connection.execute("PRAGMA table_info (memory_versions)").fetchall()]
    forged = ["9999" if n == "sequence_from" else "'mem_forged'" if n == "memory_id" else n for n in names]
    connection.execute(
        f"INSERT INTO memory_versions ({', '.join(names)}) SELECT {', '.join(forged)} FROM memory_versions LIMIT 1"
    )
    connection.close()
    _found(ledger)


@pytest.mark.parametrize(("strategy", "run"), [("other", None), ("default", "r1"), ("", None)])
def test_a_ledger_that_was_moved_is_found_at_its_first_entry(
    ledger: Path, strategy: str, run: str | None
) -> None:
    report = verify(ledger, strategy, run)
    assert report.findings[0].sequence == 1


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_file_cut_short_is_found(ledger: Path, keep: float) -> None:
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: int(len(whole) * keep) // 4_096 * 4_096])
    _found(ledger)


def test_progress_is_told_up_to_the_end(ledger: Path) -> None:
    told: list[tuple[int, int]] = []
    report = verify(ledger, "default", None, lambda done, total: told.append((done, total)))
    assert told == [(at, report.entries) for at in range(1, report.entries + 1)]


def test_a_broken_ledger_is_described_in_at_most_twenty_findings(ledger: Path) -> None:
    with unguarded(ledger) as connection:
        connection.execute("UPDATE memory_events SET agent = 'eve', content = '{}'")
    assert 1 < len(_found(ledger, 1).findings) <= 20


def test_verify_shares_no_code_with_the_ledger_and_the_hashes() -> None:
    sources = list(Path(str(verify.__code__.co_filename)).parent.glob("audit*.py"))
    assert len(sources) >= 9
    for source in sources:
        for module in ("ledger", "canonical", "engines.sqlite.transaction", "engines.sqlite.writer"):
            assert f"from .{module} import" not in source.read_text(), source
