"""kill -9 anywhere in a batch, or while a file grows: what was embedded stays, and nothing is missing or double."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import OpenThesis, Remember, UpdateThesis

if TYPE_CHECKING:
    from conftest import StartHand

pytestmark = pytest.mark.faults

NOTES = 14
CAPACITY = 4
MOST = 5


def write(desk: Any, of: str) -> None:
    """Texts of one piece and of several, and versions that end others."""
    thesis = desk.seat.do(OpenThesis(text=f"long {of} // in parts"))
    for number in range(NOTES):
        desk.seat.do(Remember(text=f"{of} number{number}"))
        if number % 5 == 2:
            desk.seat.do(UpdateThesis(thesis_id=thesis.id, text=f"longer {of} {number} // in parts"))


def assert_usable(desk: Any, told: dict[str, Any], whole: list[tuple[Any, ...]], begun: int) -> None:
    """A process that has just begun finds the first rows as they should be, as far as the writer had come."""
    held = desk.held()
    sequences = [row[0] for row in whole]
    assert [row[0] for row in held] == sequences[: len(held)]
    assert [row[2:] for row in held] == [row[2:] for row in whole[: len(held)]]
    assert len(held) >= max(begun, sum(sequence <= told["reached"] for sequence in sequences))
    assert all(mine[1] in {theirs[1], 2**63 - 1} for mine, theirs in zip(held, whole, strict=False))
    near = desk.near("long first", index=desk.another())
    assert len({each.sequence for each in near}) == len(near)


@pytest.mark.parametrize("how", ["before", "within"])
@pytest.mark.parametrize("begun", [False, True])
def test_killed_at_each_step_of_every_batch(
    how: str, begun: bool, desk: Any, start_hand: StartHand, tmp_path: Path
) -> None:
    """From nothing, and from a file with rows; before each step, and in the middle of each write."""
    write(desk, "first")
    rows = 0
    if begun:
        desk.embed()
        rows = len(desk.held())
        shutil.copytree(desk.folder, tmp_path / "begun")
        write(desk, "second")
    desk.embed()
    whole = desk.held()
    hand = start_hand("kill-at-each-step", tmp_path, CAPACITY, MOST, how)
    steps, lived = 0, False
    while not lived:
        told = hand.says()
        assert told is not None
        steps, lived = told["step"], told["lived"]
        assert_usable(desk, told, whole, rows)
        desk.embed(most=MOST, index=desk.another())
        assert desk.held() == whole
        assert sorted(path.name for path in desk.folder.iterdir()) == sorted(["lock", desk.path.name])
        if not lived:
            hand.go()
    assert hand.wait() == 0
    assert steps > 60
