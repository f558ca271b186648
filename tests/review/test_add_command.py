"""add: a person writes a memory, which stands approved at once and which no agent can write in that person's name."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server.commands.place import find_place
from store import Book, Caller, SearchRequest
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import OpenTerminal, Run

PHRASE = "four words will do"


def added(out: str) -> str:
    """The id in what `add` said."""
    return out.split()[1]


def test_what_a_person_adds_stands_approved_under_their_name_and_is_recalled(
    run: Run, root: Path, config: Path, ann: str
) -> None:
    ran = run(
        "add", "Never hold NVDA over earnings", "--kind", "risk_note", "--symbol", "nvda", "--tags", "size, events",
        "--review-by", "2031-01-01", "--expires-at", "2032-01-01T00:00:00Z", token=ann,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    made = added(ran.out)
    assert f"review show {made}" in ran.out
    told = run("review", "show", made, "--json").json()
    assert (told["kind"], told["symbol"], told["agent"], told["profile"]) == (
        "risk_note",
        "NVDA",
        "Ann",
        "reviewer",
    )
    assert (told["review_state"], set(told["tags"])) == ("approved", {"size", "events"})
    assert (told["review_by"], told["expires_at"]) == ("2031-01-01T00:00:00Z", "2032-01-01T00:00:00Z")
    book = find_place(config, root, None, None, environ={}).open()
    try:
        trader = Caller("trader", "trader", "ses-trader", "search_memory")
        found = book.search(trader, SearchRequest(query="hold over earnings"))
        entries = book.log(EntryFilter(subject_id=made, limit=9))
    finally:
        book.close()
    assert [hit["id"] for hit in found.body["hits"]] == [made]
    assert (entries[0].agent, entries[0].tool) == ("Ann", "add")


@pytest.mark.parametrize("kind", ["memory", "risk_note", "lesson", "proposal"])
def test_every_kind_that_people_write_passes_its_gate(run: Run, ann: str, kind: str) -> None:
    ran = run("add", f"a {kind} of a person", "--kind", kind, token=ann)
    assert ran.code == 0, ran.err
    told = run("review", "show", added(ran.out), "--json").json()
    assert (told["kind"], told["review_state"]) == (kind, "approved")
    assert run("review", "list", "--json").json()["total"] == 0


def test_the_words_come_from_a_file_or_from_standard_input_whole(
    run: Run, ann: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Größe zählt.\n  Two lines, 日本\n\n"
    file = tmp_path / "note.txt"
    file.write_text(text, encoding="utf-8")
    first = run("add", "--file", str(file), token=ann)
    assert first.code == 0, first.err
    assert run("review", "show", added(first.out), "--json").json()["text"] == text.rstrip("\n")

    class Piped:
        buffer = io.BytesIO(b"from a pipe\n")

        @staticmethod
        def isatty() -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Piped())
    second = run("add", "-", token=ann)
    assert second.code == 0, second.err
    assert run("review", "show", added(second.out), "--json").json()["text"] == "from a pipe"


@pytest.mark.parametrize(
    "words",
    [
        (), ("text", "--file", "x"), ("--file", "/nowhere/note"), ("text", "--kind", "thesis"), (" ",),
        ("text", "--review-by", "soon"), ("text", "--symbol", "A\u200b"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_and_keeps_nothing(
    run: Run, book: Book, ann: str, words: tuple[str, ...]
) -> None:
    before = book.head().sequence
    ran = run("add", *words, token=ann)
    assert ran.code == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert book.head().sequence == before


def test_text_that_is_no_utf8_or_too_large_is_refused(run: Run, ann: str, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    for raw in (b"\xff\xfe", b"x" * 2_000_000):
        file.write_bytes(raw)
        ran = run("add", "--file", str(file), token=ann)
        assert (ran.code, ran.out) == (2, "")


def test_without_a_credential_nothing_is_kept_whatever_name_is_given(run: Run, book: Book, ann: str) -> None:
    before = book.head().sequence
    assert run("add", "mine", "--as", "Ann").code == 2
    assert book.head().sequence == before
    for name in ("Ann", "trader", "Zoe"):
        assert run("add", "mine", "--as", name, token="dbr_wrong").code == 1
    denied = book.log(EntryFilter(event_type="permission.denied", limit=9))
    assert [(each.agent, json.loads(each.content)["tool"]) for each in denied] == [("deskbook", "add")] * 3


def test_in_a_terminal_it_asks_for_the_passphrase_without_showing_it(
    terminal: OpenTerminal, run: Run, ann: str
) -> None:
    screen = terminal("add", "Never average down")
    screen.wait_for('Passphrase of reviewer "Ann": ')
    screen.type(PHRASE)
    assert screen.end() == 0, screen.shown
    assert PHRASE not in screen.shown
    made = added(screen.shown[screen.shown.index("kept ") :])
    assert run("review", "show", made, "--json").json()["text"] == "Never average down"


def test_a_run_that_was_never_begun_is_not_begun_by_a_person(run: Run, root: Path, ann: str) -> None:
    assert run("add", "mine", "--run", "r1", token=ann).code == 1
    assert not (root / "default").exists()


def test_every_option_has_help(run: Run) -> None:
    ran = run("add", "--help")
    options = [line for line in ran.out.splitlines() if line.strip().startswith("--")]
    assert options
    for line in options:
        assert len(line.split(maxsplit=1)) == 2, line
