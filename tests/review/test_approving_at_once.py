"""Agents propose while people approve, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from server.reviewers import VARIABLE
from store import Book, Caller
from store.commands import Propose
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import Run

GUARD = 120


def propose(book: Book, text: str) -> str:
    return book.execute(Caller("trader", "trader", "ses-trader", "remember_proposal"), Propose(text=text)).id


PROPOSER = """
import sys
from pathlib import Path
from server.commands.place import find_place
from store import Caller
from store.commands import Propose
from store.rows import EntryFilter
book = find_place(Path(sys.argv[1]), Path(sys.argv[2]), None, None, environ={}).open()
sys.stdin.readline()
for number in range(10):
    caller = Caller(sys.argv[3], "trader", f"ses-{sys.argv[3]}", "remember_proposal")
    print(book.execute(caller, Propose(text=f"new {sys.argv[3]} {number}")).id)
book.close()
"""
APPROVER = """
import os, sys
from dataclasses import replace
from pathlib import Path
from server.commands.place import find_place
from server.reviewers import reviewer_caller
from store.review_commands import Approve
place = find_place(Path(sys.argv[1]), Path(sys.argv[2]), None, None, environ={})
book = place.open()
caller = reviewer_caller(place.settings, None, os.environ, tool="review")
sys.stdin.readline()
for memory_id in sys.argv[3:]:
    book.execute(caller, Approve(memory_id=memory_id, shown=book.review_item(memory_id).shown_sha256))
    print(memory_id)
book.close()
"""


def test_none_is_lost_when_twenty_are_proposed_while_twenty_are_approved_by_four_processes_p143(
    run: Run, book: Book, ann: str, root: Path, config: Path, bare_environ: dict[str, str]
) -> None:
    old = [propose(book, f"old {number}") for number in range(20)]
    place = (str(config), str(root))
    commands = [
        (PROPOSER, *place, "trader"),
        (PROPOSER, *place, "researcher"),
        (APPROVER, *place, *old[:10]),
        (APPROVER, *place, *old[10:]),
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
            env=bare_environ | {VARIABLE: ann},
        )
        for words in commands
    ]  # fmt: skip
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=GUARD)[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0]
    new = {*said[0], *said[1]}
    assert len(new) == 20
    listed = run("review", "list", "--json").json()["waiting"]
    assert {each["id"] for each in listed} == new
    assert {run("review", "show", each, "--json").json()["review_state"] for each in old} == {"approved"}
    assert len(book.log(EntryFilter(event_type="review.approved", limit=1_000))) == 20
    assert run("verify").code == 0
