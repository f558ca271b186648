"""Who may review: the first freely, each later one by one who is; the proof, and that no agent holds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from server import reviewers
from server.identity import LOCAL_AGENT
from server.permissions import PROFILES
from server.reviewer_file import read_reviewers, reviewer_path
from server.reviewers import VARIABLE, add_passphrase, add_token, prove, refuse_in_server, reviewer_caller
from server.settings import Settings, load_settings
from server.tokens import TokenFault, Tokens, agents_of, new_token, token_path
from store import Book
from store.errors import ConfigError, PermissionDenied, StoreError
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import OpenTerminal, Run, Terminal

GUARD = 60
PHRASE = "four words will do"
OTHER = "another four words"


class Hands:
    """A clock that stands where a test sets it, in seconds since the epoch."""

    def __init__(self) -> None:
        self.seconds = 1_772_461_800.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def settings(root: Path, config: Path) -> Settings:
    return load_settings(config=config, flags={"root": str(root)}, environ={})


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person in a terminal answers, one after the other."""
    answers: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(reviewers.typer, "prompt", lambda *_, **__: answers.pop(0))
    return answers


def denials(root: Path) -> list[tuple[str, str, str]]:
    book = Book.open(root, "default", create=False)
    try:
        found = book.log(EntryFilter(event_type="permission.denied", limit=1_000))
    finally:
        book.close()
    return [(entry.agent, entry.profile, json.loads(entry.content)["tool"]) for entry in found]


def add_first(terminal: OpenTerminal) -> Terminal:
    screen = terminal("reviewer", "add", "Ann")
    screen.wait_for("New passphrase: ")
    screen.type(PHRASE)
    screen.wait_for("The same again: ")
    screen.type(PHRASE)
    assert screen.end() == 0
    return screen


def test_the_first_reviewer_is_asked_for_a_passphrase_twice_that_is_never_shown(
    terminal: OpenTerminal, root: Path
) -> None:
    screen = add_first(terminal)
    assert PHRASE not in screen.shown
    assert "Ann may review" in screen.shown
    assert [each.name for each in read_reviewers(reviewer_path(root)).reviewers] == ["Ann"]


def test_a_later_reviewer_is_added_by_the_passphrase_of_one_who_is(
    terminal: OpenTerminal, root: Path
) -> None:
    add_first(terminal)
    wrong = terminal("reviewer", "add", "Bob", "--token")
    wrong.wait_for('Passphrase of reviewer "Ann": ')
    wrong.type("a guess of sorts")
    assert wrong.end() == 1
    assert 'not the credential of "Ann"' in wrong.shown
    right = terminal("reviewer", "add", "Bob", "--token", "--as", "Ann")
    right.wait_for('Passphrase of reviewer "Ann": ')
    right.type(PHRASE)
    assert right.end() == 0
    assert "dbr_" in right.shown
    assert {each.name for each in read_reviewers(reviewer_path(root)).reviewers} == {"Ann", "Bob"}
    assert PHRASE not in wrong.shown + right.shown


def test_a_short_passphrase_and_two_that_differ_are_not_taken(terminal: OpenTerminal, root: Path) -> None:
    screen = terminal("reviewer", "add", "Ann")
    screen.wait_for("New passphrase: ")
    screen.type("elevenchars")
    screen.wait_for("The same again: ")
    screen.type("elevenchars")
    assert screen.end() == 2
    assert "12 to 1,024 characters" in screen.shown
    assert not reviewer_path(root).exists()


