"""The write-ahead log stays small while writes never pause."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from store import Book

if TYPE_CHECKING:
    from conftest import Look, StartHand

pytestmark = pytest.mark.faults

MOST_BYTES = 64 * 2**20


@pytest.mark.parametrize("processes", [1, 3])
def test_writes_without_a_pause_do_not_let_the_log_grow_without_end(
    start_hand: StartHand, root: Path, ledger: Path, look: Look, processes: int
) -> None:
    """4,500 writes of about 16 pages each: 280 MiB, if the log were never begun anew."""
    book = Book.open(root, "default")
    each = 4_500 // processes
    hands = [start_hand("write-at-once", root, f"agent{n}", 1, each) for n in range(processes)]
    assert [hand.says() for hand in hands] == ["open"] * processes
    for hand in hands:
        hand.go()
    told = [hand.says() for hand in hands]
    assert sum(len(hand["ids"]) for hand in told) == each * processes
    log = ledger.with_name(ledger.name + "-wal")
    assert 0 < log.stat().st_size < MOST_BYTES  # the file keeps the largest size the log has had
    assert book.status().memories == each * processes
    book.close()
    look.assert_sound()
    assert not log.exists()
