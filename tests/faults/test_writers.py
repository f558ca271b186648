"""Several writer processes on one ledger: nobody loses a write and nobody waits for long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store import Book

if TYPE_CHECKING:
    from conftest import Look, StartHand

pytestmark = pytest.mark.faults

LONGEST_WAIT = 0.5
"""Seconds: the bound that the ledger promises to four writers."""


def write_at_once(
    start_hand: StartHand, root: Path, processes: int, threads: int, each: int
) -> list[dict[str, list[float] | list[str]]]:
    Book.open(root, "default").close()
    hands = [start_hand("write-at-once", root, f"agent{n}", threads, each) for n in range(processes)]
    assert [hand.says() for hand in hands] == ["open"] * processes
    for hand in hands:
        hand.go()
    return [hand.says() for hand in hands]


def test_of_four_writer_processes_none_waits_over_half_a_second(
    start_hand: StartHand, root: Path, look: Look
) -> None:
    told = write_at_once(start_hand, root, processes=4, threads=1, each=300)
    waits = [max(hand["waits"]) for hand in told]
    ids = [event_id for hand in told for event_id in hand["ids"]]
    assert len(set(ids)) == 4 * 300
    assert set(ids) <= look.event_ids()
    look.assert_sound()
    assert max(waits) <= LONGEST_WAIT


def test_four_writer_processes_make_progress_side_by_side(
    start_hand: StartHand, root: Path, look: Look
) -> None:
    write_at_once(start_hand, root, processes=4, threads=1, each=200)
    order = [
        agent
        for (agent,) in look.rows("SELECT agent FROM memory_events WHERE kind = 'memory' ORDER BY sequence")
    ]
    started = max(order.index(f"agent{n}") for n in range(4))
    ended = min(len(order) - order[::-1].index(f"agent{n}") for n in range(4))
    together = order[started:ended]
    assert len(together) >= 400
    shares = [together.count(f"agent{n}") / len(together) for n in range(4)]
    assert min(shares) > 0.1


def test_eight_processes_with_group_commit_lose_nothing(
    start_hand: StartHand, root: Path, look: Look
) -> None:
    told = write_at_once(start_hand, root, processes=8, threads=8, each=40)
    ids = [event_id for hand in told for event_id in hand["ids"]]
    assert len(set(ids)) == 8 * 8 * 40
    assert set(ids) <= look.event_ids()
    assert len(look.texts()) == len(ids)
    look.assert_sound()
    look.assert_rebuild_changes_nothing(root)
