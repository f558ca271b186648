"""A ledger opened to have content taken away, by its file: in its place or, of a backup, where it is being proven."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..clock import Clock, WallClock
from ..engines.sqlite import SqliteEngine
from ..errors import NotFound
from ..ledger import Ledger, projected

WRITE_SECONDS = 30.0
COMMIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Opened:
    """One ledger: its engine, what places entries, and its store id."""

    engine: SqliteEngine
    ledger: Ledger
    store_id: str


@contextmanager
def opened(
    path: Path, strategy: str, run: str | None, *, writes: bool = True, clock: Clock | None = None
) -> Iterator[Opened]:
    """Open the ledger file at `path`; raises NotFound where there is none, or the StoreError that fits."""
    engine = SqliteEngine(path, projected, create=False, writes=writes)
    try:
        ledger = Ledger(clock or WallClock(), strategy, run)
        with engine.read() as snapshot:
            if snapshot.head() is None:
                raise NotFound("There is no ledger here yet.", hint="The first write makes it.")
            store_id = ledger.check(snapshot).store_id
        yield Opened(engine, ledger, store_id)
    finally:
        engine.close()
