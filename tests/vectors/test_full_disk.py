"""A disk that is full, or may not be written: an error that is told, and the vectors that are there are searched."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from store.commands import Remember

if TYPE_CHECKING:
    from conftest import StartHand

pytestmark = pytest.mark.faults

DISK = "/mnt"
MOUNT = f'mount -t tmpfs -o size=8m,mode=0700 tmpfs {DISK} && exec "$@"'
SEAL = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
ALONE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def test_on_a_full_disk_what_is_embedded_stays_and_the_rest_follows_once_there_is_space(
    start_hand: StartHand,
) -> None:
    hand = start_hand("on-small-disk", DISK, prefix=(*ALONE, MOUNT, "sh"))
    told: dict[str, Any] = hand.says()
    assert hand.wait() == 0
    assert told["first"] == told["held"] == 20
    assert told["faults"] == [errno.ENOSPC] * 3
    assert told["rows"] == [20] * 3
    assert told["near"] == 5
    assert told["left"] == 20
    assert told["reach"] == told["head"]
    assert len(told["names"]) == 2


def test_in_a_folder_that_may_not_be_written_what_is_embedded_is_searched(
    desk: Any, start_hand: StartHand
) -> None:
    for number in range(6):
        desk.seat.do(Remember(text=f"note number{number} of the desk"))
    desk.index.catch_up(desk.seat.book.snapshot, desk.embedder, 3)
    before = desk.held()
    hand = start_hand("read-only", desk.root, prefix=(*ALONE, SEAL, str(desk.folder)))
    told: dict[str, Any] = hand.says()
    assert hand.wait() == 0
    assert told == {"faults": [errno.EROFS] * 2, "near": 3}
    assert desk.held() == before
    assert desk.embed() == 3
