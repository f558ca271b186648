"""An older ledger is brought up whole or not at all, and nothing of it is lost."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book
from store.audit import verify
from store.commands import IntendOrder
from store.engines.sqlite import preparation, schema
from store.errors import SchemaTooNew, StoreError, StoreReadOnly
from store.rows import EntryFilter

EVENTS, TAGS = 1_463, 2_392


def _tables(path: Path) -> dict[str, list[Any]]:
    """Every row of every table, as another program reads it."""
    connection = apsw.Connection(str(path))
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {
        name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
        for name in names
        if not name.startswith("memory_text")
    }
    connection.close()
    return found


def _schema_of(path: Path) -> int:
    connection = apsw.Connection(str(path))
    version = int(connection.pragma("user_version"))
    connection.close()
    return version


def test_the_committed_ledger_is_one_of_schema_1(ledger_v1: Path) -> None:
    connection = apsw.Connection(str(ledger_v1))
    assert connection.pragma("user_version") == 1
    columns = {row[1] for row in connection.execute("PRAGMA table_info (memory_versions)")}
    assert columns & {"ordinal", "terms_total"} == set()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert tables & {"memory_clock", "memory_flags"} == set()
    connection.close()


def test_an_older_ledger_keeps_every_event_and_tag_and_is_sound(ledger_v1: Path, open_seat: Any) -> None:
    """P027: nothing is ignored after an upgrade, and no empty ledger takes the old one's place."""
    before = _tables(ledger_v1)
    seat = open_seat()
    assert seat.book.head().sequence == EVENTS
    assert sum(len(json.loads(entry.content).get("tags", ())) for entry in seat.entries()) == TAGS
    after = _tables(ledger_v1)
    assert after["memory_events"] == before["memory_events"]
    assert verify(ledger_v1, "default", None).findings == ()
    assert seat.book.status().schema == schema.CURRENT
    assert seat.book.status().entries == EVENTS


def test_every_memory_of_an_older_ledger_is_found_by_search(ledger_v1: Path, open_seat: Any) -> None:
    """P027"""
    connection = apsw.Connection(str(ledger_v1))
    texts = dict(connection.execute("SELECT memory_id, text FROM memory_versions WHERE sequence_to IS NULL"))
    connection.close()
    seat = open_seat()
    listed, cursor = [], None
    while True:
        page = seat.find(limit=50, cursor=cursor)
        listed += page["hits"]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert {hit["id"]: hit["text"] for hit in listed} == texts
    assert page["total"] == len(listed) == len(texts)
    for memory_id, text in list(texts.items())[::25]:
        assert seat.ids(text.split()[0], limit=50)[0] == memory_id


def test_the_projections_of_an_upgraded_ledger_equal_a_rebuild(ledger_v1: Path, open_seat: Any) -> None:
    seat = open_seat()
    upgraded = _tables(ledger_v1)
    seat.book.rebuild(lambda _: None)
    assert _tables(ledger_v1) == upgraded
    kinds = Counter(row[7] for row in upgraded["memory_versions"])
    assert set(kinds) >= {"open", "closed", "active", "recorded", "proposed"}


def test_a_copy_of_the_older_file_is_kept_beside_it(
    ledger_v1: Path, ledger_v1_bytes: bytes, open_seat: Any
) -> None:
    """P027: the backup is made first and is the old ledger, row for row."""
    before = _tables(ledger_v1)
    seat = open_seat()
    kept = ledger_v1.with_name("memory.sqlite.schema1.bak")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert _tables(kept) == before
    assert _schema_of(kept) == 1
    assert not list(ledger_v1.parent.glob("*.part*"))
    seat.book.close()
    restored = ledger_v1.parent.parent / "restored"
    (restored / "default").mkdir(parents=True)
    shutil.copy(kept, restored / "default" / "memory.sqlite")
    assert open_seat(root=restored).book.head().sequence == EVENTS


