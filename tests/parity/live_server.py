"""`deskbook` on a wall clock that the test sets: microseconds since the epoch, read from the file named first.

The product has no such door. This script opens it from outside, by replacing the one method that reads the
machine's clock, before the server starts; all else is the shipped command, in a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from server.__main__ import main
from store.clock import WallClock

SET_BY_THE_TEST = Path(sys.argv.pop(1))


def now(_clock: WallClock) -> int:
    return int(SET_BY_THE_TEST.read_text(encoding="ascii"))


WallClock.now = now  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
