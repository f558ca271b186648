"""What the commands of a person say: what they did, what is missing, and errors in the words that were typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from server.commands.gists import gist
from server.commands.spelling import as_typed
from server.reviewer_file import reviewer_path
from server.reviewers import add_passphrase
from store import Book, Caller, Written
from store.commands import FlagMemory, NoteRisk, OpenThesis, Propose, ProposeLesson, Remember, UpdateThesis
from store.errors import InvalidInput

if TYPE_CHECKING:
    from conftest import OpenTerminal, Run, Terminal

PHRASE = "four words will do"
ASKED = "q(uit): "
END_OF_INPUT = "\x04"
PASSPHRASE = 'Passphrase of reviewer "Ann": '


def trader(tool: str = "remember_proposal") -> Caller:
    return Caller("trader", "trader", "ses-trader", tool)


def person() -> Caller:
    return Caller("Ann", "reviewer", "ses-ann", "add", reviewer=True)


def propose(book: Book, text: str = "Trim NVDA into strength", **more: Any) -> Written:
    return book.execute(trader(), Propose(text=text, **more))


def hash_of(run: Run, memory_id: str) -> str:
    return str(run("review", "show", memory_id, "--json").json()["hash"])


def two_notes(book: Book) -> tuple[Written, Written, Written]:
    """A risk note, a newer one that contradicts it, and the flag that says so."""
    old = book.execute(trader(), NoteRisk(text="NVDA stop at 90", symbol="NVDA"))
    new = book.execute(trader(), NoteRisk(text="NVDA stop at 140", symbol="NVDA"))
    flag = FlagMemory(memory_id=new.id, reason="conflicting", other_id=old.id)
    return old, new, book.execute(trader("flag_memory"), flag)


def test_renew_says_until_when_it_holds_now(run: Run, book: Book, ann: str) -> None:
    made = book.execute(person(), ProposeLesson(text="Stops below the swing low"))
    words = ("review", "renew", made.id, "--hash", hash_of(run, made.id))
    ran = run(*words, "--review-by", "2031-05-01", "--expires-at", "2032-05-01", token=ann)
    assert "  holds until 2031-05-01T00:00:00Z, when it is due for review again" in ran.out
    assert "  expires at 2032-05-01T00:00:00Z" in ran.out
    ran = run("review", "renew", made.id, "--hash", hash_of(run, made.id), token=ann)
    by_default = run("review", "show", made.id, "--json").json()["review_by"]
    assert f"  holds until {by_default}, when" in ran.out


@pytest.mark.parametrize(
    ("answer", "more", "ended"),
    [
        ("newer-wins", (), "old"),
        ("older-wins", (), "new"),
        ("both-hold", ("--scope", "the first for a day, the second for a year"), None),
        ("not-a-conflict", (), None),
    ],
)
def test_settle_says_what_was_ended_and_what_stands(
    run: Run, book: Book, ann: str, answer: str, more: tuple[str, ...], ended: str | None
) -> None:
    old, new, flag = two_notes(book)
    ran = run("review", "settle", flag.event_id, answer, *more, token=ann)
    assert ran.code == 0, ran.err
    stand = {
        name: f"{made.id} ended (resolved)" if name == ended else f"{made.id} stands"
        for name, made in (("new", new), ("old", old))
    }
    assert f"  {stand['new']}; {stand['old']}\n" in ran.out


def test_what_cannot_end_by_others_word_is_said_to_stand(run: Run, book: Book, ann: str) -> None:
    old = book.execute(person(), OpenThesis(text="Long on the backlog", symbol="NVDA"))
    new = book.execute(person(), OpenThesis(text="Short on the backlog", symbol="NVDA"))
    flag = FlagMemory(memory_id=new.id, reason="conflicting", other_id=old.id)
    raised = book.execute(trader("flag_memory"), flag)
    ran = run("review", "settle", raised.event_id, "newer-wins", token=ann)
    assert f"{new.id} stands; {old.id} stands" in ran.out


def test_errors_name_what_was_typed_and_no_field_of_a_command(run: Run, book: Book, ann: str) -> None:
    made = propose(book)
    _, _, flag = two_notes(book)
    digits = hash_of(run, made.id)
    long = "x" * 2_001
    hashed = ("--hash", digits)
    tried: dict[tuple[str, ...], str] = {
        ("settle", flag.event_id, "both-hold"): "both-hold needs --scope. (--scope)",
        ("settle", flag.event_id, "both-hold", "--scope", long): "--scope",
        ("settle", flag.event_id, "dismissed"): "ANSWER",
        ("settle", "evt_0000000000000", "newer-wins"): "FLAG names no flag of this ledger. (FLAG)",
        ("approve", made.id, "--hash", "nonsense"): "--hash is not the hash of what was shown. (--hash)",
        ("approve", made.id, "--hash", "0" * 12): "(--hash)",
        ("approve", "prop_0000000000000", *hashed): "(ID)",
        ("approve", made.id, *hashed, "--note", long): "--note",
        ("reject", made.id, *hashed, "--reason", " "): "--reason is blank. (--reason)",
        ("edit", made.id, *hashed, "--text", " "): "--text is blank. (--text)",
        ("edit", made.id, *hashed, "--text", "new", "--tags", "y" * 65): "--tags must have",
        ("show", "prop_0000000000000"): "ID names no memory of this ledger. (ID)",
    }
    inner = re.compile(
        r"memory_id|flag_id|both_hold|not_a_conflict|newer_wins|\((?:shown|scope|note|reason|text)\)"
    )
    for words, expected in tried.items():
        ran = run("review", *words, token=ann)
        assert ran.code in (1, 2), words
        assert expected in ran.err, words
        assert not inner.search(ran.err), ran.err
    added = run("add", " ", token=ann)
    assert "TEXT is blank. (TEXT)" in added.err


def test_an_id_that_has_the_name_of_a_field_in_it_is_left_alone() -> None:
    fault = InvalidInput("memory_id names risk_both_hold1, not x/review_by.", field="memory_id", hint="text")
    with pytest.raises(InvalidInput) as caught, as_typed():
        raise fault
    assert caught.value.message == "ID names risk_both_hold1, not x/review_by."
    assert (caught.value.field, caught.value.hint) == ("ID", "text")


def test_a_reviewer_that_is_not_listed_is_told_so_before_any_question(
    terminal: OpenTerminal, book: Book, ann: str
) -> None:
    made = propose(book)
    for words in (
        ("review",),
        ("review", "approve", made.id),
        ("add", "mine"),
        ("reviewer", "remove", "Ann"),
    ):
        screen = terminal(*words, "--as", "ann")
        assert screen.end() == 1
        assert 'There is no reviewer "ann" (did you mean "Ann"?). (--as)' in screen.shown
        assert "`deskbook reviewer list" in screen.shown
        assert "Passphrase" not in screen.shown
        assert "[y/N]" not in screen.shown
        assert "| Trim" not in screen.shown
    wrong = terminal("review", "approve", made.id, "--as", "Ann")
    wrong.wait_for("[y/N]: ")
    wrong.type("y")
    wrong.wait_for(PASSPHRASE)
    wrong.type("another phrase")
    assert wrong.end() == 1
    assert 'not the credential of "Ann"' in wrong.shown


def test_without_a_reviewer_or_with_several_it_says_so_before_any_question(
    terminal: OpenTerminal, book: Book, root: Any
) -> None:
    made = propose(book)
    nobody = terminal("review", "approve", made.id)
    assert nobody.end() == 1
    assert "Nobody is a reviewer of this store yet" in nobody.shown
    for name in ("ann", "bob"):
        add_passphrase(reviewer_path(root), name, PHRASE)
    several = terminal("review")
    assert several.end() == 2
    assert '--as NAME, one of "ann", "bob"' in several.shown
    for screen in (nobody, several):
        assert "| Trim" not in screen.shown


def test_a_no_changes_nothing_and_says_so(terminal: OpenTerminal, run: Run, book: Book, ann: str) -> None:
    made = propose(book)
    screen = terminal("review", "approve", made.id)
    screen.wait_for("[y/N]: ")
    screen.type("n")
    assert screen.end() == 1
    assert screen.shown.endswith("[y/N]: n\nNothing was changed.\n")
    assert run("review", "list", "--json").json()["total"] == 1


def left(screen: Terminal, question: str) -> str:
    """What is shown after a question at which a person types ^D, which leaves as ^C does."""
    screen.wait_for(question)
    screen.type(END_OF_INPUT, "")
    assert screen.end() in (0, 1), screen.shown
    return screen.shown[screen.shown.rindex(question) + len(question) :]


def test_who_leaves_at_a_question_gets_a_line_of_their_own(
    terminal: OpenTerminal, run: Run, book: Book, ann: str
) -> None:
    made = propose(book)
    told = left(terminal("review", "approve", made.id), "[y/N]: ")
    assert re.fullmatch(r"\nNothing was changed\.\n", told)
    screen = terminal("review", "approve", made.id)
    screen.wait_for("[y/N]: ")
    screen.type("y")
    assert re.fullmatch(r"\n+Nothing was changed\.\n", left(screen, PASSPHRASE))
    assert re.fullmatch(r"\n", left(terminal("review"), ASKED))
    assert run("review", "list", "--json").json()["total"] == 1


def test_stepping_through_explains_its_keys_and_a_missing_reason_without_showing_all_again(
    terminal: OpenTerminal, run: Run, book: Book, ann: str
) -> None:
    made = propose(book)
    screen = terminal("review")
    assert "  | Trim NVDA into strength" in screen.wait_for(ASKED)
    assert "Passphrase" not in screen.shown
    for typed, said in (("x", '"x" is none of the keys: a, r, e, s or q'), ("", "one of the keys is needed")):
        screen.type(typed)
        again = screen.wait_for(ASKED)
        assert said in again
        assert "| Trim" not in again
    screen.type("abort")
    assert '"abort" is none of the keys' in screen.wait_for(ASKED)
    screen.type("reject")
    screen.wait_for("Why: ")
    screen.type("")
    assert "A rejection needs a reason" in screen.wait_for("Why: ")
    screen.type("too vague")
    screen.wait_for(PASSPHRASE)
    screen.type(PHRASE)
    assert screen.end() == 0, screen.shown
    assert run("review", "show", made.id, "--json").json()["review_state"] == "rejected"


def test_a_waiting_wording_is_shown_beside_the_one_that_stands(run: Run, book: Book, ann: str) -> None:
    made = book.execute(trader("open_thesis"), OpenThesis(text="Long on the backlog", symbol="NVDA"))
    assert run("review", "approve", made.id, "--hash", hash_of(run, made.id), token=ann).code == 0
    assert run("review", "show", made.id, "--json").json()["stands"] is None
    book.execute(trader("update_thesis"), UpdateThesis(thesis_id=made.id, text="Short, all in"))
    shown = run("review", "show", made.id)
    assert "  waits:\n  | Short, all in\n  stands now:\n  | Long on the backlog\n" in shown.out
    told = run("review", "show", made.id, "--json").json()
    assert (told["text"], told["stands"]) == ("Short, all in", "Long on the backlog")


def test_conflicts_shows_each_text_once(run: Run, book: Book, ann: str) -> None:
    two_notes(book)
    note = book.execute(trader(), Remember(text="Trim NVDA into strength"))
    book.execute(trader("flag_memory"), FlagMemory(memory_id=note.id, reason="wrong"))
    shown = run("review", "conflicts", "--all").out
    for text in ("NVDA stop at 90", "NVDA stop at 140", "Trim NVDA into strength"):
        assert shown.count(text) == 1
        assert f"  | {text}\n" in shown


def test_the_line_of_a_warning_says_its_code_once() -> None:
    content = {"code": "duplicate_order_risk", "message": "duplicate_order_risk: Two."}
    assert gist("warning", content, str) == "duplicate_order_risk: Two."
    assert gist("warning", content | {"message": "Two."}, str) == "duplicate_order_risk: Two."


def test_a_publication_whose_text_was_taken_away_still_names_its_action() -> None:
    content = {"action_id": "act_1", "body": "", "redacted": 7, "reconciled": "pub_1"}
    assert gist("publication.begun", content, str) == "act_1, tried before as pub_1, (redacted)"