def test_a_kept_copy_of_a_failed_upgrade_is_made_again_for_the_next(ledger_v1: Path, open_seat: Any) -> None:
    before = _tables(ledger_v1)
    kept = ledger_v1.with_name("memory.sqlite.schema1.bak")
    kept.write_bytes(b"a copy from before the last entries")
    open_seat()
    assert _tables(kept) == before


@pytest.mark.parametrize("at", [1, 700, EVENTS])
def test_an_upgrade_that_fails_in_the_middle_changes_nothing(
    ledger_v1: Path, ledger_v1_bytes: bytes, open_seat: Any, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    before = _tables(ledger_v1)
    original = preparation.SqliteTransaction.note_clock

    def fails(self: Any, entry: Any) -> None:
        if entry.sequence == at:
            raise OSError(errno.EIO, "the power went out")
        original(self, entry)

    with monkeypatch.context() as patched:
        patched.setattr(preparation.SqliteTransaction, "note_clock", fails)
        with pytest.raises(StoreError, match="Input/output error"):
            open_seat()
    assert _tables(ledger_v1) == before
    assert ledger_v1.read_bytes() == ledger_v1_bytes
    assert open_seat().book.head().sequence == EVENTS


def test_an_older_ledger_that_cannot_be_written_is_refused_and_says_why(
    ledger_v1: Path, ledger_v1_bytes: bytes, open_seat: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engines.sqlite.engine.os.access", lambda *_: False)
    with pytest.raises(StoreReadOnly, match="upgraded"):
        open_seat()
    assert ledger_v1.read_bytes() == ledger_v1_bytes


def test_a_newer_ledger_is_refused_untouched(open_seat: Any, tmp_path: Path) -> None:
    """P027: the refusal names both schemas."""
    seat = open_seat()
    seat.book.close()
    connection = apsw.Connection(str(seat.path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = seat.path.read_bytes()
    with pytest.raises(SchemaTooNew, match=rf"schema 99; .* knows {schema.CURRENT}"):
        open_seat()
    assert seat.path.read_bytes() == before
    assert not list(tmp_path.glob("**/*.bak"))


def test_the_committed_ledger_of_schema_2_knows_nothing_of_orders(ledger_v2: Path) -> None:
    assert _schema_of(ledger_v2) == 2
    connection = apsw.Connection(str(ledger_v2))
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    assert names >= {"memory_clock", "memory_flags"}
    assert names & {"memory_intents", "memory_holdings", "memory_warnings", "memory_events_call"} == set()


def test_a_ledger_of_schema_2_keeps_every_row_it_had_and_is_sound(ledger_v2: Path, open_seat: Any) -> None:
    """P027"""
    before = _tables(ledger_v2)
    seat = open_seat()
    after = _tables(ledger_v2)
    assert {name: after[name] for name in before} == before
    assert verify(ledger_v2, "default", None).findings == ()
    assert seat.book.status().schema == schema.CURRENT
    kept = ledger_v2.with_name("memory.sqlite.schema2.bak")
    assert _schema_of(kept) == 2
    assert _tables(kept) == before
    seat.book.rebuild(lambda _: None)
    assert _tables(ledger_v2) == after


def test_an_upgraded_ledger_takes_orders_on_the_theses_it_holds(ledger_v2: Path, open_seat: Any) -> None:
    seat = open_seat()
    (held,) = (t for t in seat.state()["open_theses"] if t["symbol"] == "AAPL")
    terms = {"symbol": "AAPL", "side": "buy", "quantity": "1", "thesis_id": held["id"]}
    order = seat.do(IntendOrder(operation="submit", reason="r" * 200, **terms), agent="bob")
    assert "position_order_without_memory_thesis" in order.warnings[0]
    assert [row["action_id"] for row in seat.state()["unreconciled_orders"]] == [order.id]
    assert verify(ledger_v2, "default", None).findings == ()


def test_the_committed_ledger_of_schema_3_lets_no_content_go(ledger_v3: Path) -> None:
    assert _schema_of(ledger_v3) == 3
    connection = apsw.Connection(str(ledger_v3))
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert names >= {"memory_intents", "memory_holdings", "memory_events_call"}
    assert names & {"memory_redactions", "memory_settlements", "memory_events_rare"} == set()
    with pytest.raises(apsw.ConstraintError, match="no update"):
        connection.execute("UPDATE memory_events SET content = '', content_salt = x'' WHERE sequence = 3")
    connection.close()


def test_a_ledger_of_schema_3_keeps_every_row_it_had_and_is_sound(ledger_v3: Path, open_seat: Any) -> None:
    """P027"""
    before = _tables(ledger_v3)
    seat = open_seat()
    after = _tables(ledger_v3)
    assert {name: after[name] for name in before} == before
    assert verify(ledger_v3, "default", None).findings == ()
    assert seat.book.status().schema == schema.CURRENT
    kept = ledger_v3.with_name("memory.sqlite.schema3.bak")
    assert _schema_of(kept) == 3
    assert _tables(kept) == before
    seat.book.rebuild(lambda _: None)
    assert _tables(ledger_v3) == after


def _open_at_once(root: str, barrier: Any, answers: Any) -> None:
    barrier.wait(60)
    try:
        book = Book.open(Path(root), "default", durability="normal")
        answers.put(len(book.log(EntryFilter(limit=10_000))))
        book.close()
    except BaseException as fault:  # noqa: BLE001 - the test shows whatever went wrong
        answers.put(repr(fault))


def _start_together(root: Path, count: int) -> list[Any]:
    """What so many processes answer that open one ledger at the same moment."""
    spawn = multiprocessing.get_context("spawn")
    barrier, answers = spawn.Barrier(count), spawn.Queue()
    started = [spawn.Process(target=_open_at_once, args=(str(root), barrier, answers)) for _ in range(count)]
    for one in started:
        one.start()
    found = [answers.get(timeout=120) for _ in started]
    for one in started:
        one.join(60)
    return found


def _check_upgraded_once(root: Path, path: Path, count: int) -> None:
    assert _start_together(root, count) == [EVENTS] * count
    kept = path.with_name("memory.sqlite.schema1.bak")
    assert _schema_of(kept) == 1, "a second upgrade copied the new file"
    assert verify(path, "default", None).sound


def test_two_processes_that_start_at_once_upgrade_once(ledger_v1: Path, tmp_path: Path) -> None:
    """P029"""
    _check_upgraded_once(tmp_path, ledger_v1, 2)


@pytest.mark.faults
@pytest.mark.parametrize("turn", range(20))
def test_eight_processes_that_start_at_once_upgrade_once(ledger_v1: Path, tmp_path: Path, turn: int) -> None:
    """P029"""
    _check_upgraded_once(tmp_path, ledger_v1, 8)


def test_processes_that_start_at_once_on_nothing_make_one_ledger(tmp_path: Path) -> None:
    assert _start_together(tmp_path, 4) == [1] * 4
    assert verify(tmp_path / "default" / "memory.sqlite", "default", None).entries == 1


@pytest.mark.parametrize("pragma", ["application_id", "user_version"])
def test_a_file_whose_tables_are_made_meanwhile_is_no_other_programs(tmp_path: Path, pragma: str) -> None:
    """P029: what is read of the file's head is of one moment."""
    path = tmp_path / "memory.sqlite"
    path.touch()
    maker = apsw.Connection(str(path))

    class Slow(apsw.Connection):
        def pragma(self, name: str, *given: Any, **more: Any) -> Any:
            found = super().pragma(name, *given, **more)
            if name == pragma:
                with contextlib.suppress(apsw.BusyError), maker:
                    schema.create(maker)
            return found

    slow = Slow(str(path))
    assert preparation.schema_of(slow, path) == 0
    with maker:
        schema.create(maker)
    assert preparation.schema_of(maker, path) == schema.CURRENT
    slow.close()
    maker.close()


@pytest.mark.faults
@pytest.mark.parametrize("turn", range(20))
def test_eight_processes_that_start_at_once_on_nothing_make_one_ledger(tmp_path: Path, turn: int) -> None:
    assert _start_together(tmp_path, 8) == [1] * 8
    assert verify(tmp_path / "default" / "memory.sqlite", "default", None).entries == 1
