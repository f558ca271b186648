"""`deskbook redact`, from the question to the restored backup, with a reviewer's credential and no other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from store import Book
from store.audit import verify
from store.paths import ledger_path

SECRET = "Quorvex pays 100 a month for it"
Run = Callable[..., Any]


def redacted(run: Run, name: str, *more: object) -> Any:
    return run("redact", name, "--reason", "by mistake", "--yes", *more)


def test_it_says_what_goes_takes_it_away_and_says_what_was_done(
    run: Run, noted: tuple[str, int], root: Path, traced: Any
) -> None:
    done = redacted(run, noted[0])
    assert (done.code, done.err) == (0, "")
    assert "of 2 entries the content goes:" in done.out
    assert "1  memory.recorded" in done.out
    assert "took the content of 2 entries away" in done.out
    assert "no trace remains" in done.out
    assert traced(root, "Quorvex", "quorvextag") == []
    assert run("verify").code == 0
    shown = run("show", noted[0])
    assert "memory.redacted" in shown.out
    assert "by mistake" in shown.out
    again = redacted(run, noted[0])
    assert again.code == 0
    assert again.out.startswith("Nothing of it has its content any more.\nits traces were purged again\n")
    assert "who else quotes it was not looked for" in again.out


def test_checkpoints_and_proofs_from_before_hold_and_new_ones_say_that_it_is_gone(
    run: Run, noted: tuple[str, int], home: Path, tmp_path: Path
) -> None:
    assert run("checkpoint", "--new-key").code == 0
    note, old = tmp_path / "desk.note", tmp_path / "old" / "entry.json"
    old.parent.mkdir()
    assert run("checkpoint", "--to", note).code == 0
    assert run("prove", noted[1], "--out", old, "--with-checker").code == 0
    assert redacted(run, noted[0]).code == 0
    checked = run("verify", "--checkpoint", note)
    assert checked.code == 0, checked.out
    assert _alone(old, home).returncode == 0
    assert "what was stored" in _alone(old, home).stdout
    new = tmp_path / "new" / "entry.json"
    new.parent.mkdir()
    done = run("prove", noted[1], "--checkpoint", note, "--out", new, "--with-checker")
    assert done.code == 0, done.err
    told = json.loads(new.read_text())
    assert (told["content"], told["content_as_hashed"], told["content_salt"]) == (None, None, None)
    assert told["entry"]["content_sha256"] == json.loads(old.read_text())["entry"]["content_sha256"]
    said = _alone(new, home)
    assert (said.returncode, said.stderr) == (0, "")
    assert "taken away" in said.stdout
    assert run("checkpoint").code == 0


def _alone(proof: Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(proof.with_name("check_proof.py")), str(proof)]
    return subprocess.run(
        [*command, "--key", str(home / "deskbook.pub")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_an_older_backup_is_restored_without_what_was_redacted_since(
    run: Run, noted: tuple[str, int], root: Path, tmp_path: Path, traced: Any
) -> None:
    kept = tmp_path / "backups" / "old.sqlite"
    kept.parent.mkdir()
    assert run("backup", kept).code == 0
    assert redacted(run, noted[0]).code == 0
    elsewhere = tmp_path / "elsewhere"
    done = run("restore", kept, on=elsewhere)
    assert done.code == 0, done.err
    assert "took the content of 2 entries away again" in done.out
    told = json.loads((kept.parent / "old.sqlite.json").read_text())["portrait"]
    head = verify(ledger_path(elsewhere, "default", None), "default", None)
    backed_up, _, now = done.out.splitlines()[1:]
    assert backed_up.startswith(f"the backup: {told['sequence']} entries; head, counts and ")
    assert backed_up.endswith(f"chain {told['chain']}")
    assert now.startswith(f"the ledger now: {head.entries} entries; chain ")
    assert head.entries > told["sequence"]
    with closing(Book.open(elsewhere, "default")) as book:
        assert now.endswith(f"; chain {book.head().chain_sha256.hex()}")
    assert traced(elsewhere, "Quorvex", "quorvextag") == []
    path = ledger_path(elsewhere, "default", None)
    assert [file.name for file in path.parent.iterdir() if "restoring" in file.name] == []
    assert verify(path, "default", None).findings == ()
    with closing(apsw.Connection(str(path))) as connection:
        agent, content = connection.execute(
            "SELECT agent, content FROM memory_events WHERE event_type = 'memory.redacted'"
        ).fetchone()
    told = json.loads(content)
    assert (agent, told["again"], told["by"], told["reason"]) == ("deskbook", True, "Rita", "by mistake")
    assert "REMAINS" not in run("restore", kept, "--force").out
    assert traced(root, "Quorvex", "quorvextag") == []
    assert run("verify").code == 0


def test_status_says_how_many_entries_are_redacted(run: Run, noted: tuple[str, int]) -> None:
    assert json.loads(run("status", "--json").out)["redacted"] == 0
    assert redacted(run, noted[0]).code == 0
    assert json.loads(run("status", "--json").out)["redacted"] == 2
    assert re.search(r"^redacted +2$", run("status").out, re.MULTILINE)


def test_a_ledger_moved_aside_that_holds_it_still_is_told_with_what_to_do_and_exit_1(
    run: Run, noted: tuple[str, int], tmp_path: Path, traced: Any
) -> None:
    kept, elsewhere = tmp_path / "old.sqlite", tmp_path / "elsewhere"
    assert run("backup", kept).code == 0
    assert run("restore", kept, on=elsewhere).code == 0
    assert redacted(run, noted[0]).code == 0
    done = run("restore", kept, "--force", on=elsewhere)
    assert done.code == 1
    assert "restored " in done.out
    assert "REMAINS: memory.sqlite.replaced-1" in done.out
    assert done.out.splitlines()[-1].startswith("  Delete memory.sqlite.replaced-1")
    path = ledger_path(elsewhere, "default", None)
    path.with_name("memory.sqlite.replaced-1").unlink()
    assert traced(elsewhere, "Quorvex", "quorvextag") == []
    assert verify(path, "default", None).findings == ()


def test_a_backup_of_later_is_restored_as_it_is(run: Run, noted: tuple[str, int], tmp_path: Path) -> None:
    assert redacted(run, noted[0]).code == 0
    kept = tmp_path / "new.sqlite"
    assert run("backup", kept).code == 0
    done = run("restore", kept, on=tmp_path / "elsewhere")
    assert done.code == 0, done.err
    assert "again" not in done.out
    assert ledger_path(tmp_path / "elsewhere", "default", None).read_bytes() == kept.read_bytes()


def test_a_register_that_is_damaged_keeps_a_backup_from_being_restored(
    run: Run, noted: tuple[str, int], home: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "old.sqlite"
    assert run("backup", kept).code == 0
    assert redacted(run, noted[0]).code == 0
    (register,) = (home / "redactions").glob("*.jsonl")
    register.write_text("{}\n" + register.read_text())
    done = run("restore", kept, on=tmp_path / "elsewhere")
    assert done.code == 1
    assert "register" in done.err
    assert not ledger_path(tmp_path / "elsewhere", "default", None).exists()


def test_an_export_from_before_is_imported_without_what_was_redacted_since(
    run: Run, noted: tuple[str, int], tmp_path: Path, traced: Any
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    assert run("export", "--format", "jsonl", before).code == 0
    assert redacted(run, noted[0]).code == 0
    assert run("export", "--format", "jsonl", after).code == 0
    assert traced(after, "Quorvex") == []
    for name, source in (("one", before), ("two", after)):
        (file,) = source.glob("*.jsonl")
        done = run("import", "jsonl", file, on=tmp_path / name)
        assert done.code == 0, done.err
        assert traced(tmp_path / name, "Quorvex", "quorvextag") == []
        assert verify(ledger_path(tmp_path / name, "default", None), "default", None).findings == ()


def test_an_export_whose_content_is_back_or_blank_without_a_reason_is_refused(
    run: Run, noted: tuple[str, int], tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    assert run("export", "--format", "jsonl", before).code == 0
    assert redacted(run, noted[0]).code == 0
    assert run("export", "--format", "jsonl", after).code == 0
    (old,), (new,) = before.glob("*.jsonl"), after.glob("*.jsonl")
    lines, known = new.read_bytes().splitlines(keepends=True), old.read_bytes().splitlines(keepends=True)
    back = lines.copy()
    back[noted[1]] = known[noted[1]]
    blank = known.copy()
    blank[noted[1]] = lines[noted[1]]
    for number, (changed, said) in enumerate(((back, "content is back"), (blank, "no redaction after it"))):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(b"".join(changed))
        done = run("import", "jsonl", file, on=tmp_path / "new")
        assert done.code == 1
        assert said in done.err


def test_a_copy_as_of_then_holds_what_stays(
    run: Run, noted: tuple[str, int], root: Path, tmp_path: Path, traced: Any
) -> None:
    with closing(Book.open(root, "default")) as book:
        at = book.head().effective_at
    assert redacted(run, noted[0]).code == 0
    target = tmp_path / "then" / "copy.sqlite"
    target.parent.mkdir()
    with closing(Book.open(root, "default")) as book:
        book.write_as_of(at, target)
    assert traced(target.parent, "Quorvex") == []
    with closing(apsw.Connection(str(target))) as connection:
        (text,) = connection.execute(
            "SELECT text FROM memory_versions WHERE memory_id = ?", (noted[0],)
        ).fetchone()
    assert text == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--reason", "r"), 2, "asked about in a terminal"),
        (("--yes",), 2, "needs a reason"),
        (("--reason", f"it says {SECRET}", "--yes"), 2, "says what is to be taken away"),
        (("--reason", "the name quorvex", "--yes"), 2, "its word 3, which seems to be a name"),
        (("--reason", "r", "--yes", "--past-retention"), 2, "kept forever"),
    ],
)
def test_what_is_not_to_be_done_is_refused(
    run: Run, noted: tuple[str, int], root: Path, traced: Any, words: tuple[str, ...], code: int, said: str
) -> None:
    done = run("redact", noted[0], *words)
    assert done.code == code
    assert said in done.err
    assert traced(root, SECRET) != []


def test_without_a_credential_nothing_goes(run: Run, noted: tuple[str, int], root: Path, traced: Any) -> None:
    done = run("redact", noted[0], "--reason", "r", "--yes", as_rita=False)
    assert done.code != 0
    assert "passphrase" in done.err
    assert traced(root, SECRET) != []


def test_a_hold_wins_and_retention_takes_what_is_old_and_not_needed(
    run: Run, noted: tuple[str, int], root: Path, tmp_path: Path, traced: Any
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text('[retention]\nkeep = "30d"\nlegal_hold = true\n[agents.ann]\nprofile = "solo"\n')
    held = redacted(run, noted[0], "--config", config)
    assert held.code == 1
    assert "legal hold" in held.err
    assert traced(root, SECRET) != []
    config.write_text('[retention]\nkeep = "30d"\n[agents.ann]\nprofile = "solo"\n')
    done = run("redact", "--past-retention", "--reason", "their time", "--yes", "--config", config)
    assert done.code == 0, done.err
    assert traced(root, SECRET) != [], "it is not old"


def test_a_text_comes_from_a_file_and_stays_out_of_the_command_line(
    run: Run, noted: tuple[str, int], root: Path, tmp_path: Path, traced: Any
) -> None:
    file = tmp_path / "what.txt"
    file.write_text("Quorvex\n")
    done = run("redact", "--containing-file", file, "--reason", "a name", "--yes", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["redacted"][0]["entries"] == 2
    assert told["remains"] == []
    assert traced(root, "Quorvex") == []
