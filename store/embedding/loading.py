"""One model for all ledgers of a process, loaded in the background when it is first wanted.

A call never waits for the model unless it says for how long. A model that cannot be had is tried again by nobody: the
reason stays and is told. One that is only out of reach for a while is left alone for some seconds, so that searches
do not each wait for it; they go on by words.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, Literal

from ..errors import EmbeddingFailed

if TYPE_CHECKING:
    from .base import Embedded, Embedder

State = Literal["off", "idle", "warming", "ready", "resting", "unavailable"]

REST_SECONDS: Final = 15.0
"""How long a model that failed is left alone."""

QUERIES_KEPT: Final = 256


class Encoder:
    """A model that may still have to be loaded; `Encoder()` has none, and searches go by words."""

    def __init__(self, model: str = "", make: Callable[[], Embedder] | None = None) -> None:
        self.model = model
        self._make = make
        self._embedder: Embedder | None = None
        self._problem: EmbeddingFailed | None = None
        self._begun = False
        self._loaded = threading.Event()
        self._rests_until = 0.0
        self._mutex = threading.Lock()
        self.dimensions: int | None = None
        """How long the model's vectors are, once a query was embedded."""

        self._queries: OrderedDict[str, Embedded] = OrderedDict()

    @property
    def enabled(self) -> bool:
        """Whether there is a model at all."""
        return self._make is not None

    @property
    def state(self) -> State:
        """How the model stands now."""
        if not self.enabled:
            return "off"
        if self._embedder is not None:
            return "resting" if self._resting() else "ready"
        if self._problem is not None:
            return "unavailable"
        return "warming" if self._begun else "idle"

    @property
    def problem(self) -> str | None:
        """Why the model cannot serve, or last failed to; None while it does."""
        return None if self._problem is None else self._problem.message

    def begin(self) -> None:
        """Load the model in the background, unless that has begun."""
        with self._mutex:
            if self._begun or self._make is None:
                return
            self._begun = True
        threading.Thread(target=self._load, name="embedding", daemon=True).start()

    def ready(self, wait: float = 0.0) -> Embedder | None:
        """The model, once it is loaded; None when it is not within `wait` seconds, or never will be."""
        self.begin()
        if self.enabled:
            self._loaded.wait(wait)
        return None if self._resting() else self._embedder

    def query(self, text: str, wait: float = 0.0) -> Embedded | None:
        """A query's vector; None when the model is not ready or fails, which is then left alone for a while."""
        embedder = self.ready(wait)
        if embedder is None:
            return None
        with self._mutex:
            found = self._queries.get(text)
            if found is not None:
                self._queries.move_to_end(text)
                return found
        try:
            vector: Embedded = embedder.embed([text])[0]
        except EmbeddingFailed as fault:
            self.failed(fault)
            return None
        except Exception as fault:  # noqa: BLE001 - a model that fails must not end search
            self.failed(EmbeddingFailed(f"The model failed: {type(fault).__name__}."))
            return None
        with self._mutex:
            self._problem = None
            self.dimensions = int(vector.shape[0])
            self._queries[text] = vector
            while len(self._queries) > QUERIES_KEPT:
                self._queries.popitem(last=False)
        return vector

    def query_soon(self, text: str) -> Future[Embedded | None]:
        """A query's vector as `query` gives it, made on another thread while the caller goes on."""
        coming: Future[Embedded | None] = Future()

        def ask() -> None:
            try:
                coming.set_result(self.query(text))
            except BaseException as fault:  # noqa: BLE001 - whoever waits must be told
                coming.set_exception(fault)

        # A daemon, so that an address that hangs does not hold up the end of the process.
        threading.Thread(target=ask, name="query", daemon=True).start()
        return coming

    def failed(self, fault: EmbeddingFailed) -> None:
        """Note that the model failed: it rests for a while, and `problem` says why."""
        with self._mutex:
            self._problem = fault
            self._rests_until = time.monotonic() + REST_SECONDS

    def _resting(self) -> bool:
        return time.monotonic() < self._rests_until

    def _load(self) -> None:
        try:
            if self._make is not None:
                self._embedder = self._make()
        except EmbeddingFailed as fault:
            self._problem = fault
        except Exception as fault:  # noqa: BLE001 - a model that cannot be loaded must not end search
            self._problem = EmbeddingFailed(f"The model cannot be loaded: {type(fault).__name__}.")
        finally:
            self._loaded.set()
