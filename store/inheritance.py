"""What a run sees of the live ledger: its entries up to the head pinned in the run's genesis, and up to the
run's own simulated time. The live ledger is only read; it knows of no run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from .embedding.loading import Encoder
from .engines.base import Engine, Snapshot
from .engines.sqlite import SqliteEngine
from .errors import ConfigError, ForeignFile, NotFound
from .events import Genesis
from .ledger import Pin, genesis_of, projected
from .paths import ledger_path, refuse_links
from .search.meaning import LedgerVectors
from .view import LIVE, Layer

Inherit = Literal["none", "live"]

NOTHING = Pin(None, 0, None)


class Inheritance:
    """The live ledger below a run; or nothing, for a live ledger and for a run that inherits nothing."""

    def __init__(
        self, engine: Engine | None = None, pinned: int = 0, vectors: LedgerVectors | None = None
    ) -> None:
        self._engine = engine
        self._pinned = pinned
        self._vectors = vectors or LedgerVectors()

    @classmethod
    def of(cls, root: Path, strategy: str, genesis: Genesis, encoder: Encoder | None = None) -> Inheritance:
        """Open what a run's genesis says it inherits; with an encoder, its vectors too.

        Raises ForeignFile when the live ledger is gone, is not the one that was pinned, or lost the pinned entry.
        """
        if not genesis.live_sequence:
            return cls()
        try:
            engine = _live(root, strategy)
        except NotFound:
            raise _lost("gone") from None
        path = ledger_path(root, strategy, None)
        vectors = LedgerVectors.of(root, path, genesis.live_store_id or "", encoder, engine.read)
        inheritance = cls(engine, genesis.live_sequence, vectors)
        try:
            inheritance._check(engine, genesis)
        except BaseException:
            inheritance.close()
            raise
        return inheritance

    @staticmethod
    def _check(engine: Engine, genesis: Genesis) -> None:
        with engine.read() as snapshot:
            if not holds(snapshot, genesis):
                raise _lost("not the one it began with: it was replaced or rewritten")

    @contextmanager
    def layers(self, at: int, *, meaning: bool = False) -> Iterator[tuple[Layer, ...]]:
        """The inherited layer as it stood at an instant, for as long as the view is used; with its vectors or not."""
        if self._engine is None:
            yield ()
            return
        with self._engine.read() as snapshot:
            cut = min(snapshot.cut_at(at), self._pinned)
            vectors, watermark = self._vectors.at(snapshot, cut) if meaning else (None, 0)
            yield (Layer(snapshot, cut, LIVE, vectors, watermark),)

    def wait(self) -> None:
        """Embed what the live ledger's vectors lack, for a bounded time."""
        self._vectors.wait()

    def close(self) -> None:
        """Let go of the live ledger."""
        if self._engine is not None:
            self._engine.close()


def pin_of(root: Path, strategy: str) -> Pin:
    """Where the live ledger of a strategy stands now; nothing when there is none."""
    try:
        engine = _live(root, strategy)
    except NotFound:
        return NOTHING
    try:
        with engine.read() as snapshot:
            head, genesis = snapshot.head(), genesis_of(snapshot)
            if head is None or genesis is None:
                return NOTHING
            return Pin(genesis.store_id, head.sequence, head.chain_sha256.hex())
    finally:
        engine.close()


def _lost(how: str) -> ForeignFile:
    return ForeignFile(
        f"The live ledger that this run inherits is {how}.",
        hint="Restore that live ledger, or begin a new run.",
    )


def _live(root: Path, strategy: str) -> SqliteEngine:
    path = ledger_path(root, strategy, None)
    refuse_links(root, path)
    return SqliteEngine(path, projected, create=False, writes=False)


def holds(live: Snapshot, genesis: Genesis) -> bool:
    """Whether a live ledger still holds what a run's genesis pinned of it."""
    begun, pinned = genesis_of(live), live.entry(genesis.live_sequence or 0)
    return (
        begun is not None
        and begun.store_id == genesis.live_store_id
        and pinned is not None
        and pinned.chain_sha256.hex() == genesis.live_chain_sha256
    )


def check_inherit(genesis: Genesis, inherit: Inherit | None) -> None:
    """Raise ConfigError when a run is asked to inherit otherwise than it began; None asks for nothing."""
    if genesis.run is not None and inherit not in (None, genesis.inherit):
        raise ConfigError(
            f'The run was begun with inherit = "{genesis.inherit}", which cannot be changed to "{inherit}".',
            field="clock.inherit",
            hint="Begin a new run, or set inherit as the run began.",
        )
