"""Tamper, cut, rewrite, transplant: a ledger that is sound in itself and not what was signed is found out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store.audit import verify
from store.paths import ledger_path

if TYPE_CHECKING:
    from conftest import Attacker, Run

More = Callable[..., None]
NOT_SIGNED = "Nothing was signed."


def kept(keys: Path) -> set[str]:
    return {path.name for path in keys.glob("notes/*/*.note")}


def test_an_honest_ledger_that_grew_holds_every_note(run: Run, signed: Path, root: Path, more: More) -> None:
    more(root, 5)
    later = signed.with_name("later.note")
    later.write_text(run("checkpoint").out)
    done = run("verify", "--checkpoint", signed, "--checkpoint", later)
    assert done.code == 0
    assert done.out.splitlines()[1:] == [
        f"checkpoint {signed}: begins with the 42 entries that deskbook signed",
        f"checkpoint {later}: begins with the 47 entries that deskbook signed",
    ]


def test_a_cut_tail_is_found_with_a_note_and_not_without(run: Run, signed: Path, attacker: Attacker) -> None:
    """P203."""
    attacker.cut(4)
    assert verify(attacker.path, "default", None).sound
    assert run("verify").code == 0
    done = run("verify", "--checkpoint", signed)
    assert done.code == 1
    assert "a tail of 4 entries was cut off: deskbook signed 42, and 38 are here" in done.out
    told = json.loads(run("verify", "--json", "--checkpoint", signed).out)
    assert (told["sound"], told["entries"], told["checkpoints"][0]["size"]) == (False, 38, 42)
    assert "cut off" in told["checkpoints"][0]["fault"]
    assert told["findings"] == [{"sequence": None, "what": told["checkpoints"][0]["fault"], "derived": False}]


def test_a_cut_tail_is_not_signed_again(run: Run, signed: Path, attacker: Attacker, keys: Path) -> None:
    attacker.cut(4)
    done = run("checkpoint")
    assert (done.code, done.out) == (1, "")
    assert "signed 42 entries" in done.err
    assert "4 were cut off" in done.err
    assert NOT_SIGNED in done.err
    assert kept(keys) == {"42.note"}


def test_a_tail_that_was_cut_and_grown_again_is_found(
    run: Run, signed: Path, attacker: Attacker, root: Path, more: More, keys: Path
) -> None:
    attacker.cut(4)
    more(root, 9)
    assert verify(attacker.path, "default", None).sound
    assert "rewritten: entries 1 to 42 are not" in run("verify", "--checkpoint", signed).out
    done = run("checkpoint")
    assert done.code == 1
    assert "not a continuation" in done.err
    assert kept(keys) == {"42.note"}


@pytest.mark.parametrize("sequence", [3, 20, 42])
def test_a_rewritten_ledger_is_found_and_the_notes_say_where(
    run: Run, signed: Path, root: Path, more: More, attacker: Attacker, keys: Path, sequence: int
) -> None:
    notes = [signed]
    for number in range(3):
        more(root, 4)
        notes.append(signed.with_name(f"{number}.note"))
        notes[-1].write_text(run("checkpoint").out)
    attacker.say_otherwise(sequence)
    assert verify(attacker.path, "default", None).sound
    assert run("verify").code == 0
    for note in notes:
        assert run("verify", "--checkpoint", note).code == 1
    refused = run("checkpoint")
    assert refused.code == 1
    assert f"an entry from 1 to 42 is not what deskbook signed in {keys}" in refused.err


def test_a_rewriting_between_two_notes_is_placed_between_them(
    run: Run, signed: Path, root: Path, more: More, attacker: Attacker
) -> None:
    more(root, 4)
    later = signed.with_name("later.note")
    later.write_text(run("checkpoint").out)
    more(root, 4)
    run("checkpoint")
    attacker.say_otherwise(44)
    refused = run("checkpoint")
    assert "an entry from 43 to 46 is not what deskbook signed" in refused.err
    done = run("verify", "--checkpoint", signed, "--checkpoint", later)
    assert done.code == 1
    assert f"{later}: the ledger was rewritten: entries 43 to 46 are not" in done.out
    assert f"{signed}:" not in done.out


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE memory_events SET agent = 'eve' WHERE sequence = 9", "Entry 9 is not sound: a column"),
        ("UPDATE memory_events SET content = '{}' WHERE sequence = 9", "Entry 9 is not sound: its content"),
        (
            "UPDATE memory_events SET content_salt = x'00' WHERE sequence = 9",
            "Entry 9 is not sound: its content",
        ),
        (
            "UPDATE memory_events SET chain_sha256 = x'00' WHERE sequence = 9",
            "Entry 9 is not sound: the chain",
        ),
        (
            "UPDATE memory_events SET leaf_sha256 = zeroblob(32) WHERE sequence = 9",
            "Entry 9 is not sound: a col",
        ),
        ("UPDATE memory_events SET run_id = 'r' WHERE sequence = 9", "Entry 9 is not sound: it belongs"),
        (
            "UPDATE memory_events SET event_type = 'genesis' WHERE sequence = 9",
            "Entry 9 is not sound: it bel",
        ),
        ("DELETE FROM memory_events WHERE sequence = 9", "Entry 9 is not sound: it is missing"),
        ("DELETE FROM memory_events WHERE sequence = 1", "no genesis"),
        ("UPDATE memory_events SET agent = CAST(x'ff' AS TEXT) WHERE sequence = 9", "not UTF-8"),
    ],
)
def test_a_broken_chain_is_never_signed(
    run: Run, root: Path, more: More, attacker: Attacker, keys: Path, sql: str, said: str
) -> None:
    more(root, 20)
    run("checkpoint", "--new-key")
    attacker.raw(sql)
    done = run("checkpoint")
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert kept(keys) == set()


def test_a_ledger_in_the_place_of_another_is_found(
    run: Run, signed: Path, root: Path, more: More, put_in_place: Callable[[Path, Path], None]
) -> None:
    more(root, 40, "other")
    other, own = ledger_path(root, "other", None), ledger_path(root, "default", None)
    put_in_place(other, own)
    done = run("verify", "--checkpoint", signed)
    assert done.code == 1
    assert "this ledger was moved here" in done.out
    assert "another ledger stands here" in done.out
    refused = run("checkpoint")
    assert refused.code == 1
    assert "belongs to another strategy or run" in refused.err


def test_a_run_made_anew_or_of_another_name_is_not_the_run_that_was_signed(
    run: Run, home: Path, root: Path, tmp_path: Path, more: More
) -> None:
    for name in ("a", "b"):
        more(root, 20, "default", name)
    run("checkpoint", "--new-key")
    note = tmp_path / "a.note"
    assert run("checkpoint", "--run", "a", "--to", note).code == 0
    assert run("verify", "--run", "a", "--checkpoint", note).code == 0
    assert "another ledger" in run("verify", "--run", "b", "--checkpoint", note).out
    shutil.rmtree(ledger_path(root, "default", "a").parent)
    more(root, 20, "default", "a")
    assert run("verify", "--run", "a").code == 0
    assert run("verify", "--run", "a", "--checkpoint", note).code == 1
    refused = run("checkpoint", "--run", "a")
    assert (refused.code, refused.out) == (1, "")
    assert "was signed here before" in refused.err
    assert "The checkpoint in" in run("checkpoint", "--run", "a", "--replaced", "--to", note).err
    assert run("checkpoint", "--run", "a", "--replaced").code == 0
    assert run("checkpoint", "--run", "a").code == 0


def test_a_rewritten_ledger_with_the_genesis_of_the_old_one_is_found(
    run: Run, signed: Path, attacker: Attacker
) -> None:
    """Every entry but the genesis is another, and there are more of them."""
    attacker.rewrite(lambda entries: [entries[0], *entries[2:], *entries[1:2]])
    assert verify(attacker.path, "default", None).entries == 42
    assert "rewritten" in run("verify", "--checkpoint", signed).out
    assert run("checkpoint").code == 1


@pytest.mark.parametrize(
    "bend",
    [
        lambda text: text.replace("\n42\n", "\n41\n"),
        lambda text: text.replace("deskbook/store", "deskbook/shore"),
        lambda text: text.rpartition("\n\n")[0] + "\n",
        lambda text: "",
        lambda text: text.replace("\n", "\r\n"),
    ],
)
def test_a_note_that_was_altered_proves_nothing(run: Run, signed: Path, bend: Callable[[str], str]) -> None:
    signed.write_text(bend(signed.read_text()))
    done = run("verify", "--checkpoint", signed)
    assert done.code == 1
    assert "proves nothing" in done.out
    told = json.loads(run("verify", "--json", "--checkpoint", signed).out)
    assert not told["sound"]


def test_a_note_of_a_stranger_proves_nothing_unless_its_key_is_given(
    run: Run, signed: Path, keys: Path, tmp_path: Path
) -> None:
    public = (keys / "deskbook.pub").read_text()
    file = tmp_path / "kept.pub"
    file.write_text(public)
    for path in keys.glob("deskbook.*"):
        path.unlink()
    assert run("verify", "--checkpoint", signed).code == 2
    assert run("verify", "--checkpoint", signed, "--checkpoint-key", public.strip()).code == 0
    assert run("verify", "--checkpoint", signed, "--checkpoint-key", file).code == 0
    assert run("checkpoint", "--new-key").code == 0
    done = run("verify", "--checkpoint", signed)
    assert done.code == 1
    assert "not signed by a key that is trusted here" in done.out


def test_wrong_usage_of_verify_is_exit_2(run: Run, signed: Path) -> None:
    assert run("verify", "--checkpoint", signed.with_name("absent.note")).code == 2
    assert run("verify", "--checkpoint", signed, "--checkpoint-key", "absent.pub").code == 2


def test_a_note_larger_than_twenty_faults_let_read_is_said_not_to_be_compared(
    run: Run, signed: Path, attacker: Attacker
) -> None:
    attacker.raw("UPDATE memory_events SET agent = 'eve' WHERE sequence < 40")
    told = json.loads(run("verify", "--json", "--checkpoint", signed).out)
    assert "was not compared" in told["checkpoints"][0]["fault"]


def test_verify_shares_no_code_with_what_signs() -> None:
    import subprocess
    import sys

    program = (
        "import sys, store.audit; print([name for name in sys.modules if name.startswith('store.proofs')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
