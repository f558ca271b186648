"""Redaction: content goes for good and every trace of it; chain, counts and all else stay."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.audit import verify
from store.commands import OpenThesis, Remember, UpdateThesis
from store.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound, PermissionDenied, StoreError
from store.export.checking import check_exports
from store.export.exporter import bring_up_to_date
from store.ids import MEMORY_ID
from store.redaction.register import Register

PARTS = ("Quorvex", "Söhne", "quorvextag")


def tables(path: Path) -> dict[str, list[Any]]:
    """Every row of every projection, and every entry."""
    with closing(apsw.Connection(str(path))) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
            for name in names
            if not name.startswith("memory_text")
        }


def terms(path: Path) -> list[Any]:
    """Every term of the full-text index, in its place."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, memory_text, instance)")
        return connection.execute('SELECT term, doc, col, "offset" FROM temp.terms').fetchall()


def test_an_entry_that_was_redacted_leaves_no_trace_and_the_chain_holds(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    """P160"""
    bring_up_to_date(tmp_path, seat.path, seat.book.snapshot)
    before = seat.entries()
    totals = [before[-1].sequence, *_totals(seat)]
    seat.book.close()
    assert len(traced(tmp_path, *PARTS)) > 4, "or the search finds nothing at all"
    done = redact(secret)
    assert done.remains == []
    assert traced(tmp_path, *PARTS) == []
    assert not {term for term, *_ in terms(seat.path)} & {"quorvex", "sohn", "hugel", "quorvextag", "目标"}
    report = verify(seat.path, "default", None)
    assert report.findings == ()
    assert check_exports(seat.path) == []
    again = Book.open(tmp_path, "default", clock=seat.clock)
    seat.book = again
    with closing(again):
        after = seat.entries()
        kept = [entry for entry in after if entry.sequence <= before[-1].sequence]
        assert [entry.leaf_sha256 for entry in kept] == [entry.leaf_sha256 for entry in before]
        assert [entry.chain_sha256 for entry in kept] == [entry.chain_sha256 for entry in before]
        assert [totals[0], *_totals(seat)] == totals
        assert seat.ids("Quorvex") == []
        assert len(seat.ids("margins", limit=50)) > 20
        assert seat.get(secret)["memory"]["text"] == ""
        assert [row["id"] for row in seat.state()["open_theses"]] == [secret]
        (said,) = seat.entries("memory.redacted")
        assert (said.agent, said.profile, said.subject_id) == ("rita", "reviewer", secret)
        assert json.loads(said.content)["reason"] == "by mistake"


def _totals(seat: Any) -> tuple[int, int]:
    with seat.book.snapshot() as snapshot:
        found = snapshot.totals(snapshot.head().sequence)
    return int(found[0]), int(found[1])


def test_a_rebuild_gives_what_the_redaction_left(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    seat.book.close()
    redact(secret)
    rows, index = tables(seat.path), terms(seat.path)
    with closing(Book.open(tmp_path, "default")) as book:
        book.rebuild(lambda _: None)
    assert tables(seat.path) == rows
    assert terms(seat.path) == index
    assert traced(tmp_path, *PARTS) == []


def test_only_what_an_id_covers_is_blank(seat: Any, secret: str, redact: Any) -> None:
    seat.book.close()
    before = {row[0]: row for row in tables(seat.path)["memory_events"]}
    done = redact(secret)
    after = {row[0]: row for row in tables(seat.path)["memory_events"]}
    blank = {at for at, row in after.items() if row[19] == ""}
    assert len(blank) == done.entries[None]
    assert {after[at][2] for at in blank} == {
        *("thesis.opened", "thesis.updated", "memory.flagged", "memory.retrieved")
    }
    assert all(before[at][:19] == after[at][:19] and before[at][21:] == after[at][21:] for at in blank)
    assert all(before[at] == after[at] for at in before.keys() - blank)


def test_redacting_again_finds_nothing_and_purges_again(
    seat: Any, secret: str, redact: Any, register: Register
) -> None:
    seat.book.close()
    redact(secret)
    before, lines = tables(seat.path), register.lines(seat.book.genesis.store_id)
    done = redact(secret)
    assert (done.entries, done.remains) == ({}, [])
    assert list(done.purged) == [None]
    assert tables(seat.path) == before
    assert register.lines(seat.book.genesis.store_id) == lines


def test_a_single_entry_goes_by_its_sequence_or_event_id_and_the_rest_of_its_memory_stays(
    seat: Any, redact: Any, tmp_path: Path, traced: Any
) -> None:
    made = seat.do(OpenThesis(text="Quorvex holds", symbol="AAPL", tags=("a",)))
    seat.do(UpdateThesis(thesis_id=made.id, text="it holds"))
    seat.book.close()
    redact(str(made.sequence))
    assert traced(tmp_path, "Quorvex") == []
    assert verify(seat.path, "default", None).findings == ()
    with closing(Book.open(tmp_path, "default", clock=seat.clock)) as book:
        seat.book = book
        assert seat.get(made.id)["memory"]["text"] == "it holds"
        (last,) = [entry for entry in seat.entries() if entry.event_type == "thesis.updated"]
    redact(last.event_id)
    with closing(Book.open(tmp_path, "default", clock=seat.clock)) as book:
        seat.book = book
        assert seat.get(made.id)["memory"]["text"] == ""


def test_what_quotes_a_text_whole_stays_unless_it_is_asked_for(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    text = seat.last_content("thesis.updated")["text"]
    quoting = seat.do(Remember(text=f"bob says: {text}"), agent="bob")
    seat.book.close()
    redact(secret)
    assert traced(tmp_path, "Quorvex") != []
    redact(secret, quoting.id)
    assert traced(tmp_path, "Quorvex") == []


def test_with_quotes_they_go_too(seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path) -> None:
    text = seat.last_content("thesis.updated")["text"]
    seat.do(Remember(text=f"bob says: {text}"), agent="bob")
    seat.book.close()
    redact(secret, with_quotes=True)
    assert traced(tmp_path, *PARTS) == []
    assert verify(seat.path, "default", None).findings == ()


def test_all_that_holds_a_text_goes_with_it(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    seat.do(Remember(text="a Quorvex elsewhere"), agent="bob")
    seat.find("where is Quorvex")
    seat.book.close()
    done = redact(containing="Quorvex")
    assert done.entries[None] >= 5
    assert traced(tmp_path, "Quorvex") == []
    assert verify(seat.path, "default", None).findings == ()


REFUSALS: dict[str, tuple[Callable[[Any, str], Any], type[Exception]]] = {
    "without a reviewer's credential": (
        lambda redact, name: redact(name, caller=Caller("rita", "reviewer", "ses-rita", "redact")),
        PermissionDenied,
    ),
    "under a legal hold": (lambda redact, name: redact(name, legal_hold=True), Conflict),
    "with the text as its reason": (
        lambda redact, name: redact(name, reason="it said QUORVEX AGAIN: since quorvex said so"),
        InvalidInput,
    ),
    "without a reason": (lambda redact, name: redact(name, reason="  "), InvalidInput),
    "of nothing": (lambda redact, name: redact("mem_0000000000000"), NotFound),
    "of the genesis entry": (lambda redact, name: redact("1"), InvalidInput),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_redaction_is_refused_and_changes_nothing(
    seat: Any, secret: str, redact: Any, register: Register, case: Any
) -> None:
    attempt, kind = case
    seat.book.close()
    before = tables(seat.path)
    with pytest.raises(kind) as fault:
        attempt(redact, secret)
    assert fault.value.hint  # type: ignore[attr-defined]
    assert tables(seat.path) == before
    assert register.lines(seat.book.genesis.store_id) == []


def test_without_a_register_nothing_is_taken_away(
    seat: Any, secret: str, redact: Any, register: Register
) -> None:
    seat.book.close()
    register._folder.parent.joinpath("redactions").write_text("a file in its place")
    before = tables(seat.path)
    with pytest.raises(StoreError, match="register cannot be written"):
        redact(secret)
    assert tables(seat.path) == before


def test_a_key_whose_entry_was_redacted_conflicts_and_crashes_nothing(
    seat: Any, secret: str, redact: Any, tmp_path: Path
) -> None:
    seat.book.close()
    redact(secret)
    with closing(Book.open(tmp_path, "default", clock=seat.clock)) as book:
        seat.book = book
        with pytest.raises(IdempotencyConflict, match="taken away"):
            seat.do(OpenThesis(text="another", symbol="AAPL"), key="k-1")
        assert MEMORY_ID.fullmatch(seat.do(OpenThesis(text="another", symbol="AAPL"), key="k-2").id)


def test_a_reader_that_holds_the_log_is_told_and_the_same_redaction_finishes_it(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat.book.close()
    monkeypatch.setattr("store.engines.sqlite.purging.READERS_SECONDS", 0.0)
    with closing(apsw.Connection(str(seat.path))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory_events").fetchall()
        done = redact(secret)
        (remains,) = done.remains
        assert "log still holds" in remains
        assert "same command" in done.purged[None].hints[0]
    assert redact(secret).remains == []
    assert traced(tmp_path, *PARTS) == []


def test_copies_that_an_upgrade_kept_go_and_ledgers_moved_aside_are_named(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    seat.book.close()
    kept = seat.path.with_name("memory.sqlite.schema3.bak")
    aside = seat.path.with_name("memory.sqlite.replaced-1")
    for copy in (kept, aside):
        shutil.copy(seat.path, copy)
    done = redact(secret)
    assert done.purged[None].removed == [kept.name]
    (remains,) = done.remains
    assert remains.startswith(aside.name)
    aside.unlink()
    assert redact(secret).remains == []
    assert traced(tmp_path, *PARTS) == []


def test_a_thousand_searches_go_in_entries_of_a_hundred(
    seat: Any, redact: Any, traced: Any, tmp_path: Path
) -> None:
    made = seat.do(Remember(text="Quorvex holds", symbol="AAPL"))
    for number in range(250):
        seat.find(f"Quorvex {number}")
    seat.book.close()
    done = redact(made.id)
    assert done.entries == {None: 251}
    assert len(done.said[None]) == 3
    assert traced(tmp_path, "Quorvex") == []
    assert verify(seat.path, "default", None).findings == ()
