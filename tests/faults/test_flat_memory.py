"""A server that serves for long does not grow: case P230, memory grows with traffic until the machine dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults

GUARD = 600.0
SOME, MANY = 4_000, 20_000
GROWTH = 1.2
CACHE_BYTES = 64 * 2**20
CACHES = 3
"""Pages that SQLite keeps grow up to 64 MiB a connection and no further; one connection writes, few read."""

WORK = """
import sys
from pathlib import Path
import apsw
from store import Book, Caller, Filter, SearchRequest
from store.commands import OpenThesis, Remember, UpdateThesis

some, many = map(int, sys.argv[2:])
book = Book.open(Path(sys.argv[1]), "default", durability="normal")

def resident():
    (kib,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")]
    return 1024 * int(kib)

for number in range(many):
    session, call, symbol = f"session-{number // 50}", f"call-{number // 5}", f"SYM{number % 40}"
    who = Caller(f"agent-{number % 3}", "solo", session, "tool", model_call_id=call)
    match number % 5:
        case 0:
            told = book.execute(who, Remember(text=f"note {number} of word{number % 997}", symbol=symbol))
        case 1:
            thesis = book.execute(who, OpenThesis(text=f"thesis {number}", symbol=symbol))
            book.execute(who, UpdateThesis(thesis_id=thesis.id, text=f"thesis {number} again"))
        case 2:
            narrowed = Filter(symbol=symbol)
            book.search(who, SearchRequest(query=f"word{number % 997} note", conditions=narrowed))
        case 3:
            book.state(who)
        case 4:
            book.get(who, told.id)
    if number in (some - 1, many - 1):
        print(resident(), apsw.memory_used(), flush=True)
"""


def test_memory_stays_flat_over_many_mixed_calls_p230(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path), str(SOME), str(MANY)],
        capture_output=True,
        text=True,
        timeout=GUARD,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    early, early_cache, late, late_cache = map(int, done.stdout.split())
    assert late - late_cache <= GROWTH * (early - early_cache), (early, late)
    assert late_cache <= CACHES * CACHE_BYTES
