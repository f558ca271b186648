"""kill -9 within checkpoint: the notes that are there are whole, they agree, and the next one is signed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store.audit import verify
from store.paths import ledger_path
from store.proofs.checkpoint import open_checkpoint
from store.proofs.note import read_verifier

if TYPE_CHECKING:
    from conftest import Run

pytestmark = pytest.mark.faults

ROUNDS = 30
REPOSITORY = Path(__file__).resolve().parents[2]
# Kills the process at the so-manieth system call that opens, writes, syncs, links or renames anything.
PROGRAM = """
import os, signal, sys
left = int(sys.argv.pop(1))
def counting(call):
    def counted(*given, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return counted
for name in ("open", "fsync", "link", "rename", "replace", "unlink", "pwrite", "ftruncate", "write"):
    setattr(os, name, counting(getattr(os, name)))
from server import cli
sys.argv[0] = "deskbook"
cli.main()
"""


@pytest.mark.parametrize("seed", [1])
def test_thirty_kills_within_checkpoint_leave_whole_notes_that_agree(
    run: Run, root: Path, home: Path, more: Callable[..., None], keys: Path, seed: int
) -> None:
    more(root, 40)
    run("checkpoint", "--new-key")
    known = [read_verifier((keys / "deskbook.pub").read_text())]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    chance, killed, printed = random.Random(seed), 0, set()
    for number in range(ROUNDS):
        more(root, 1)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(chance.randrange(26)), "checkpoint", "--root", str(root),
             "--to", str(home / "copies")],
            capture_output=True, text=True, cwd="/", env=environ, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode in (0, -9), done.stderr
        killed += done.returncode == -9
        if done.stdout.endswith("=\n"):
            printed.add(done.stdout)
        notes = {path: open_checkpoint(path.read_bytes(), known) for path in home.glob("**/*.note")}
        assert all(path.name == f"{signed.checkpoint.size}.note" for path, signed in notes.items())
        for latest in home.glob("**/latest"):
            open_checkpoint(latest.read_bytes(), known)
        assert printed <= {signed.note for signed in notes.values()}, f"round {number}: printed and not kept"
    assert killed > ROUNDS // 2
    after = run("checkpoint", "--to", home / "copies")
    assert (after.code, after.err) == (0, "")
    assert list(home.glob("**/.*.new")) == []
    kept = sorted(home.glob("**/*.note"))
    checks = [word for note in kept for word in ("--checkpoint", note)]
    assert run("verify", *checks).code == 0
    assert verify(ledger_path(root, "default", None), "default", None).sound