def test_without_a_terminal_a_private_file_gives_the_passphrase(run: Run, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "phrase"
    secret.write_text(f"{PHRASE}\n")
    secret.chmod(0o644)
    assert run("reviewer", "add", "Ann", "--passphrase-file", str(secret)).code == 2
    secret.chmod(0o600)
    ran = run("reviewer", "add", "Ann", "--passphrase-file", str(secret))
    assert (ran.code, ran.out) == (0, "")
    assert PHRASE not in ran.err
    missing = run("reviewer", "add", "Bob", "--passphrase-file", str(secret))
    assert missing.code == 2
    assert VARIABLE in missing.err
    assert [each.name for each in read_reviewers(reviewer_path(root)).reviewers] == ["Ann"]


def test_a_token_is_printed_once_and_alone_and_proves_its_owner(run: Run, settings: Settings) -> None:
    token = run("reviewer", "add", "Ann", "--token").out.strip()
    assert token.startswith("dbr_")
    caller = reviewer_caller(settings, None, {VARIABLE: token}, tool="review")
    assert (caller.agent, caller.profile, caller.tool, caller.reviewer) == ("Ann", "reviewer", "review", True)
    assert caller.client.transport == "command"
    assert caller.now is None
    again = reviewer_caller(settings, "Ann", {VARIABLE: token}, tool="review")
    assert again.session_id != caller.session_id
    listed = run("reviewer", "list")
    assert "Ann" in listed.out
    assert token not in listed.out + listed.err
    assert run("reviewer", "list", "--json").json()["reviewers"][0]["proofs"] == ["token"]


def test_removing_asks_too_and_ends_the_token_at_once(run: Run, ann: str, settings: Settings) -> None:
    assert run("reviewer", "remove", "Ann", token=ann).code == 1
    bob = run("reviewer", "add", "Bob", "--token", token=ann).out.strip()
    assert run("reviewer", "remove", "Ann").code == 2
    assert run("reviewer", "remove", "Ann", token=bob).code == 0
    with pytest.raises(PermissionDenied):
        reviewer_caller(settings, None, {VARIABLE: ann}, tool="review")


def test_one_reviewer_cannot_take_the_name_of_another_by_a_new_credential(
    run: Run, ann: str, root: Path
) -> None:
    bob = run("reviewer", "add", "Bob", "--token", token=ann).out.strip()
    before = reviewer_path(root).read_bytes()
    for words in (("Ann", "--token"), ("Ann", "--token", "--as", "Bob"), ("Ann", "--token", "--as", "Ann")):
        assert run("reviewer", "add", *words, token=bob).code in (1, 2)
    assert reviewer_path(root).read_bytes() == before
    renewed = run("reviewer", "add", "Ann", "--token", token=ann)
    assert renewed.code == 0
    assert renewed.out.strip() != ann


TAKEN = sorted(
    {"trader", "TRADER", "ｔｒａｄｅｒ", "researcher", "deskbook", "Deskbook", LOCAL_AGENT, *PROFILES}
)


@pytest.mark.parametrize("name", TAKEN)
def test_an_agents_name_the_desks_and_a_profiles_are_no_persons(run: Run, root: Path, name: str) -> None:
    ran = run("reviewer", "add", name, "--token")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be a reviewer's name" in ran.err
    assert not reviewer_path(root).exists()


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129, "\x1b[2J"])
def test_what_is_no_name_is_refused(run: Run, name: str) -> None:
    ran = run("reviewer", "add", name, "--token")
    assert ran.code == 2
    assert "\x1b" not in ran.err


@pytest.mark.parametrize(
    "name", ["\u0410nn", "Ann\u0430", "P\u03b1t", "\uff21\u043d\u043d", "Ann \u0410\u043d\u043d"]
)
def test_a_name_that_mixes_scripts_which_look_alike_is_refused(run: Run, root: Path, name: str) -> None:
    ran = run("reviewer", "add", name, "--token")
    assert (ran.code, ran.out) == (2, "")
    assert "mixes letters of" in ran.err
    assert not reviewer_path(root).exists()


@pytest.mark.parametrize(
    "name", ["\u0410\u043d\u043d\u0430", "\u039d\u03af\u03ba\u03bf\u03c2", "Zo\u00eb 2", "\u674e Wei"]
)
def test_a_name_in_the_letters_of_one_of_them_is_taken(run: Run, name: str) -> None:
    assert run("reviewer", "add", name, "--token").code == 0


def test_a_reviewer_whose_name_an_agent_got_later_can_decide_nothing(
    run: Run, ann: str, root: Path, config: Path
) -> None:
    config.write_text(f'{config.read_text()}[agents.ann]\nprofile = "trader"\n')
    changed = load_settings(config=config, flags={"root": str(root)}, environ={})
    with pytest.raises(PermissionDenied, match="agent"):
        reviewer_caller(changed, None, {VARIABLE: ann}, tool="review")
    with pytest.raises(ConfigError, match="name of a reviewer"):
        refuse_in_server(changed, {})


