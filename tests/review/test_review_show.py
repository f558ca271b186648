"""What `review show`, `show` and `status` tell of a memory's past: times as people write them, and earlier noes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Caller
from store.commands import CloseThesis, Command, OpenThesis, Propose, ProposeLesson
from store.review_commands import Approve, Reject, Renew, SignOff

if TYPE_CHECKING:
    from conftest import Run

MICROSECONDS = re.compile(r"\b1\d{15}\b")
NEW_YORK = '[clock]\ntimezone = "America/New_York"\n'


def write(book: Book, command: Command, name: str = "trader") -> str:
    return book.execute(Caller(name, name, f"ses-{name}", "tool"), command).id


def decide(book: Book, kind: type[Any], memory_id: str, **more: Any) -> None:
    shown = book.review_item(memory_id).shown_sha256
    rita = Caller("rita", "reviewer", "ses-r", "review", reviewer=True)
    book.execute(rita, kind(memory_id=memory_id, shown=shown, **more))


def rejected(book: Book, command: Command, reason: str, name: str = "trader") -> str:
    memory_id = write(book, command, name)
    decide(book, Reject, memory_id, reason=reason)
    return memory_id


@pytest.fixture
def lesson(book: Book) -> str:
    """A lesson that was edited, approved, signed off and renewed."""
    memory_id = write(book, ProposeLesson(text="Look first.", symbol="AAPL"))
    decide(book, Approve, memory_id, text="Look before.")
    decide(book, SignOff, memory_id)
    decide(book, Renew, memory_id)
    return memory_id


def test_a_memory_is_shown_with_its_times_in_the_zone_of_the_config(
    run: Run, book: Book, lesson: str, config: Any
) -> None:
    config.write_text(config.read_text() + NEW_YORK)
    lines = run("review", "show", lesson).out.splitlines()
    for name in ("reviewed_at", "edited_at", "signed_off_at", "renewed_at"):
        (line,) = [line for line in lines if line.split()[0] == name]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*-0[45]:00", line.split()[1]), line
    assert not [line for line in lines if MICROSECONDS.search(line)]


def test_a_closed_thesis_is_shown_with_the_time_of_its_close(run: Run, book: Book) -> None:
    thesis = write(book, OpenThesis(text="Long AAPL.", symbol="AAPL"))
    decide(book, Approve, thesis)
    write(book, CloseThesis(thesis_id=thesis, result="win"))
    shown = run("review", "show", thesis)
    assert "closed_at" in shown.out
    assert not MICROSECONDS.search(shown.out)
    details = run("review", "show", thesis, "--json").json()["details"]
    assert details["closed_at"].endswith("Z")
    assert details["reviewed_at"].endswith("Z")


def test_every_entry_is_shown_with_times_that_a_person_reads(run: Run, book: Book, lesson: str) -> None:
    for memory_id in (lesson, write(book, Propose(text="It waits."))):
        shown = run("show", memory_id)
        content = [line for line in shown.out.splitlines() if line.startswith("    ")]
        assert content
        assert not [line for line in content if MICROSECONDS.search(line)]
    assert '"pending_until": "2' in shown.out


def test_json_that_an_author_wrote_is_shown_as_it_is(run: Run, book: Book) -> None:
    told = {"closed_at": 1_772_461_800_000_000}
    memory_id = write(book, ProposeLesson(text="Look first.", outcome=told))
    assert run("review", "show", memory_id, "--json").json()["details"]["outcome"] == told
    assert '{"closed_at": 1772461800000000}' in run("review", "show", memory_id).out


def test_what_was_rejected_before_in_the_same_words_is_said_of_what_waits(run: Run, book: Book) -> None:
    again = Propose(text="Trim a third.", symbol="AAPL")
    first = rejected(book, again, "no evidence")
    second = rejected(book, again, "still\x1b[2J none")
    waits = write(book, again)
    shown = run("review", "show", waits)
    (line,) = [line for line in shown.out.splitlines() if line.startswith("  REJECTED")]
    assert f"in the same words 2 times before, last {second} by rita at 2" in line
    assert line.endswith(r": still\u001b[2J none")
    told = run("review", "show", waits, "--json").json()["rejected_before"]
    assert [(each["id"], each["by"], each["reason"]) for each in told] == [
        (second, "rita", "still\x1b[2J none"),
        (first, "rita", "no evidence"),
    ]
    assert run("review", "list", "--json").json()["waiting"][0]["rejected_before"] == told


def test_other_words_another_author_and_what_was_let_in_are_no_nagging(run: Run, book: Book) -> None:
    again = Propose(text="Trim a third.", symbol="AAPL")
    rejected(book, again, "no", "researcher")
    rejected(book, Propose(text="Trim a third.", symbol="MSFT"), "no")
    rejected(book, Propose(text="Trim a third!", symbol="AAPL"), "no")
    rejected(book, ProposeLesson(text="Trim a third.", symbol="AAPL"), "no")
    waits = write(book, again)
    assert "REJECTED" not in run("review", "show", waits).out
    decide(book, Approve, waits)
    assert run("review", "show", waits, "--json").json()["rejected_before"] == []


def test_status_says_how_many_wait(run: Run, book: Book) -> None:
    assert run("status", "--json").json()["waiting"] == 0
    write(book, Propose(text="One."))
    decide(book, Approve, write(book, Propose(text="Two.")))
    write(book, Propose(text="Three."))
    assert run("status", "--json").json()["waiting"] == 2
    assert re.search(r"^waiting +2$", run("status").out, re.MULTILINE)
