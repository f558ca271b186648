"""Seats whose searches go by meaning: with the bundled model, or with one made up here that never errs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from store.embedding.bundled import MODEL, Bundled
from store.embedding.loading import Encoder
from store.errors import EmbeddingFailed
from store.search import meaning
from store.view import View

if TYPE_CHECKING:
    from conftest import Seat

GUARD = 60.0
"""Seconds; it only turns a hang into a failure."""

SENSES = (
    {"revenue", "sales", "turnover"},
    {"fell", "dropped", "declined", "slid"},
    {"rose", "climbed", "gained"},
    {"broker", "brokerage", "dealer"},
)
"""Words that mean the same to the made-up model."""

_SENSE = {word: f"sense {at}" for at, words in enumerate(SENSES) for word in words}


class Senses:
    """A made-up model: a text's vector counts its words, those of one sense as one; it fails when told to."""

    def __init__(self, model: str = "senses", dimensions: int = 64) -> None:
        self.model = model
        self.dimensions = dimensions
        self.fault: EmbeddingFailed | None = None
        self.asked: list[str] = []

    def pieces(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        if self.fault is not None:
            raise self.fault
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for at, text in enumerate(texts):
            for word in text.lower().split():
                digest = hashlib.sha256(_SENSE.get(word, word).encode()).digest()
                rows[at, int.from_bytes(digest[:4]) % self.dimensions] += 1
        rows[:, 0] += 0.01
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _loaded(encoder: Encoder) -> Encoder:
    assert encoder.ready(GUARD) is not None, encoder.problem
    return encoder


@pytest.fixture(autouse=True)
def left_to_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search embeds nothing by itself, so that a test says what has its vectors."""
    monkeypatch.setattr(meaning, "FEW", 0)


@pytest.fixture(scope="session")
def bundled() -> Encoder:
    """The bundled model, loaded."""
    return _loaded(Encoder(MODEL, Bundled))


@pytest.fixture
def senses() -> Senses:
    return Senses()


@pytest.fixture
def encoder(senses: Senses) -> Encoder:
    """The made-up model, loaded."""
    return _loaded(Encoder(senses.model, lambda: senses))


@pytest.fixture
def encoder_of() -> Callable[..., Encoder]:
    """An encoder of another made-up model, loaded."""

    def make(**options: Any) -> Encoder:
        made = Senses(**options)
        return _loaded(Encoder(made.model, lambda: made))

    return make


@pytest.fixture
def embed() -> Callable[[Seat], int]:
    """Embed all that a seat's ledger holds; gives how many texts that were."""

    def run(seat: Seat) -> int:
        done = 0
        while True:
            step = seat.book.embed_next()
            assert step is not None
            done += step.versions
            if not step.more:
                return done

    return run


@pytest.fixture
def meant(open_seat: Callable[..., Seat], encoder: Encoder) -> Seat:
    """A seat at a live ledger with the made-up model."""
    return open_seat(encoder=encoder)


@pytest.fixture
def view_of() -> Callable[[Seat], Any]:
    """A context manager: all that a seat sees now."""

    @contextmanager
    def view(seat: Seat) -> Iterator[View]:
        with seat.book.snapshot() as snapshot:
            cut, at = seat.book._stand(snapshot, seat.caller(), None)
            with seat.book._view(snapshot, cut, at) as found:
                yield found

    return view
