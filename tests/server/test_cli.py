"""The deskbook command: every command and option, exit codes, output that parses, and no ledger made by reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from server import cli
from store import Book, Caller, Filter, SearchRequest
from store.commands import NoteRisk, OpenThesis, Remember

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\r\n\x7f\u200bfake line\U000e0041\u2028end"
DRIVES = "\x1b\x07\x9b\u202e\u2066\x7f\u200b\U000e0041\u2028\x00"
READING = (["status"], ["verify"], ["rebuild"], ["log"], ["show", "mem_none"])


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    def json_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line, parse_constant=pytest.fail) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process on the test's root."""

    def start(*words: str, on_root: bool = True) -> Ran:
        monkeypatch.setattr("sys.argv", ["deskbook", *words, *(["--root", str(root)] if on_root else [])])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        code = end.value.code
        return Ran(code if isinstance(code, int) else 0, said.out, said.err)

    return start


@pytest.fixture
def ids(root: Path) -> dict[str, str]:
    """A ledger with a little of everything, hostile text included; ids by name."""
    book = Book.open(root, "default")
    trader = Caller("trader", "trader", "ses-1", "remember")
    other = Caller("researcher", "researcher", "ses-2", "remember_risk_note")
    note = book.execute(trader, Remember(text=HOSTILE, symbol="AAPL", category=HOSTILE[:20]))
    risk = book.execute(other, NoteRisk(text="margins", symbol="MSFT"))
    thesis = book.execute(trader, OpenThesis(text="held", symbol="AAPL", target=HOSTILE[:40]))
    found = book.search(other, SearchRequest(query=HOSTILE + " margins", conditions=Filter()))
    book.get(other, note.id)
    book.note_denied(other, "open_thesis")
    book.close()
    return {"note": note.id, "risk": risk.id, "thesis": thesis.id, "search": found.body["retrieval_id"],
            "event": note.event_id}  # fmt: skip


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_reading_command_never_makes_a_ledger(run: Run, root: Path, words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == (0 if words == ["status"] else 1)
    assert not root.exists()
    assert "Traceback" not in ran.err
    if words != ["status"]:
        assert ran.out == ""
        assert str(root) in ran.err


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"]])
def test_the_command_tells_of_itself(run: Run, words: list[str]) -> None:
    ran = run(*words, on_root=False)
    assert ran.code in (0, 2)
    assert "deskbook" in (ran.out + ran.err).lower()


@pytest.mark.parametrize(
    "command",
    ["init", "install", "uninstall", "serve", "status", "verify", "rebuild", "show", "log", "demo"],
)
def test_every_command_has_help_for_every_option(run: Run, command: str) -> None:
    ran = run(command, "--help", on_root=False)
    assert ran.code == 0
    options = [line for line in ran.out.splitlines() if line.strip().startswith("--")]
    assert options
    for line in options:
        assert len(line.split(maxsplit=1)) == 2, line


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"], ["status", "--no-such-option"], ["show"], ["log", "--limit", "0"],
        ["log", "--limit", "x"], ["log", "--since", "yesterday"], ["log", "--until", "2026-03-02T10:00:00"],
        ["log", "--symbol", "A\u200b"], ["log", "--kind", "lessons"], ["log", "--event", "memory.stored"],
        ["demo", "--days", "0"], ["status", "--config", "/nowhere/desk.toml"], ["status", "--strategy", ""],
        ["status", "--run", "a\nb"],
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_and_says_what_is_wrong(run: Run, ids: dict[str, str], words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.strip()
    assert "Traceback" not in ran.err


def test_init_writes_a_config_once_and_says_what_next(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "desk.toml"
    ran = run("init", "--config", str(target), on_root=False)
    assert ran.code == 0
    assert "deskbook" in ran.out
    assert str(target) in ran.out
    assert "[agents.trader]" in target.read_text()
    target.write_text("# mine")
    again = run("init", "--config", str(target), on_root=False)
    assert again.code == 2
    assert target.read_text() == "# mine"
    assert "--force" in again.err
    assert run("init", "--config", str(target), "--force", on_root=False).code == 0
    assert target.read_text() != "# mine"
    assert run("status", "--config", str(target)).code == 0


def test_status_tells_where_the_ledger_lies_before_and_after_it_is_made(
    run: Run, root: Path, request: pytest.FixtureRequest
) -> None:
    (told,) = run("status", "--json").json_lines()
    assert (told["root"], told["strategy"], told["run"]) == (str(root), "default", None)
    assert "none yet" in told["ledger"]
    request.getfixturevalue("ids")
    (told,) = run("status", "--json").json_lines()
    assert told["path"] == str(root / "default" / "memory.sqlite")
    assert (told["memories"], told["problem"], told["writable"]) == (3, None, True)
    ran = run("status")
    assert ran.code == 0
    assert str(root / "default") in ran.out
    elsewhere = run("status", "--json", "--strategy", "a/b", "--run", "日本").json_lines()[0]
    assert Path(elsewhere["path"]).is_relative_to(root)
    assert elsewhere["run"] == "日本"


def test_verify_exits_0_when_sound_and_1_naming_the_first_bad_sequence(
    run: Run, root: Path, ids: dict[str, str]
) -> None:
    ran = run("verify")
    assert (ran.code, ran.out.startswith("sound: ")) == (0, True)
    (told,) = run("verify", "--json").json_lines()
    assert told["sound"] is True
    connection = apsw.Connection(str(root / "default" / "memory.sqlite"))
    for trigger, _ in list(
        connection.execute(
            "SELECT name, 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memory_events'"
        )
    ):
        connection.execute(f'DROP TRIGGER "{trigger}"')
    connection.execute("UPDATE memory_events SET agent = ? WHERE sequence = 3", ("\x1b[31mmallory",))
    connection.close()
    ran = run("verify")
    assert ran.code == 1
    assert "sequence 3" in ran.out
    assert "NOT SOUND" in ran.out
    assert not set(DRIVES) & set(ran.out)
    (told,) = run("verify", "--json").json_lines()
    assert told["sound"] is False
    assert min(finding["sequence"] for finding in told["findings"] if finding["sequence"]) == 3
    assert not set(DRIVES) & set(run("log").out)


def test_rebuild_makes_the_projections_anew(run: Run, ids: dict[str, str]) -> None:
    ran = run("rebuild")
    assert ran.code == 0
    assert "3 memories" in ran.out
    assert run("verify").code == 0


def test_log_prints_the_newest_last_and_can_be_cut_by_every_filter(run: Run, ids: dict[str, str]) -> None:
    everything = run("log", "--json").json_lines()
    sequences = [entry["sequence"] for entry in everything]
    assert sequences == list(range(1, len(sequences) + 1))
    for words, keeps in (
        (["--agent", "researcher"], lambda entry: entry["agent"] == "researcher"),
        (["--event", "memory.retrieved"], lambda entry: entry["event_type"] == "memory.retrieved"),
        (["--kind", "thesis"], lambda entry: entry["kind"] == "thesis"),
        (["--symbol", " aapl "], lambda entry: entry["symbol"] == "AAPL"),
        (["--session", "ses-1"], lambda entry: entry["session_id"] == "ses-1"),
        (["--since", "2000-01-01T00:00:00Z"], lambda entry: True),
        (["--until", "2000-01-01T00:00:00Z"], lambda entry: False),
        (
            ["--since", everything[3]["effective_at"]],
            lambda e: e["effective_at"] >= everything[3]["effective_at"],
        ),
        (
            ["--until", everything[3]["effective_at"]],
            lambda e: e["effective_at"] <= everything[3]["effective_at"],
        ),
        (
            ["--agent", "trader", "--symbol", "AAPL"],
            lambda e: (e["agent"], e["symbol"]) == ("trader", "AAPL"),
        ),
    ):
        ran = run("log", "--json", *words)
        assert ran.code == 0
        assert ran.json_lines() == [entry for entry in everything if keeps(entry)], words
    assert [entry["sequence"] for entry in run("log", "--json", "--limit", "2").json_lines()] == sequences[
        -2:
    ]
    lines = run("log").out.splitlines()
    assert len(lines) == len(everything)
    assert lines[0].split()[0] == "1"


@pytest.mark.parametrize("name", ["note", "risk", "thesis", "search", "event"])
def test_show_prints_every_entry_about_an_id(run: Run, ids: dict[str, str], name: str) -> None:
    ran = run("show", ids[name])
    assert ran.code == 0
    entries = run("show", ids[name], "--json").json_lines()
    assert entries
    assert all(ids[name] in (entry["subject_id"], entry["event_id"]) for entry in entries)


@pytest.mark.parametrize(
    "words", [["log"], ["log", "--json"], ["show"], ["show", "--json"], ["status"]], ids=" ".join
)
def test_hostile_text_cannot_drive_the_terminal(run: Run, ids: dict[str, str], words: list[str]) -> None:
    for name in ids.values():
        ran = run(*words, *([name] if words[0] == "show" else []))
        assert ran.code == 0
        assert not set(DRIVES) & set(ran.out)
        assert "\r" not in ran.out
        if words == ["log"]:
            assert not [line for line in ran.out.splitlines() if line.startswith("fake line")]
        if "--json" in words:
            texts = [entry["content"].get("text") for entry in ran.json_lines()]
            assert name not in (ids["note"], ids["event"]) or HOSTILE in texts


def test_an_unknown_id_exits_1_and_cannot_drive_the_terminal_either(run: Run, ids: dict[str, str]) -> None:
    ran = run("show", "\x1b[2Jnothing")
    assert ran.code == 1
    assert "Nothing in this ledger" in ran.err
    assert not set(DRIVES) & set(ran.err)


def test_a_foreign_file_is_refused_by_every_command_untouched_and_named(run: Run, root: Path) -> None:
    path = root / "default" / "memory.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a ledger" * 1000)
    before = path.read_bytes()
    for words in READING:
        ran = run(*words)
        assert ran.code == 1, words
        assert "Traceback" not in ran.err
        assert str(path) in ran.err + ran.out, words
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", ["not json", "[]", "{}", '{"text":5}', "null", '{"count":"x"}', "\x1b[2J"]
)
def test_a_tampered_entry_can_still_be_looked_at(
    run: Run, root: Path, ids: dict[str, str], content: str
) -> None:
    connection = apsw.Connection(str(root / "default" / "memory.sqlite"))
    for (trigger,) in list(
        connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memory_events'"
        )
    ):
        connection.execute(f'DROP TRIGGER "{trigger}"')
    connection.execute("UPDATE memory_events SET content = ? WHERE sequence > 1", (content,))
    connection.close()
    assert run("verify").code == 1
    for words in (["log"], ["log", "--json"], ["show", ids["search"]], ["show", ids["note"], "--json"]):
        ran = run(*words)
        assert ran.code == 0
        assert not set(DRIVES) & set(ran.out)
        assert ran.out
