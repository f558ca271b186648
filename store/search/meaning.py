"""The side of a search that goes by meaning: a query's vector, and the vectors of the ledgers it looks into.

A live search embeds the few texts just written, and waits for no more: what is not embedded yet is found by its
words. A search in a run waits, and embeds what is missing itself, so that a replay finds the same; it says how far
the vectors reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ..embedding.loading import Encoder
from ..engines.base import Snapshot
from ..errors import EmbeddingFailed, StoreError
from ..vectors.base import Step, Vectors

if TYPE_CHECKING:
    from ..embedding.base import Embedded
    from ..vectors.index import VectorIndex

LIVE_WAIT_SECONDS: Final = 2.0
"""How long a live search waits for a model that is being loaded."""

FEW: Final = 8
FEW_CHARS: Final = 8_000
FEW_SECONDS: Final = 0.5
"""A live search embeds so few texts itself, no longer than this: what an agent just wrote is found by its meaning."""

RUN_WAIT_SECONDS: Final = 20.0
"""How long a search in a run waits for the model and for the vectors of what it may see."""

BATCH: Final = 32
"""Texts embedded while the lock is held, so that processes take turns."""

_AT_ONCE: Final = 8
_TURN_SECONDS: Final = 0.02

Lack = Literal["warming", "resting", "unavailable", "behind"]
"""Why a search went by words, or not everywhere by meaning."""

OpenSnapshot = Callable[[], AbstractContextManager[Snapshot]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means: its vector, which may still be on its way, and the model that makes it."""

    known: Embedded | None = None
    model: str | None = None
    lacking: Lack | None = None
    coming: Future[Embedded | None] | None = None

    @property
    def vector(self) -> Embedded | None:
        """The query's vector, waited for; None where the search goes by words alone."""
        return self.known if self.coming is None else self.coming.result()

    def by_words(self) -> Meaning:
        """The same for a page that must go by words because the first one did."""
        return (
            Meaning()
            if self.model is None and self.lacking is None
            else Meaning(lacking=self.lacking or "warming")
        )

    @property
    def lack(self) -> Lack | None:
        """Why there is no vector; None where there is one, or none is wanted."""
        if self.coming is None:
            return self.lacking
        return "resting" if self.coming.result() is None else None


class LedgerVectors:
    """The vectors of one open ledger, kept up by whoever asks; none without an encoder that has a model."""

    def __init__(
        self, encoder: Encoder | None = None, open_index: Callable[[], VectorIndex] | None = None
    ) -> None:
        self._encoder = encoder or Encoder()
        self._open_index = open_index
        self._snapshot: OpenSnapshot = _never
        self._found: VectorIndex | None = None

    @classmethod
    def of(
        cls, root: Path, ledger: Path, store_id: str, encoder: Encoder | None, snapshot: OpenSnapshot
    ) -> LedgerVectors:
        """The vectors of the ledger file at `ledger` below `root`."""

        def open_index() -> VectorIndex:
            from ..vectors.index import VectorIndex  # noqa: PLC0415 - brings numpy, after the model or with it

            return VectorIndex(root, ledger, store_id, made.model)

        made = encoder or Encoder()
        vectors = cls(made, open_index if made.enabled else None)
        vectors._snapshot = snapshot
        return vectors

    @property
    def _index(self) -> VectorIndex | None:
        if self._found is None and self._open_index is not None:
            self._found = self._open_index()
        return self._found

    def meant(self, query: str, *, in_run: bool) -> Meaning:
        """What a query means, where there is a model and a text to find the meaning of; its words may be looked up
        meanwhile.
        """
        if not self._encoder.enabled or not any(character.isalnum() for character in query):
            return Meaning()
        if self._encoder.ready(RUN_WAIT_SECONDS if in_run else LIVE_WAIT_SECONDS) is not None:
            coming = self._encoder.query_soon(query)
            if self._encoder.dimensions is None:
                coming.result()  # the first one, which tells how long vectors are
            return Meaning(model=self._encoder.model, coming=coming)
        state = self._encoder.state
        return Meaning(lacking=state if state in ("warming", "unavailable") else "resting")

    def at(self, snapshot: Snapshot, cut: int) -> tuple[Vectors | None, int]:
        """The vectors as a snapshot may use them, and the last entry up to which every text has them."""
        index = self._index
        if index is None:
            return None, 0
        index.expect(self._encoder.dimensions)
        reach = index.reach(snapshot, cut)  # before the file, which may be replaced in between
        return index.scan(snapshot), reach

    def backlog(self) -> int:
        """How many texts have no vectors yet."""
        index = self._index
        if index is None:
            return 0
        with self._snapshot() as snapshot:
            head = snapshot.head()
            return index.backlog(snapshot, head.sequence if head else 0)

    def forget(self) -> None:
        """Take the vectors away; they are made anew from the first text on."""
        index = self._index
        if index is not None:
            index.forget()

    def step(self, most: int) -> Step | None:
        """Embed the next texts, at most `most`; None where there is no model, or it is not loaded.

        Raises StoreError for what stands in the folder's place, OSError for what the disk does.
        """
        embedder = self._encoder.ready()
        index = self._index if embedder is not None else None
        if embedder is None or index is None:
            return None
        try:
            return index.catch_up(self._snapshot, embedder, most, self._encoder.dimensions)
        except EmbeddingFailed as fault:
            self._encoder.failed(fault)
            return None

    def wait(self, seconds: float = RUN_WAIT_SECONDS) -> None:
        """Embed all that is missing, for at most so long; what fails is left to be found by its words."""
        until = time.monotonic() + seconds
        if self._encoder.ready(seconds) is None:
            return
        while time.monotonic() < until:
            try:
                done = self.step(_AT_ONCE)
            except (
                StoreError,
                OSError,
            ):  # of the place or the disk: whoever embeds in the background tells of it
                return
            except Exception as fault:  # noqa: BLE001 - a model that fails must not end search; it is told as one
                self._encoder.failed(EmbeddingFailed(f"The model failed: {type(fault).__name__}."))
                return
            if done is None or not done.more:
                return
            if done.busy:
                time.sleep(_TURN_SECONDS)

    def catch_few(self) -> None:
        """Embed what is missing if it is only a little; more is left to the background."""
        embedder = self._encoder.ready()
        index = self._index if embedder is not None else None
        if index is None:
            return
        with self._snapshot() as snapshot:
            waiting = index.waiting(snapshot, FEW + 1)
        if 0 < len(waiting) <= FEW and sum(map(len, waiting)) <= FEW_CHARS:
            self.wait(FEW_SECONDS)


def _never() -> AbstractContextManager[Snapshot]:
    raise LookupError("no ledger is open here")
