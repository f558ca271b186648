"""kill -9 in the middle of an import: the next one goes on, adds each row once, and the ledger is sound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.audit import verify

pytestmark = pytest.mark.faults

REPOSITORY = Path(__file__).resolve().parents[2]
ROUNDS = 10
HAND = """
import os, signal, sys
from pathlib import Path
from store.engines.sqlite.writer import Writer
from store.importers import jsonl
from store.importers.lumibot import import_lumibot, importing

what, source, root, stop, moment = sys.argv[1:]
importing.BATCH = jsonl.BATCH = 5
commits = 0
commit = Writer._commit

def counted(self, done):
    global commits
    commits += 1
    last = commits == int(stop)
    if last and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self, done)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)

Writer._commit = counted
if what == "lumibot":
    import_lumibot(Path(source), Path(root))
else:
    jsonl.import_jsonl(Path(source), Path(root))
"""


@pytest.fixture
def killed() -> Callable[..., int]:
    """Import in a process that kills itself around its commit of a number; its exit code."""

    def run(what: str, source: Path, root: Path, stop: int, moment: str) -> int:
        words = [sys.executable, "-c", HAND, what, str(source), str(root), str(stop), moment]
        environ = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        return subprocess.run(words, env=environ, check=False, timeout=120).returncode

    return run


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lumibot_import_killed_again_and_again_adds_each_row_once(
    moment: str, killed: Callable[..., int], lumibot_memory: Path, root: Path, bring: Any, read: Any
) -> None:
    for round_number in range(ROUNDS):
        code = killed("lumibot", lumibot_memory, root, 2 + round_number % 3, moment)
        assert code in {-9, 0}
        if round_number == 0:
            assert code == -9
    report = bring()
    assert verify(Path(report.path), "Momentum Bot", None).findings == ()
    ledger = read()
    blocks = [json.loads(entry.content).get("imported") for entry in ledger.entries]
    seen = [(block["source_type"] == "memory.searched", block["source_id"]) for block in blocks if block]
    closed_at_once = 1  # one row of the source opens and closes a thesis
    assert len(seen) == 40 + closed_at_once
    assert len(set(seen)) == 40
    numbers = [block["source_sequence"] for block in blocks if block and "source_sequence" in block]
    assert numbers == sorted(numbers)
    assert ledger.contents("import.begun")
    assert ledger.entries[-1].event_type == "import.ended"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_restore_killed_again_and_again_ends_equal(
    moment: str, killed: Callable[..., int], bring: Any, read: Any, tmp_path: Path
) -> None:
    from store.importers.jsonl import import_jsonl
    from store.jsonl import header_of, write_jsonl

    bring()
    ledger = read()
    export = tmp_path / "entries.jsonl"
    with export.open("wb") as out:
        write_jsonl(ledger.entries, header_of(ledger.book.genesis, ledger.book.head()), out)
    second = tmp_path / "second"
    for round_number in range(ROUNDS):
        assert killed("jsonl", export, second, 1 + round_number % 2, moment) in {-9, 0}
    made = import_jsonl(export, second)
    assert verify(Path(made.path), "Momentum Bot", None).findings == ()
    assert made.entries == len(ledger.entries)
    assert made.chain_sha256 == ledger.entries[-1].chain_sha256.hex()