WRONG = ["dbr_" + "a" * 52, "dbk_abcdefghij_" + "a" * 52, PHRASE, "x", "\udcff"]


@pytest.mark.parametrize("token", WRONG)
def test_a_wrong_token_is_told_alike_for_every_name_and_is_an_entry(
    settings: Settings, root: Path, ann: str, book: Book, token: str
) -> None:
    for name, whose in ((None, "any reviewer"), ("Ann", '"Ann"'), ("Zoe", '"Zoe"'), ("trader", '"trader"')):
        with pytest.raises(PermissionDenied) as caught:
            prove(settings, name, {VARIABLE: token}, tool="review")
        assert caught.value.message == f"That is not the credential of {whose}."
        assert token not in caught.value.message + (caught.value.hint or "")
    assert denials(root) == [("deskbook", "deskbook", "review")] * 4


def test_a_wrong_passphrase_and_an_unknown_name_are_told_alike(
    settings: Settings, root: Path, ann: str, book: Book, typed: list[str]
) -> None:
    typed += ["wrong", PHRASE, PHRASE]
    told = []
    for name in ("Ann", "Zoe"):
        with pytest.raises(PermissionDenied) as caught:
            prove(settings, name, {}, tool="redact")
        told.append((caught.value.message.replace(name, "NAME"), caught.value.hint, caught.value.field))
    assert told[0] == told[1]
    assert prove(settings, None, {}, tool="review") == "Ann"
    assert denials(root) == [("deskbook", "deskbook", "redact")] * 2


def test_a_failed_proof_before_there_is_a_ledger_makes_none(settings: Settings, root: Path, ann: str) -> None:
    with pytest.raises(PermissionDenied):
        prove(settings, None, {VARIABLE: "dbr_wrong"}, tool="review")
    assert sorted(each.name for each in root.iterdir()) == ["reviewers.json", "reviewers.lock"]


def test_ten_wrong_passphrases_close_the_door_for_a_minute_also_for_the_right_one(
    settings: Settings, root: Path, ann: str, typed: list[str], hands: Hands
) -> None:
    typed += ["wrong"] * 10
    for _ in range(10):
        with pytest.raises(PermissionDenied, match="not the credential"):
            prove(settings, "Ann", {}, tool="review", now=hands)
    typed += [PHRASE]
    with pytest.raises(PermissionDenied, match="next may be tried in 60 s"):
        prove(settings, "Ann", {}, tool="review", now=hands)
    assert prove(settings, None, {VARIABLE: ann}, tool="review", now=hands) == "Ann", "a token needs no wait"
    hands.seconds += 60
    typed += [PHRASE, "wrong", PHRASE]
    assert prove(settings, "Ann", {}, tool="review", now=hands) == "Ann"
    with pytest.raises(PermissionDenied, match="not the credential"):
        prove(settings, "Ann", {}, tool="review", now=hands)
    with pytest.raises(PermissionDenied, match="next may be tried"):
        prove(settings, "Ann", {}, tool="review", now=hands)
    assert len(read_reviewers(reviewer_path(root)).failures) == 10


def test_failures_of_an_hour_ago_are_forgotten_and_a_clock_set_back_locks_nobody_out(
    settings: Settings, ann: str, typed: list[str], hands: Hands
) -> None:
    typed += ["wrong"] * 10
    for _ in range(9):
        with pytest.raises(PermissionDenied):
            prove(settings, "Ann", {}, tool="review", now=hands)
    hands.seconds += 3_601
    with pytest.raises(PermissionDenied, match="not the credential"):
        prove(settings, "Ann", {}, tool="review", now=hands)
    typed += [PHRASE] + ["wrong"] * 9 + [PHRASE]
    assert prove(settings, "Ann", {}, tool="review", now=hands) == "Ann"
    for _ in range(9):
        with pytest.raises(PermissionDenied):
            prove(settings, "Ann", {}, tool="review", now=hands)
    hands.seconds -= 86_400
    assert prove(settings, "Ann", {}, tool="review", now=hands) == "Ann"


