"""What `deskbook redact` says in the end is true: who else holds the text, and where nothing was to be done."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book, Caller
from store.canonical import canonical
from store.clock import DAY
from store.commands import OpenThesis, Remember
from store.errors import IdempotencyConflict
from store.ledger import arguments_hash
from store.paths import ledger_path
from store.redaction.desk import Desk, Wanted

SECRET = "Quorvex pays 100 a month for it"
BOB = Caller("bob", "solo", "ses-2", "remember")
REVIEWER = Caller("rita", "reviewer", "ses-rita", "redact", reviewer=True)


def quoted(root: Path, times: int) -> list[int]:
    """The sequences of entries of another author that quote the secret."""
    with closing(Book.open(root, "default")) as book:
        return [
            book.execute(BOB, Remember(text=f"ann says ({number}): {SECRET}")).sequence
            for number in range(times)
        ]


@pytest.mark.parametrize("times", [1, 3])
def test_what_quotes_it_and_stays_is_named_in_the_end(
    run: Any, noted: tuple[str, int], root: Path, traced: Any, times: int
) -> None:
    sequences = quoted(root, times)
    done = run("redact", noted[0], "--reason", "by mistake", "--yes")
    assert (done.code, done.err) == (0, "")
    assert "no trace remains" not in done.out
    before, after = ("1 entry quotes", "holds") if times == 1 else ("3 entries quote", "hold")
    assert f"{before} it whole and " in done.out
    named = ", ".join(map(str, sequences))
    assert f"{'entry' if times == 1 else 'entries'} {named} still {after} it: " in done.out
    assert "--with-quotes takes such entries too." in done.out
    assert f"`deskbook redact {sequences[0]}`" in done.out
    assert "nothing else in the store holds it" in done.out
    for sequence in sequences:
        assert traced(root, "Quorvex") != []
        assert run("redact", sequence, "--reason", "by mistake", "--yes").code == 0
    assert traced(root, "Quorvex") == []


def test_with_quotes_nothing_remains_and_programs_are_told_who_quotes(
    run: Any, noted: tuple[str, int], root: Path, traced: Any
) -> None:
    sequences = quoted(root, 2)
    done = run("redact", noted[0], "--reason", "by mistake", "--yes", "--with-quotes", "--json")
    told = json.loads(done.out)
    assert (told["quoted_by"], told["held_by"], told["redacted"][0]["entries"]) == ([], [], 4)
    assert traced(root, "Quorvex") == []
    more = quoted(root, 1)
    done = run("redact", str(more[0]), "--reason", "by mistake", "--yes", "--with-quotes")
    assert "no trace remains in the store" in done.out
    assert more != sequences


def test_programs_are_told_which_entries_quote_it(run: Any, noted: tuple[str, int], root: Path) -> None:
    sequences = quoted(root, 2)
    done = run("redact", noted[0], "--reason", "by mistake", "--yes", "--json")
    assert json.loads(done.out)["quoted_by"] == [{"run": None, "sequences": sequences}]


def test_a_text_too_short_to_look_for_is_not_said_to_be_gone_everywhere(run: Any, root: Path) -> None:
    with closing(Book.open(root, "default")) as book:
        made = book.execute(BOB, Remember(text="Quorvex pays"))
        book.execute(BOB, Remember(text="once more: Quorvex pays"))
    done = run("redact", made.id, "--reason", "by mistake", "--yes")
    assert done.code == 0
    assert "who else quotes it was not looked for" in done.out
    assert "no trace remains" not in done.out


def test_quotes_in_a_run_are_named_and_go_with_quotes(
    open_seat: Any, redact: Any, traced: Any, tmp_path: Path
) -> None:
    live = open_seat()
    made = live.do(Remember(text=SECRET, symbol="AAPL"))
    later = live.clock.us + DAY
    back = open_seat(run="back", inherit="live", begins=later)
    again = back.do(Remember(text=f"live says: {SECRET}"), now=later)
    live.book.close()
    back.book.close()
    look = Desk(tmp_path, "default", None, None).look(Wanted(names=(made.id,)))  # type: ignore[arg-type]
    assert list(look.seen[1].coverage.quotes) == [again.sequence]
    done = redact(made.id, with_quotes=True)
    assert (done.quotes, done.entries) == ({}, {None: 1, "back": 1})
    assert traced(tmp_path, "Quorvex") == []


def test_where_nothing_is_past_its_time_it_says_so_and_nothing_of_a_purge(
    run: Any, noted: tuple[str, int], root: Path, tmp_path: Path
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text('[retention]\nkeep = "30d"\n[agents.ann]\nprofile = "solo"\n')
    assert run("redact", noted[0], "--reason", "by mistake", "--yes").code == 0
    before = ledger_path(root, "default", None).read_bytes()
    for words in ((), ("--yes",), ("--reason", "their time", "--yes")):
        done = run("redact", "--past-retention", *words, "--config", config, as_rita=False)
        assert (done.code, done.out, done.err) == (0, "Nothing is past its time.\n", "")
    told = run("redact", "--past-retention", "--json", "--config", config)
    assert json.loads(told.out)["redacted"] == []
    assert ledger_path(root, "default", None).read_bytes() == before


def test_no_hash_that_stays_lets_anybody_try_texts_against_it(seat: Any, redact: Any, tmp_path: Path) -> None:
    command = OpenThesis(text="Quorvex holds", symbol="AAPL")
    made = seat.do(command, key="k-1")
    (entry,) = seat.entries("thesis.opened")
    assert entry.arguments_sha256 == arguments_hash(entry.content_salt, command.arguments())
    seat.book.close()
    redact(made.id)
    with closing(apsw.Connection(str(seat.path))) as connection:
        row = connection.execute(
            "SELECT content, content_salt, arguments_sha256, content_sha256 FROM memory_events"
            " WHERE sequence = ?",
            (entry.sequence,),
        ).fetchone()
    assert row == ("", b"", entry.arguments_sha256, entry.content_sha256)
    arguments, content = canonical(command.arguments()), entry.content.encode()
    for tried, kept in ((arguments, row[2]), (content, row[3])):
        assert kept not in (hashlib.sha256(tried).digest(), arguments_hash(b"", command.arguments()))
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or entry.content_salt not in path.read_bytes()
    with closing(Book.open(tmp_path, "default", clock=seat.clock)) as book:
        seat.book = book
        with pytest.raises(IdempotencyConflict, match="taken away"):
            seat.do(command, key="k-1")


def test_another_process_lists_what_lives_though_no_page_was_purged(
    open_seat: Any, register: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a connection keeps of what stands is no truer than its last redaction."""
    reader = open_seat()
    living = reader.do(Remember(text="living")).id
    made = reader.do(Remember(text="Quorvex")).id
    assert reader.ids(kind="memory", status="active") == [made, living]
    monkeypatch.setattr("store.redaction.desk.purge", lambda *_: pytest.fail("not today"))
    desk = Desk(tmp_path, "default", None, register)
    with pytest.raises(pytest.fail.Exception):
        desk.redact(REVIEWER, Wanted(names=(made,)), "by mistake")
    assert reader.ids(kind="memory", status="active") == [living]
