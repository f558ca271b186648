"""The model that this process embeds with, and the thread that brings every open ledger's vectors up to date.

One model for all ledgers, loaded when the first call has come, so that no handshake waits for it. One thread, off the
path of every call: a call that ends only says that its ledger may have grown. One whose vectors cannot be written
is tried again later and later; it never reaches a caller, whose searches go on by words.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from store import Book
from store.embedding.base import Embedder
from store.embedding.bundled import MODEL
from store.embedding.endpoint import KEY_VARIABLE, Endpoint
from store.embedding.loading import Encoder
from store.errors import DeskbookError

from .settings import Settings

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 0.25
AGAIN_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 300.0
PATIENCE_SECONDS: Final = 1.0

Key = tuple[str, str | None]
OpenOne = Callable[[Key], "AbstractContextManager[Book] | None"]


def encoder_of(settings: Settings, environ: Mapping[str, str], model: str | None = None) -> Encoder:
    """The encoder that the settings name, not loaded yet; `model` stands in for the endpoint's model.

    Raises ConfigError for an address or a key that cannot be used.
    """
    asked = settings.embedding
    if asked.provider == "none":
        return Encoder()
    if asked.provider == "openai":
        name = model or asked.model or ""
        endpoint = Endpoint(asked.url or "", name, key=environ.get(KEY_VARIABLE) or None)
        return Encoder(name, lambda: endpoint)
    return Encoder(MODEL, _bundled)


def _bundled() -> Embedder:
    from store.embedding.bundled import Bundled  # noqa: PLC0415 - named here, so that a test can put another in its place

    return Bundled()


class Embeddings:
    """Embeds in the background; `open_one` gives a ledger that the process has open, or None."""

    def __init__(self, encoder: Encoder, open_one: OpenOne) -> None:
        self.encoder = encoder
        self._open_one = open_one
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = False

    def touched(self, key: Key) -> None:
        """Say that a ledger may have grown: it is looked at soon, unless it already will be."""
        if not self.encoder.enabled:
            return
        with self._changed:
            if self._stopping or key in self._due:
                return
            self._due[key] = time.monotonic() + FIRST_SECONDS
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="embeddings", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End within a second; what is embedded by then stays."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE_SECONDS)

    def _work(self) -> None:
        self.encoder.begin()
        while (key := self._next()) is not None:
            wait = self._step(key)
            if wait is not None:
                with self._changed:
                    self._due.setdefault(key, time.monotonic() + wait)

    def _next(self) -> Key | None:
        """Wait for the next ledger that is due; None once this is to end."""
        with self._changed:
            while not self._stopping:
                key = min(self._due, key=self._due.__getitem__, default=None)
                left = None if key is None else self._due[key] - time.monotonic()
                if key is not None and left is not None and left <= 0:
                    del self._due[key]
                    return key
                self._changed.wait(left)
            return None

    def _step(self, key: Key) -> float | None:
        """Embed one batch; the seconds until the next one is due, None when there is nothing left to do."""
        opened = self._open_one(key)
        if opened is None:
            return None
        try:
            with opened as book:
                done = book.embed_next()
        except Exception as fault:  # noqa: BLE001 - whatever goes wrong here must not reach a caller or end the thread
            return self._failed(key, fault)
        self._failures.pop(key, None)
        if done is None:  # no model yet, or it rests; one that cannot be had is not waited for
            return None if self.encoder.state == "unavailable" else AGAIN_SECONDS
        if done.busy:
            return AGAIN_SECONDS
        return 0.0 if done.more else None

    def _failed(self, key: Key, fault: Exception) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if not failures:
            what = fault.message if isinstance(fault, DeskbookError) else f"{type(fault).__name__}: {fault}"
            logger.warning(
                "the vectors of a ledger cannot be brought up to date and are tried again: %s", what
            )
        return float(min(AGAIN_SECONDS * 2 ** min(failures, 10), LONGEST_WAIT_SECONDS))
