"""deskbook prove: one entry under a signed note, and the script that checks it without Deskbook."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Caller
from store.commands import OpenThesis, Remember, UpdateThesis
from store.entry import HASHED
from store.paths import ledger_path
from store.proofs import check_proof

if TYPE_CHECKING:
    from conftest import Attacker, Ran, Run

More = Callable[..., None]
HOSTILE = '\x1b]0;owned\x07\x9b31m\u202eevil\u2066\r\n\x7f\u200bline\U000e0041\u2028end "quoted" é 目标价 🙂'
DRIVES = "\x1b\x07\x9b\u202e\u2066\x7f\u200b\U000e0041\u2028\r"


def alone(proof: Path, key: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The script as a stranger runs it: no Deskbook on the path, nothing of the user's environment."""
    return subprocess.run(
        [sys.executable, "-I", "-W", "error", str(proof.with_name("check_proof.py")), str(proof), "--key", str(key)],
        cwd=cwd, env={}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def tlog(ran: Ran) -> list[str]:
    return list(json.loads(ran.out)["tlog_proof"])


def test_a_proof_says_readably_what_was_stored_and_is_a_tlog_proof(
    run: Run, signed: Path, root: Path
) -> None:
    done = run("prove", 6)
    assert (done.code, done.err) == (0, "")
    proof = json.loads(done.out)
    assert list(proof["entry"]) == list(HASHED)
    assert proof["entry"]["sequence"] == 6
    assert proof["times"]["recorded_at"].endswith("Z")
    assert proof["content"] == json.loads(proof["content_as_hashed"])
    assert "note 3 of default – held, 目标价 95" in done.out
    assert proof["tlog_proof"][:2] == ["c2sp.org/tlog-proof@v1", "index 5"]
    gap = proof["tlog_proof"].index("")
    assert "\n".join(proof["tlog_proof"][gap + 1 :]) + "\n" == signed.read_text()


def test_the_script_beside_a_proof_checks_it_without_deskbook(
    run: Run, signed: Path, keys: Path, tmp_path: Path
) -> None:
    out = tmp_path / "far" / "entry.proof.json"
    assert run("prove", 6, "--out", out, "--with-checker").code == 0
    assert {path.name for path in out.parent.iterdir()} == {"entry.proof.json", "check_proof.py"}
    done = alone(out, keys / "deskbook.pub", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "It is number 6 of 42 under a note of deskbook/store_" in done.stdout
    assert "agent 'ann'" in done.stdout
    out.write_text(out.read_text().replace('"agent": "ann"', '"agent": "eve"'))
    done = alone(out, (keys / "deskbook.pub").read_text().strip(), tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "does not hold" in done.stdout


def test_the_script_needs_nothing_but_the_standard_library_and_cryptography() -> None:
    source = Path(check_proof.__file__).read_text()
    imported = {
        line.split()[1].partition(".")[0]
        for line in source.splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported - sys.stdlib_module_names == {"cryptography"}
    assert len(source.splitlines()) < 160


@pytest.fixture
def thesis(root: Path) -> Any:
    """A thesis with two versions, and a note of hostile text."""
    book = Book.open(root, "default", durability="normal")
    who = Caller("ann", "solo", "ses-9", "tool")
    opened = book.execute(who, OpenThesis(text="held", symbol="AAPL"))
    book.execute(who, UpdateThesis(thesis_id=opened.id, text="held on"))
    hostile = book.execute(who, Remember(text=HOSTILE))
    book.close()
    return opened, hostile


def test_of_several_entries_one_must_be_chosen(run: Run, signed: Path, thesis: Any) -> None:
    opened, _ = thesis
    done = run("prove", opened.id)
    assert (done.code, done.out) == (2, "")
    assert "2 entries are about" in done.err
    assert "thesis.opened" in done.err
    assert "--entry" in done.err
    chosen = run("prove", opened.id, "--entry", opened.sequence + 1)
    assert json.loads(chosen.out)["content"]["text"] == "held on"
    assert run("prove", opened.id, "--entry", 3).code == 2


@pytest.mark.parametrize("by", ["event_id", "sequence", "id"])
def test_an_entry_is_named_by_event_sequence_or_subject(run: Run, signed: Path, thesis: Any, by: str) -> None:
    hostile = thesis[1]
    done = run("prove", getattr(hostile, by))
    assert json.loads(done.out)["entry"]["event_id"] == hostile.event_id
    assert json.loads(done.out)["content"]["text"] == HOSTILE


def test_hostile_text_drives_no_terminal_and_still_proves(
    run: Run, signed: Path, thesis: Any, keys: Path, tmp_path: Path
) -> None:
    out = tmp_path / "p.json"
    done = run("prove", thesis[1].id, "--out", out, "--with-checker")
    text = out.read_text(encoding="utf-8")
    assert not any(character in text + done.out for character in DRIVES)
    assert "é 目标价 🙂" in text
    checked = alone(out, keys / "deskbook.pub", tmp_path)
    assert checked.returncode == 0
    assert not any(character in checked.stdout for character in DRIVES)


@pytest.mark.parametrize("name", ["999", "0", "ev_0000000000000", "mem_none", "", "-", "9" * 30, "٣"])
def test_what_is_not_there_is_exit_1(run: Run, signed: Path, name: str) -> None:
    done = run("prove", name)
    assert (done.code, done.out) == (1, "")


def test_the_newest_note_serves_when_it_covers_the_entry_else_one_is_signed(
    run: Run, signed: Path, root: Path, more: More, keys: Path
) -> None:
    more(root, 5)
    assert tlog(run("prove", 42))[-4] == "42"
    assert len(list(keys.glob("notes/*/*.note"))) == 1
    assert tlog(run("prove", 43))[-4] == "47"
    assert len(list(keys.glob("notes/*/*.note"))) == 2
    assert tlog(run("prove", 42, "--checkpoint", signed))[-4] == "42"
    done = run("prove", 43, "--checkpoint", signed)
    assert done.code == 1
    assert "covers 42 entries" in done.err


def test_a_note_that_was_named_is_checked_with_the_key_that_is_named(
    run: Run, signed: Path, keys: Path, tmp_path: Path
) -> None:
    public = (keys / "deskbook.pub").read_text().strip()
    for path in keys.glob("deskbook.*"):
        path.unlink()
    assert run("prove", 5, "--checkpoint", signed).code == 2
    assert run("prove", 5, "--checkpoint", signed, "--checkpoint-key", public).code == 0
    assert run("prove", 5).code == 2
    signed.write_text(signed.read_text().replace("\n42\n", "\n41\n"))
    assert run("prove", 5, "--checkpoint", signed, "--checkpoint-key", public).code == 2


def test_a_note_of_another_ledger_is_refused(run: Run, signed: Path, root: Path, more: More) -> None:
    more(root, 50, "other")
    done = run("prove", 5, "--checkpoint", signed, "--strategy", "other")
    assert done.code == 1
    assert "this ledger is" in done.err


def test_an_altered_ledger_is_not_proven(run: Run, signed: Path, attacker: Attacker) -> None:
    attacker.say_otherwise(9)
    for sequence in (5, 9):
        done = run("prove", sequence)
        assert (done.code, done.out) == (1, "")
        assert "does not hold what deskbook signed" in done.err


def test_a_column_altered_alone_is_not_proven(run: Run, signed: Path, attacker: Attacker) -> None:
    attacker.raw("UPDATE memory_events SET agent = 'eve' WHERE sequence = 5")
    assert run("prove", 5).code == 1
    attacker.raw('UPDATE memory_events SET content = \'{"text":"x"}\' WHERE sequence = 7')
    done = run("prove", 7)
    assert done.code == 1
    assert "not sound" in done.err


def test_a_cut_ledger_is_not_proven(run: Run, signed: Path, attacker: Attacker) -> None:
    attacker.cut(2)
    done = run("prove", 5, "--checkpoint", signed)
    assert done.code == 1
    assert "the ledger has 40" in done.err


def test_a_run_is_proven_as_a_run(
    run: Run, signed: Path, root: Path, more: More, tmp_path: Path, keys: Path
) -> None:
    more(root, 8, "default", "march")
    out = tmp_path / "p.json"
    assert run("prove", 4, "--run", "march", "--out", out, "--with-checker").code == 0
    assert "run 'march'" in alone(out, keys / "deskbook.pub", tmp_path).stdout


def test_a_store_that_cannot_be_written_is_proven_all_the_same(run: Run, signed: Path, root: Path) -> None:
    folder = ledger_path(root, "default", None).parent
    (folder / "tree.cache").unlink()
    (folder / "tree.cache").mkdir()
    assert run("prove", 5).code == 0


def test_the_script_goes_with_a_file(run: Run, signed: Path) -> None:
    done = run("prove", 5, "--with-checker")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize("command", ["checkpoint", "prove", "verify"])
def test_every_option_says_what_it_is_for(run: Run, command: str) -> None:
    done = run(command, "--help")
    options = [line.split(maxsplit=1) for line in done.out.splitlines() if line.strip().startswith("--")]
    assert done.code == 0
    assert all(len(parts) == 2 for parts in options)


def test_the_page_says_from_which_size_on_only_what_is_new_is_checked() -> None:
    from store.proofs.signing import FULL_CHECK_ENTRIES

    page = Path(__file__).resolve().parents[2] / "docs" / "checkpoints.md"
    words = " ".join(page.read_text(encoding="utf-8").split())
    assert f"With more than {FULL_CHECK_ENTRIES:,} entries and an earlier note" in words
