"""Every engine: the ledger refuses change, also from a connection that knows nothing of Deskbook."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from store import Caller
from store.audit import verify
from store.engines.base import Transaction
from store.entry import COLUMNS
from store.event_parts import Covered
from store.ledger import Draft
from store.review_events import Redacted

ANN = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool")
NAMES = ", ".join(COLUMNS)
REFUSED = {
    "a changed column": "UPDATE memory_events SET agent = 'eve' WHERE sequence = 2",
    "a changed column, conflicts ignored": "UPDATE OR IGNORE memory_events SET agent = 'eve' WHERE sequence = 2",
    "a changed column, conflicts replaced": "UPDATE OR REPLACE memory_events SET sequence = 2 WHERE sequence = 3",
    "the same value again": "UPDATE memory_events SET agent = agent",
    "a deleted entry": "DELETE FROM memory_events WHERE sequence = 3",
    "the last entry deleted": "DELETE FROM memory_events WHERE sequence = (SELECT max(sequence) FROM memory_events)",
    "everything deleted": "DELETE FROM memory_events",
    "an entry replaced": f"INSERT OR REPLACE INTO memory_events ({NAMES}) SELECT {NAMES} FROM memory_events"
    " WHERE sequence = 3",
    "an entry replaced, by its short name": f"REPLACE INTO memory_events ({NAMES}) SELECT {NAMES}"
    " FROM memory_events WHERE sequence = 3",
    "an entry upserted": f"INSERT INTO memory_events ({NAMES}) SELECT {NAMES} FROM memory_events"
    " WHERE sequence = 3 ON CONFLICT DO UPDATE SET agent = 'eve'",
    "an entry inserted again and ignored": f"INSERT OR FAIL INTO memory_events ({NAMES}) SELECT {NAMES}"
    " FROM memory_events WHERE sequence = 3",
}
NEXT = "(SELECT max(sequence) FROM memory_events)"
INSERTED = {
    "with a gap": ("sequence", f"{NEXT} + 2"),
    "at zero": ("sequence", "0"),
    "before the first": ("sequence", "-1"),
    "without a sequence": ("sequence", "NULL"),
    "with a known event id": ("sequence", f"{NEXT} + 1"),
}


@pytest.fixture
def outsider(crew: Any) -> Any:
    """A connection of somebody else to a ledger with entries, one of which has an idempotency key."""
    for at in range(3):
        crew.write(f"note {at}", idempotency_key=f"key {at}")
    connection = crew.house.raw()
    yield connection
    connection.close()


def _all(connection: apsw.Connection) -> list[Any]:
    return list(connection.execute("SELECT * FROM memory_events ORDER BY sequence"))


@pytest.mark.parametrize("recursive", [True, False], ids=["our settings", "their settings"])
@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
def test_no_entry_can_be_changed_or_deleted(
    crew: Any, outsider: apsw.Connection, statement: str, recursive: bool
) -> None:
    outsider.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = _all(outsider)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        outsider.execute(statement)
    assert _all(outsider) == before
    assert verify(crew.house.path, "default", None).sound


@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR REPLACE", "INSERT OR ABORT"])
@pytest.mark.parametrize(("column", "value"), INSERTED.values(), ids=INSERTED)
def test_no_entry_can_be_inserted_out_of_sequence_or_over_another(
    outsider: apsw.Connection, verb: str, column: str, value: str
) -> None:
    before = _all(outsider)
    chosen = ", ".join(value if name == column else name for name in COLUMNS)
    with pytest.raises(apsw.ConstraintError):
        outsider.execute(
            f"{verb} INTO memory_events ({NAMES}) SELECT {chosen} FROM memory_events WHERE sequence = 3"
        )
    assert _all(outsider) == before


def test_no_entry_can_take_over_an_idempotency_key(outsider: apsw.Connection) -> None:
    before = _all(outsider)
    changed = {"sequence": f"{NEXT} + 1", "event_id": "'ev_other'"}
    chosen = ", ".join(changed.get(name, name) for name in COLUMNS)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        outsider.execute(
            f"INSERT OR REPLACE INTO memory_events ({NAMES}) SELECT {chosen} FROM memory_events"
            " WHERE idempotency_key = 'key 1'"
        )
    assert _all(outsider) == before


BLANK = "content = '', content_salt = x''"
BEYOND_A_REDACTION = {
    "an entry that it does not name": f"UPDATE memory_events SET {BLANK} WHERE sequence = 4",
    "all entries at once": f"UPDATE memory_events SET {BLANK}",
    "the content alone": "UPDATE memory_events SET content = '' WHERE sequence = 3",
    "other content": "UPDATE memory_events SET content = '{}', content_salt = x'' WHERE sequence = 3",
    "another column with it": f"UPDATE memory_events SET {BLANK}, agent = 'eve' WHERE sequence = 3",
    "its hash with it": f"UPDATE memory_events SET {BLANK}, content_sha256 = x'00' WHERE sequence = 3",
    "itself": f"UPDATE memory_events SET {BLANK} WHERE event_type = 'memory.redacted'",
    "the entry deleted": "DELETE FROM memory_events WHERE sequence = 3",
}


@pytest.fixture
def redaction(crew: Any, outsider: apsw.Connection) -> Any:
    """The ledger of the outsider with a redaction of entry 3."""

    def job(transaction: Transaction) -> None:
        covered = Covered(
            sequence=3, event_type="memory.recorded", content_sha256="0" * 64, kept={"text": ""}
        )
        draft = Draft(Redacted(reason="a test", covered=(covered,)), "memory", "mem_x")
        crew.ledger.append(transaction, ANN, [draft])

    crew.engine.write(job, timeout=30.0)
    return outsider


def test_what_a_later_redaction_names_can_be_made_blank_once(redaction: apsw.Connection) -> None:
    before = _all(redaction)
    redaction.execute(f"UPDATE memory_events SET {BLANK} WHERE sequence = 3")
    assert [row for row in _all(redaction) if row[0] != 3] == [row for row in before if row[0] != 3]
    content, salt = redaction.execute(
        "SELECT content, content_salt FROM memory_events WHERE sequence = 3"
    ).fetchone()
    assert (content, salt) == ("", b"")


@pytest.mark.parametrize("statement", BEYOND_A_REDACTION.values(), ids=BEYOND_A_REDACTION)
def test_a_redaction_lets_nothing_else_be_changed(redaction: apsw.Connection, statement: str) -> None:
    before = _all(redaction)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        redaction.execute(statement)
    assert _all(redaction) == before


def test_content_cannot_be_put_back(redaction: apsw.Connection) -> None:
    content, salt = redaction.execute(
        "SELECT content, content_salt FROM memory_events WHERE sequence = 3"
    ).fetchone()
    redaction.execute(f"UPDATE memory_events SET {BLANK} WHERE sequence = 3")
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        redaction.execute(
            "UPDATE memory_events SET content = ?, content_salt = ? WHERE sequence = 3", (content, salt)
        )
