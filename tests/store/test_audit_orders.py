"""Verify covers the order journal as it covers all else: every column of its entries and of its projections."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.audit import verify
from store.commands import (
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    ReportPositions,
    ValidateLesson,
)
from store.engines.sqlite import schema
from store.entry import COLUMNS

REASON = "AAPL closed at 221.40 on 2026-03-02, above its 50 day mean; half size, wrong below 205. " * 3
EVENTS = (
    "order_action.recorded", "order.outcome", "order.submitted", "positions.reported",
    "thesis.outcome_observed", "warning", "lesson.judged",
)  # fmt: skip
TABLES = ("memory_intents", "memory_holdings", "memory_warnings")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with every entry and row that orders, positions and earned lessons lead to."""
    root = tmp_path_factory.mktemp("journal")
    book = Book.open(root, "default", durability="normal")
    trader = Caller(
        "ann", "trader", "ses-1", "tool", model_call_id="call-1", revision="r1", deployment="paper"
    )
    broker = replace(trader, agent="broker", profile="harness", observer=True)
    lesson = book.execute(trader, ProposeLesson(text="Buy above the mean.")).id
    book.execute(trader, OpenThesis(text="thesis", symbol="AAPL", direction="long", invalidation="205"))
    submit = IntendOrder(
        operation="submit", symbol="AAPL", side="buy", quantity="2", reason=REASON, client_order_id="c-1",
        legs=[{"symbol": "IBM", "side": "buy", "quantity": "1"}], evidence={"close": "221.40"},
    )  # fmt: skip
    action = book.execute(trader, submit, idempotency_key="k1").id
    book.execute(broker, RecordOutcome(action_id=action, certainty="acknowledged", broker_order_id="b-1"))
    done = book.execute(broker, RecordOutcome(action_id=action, certainty="filled", filled_quantity="2"))
    held = [{"symbol": "AAPL", "quantity": "2", "average_cost": "221.40", "last_price": "204.00"}]
    book.execute(broker, ReportPositions(positions=held))
    book.execute(
        broker, ValidateLesson(lesson_id=lesson, verdict="contradicts", outcome_ids=(done.event_id,))
    )
    book.close()
    return root / "default" / "memory.sqlite"


@pytest.fixture
def ledger(journal: Path, tmp_path: Path) -> Path:
    path = tmp_path / "default" / "memory.sqlite"
    path.parent.mkdir()
    shutil.copy(journal, path)
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


def _columns(table: str) -> list[tuple[str, str]]:
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    return [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info ({table})")]


def _changed(value: Any, kind: str) -> Any:
    if value is None:
        return {"TEXT": "x", "INTEGER": 1, "BLOB": b"x"}[kind]
    return {
        "TEXT": lambda: value + " ",
        "INTEGER": lambda: value + 1_000,
        "BLOB": lambda: bytes([value[0] ^ 1]) + value[1:],
    }[kind]()


def test_the_journal_is_sound_and_holds_every_entry_and_row_of_orders(ledger: Path) -> None:
    assert verify(ledger, "default", None).findings == ()
    connection = apsw.Connection(str(ledger))
    types = {name for (name,) in connection.execute("SELECT DISTINCT event_type FROM memory_events")}
    assert types >= set(EVENTS)
    for table in TABLES:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0, table
    connection.close()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(("column", "kind"), _columns("memory_events"), ids=COLUMNS)
def test_a_change_of_any_column_of_an_order_entry_is_found(
    ledger: Path, event: str, column: str, kind: str
) -> None:
    with unguarded(ledger) as connection:
        (at,) = connection.execute(
            "SELECT max(sequence) FROM memory_events WHERE event_type = ?", (event,)
        ).fetchone()
        (value,) = connection.execute(
            f"SELECT {column} FROM memory_events WHERE sequence = ?", (at,)
        ).fetchone()
        connection.execute(
            f"UPDATE memory_events SET {column} = ? WHERE sequence = ?", (_changed(value, kind), at)
        )
    named = {finding.sequence for finding in verify(ledger, "default", None).findings}
    assert at in named


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [pytest.param(t, *c, id=f"{t}.{c[0]}") for t in TABLES for c in _columns(t)],
)
def test_a_change_of_any_column_of_an_order_projection_is_found_and_a_rebuild_mends_it(
    ledger: Path, open_seat: Any, table: str, column: str, kind: str
) -> None:
    connection = apsw.Connection(str(ledger))
    (value, at) = connection.execute(
        f"SELECT {column}, sequence FROM {table} ORDER BY sequence DESC, {column} LIMIT 1"
    ).fetchone()
    connection.execute(
        f"UPDATE {table} SET {column} = ? WHERE sequence = ? AND {column} IS ?",
        (_changed(value, kind), at, value),
    )
    connection.close()
    report = verify(ledger, "default", None)
    assert f"{table} does not show the entry" in {finding.what for finding in report.findings}
    open_seat().book.rebuild(lambda _: None)
    assert verify(ledger, "default", None).findings == ()


@pytest.mark.parametrize("table", TABLES)
def test_an_order_projection_row_that_is_gone_or_invented_is_found_and_a_rebuild_mends_it(
    ledger: Path, open_seat: Any, table: str
) -> None:
    names = [name for name, _ in _columns(table)]
    forged = ", ".join("9999" if name == "sequence" else name for name in names)
    for change in (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {forged} FROM {table} LIMIT 1",
        f"DELETE FROM {table}",
    ):
        connection = apsw.Connection(str(ledger))
        connection.execute(change)
        connection.close()
        report = verify(ledger, "default", None)
        assert any(table in finding.what for finding in report.findings), report.findings
        open_seat().book.rebuild(lambda _: None)
        assert verify(ledger, "default", None).findings == ()


@pytest.mark.parametrize("name", ["status", "filled_quantity"])
def test_a_fill_that_was_forged_in_the_projection_is_found(ledger: Path, name: str) -> None:
    """The state of an order lives in its submit's details; a forged one is no better than a forged text."""
    connection = apsw.Connection(str(ledger))
    (details, at) = connection.execute(
        "SELECT details, sequence_from FROM memory_index WHERE kind = 'order_action'"
    ).fetchone()
    forged = json.loads(details)
    forged["order"][name] = "9"
    connection.execute(
        "UPDATE memory_versions SET details = ? WHERE sequence_from = ?", (json.dumps(forged), at)
    )
    connection.close()
    (finding,) = verify(ledger, "default", None).findings
    assert finding.sequence == at
