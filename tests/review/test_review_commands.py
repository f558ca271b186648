"""The review commands: what is shown, that a decision holds for the wording shown, and who may decide."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.commands.place import find_place
from server.reviewer_file import reviewer_path
from server.reviewers import VARIABLE, add_token
from store import Book, Caller, SearchRequest, Written
from store.commands import FlagMemory, OpenThesis, Propose, ProposeLesson, Remember, UpdateThesis
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import OpenTerminal, Run

GUARD = 120
PHRASE = "four words will do"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\r\n\x7f\u200bfake line\U000e0041\u2028end"
DRIVES = "\x1b\x07\x9b\u202e\u2066\x7f\u200b\U000e0041\u2028\x00"
START = 1_772_461_800_000_000


def trader(tool: str = "remember_proposal") -> Caller:
    return Caller("trader", "trader", "ses-trader", tool)


def propose(book: Book, text: str = "Trim NVDA into strength", **more: Any) -> Written:
    return book.execute(trader(), Propose(text=text, **more))


def entries(book: Book, event_type: str) -> list[dict[str, Any]]:
    found = book.log(EntryFilter(event_type=event_type, limit=1_000))
    return [{"by": each.agent, "tool": each.tool, **json.loads(each.content)} for each in found]


def recalled(book: Book, query: str) -> set[str]:
    reply = book.search(trader("search_memory"), SearchRequest(query=query))
    return {hit["id"] for hit in reply.body["hits"]}


def waiting(run: Run) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in run("review", "list", "--json").json()["waiting"]}


def hash_of(run: Run, memory_id: str) -> str:
    return str(run("review", "show", memory_id, "--json").json()["hash"])


def test_list_and_show_need_no_credential_and_print_the_hash_that_approve_takes(
    run: Run, book: Book, ann: str
) -> None:
    made = propose(book, symbol="NVDA")
    listed = run("review", "list")
    assert listed.code == 0
    digits = waiting(run)[made.id]["hash"]
    assert len(digits) == 12
    assert f"{made.id}  {digits}  proposal  NVDA  trader" in listed.out
    assert f"deskbook review show {made.id}" in listed.out
    shown = run("review", "show", made.id)
    assert digits in shown.out
    assert "  | Trim NVDA into strength" in shown.out
    assert "trader (profile trader)" in shown.out
    assert f"review approve {made.id} --hash {digits}" in shown.out
    assert recalled(book, "trim NVDA") == set()
    ran = run("review", "approve", made.id, "--hash", digits, token=ann)
    assert ran.code == 0, ran.err
    assert recalled(book, "trim NVDA") == {made.id}
    (entry,) = entries(book, "review.approved")
    assert (entry["by"], entry["tool"]) == ("Ann", "review")
    assert entry["shown_sha256"].startswith(digits)
    assert waiting(run) == {}


DECISIONS: tuple[tuple[str, ...], ...] = (
    ("approve",),
    ("reject", "--reason", "no"),
    ("edit", "--text", "other words"),
    ("revise", "--text", "other words"),
    ("sign-off",),
    ("renew",),
    ("retire",),
)


@pytest.mark.parametrize("words", DECISIONS, ids=lambda words: words[0])
def test_no_decision_is_taken_without_a_hash_or_without_a_credential(
    run: Run, book: Book, ann: str, words: tuple[str, ...]
) -> None:
    made = propose(book)
    before = book.head().sequence
    without_hash = run("review", words[0], made.id, *words[1:], token=ann)
    assert without_hash.code == 2
    assert f"review show {made.id}" in without_hash.err
    without_proof = run("review", words[0], made.id, "--hash", hash_of(run, made.id), *words[1:])
    assert without_proof.code == 2
    assert VARIABLE in without_proof.err
    assert book.head().sequence == before
    wrong = run("review", words[0], made.id, "--hash", hash_of(run, made.id), *words[1:], token="dbr_wrong")
    assert wrong.code == 1
    assert [each["tool"] for each in entries(book, "permission.denied")] == ["review"]
    assert list(waiting(run)) == [made.id]


def test_settling_asks_for_a_credential_too(run: Run, book: Book, ann: str) -> None:
    flag = book.execute(trader("flag_memory"), FlagMemory(memory_id=propose(book).id, reason="wrong"))
    assert run("review", "settle", flag.event_id, "dismissed").code == 2
    assert run("review", "settle", flag.event_id, "dismissed", token="dbr_wrong").code == 1
    assert run("review", "settle", flag.event_id, "dissmissed", token=ann).code == 2
    assert entries(book, "review.settled") == []
    assert run("review", "settle", flag.event_id, "dismissed", token=ann).code == 0
    assert len(entries(book, "review.settled")) == 1


def test_what_was_changed_after_it_was_shown_is_not_approved_p141(run: Run, book: Book, ann: str) -> None:
    made = book.execute(trader("open_thesis"), OpenThesis(text="Long on the backlog", symbol="NVDA"))
    shown = hash_of(run, made.id)
    book.execute(trader("update_thesis"), UpdateThesis(thesis_id=made.id, text="Short, all in"))
    ran = run("review", "approve", made.id, "--hash", shown, token=ann)
    assert ran.code == 1
    assert "is not what was shown" in ran.err
    assert waiting(run)[made.id]["text"] == "Short, all in"
    assert entries(book, "review.approved") == []
    assert run("review", "approve", made.id, "--hash", hash_of(run, made.id), token=ann).code == 0


def test_what_is_decided_unknown_or_shown_by_no_hash_fails_clearly(run: Run, book: Book, ann: str) -> None:
    made = propose(book)
    digits = hash_of(run, made.id)
    assert run("review", "approve", made.id, "--hash", "0" * 12, token=ann).code == 1
    assert run("review", "approve", made.id, "--hash", "nonsense", token=ann).code == 2
    assert run("review", "reject", made.id, "--hash", digits, "--reason", "late", token=ann).code == 0
    again = run("review", "approve", made.id, "--hash", hash_of(run, made.id), token=ann)
    assert again.code == 1
    assert "rejected already by Ann" in again.err
    unknown = run("review", "approve", "prop_0000000000000", "--hash", digits, token=ann)
    assert unknown.code == 1
    assert "Traceback" not in unknown.err


def test_an_edit_is_the_persons_and_the_tags_go_along(run: Run, book: Book, ann: str, tmp_path: Path) -> None:
    made = propose(book, tags=("nvda",))
    new = tmp_path / "new.txt"
    new.write_text("Trim NVDA by a third,\nnot more\n")
    ran = run(
        "review", "edit", made.id, "--hash", hash_of(run, made.id), "--file", str(new), "--tags", "risk, size",
        token=ann,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    told = run("review", "show", made.id, "--json").json()
    assert told["text"] == "Trim NVDA by a third,\nnot more"
    assert (told["agent"], told["changed_by"]) == ("trader", "Ann")
    assert set(told["tags"]) == {"risk", "size"}
    assert told["review_state"] == "approved"


def test_in_a_terminal_the_memory_is_shown_and_asked_about_before_the_passphrase(
    terminal: OpenTerminal, run: Run, book: Book, ann: str
) -> None:
    made = propose(book)
    screen = terminal("review", "approve", made.id)
    before = screen.wait_for("Approve it? [y/N]: ")
    assert "  | Trim NVDA into strength" in before
    screen.type("y")
    screen.wait_for('Passphrase of reviewer "Ann": ')
    screen.type(PHRASE)
    assert screen.end() == 0
    assert PHRASE not in screen.shown
    assert waiting(run) == {}
    refused = terminal("review", "retire", made.id)
    refused.wait_for("End it? [y/N]: ")
    refused.type("n")
    assert refused.end() == 1
    assert run("review", "show", made.id, "--json").json()["status"] == "proposed"


def test_alone_in_a_terminal_it_steps_through_all_that_waits(
    terminal: OpenTerminal, run: Run, book: Book, ann: str, tmp_path: Path
) -> None:
    texts = ["first to approve", "second to reject", "third to edit", "fourth to skip", "fifth for later"]
    ids = [propose(book, text).id for text in texts]
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!{sys.executable}\nimport sys\nopen(sys.argv[-1], "w").write("edited by a person")\n'
    )
    editor.chmod(0o755)
    screen = terminal("review", "--as", "Ann", EDITOR=str(editor))
    for text, answer in zip(texts, ("a", "r", "e", "s", "q"), strict=True):
        before = screen.wait_for("q(uit): ")
        assert f"  | {text}" in before
        screen.type(answer)
        if answer == "a":
            screen.wait_for('Passphrase of reviewer "Ann": ')
            screen.type(PHRASE)
        if answer == "r":
            screen.wait_for("Why: ")
            screen.type("not now")
    assert screen.end() == 0, screen.shown
    told = {each: run("review", "show", each, "--json").json() for each in ids}
    assert [told[each]["review_state"] for each in ids] == [
        "approved", "rejected", "approved", "pending", "pending",
    ]  # fmt: skip
    assert told[ids[2]]["text"] == "edited by a person"
    assert entries(book, "review.rejected")[0]["reason"] == "not now"


def test_what_changes_while_it_is_read_is_shown_again_and_not_approved(
    terminal: OpenTerminal, run: Run, book: Book, ann: str
) -> None:
    made = book.execute(trader("open_thesis"), OpenThesis(text="Long on the backlog", symbol="NVDA"))
    screen = terminal("review")
    screen.wait_for("q(uit): ")
    book.execute(trader("update_thesis"), UpdateThesis(thesis_id=made.id, text="Short, all in"))
    screen.type("a")
    screen.wait_for('Passphrase of reviewer "Ann": ')
    screen.type(PHRASE)
    again = screen.wait_for("q(uit): ")
    assert "is not what was shown" in again
    assert "  | Short, all in" in again
    screen.type("q")
    assert screen.end() == 0
    assert list(waiting(run)) == [made.id]


def test_stepping_through_needs_a_terminal_and_options_go_behind_the_command(run: Run, book: Book) -> None:
    ran = run("review")
    assert ran.code == 2
    assert "review list" in ran.err
    ran = run("review", "--as", "Ann", "list")
    assert ran.code == 2
    assert "behind the command" in ran.err


@pytest.mark.parametrize("words", [["list"], ["show"], ["due"], ["conflicts", "--all"]], ids=lambda w: w[0])
def test_hostile_text_cannot_drive_the_terminal_nor_pass_for_ours(
    run: Run, book: Book, ann: str, words: list[str]
) -> None:
    made = propose(book, HOSTILE, symbol="AAPL", tags=("x",))
    other = book.execute(trader("remember"), Remember(text=HOSTILE))
    flag = FlagMemory(memory_id=made.id, reason="conflicting", other_id=other.id, note=HOSTILE)
    book.execute(trader("flag_memory"), flag)
    for more in ([], ["--json"]):
        ran = run("review", *words, *([made.id] if words == ["show"] else []), *more)
        assert ran.code == 0, ran.err
        assert not set(DRIVES) & set(ran.out)
        assert "\r" not in ran.out
        assert not [line for line in ran.out.splitlines() if line.startswith("fake line")]


def test_due_names_the_lessons_and_theses_past_their_review_also_at_a_later_time(
    run: Run, book: Book, ann: str
) -> None:
    book.execute(trader("open_thesis"), OpenThesis(text="not due", review_by=None))
    lesson = book.execute(
        Caller("Ann", "reviewer", "ses-ann", "add", reviewer=True),
        ProposeLesson(text="Stops below the swing low", review_by=2_000_000_000_000_000),
    )
    assert run("review", "due", "--json").json()["total"] == 0
    ran = run("review", "due", "--now", "2034-01-01T00:00:00Z")
    assert ran.code == 0
    assert lesson.id in ran.out
    assert f"review renew {lesson.id} --hash" in ran.out
    before = book.head().sequence
    assert run("review", "due", "--now", "2034-01-01", "--json").json()["due"][0]["id"] == lesson.id
    assert book.head().sequence == before


def test_renew_revise_and_retire_answer_what_is_due(run: Run, book: Book, ann: str) -> None:
    by_ann = Caller("Ann", "reviewer", "ses-ann", "add", reviewer=True)
    made = book.execute(by_ann, ProposeLesson(text="Stops below the swing low"))
    ran = run(
        "review", "renew", made.id, "--hash", hash_of(run, made.id), "--review-by", "2031-05-01", token=ann
    )
    assert ran.code == 0, ran.err
    assert run("review", "show", made.id, "--json").json()["review_by"] == "2031-05-01T00:00:00Z"
    past = run(
        "review", "renew", made.id, "--hash", hash_of(run, made.id), "--review-by", "2001-05-01", token=ann
    )
    assert past.code == 2
    words = ("--text", "Stops well below it")
    assert run("review", "revise", made.id, "--hash", hash_of(run, made.id), *words, token=ann).code == 0
    assert run("review", "sign-off", made.id, "--hash", hash_of(run, made.id), token=ann).code == 0
    assert run("review", "show", made.id, "--json").json()["status"] == "validated"
    assert run("review", "retire", made.id, "--hash", hash_of(run, made.id), token=ann).code == 0
    told = run("review", "show", made.id, "--json").json()
    assert (told["status"], told["text"]) == ("retired", "Stops well below it")


def test_a_conflict_is_shown_with_both_sides_until_it_is_settled(run: Run, book: Book, ann: str) -> None:
    old = book.execute(trader("remember"), Remember(text="NVDA target 90", symbol="NVDA"))
    new = book.execute(trader("remember"), Remember(text="NVDA target 140", symbol="NVDA"))
    flag = book.execute(
        trader("flag_memory"), FlagMemory(memory_id=new.id, reason="conflicting", other_id=old.id)
    )
    ran = run("review", "conflicts")
    assert flag.event_id in ran.out
    assert "  | NVDA target 90" in ran.out
    assert "  | NVDA target 140" in ran.out
    assert f"review settle {flag.event_id} newer-wins" in ran.out
    (told,) = run("review", "conflicts", "--json").json()["flags"]
    assert (told["memory"]["id"], told["other"]["id"]) == (new.id, old.id)
    ran = run("review", "settle", flag.event_id, "newer-wins", token=ann)
    assert ran.code == 0, ran.err
    assert run("review", "conflicts", "--json").json()["total"] == 0
    assert run("review", "show", old.id, "--json").json()["status"] == "superseded"
    again = run("review", "settle", flag.event_id, "older-wins", token=ann)
    assert again.code == 1


def test_in_a_run_a_decision_takes_the_runs_time_or_the_one_given(
    run: Run, root: Path, config: Path, ann: str
) -> None:
    Book.open(root, "default", "r1", begins=START).close()
    book = find_place(config, root, None, "r1", environ={}).open()
    try:
        made = [
            book.execute(
                Caller("trader", "trader", "s", "remember_proposal", now=START + number), Propose(text=text)
            )
            for number, text in enumerate(("first", "second", "third"))
        ]

        def approve(memory_id: str, *more: str, **environ: str) -> Any:
            digits = run("review", "show", memory_id, "--run", "r1", "--json").json()["hash"]
            words = ("review", "approve", memory_id, "--hash", digits, "--run", "r1", *more)
            return run(*words, token=ann, **environ)

        assert approve(made[0].id).code == 0
        assert approve(made[1].id, DESKBOOK_NOW="2026-03-03T00:00:00Z").code == 0
        assert approve(made[2].id, "--now", "2026-03-02T00:00:00Z").code == 1, "the run is past that"
        assert approve(made[2].id, "--now", "2026-03-04T00:00:00Z").code == 0
        found = book.log(EntryFilter(event_type="review.approved", limit=9))
        day = 86_400_000_000
        midnight = 1_772_409_600_000_000
        assert [entry.effective_at for entry in found] == [START + 2, midnight + day, midnight + 2 * day]
    finally:
        book.close()


def test_the_live_ledger_takes_no_time_from_anybody(run: Run, book: Book, ann: str) -> None:
    made = propose(book)
    words = ("review", "approve", made.id, "--hash", hash_of(run, made.id))
    for ran in (
        run(*words, "--now", "2026-03-03T00:00:00Z", token=ann),
        run(*words, token=ann, DESKBOOK_NOW="2026-03-03T00:00:00Z"),
    ):
        assert ran.code == 1
        assert "takes its time from the machine" in ran.err
    assert list(waiting(run)) == [made.id]


def test_the_entry_says_which_of_several_reviewers_decided(
    run: Run, book: Book, ann: str, root: Path
) -> None:
    bob = add_token(reviewer_path(root), "Bob")
    made = propose(book)
    words = ("review", "approve", made.id, "--hash", hash_of(run, made.id))
    assert run(*words, "--as", "Ann", token=bob).code == 1
    assert run(*words, token=bob).code == 0
    assert [each["by"] for each in entries(book, "review.approved")] == ["Bob"]


COMMANDS = (
    *("list", "show", "due", "conflicts", "settle"),
    *("approve", "reject", "edit", "sign-off", "renew", "revise", "retire"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(run: Run, command: str) -> None:
    ran = run("review", command, "--help")
    assert ran.code == 0
    options = [line for line in ran.out.splitlines() if line.strip().startswith("--")]
    assert {"--config", "--root", "--strategy", "--run"} <= {line.split()[0] for line in options}
    for line in options:
        assert len(line.split(maxsplit=1)) == 2, line


def test_a_reading_command_never_makes_a_ledger(run: Run, root: Path) -> None:
    for words in (["list"], ["show", "prop_0000000000000"], ["due"], ["conflicts"]):
        assert run("review", *words).code == 1
        assert not root.exists()