def test_with_several_reviewers_and_a_passphrase_one_says_who_one_is(
    settings: Settings, root: Path, ann: str, typed: list[str]
) -> None:
    add_passphrase(reviewer_path(root), "Bob", OTHER)
    with pytest.raises(ConfigError, match="several reviewers"):
        prove(settings, None, {}, tool="review")
    typed += [OTHER, PHRASE]
    assert prove(settings, "Bob", {}, tool="review") == "Bob"
    with pytest.raises(PermissionDenied):
        prove(settings, "Bob", {}, tool="review")


def test_without_reviewers_or_without_a_terminal_the_next_step_is_named(
    settings: Settings, root: Path
) -> None:
    with pytest.raises(PermissionDenied) as nobody:
        reviewer_caller(settings, None, {VARIABLE: "dbr_x"}, tool="review")
    assert "reviewer add NAME" in (nobody.value.hint or "")
    add_passphrase(reviewer_path(root), "Ann", PHRASE)
    with pytest.raises(ConfigError) as nowhere:
        reviewer_caller(settings, None, {}, tool="review")
    assert VARIABLE in (nowhere.value.hint or "")


def test_a_file_open_to_others_proves_nobody(settings: Settings, root: Path, ann: str) -> None:
    reviewer_path(root).chmod(0o644)
    with pytest.raises(StoreError, match="nobody can review"):
        reviewer_caller(settings, None, {VARIABLE: ann}, tool="review")


def test_an_agents_bearer_token_is_no_reviewers_and_a_reviewers_no_agents(
    settings: Settings, root: Path, ann: str
) -> None:
    bearer = new_token(token_path(root), "trader").token
    with pytest.raises(PermissionDenied):
        reviewer_caller(settings, None, {VARIABLE: bearer}, tool="review")
    known = Tokens(token_path(root), agents_of(settings), {})
    assert isinstance(known.check(ann), TokenFault)


def test_a_token_is_no_passphrase(run: Run, root: Path, config: Path, tmp_path: Path) -> None:
    config.write_text(f'{config.read_text()}[agents.b]\nprofile = "trader"\ntoken_env = "B_TOKEN"\n')
    bearer = new_token(token_path(root), "trader").token
    secret = tmp_path / "phrase"
    for words in (bearer, add_token(reviewer_path(tmp_path / "elsewhere"), "Zoe"), "a-token-of-the-agent"):
        secret.write_text(words)
        secret.chmod(0o600)
        ran = run("reviewer", "add", "Ann", "--passphrase-file", str(secret), B_TOKEN="a-token-of-the-agent")
        assert ran.code == 2
        assert words not in ran.err
    assert not reviewer_path(root).exists()


@pytest.mark.parametrize("words", [("--agent", "trader"), ("--transport", "http", "--port", "0")])
def test_no_server_starts_with_a_reviewers_token_in_its_environment(
    root: Path, config: Path, ann: str, bare_environ: dict[str, str], words: tuple[str, ...]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "server", "serve", *words, "--config", str(config), "--root", str(root)],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd="/", timeout=GUARD,
        env=bare_environ | {VARIABLE: ann},
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    assert VARIABLE in ran.stderr
    assert ann not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_agents_variable_that_holds_a_reviewers_token_stops_the_server(
    root: Path, config: Path, ann: str
) -> None:
    config.write_text(f'{config.read_text()}[agents.b]\nprofile = "trader"\ntoken_env = "B_TOKEN"\n')
    changed = load_settings(config=config, flags={"root": str(root)}, environ={})
    with pytest.raises(ConfigError, match="B_TOKEN"):
        refuse_in_server(changed, {"B_TOKEN": ann})
    refuse_in_server(changed, {"B_TOKEN": "something-else-altogether"})


@pytest.mark.parametrize("command", [["reviewer", "add"], ["reviewer", "list"], ["reviewer", "remove"]])
def test_every_option_has_help(run: Run, command: list[str]) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0
    options = [line for line in ran.out.splitlines() if line.strip().startswith("--")]
    assert options
    for line in options:
        assert len(line.split(maxsplit=1)) == 2, line


def test_a_listing_of_nobody_makes_no_folder(run: Run, root: Path) -> None:
    ran = run("reviewer", "list")
    assert ran.code == 0
    assert "no reviewers" in ran.out
    assert not os.path.lexists(root)
