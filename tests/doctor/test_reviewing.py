"""Doctor on reviewers: that somebody can decide what the config makes wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from server.doctor.findings import Finding, Mark
from server.doctor.reviewing import check_reviewers
from server.doctor.subject import Subject
from server.reviewer_file import reviewer_path
from server.reviewers import add_token
from server.settings import load_settings

Look = Callable[[str], list[Finding]]


@pytest.fixture
def look(desk: Path) -> Look:
    def _look(more: str) -> list[Finding]:
        path = desk.with_name("other.toml")
        path.write_text(f"{desk.read_text()}\n{more}\n", encoding="utf-8")
        settings = load_settings(config=path, flags={}, environ={})
        return list(check_reviewers(Subject(settings, (), {})))

    return _look


@pytest.mark.parametrize(
    ("gates", "named"),
    [
        ('[approval]\nlesson = "review"', "lesson"),
        ('[approval]\nmemory = "ask"\nthesis = "auto"', "memory"),
        ('[approval.profiles.researcher]\nrisk_note = "review"', "researcher.risk_note"),
    ],
)
def test_a_gate_that_nobody_can_open_is_a_warning_with_the_command(
    look: Look, root: Path, gates: str, named: str
) -> None:
    (found,) = look(gates)
    assert (found.mark, found.found.rpartition(": ")[2]) == (Mark.WARN, named)
    assert "`deskbook reviewer add NAME`" in str(found.next)
    assert not root.exists(), "looking makes nothing"
    root.mkdir(0o700)
    add_token(reviewer_path(root), "ann")
    (found,) = look(gates)
    assert (found.mark, found.found) == (Mark.OK, "may review: ann")


@pytest.mark.parametrize("gates", ["", '[approval]\nlesson = "auto"', "[approval]\nmax_pending = 5"])
def test_where_nothing_waits_nobody_is_missed(look: Look, gates: str) -> None:
    assert look(gates) == []


def test_a_reviewer_file_that_is_not_used_is_a_fault(look: Look, root: Path) -> None:
    root.mkdir(0o700)
    reviewer_path(root).write_text("{")
    (found,) = look("")
    assert found.mark is Mark.FAIL
    assert found.next
