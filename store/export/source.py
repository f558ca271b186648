"""The ledger of a strategy or run, opened only to be copied: nothing is made and nothing recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..clock import WallClock
from ..engines.base import Snapshot
from ..engines.sqlite import SqliteEngine
from ..ledger import Ledger, projected
from ..paths import ledger_path, refuse_links


@contextmanager
def ledger_snapshot(root: Path, strategy: str, run: str | None) -> Iterator[Snapshot]:
    """One consistent view of a ledger that is there; raises NotFound, or the StoreError that fits."""
    path = ledger_path(root, strategy, run)
    refuse_links(root, path)
    engine = SqliteEngine(path, projected, create=False, writes=False)
    try:
        with engine.read() as snapshot:
            Ledger(WallClock(), strategy, run).check(snapshot)
            yield snapshot
    finally:
        engine.close()
