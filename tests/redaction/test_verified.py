"""verify: a blank entry is sound where a later redaction says so, and only there."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book
from store.audit import Report, verify
from store.audit_redactions import BACK, UNCOVERED


@pytest.fixture
def redacted(seat: Any, secret: str, redact: Any) -> tuple[Path, list[Any]]:
    """The path of a ledger of which a thesis was redacted, and its entries as they were before."""
    before = seat.entries()
    seat.book.close()
    redact(secret)
    assert verify(seat.path, "default", None).findings == ()
    return seat.path, before


def changed(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> Report:
    """What verify says after somebody who owns the disk has changed rows, guards put back."""
    with closing(apsw.Connection(str(path))) as connection:
        guard = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'memory_events_no_update'").get
        connection.execute("DROP TRIGGER memory_events_no_update")
        for statement, values in statements:
            connection.execute(statement, values)
        connection.execute(guard)
    return verify(path, "default", None)


def test_content_that_is_back_is_found(redacted: tuple[Path, list[Any]]) -> None:
    path, before = redacted
    gone = next(entry for entry in before if entry.event_type == "thesis.opened")
    report = changed(
        path,
        (
            "UPDATE memory_events SET content = ?, content_salt = ? WHERE sequence = ?",
            (gone.content, gone.content_salt, gone.sequence),
        ),
    )
    assert (report.findings[0].sequence, report.findings[0].what) == (gone.sequence, BACK)
    assert not report.mendable


def test_an_entry_that_is_blank_without_a_redaction_is_found(redacted: tuple[Path, list[Any]]) -> None:
    path, _ = redacted
    report = changed(
        path, ("UPDATE memory_events SET content = '', content_salt = x'' WHERE sequence = 3", ())
    )
    assert (report.findings[0].sequence, report.findings[0].what) == (3, UNCOVERED)


def test_a_salt_that_is_left_or_content_without_it_is_found(redacted: tuple[Path, list[Any]]) -> None:
    path, before = redacted
    gone = next(entry for entry in before if entry.event_type == "thesis.opened")
    report = changed(
        path,
        (
            "UPDATE memory_events SET content_salt = ? WHERE sequence = ?",
            (gone.content_salt, gone.sequence),
        ),
    )
    assert report.findings[0].sequence == gone.sequence


@pytest.mark.parametrize("what", ["kept", "sequence", "content_sha256", "reason"])
def test_a_redaction_that_was_changed_is_found(redacted: tuple[Path, list[Any]], what: str) -> None:
    path, _ = redacted
    with closing(apsw.Connection(str(path))) as connection:
        sequence, content = connection.execute(
            "SELECT sequence, content FROM memory_events WHERE event_type = 'memory.redacted'"
        ).fetchone()
    told = json.loads(content)
    if what == "reason":
        told["reason"] = "another"
    else:
        told["covered"][0][what] = {"kept": {"text": "x"}, "sequence": 2}.get(what, "0" * 64)
    report = changed(
        path, ("UPDATE memory_events SET content = ? WHERE sequence = ?", (json.dumps(told), sequence))
    )
    assert not report.sound
    assert not report.mendable


def test_a_redaction_forged_whole_cannot_cover_another_type_or_hash(redacted: tuple[Path, list[Any]]) -> None:
    """Who makes every hash anew, of the last entry too, is still found: the entry is not the one that is named."""
    path, _ = redacted
    with closing(apsw.Connection(str(path))) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info (memory_events)")]
        row = connection.execute("SELECT * FROM memory_events ORDER BY sequence DESC LIMIT 1").fetchone()
        entry = dict(zip(names, row, strict=True))
        assert entry["event_type"] == "memory.redacted"
        chain = connection.execute(
            "SELECT chain_sha256 FROM memory_events WHERE sequence = ?", (entry["sequence"] - 1,)
        ).get
    told = json.loads(entry["content"])
    told["covered"][0]["content_sha256"] = "0" * 64
    entry["content"] = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    entry["content_sha256"] = hashlib.sha256(entry["content_salt"] + entry["content"].encode()).digest()
    outside = ("content", "content_salt", "leaf_sha256", "chain_sha256")
    covered = {n: v.hex() if isinstance(v, bytes) else v for n, v in entry.items() if n not in outside}
    written = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    entry["leaf_sha256"] = hashlib.sha256(b"\0" + written.encode()).digest()
    entry["chain_sha256"] = hashlib.sha256(b"\1" + chain + entry["leaf_sha256"]).digest()
    report = changed(
        path,
        (
            f"UPDATE memory_events SET {', '.join(f'{name} = ?' for name in names)} WHERE sequence = ?",
            (*entry.values(), entry["sequence"]),
        ),
    )
    assert "names another entry" in report.findings[0].what


MENDED = {
    "what stays of an entry": "UPDATE memory_redactions SET kept = '{}'",
    "a row that is gone": "DELETE FROM memory_redactions",
    "a row too many": "INSERT INTO memory_redactions VALUES (2, 3, '{}')",
    "a text put back into its version": "UPDATE memory_versions SET text = 'Quorvex' WHERE text = ''",
    "a query put back": "UPDATE memory_retrievals SET query = 'Quorvex' WHERE query = ''",
}


@pytest.mark.parametrize("statement", MENDED.values(), ids=MENDED.keys())
def test_a_projection_that_does_not_show_what_stays_is_found_and_a_rebuild_mends_it(
    redacted: tuple[Path, list[Any]], tmp_path: Path, statement: str
) -> None:
    path, _ = redacted
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement)
    assert verify(path, "default", None).mendable
    with closing(Book.open(tmp_path, "default")) as book:
        book.rebuild(lambda _: None)
    assert verify(path, "default", None).findings == ()
