"""Every entry of a ledger with all kinds in it, taken away one id after another and in any order."""

from __future__ import annotations

import lzma
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Book, Caller, SearchRequest
from store.audit import verify
from store.commands import Remember
from store.export.checking import check_exports
from store.export.exporter import bring_up_to_date
from store.paths import ledger_path
from store.redaction.desk import Desk, Wanted
from store.redaction.kept import can_be_redacted
from store.redaction.register import Register
from store.rows import EntryFilter

REVIEWER = Caller("rita", "reviewer", "ses-rita", "redact", reviewer=True)
ANN = Caller("ann", "solo", "ses-ann", "tool")
EVERYTHING = EntryFilter(limit=10_000)


def upgraded(root: Path, fixtures: Path) -> Path:
    """A ledger with every kind and most event types, below a root."""
    path = ledger_path(root, "default", None)
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_bytes(lzma.decompress((fixtures / "ledger_v3.sqlite.xz").read_bytes()))
    Book.open(root, "default").close()
    return path


def rows(path: Path) -> dict[str, list[Any]]:
    with closing(apsw.Connection(str(path))) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        found = {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
            for name in names
            if not name.startswith("memory_text")
        }
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, memory_text, instance)")
        found["terms"] = connection.execute('SELECT term, doc, col, "offset" FROM temp.terms').fetchall()
    return found


def check(root: Path, path: Path) -> None:
    """Sound, the same after a rebuild, and everything that reads still reads."""
    assert verify(path, "default", None).findings == ()
    before = rows(path)
    with closing(Book.open(root, "default")) as book:
        book.rebuild(lambda _: None)
    assert rows(path) == before
    with closing(Book.open(root, "default")) as book:
        book.state(ANN)
        book.search(ANN, SearchRequest(query="thesis AAPL", limit=20))
        book.search(ANN, SearchRequest(query="", limit=50))
        for entry in book.log(EVERYTHING):
            if entry.kind is not None:
                book.get(ANN, entry.subject_id, detailed=True)


def test_everything_that_can_go_goes_and_the_ledger_stays_sound(tmp_path: Path, fixtures: Path) -> None:
    root = tmp_path / "root"
    path = upgraded(root, fixtures)
    with closing(Book.open(root, "default")) as book:
        bring_up_to_date(root, path, book.snapshot)
        before = book.log(EVERYTHING)
    going = [entry for entry in before if can_be_redacted(entry.event_type)]
    assert len({entry.event_type for entry in going}) > 12
    names = tuple(str(entry.sequence) for entry in going)
    desk = Desk(root, "default", None, Register(tmp_path / "registers"))
    assert desk.redact(REVIEWER, Wanted(names=names), "all of it").remains == []
    with closing(Book.open(root, "default")) as book, book.snapshot() as snapshot:
        for entry in before:
            stored = snapshot.raw_entry(entry.sequence)
            assert stored is not None
            assert (stored.content == "") == can_be_redacted(entry.event_type)
            assert stored.chain_sha256 == entry.chain_sha256
    check(root, path)
    assert check_exports(path) == []


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.integers(0, 10_000), min_size=1, max_size=6), apart=st.booleans())
def test_any_of_it_goes_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, fixtures: Path, chosen: list[int], apart: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    root = folder / "root"
    path = upgraded(root, fixtures)
    with closing(Book.open(root, "default")) as book:
        able = [entry for entry in book.log(EVERYTHING) if can_be_redacted(entry.event_type)]
        totals = book.status().entries
    names = list(dict.fromkeys(able[number % len(able)].subject_id for number in chosen))
    desk = Desk(root, "default", None, Register(folder / "registers"))
    for part in ([name] for name in names) if apart else [names]:
        assert desk.redact(REVIEWER, Wanted(names=tuple(part)), "some of it").remains == []
    check(root, path)
    with closing(Book.open(root, "default")) as book:
        assert book.status().entries > totals


def test_a_server_that_has_the_ledger_open_reads_and_writes_on(
    seat: Any, secret: str, redact: Any, traced: Any, tmp_path: Path
) -> None:
    seat.find("margins")
    seat.state()
    assert redact(secret).remains == []
    assert traced(tmp_path, "Quorvex") == []
    assert seat.ids("Quorvex") == []
    made = seat.do(Remember(text="written afterwards"))
    assert seat.ids("afterwards") == [made.id]
    shown = seat.get(secret)
    assert shown["memory"]["redacted"] is True
    assert shown["history"][-1]["event"] == "memory.redacted"
    assert shown["history"][-1]["content"]["covered"] > 3
    assert [row["id"] for row in seat.state()["open_theses"]] == [secret]
    assert verify(seat.path, "default", None).findings == ()
