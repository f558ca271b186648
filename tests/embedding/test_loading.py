"""The model is loaded off every call's path, rests when it fails, and comes back; nobody waits longer than asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from store.embedding import loading
from store.embedding.loading import QUERIES_KEPT, REST_SECONDS, Encoder
from store.errors import EmbeddingFailed

GUARD = 60.0


class Model:
    """A model that counts what it is asked, and fails as long as it has a fault."""

    model = "small"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fault: Exception | None = None

    def pieces(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.extend(texts)
        if self.fault is not None:
            raise self.fault
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


class Watch:
    """The clock of the module, set by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    monkeypatch.setattr(loading, "time", watch)
    return watch


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def encoder(model: Model, watch: Watch) -> Encoder:
    """One whose model is loaded."""
    encoder = Encoder("small", lambda: model)
    assert encoder.ready(GUARD) is model
    return encoder


class Gate:
    """A model that is being loaded until the test lets it go on."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.begun = threading.Event()
        self.opened = threading.Event()
        self.made = 0

    def __call__(self) -> Any:
        self.made += 1
        self.begun.set()
        assert self.opened.wait(GUARD)
        return self._make()


@pytest.fixture
def gate(model: Model) -> Iterator[Gate]:
    gate = Gate(lambda: model)
    yield gate
    gate.opened.set()


def test_without_a_model_it_is_off_and_nothing_waits() -> None:
    encoder = Encoder()
    assert (encoder.enabled, encoder.state, encoder.problem) == (False, "off", None)
    encoder.begin()
    assert encoder.ready(GUARD) is None
    assert encoder.query("anything", GUARD) is None
    assert encoder.state == "off"


def test_it_is_idle_until_it_is_wanted_then_warming_then_ready(gate: Gate, model: Model) -> None:
    encoder = Encoder("small", gate)
    assert (encoder.enabled, encoder.state, gate.made) == (True, "idle", 0)
    assert encoder.query("anything") is None
    assert gate.begun.wait(GUARD)
    assert encoder.state == "warming"
    assert encoder.ready() is None
    assert encoder.ready(0.001) is None
    gate.opened.set()
    assert encoder.ready(GUARD) is model
    assert (encoder.state, encoder.problem) == ("ready", None)
    assert model.asked == []


def test_whoever_says_for_how_long_waits_until_it_is_loaded(gate: Gate, model: Model) -> None:
    encoder = Encoder("small", gate)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(encoder.query("anything", GUARD)))
    waiting.start()
    assert gate.begun.wait(GUARD)
    assert found == []
    gate.opened.set()
    waiting.join(GUARD)
    assert found[0].tolist() == [8.0, 1.0]


def test_many_who_want_it_at_once_load_it_once(gate: Gate, model: Model) -> None:
    encoder = Encoder("small", gate)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.ready(GUARD))) for _ in range(12)]
    for thread in threads:
        thread.start()
    gate.opened.set()
    for thread in threads:
        thread.join(GUARD)
    assert found == [model] * 12
    assert gate.made == 1


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (EmbeddingFailed("The weights are gone."), "The weights are gone."),
        (RuntimeError("a place/and a secret"), "The model cannot be loaded: RuntimeError."),
        (MemoryError(), "The model cannot be loaded: MemoryError."),
    ],
)
def test_a_model_that_cannot_be_had_is_not_tried_again(fault: Exception, problem: str, watch: Watch) -> None:
    tries: list[int] = []

    def make() -> Any:
        tries.append(1)
        raise fault

    encoder = Encoder("small", make)
    for _ in range(3):
        assert encoder.ready(GUARD) is None
        assert encoder.query("anything", GUARD) is None
        assert (encoder.state, encoder.problem) == ("unavailable", problem)
        watch.seconds += 10 * REST_SECONDS
    assert len(tries) == 1


def test_a_query_is_embedded_once(encoder: Encoder, model: Model) -> None:
    first = encoder.query("stop")
    assert first is not None
    assert encoder.query("stop") is first
    assert encoder.query("stop ") is not first
    assert model.asked == ["stop", "stop "]


def test_of_many_queries_those_asked_last_are_kept(encoder: Encoder, model: Model) -> None:
    for number in range(QUERIES_KEPT):
        encoder.query(f"query {number}")
    encoder.query("query 0")
    encoder.query("one more")
    model.asked.clear()
    encoder.query("query 0")
    encoder.query("one more")
    encoder.query(f"query {QUERIES_KEPT - 1}")
    assert model.asked == []
    encoder.query("query 1")
    assert model.asked == ["query 1"]


def test_a_query_on_another_thread_gives_the_same(encoder: Encoder, model: Model) -> None:
    assert encoder.query_soon("stop").result(GUARD) is encoder.query("stop")
    model.fault = EmbeddingFailed("Gone.")
    assert encoder.query_soon("another").result(GUARD) is None
    assert encoder.state == "resting"


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (EmbeddingFailed("The endpoint is gone."), "The endpoint is gone."),
        (RuntimeError("a place/and a secret"), "The model failed: RuntimeError."),
    ],
)
def test_one_that_fails_rests_and_is_asked_again_after_a_while(
    fault: Exception, problem: str, encoder: Encoder, model: Model, watch: Watch
) -> None:
    kept = encoder.query("before")
    model.fault = fault
    assert encoder.query("stop") is None
    assert (encoder.state, encoder.problem) == ("resting", problem)
    watch.seconds += REST_SECONDS - 0.01
    model.asked.clear()
    assert encoder.ready(GUARD) is None
    assert encoder.query("stop", GUARD) is None
    assert model.asked == []
    watch.seconds += 0.02
    assert encoder.state == "ready"
    assert encoder.query("stop") is None  # it still fails, and rests again
    assert (encoder.state, model.asked) == ("resting", ["stop"])
    model.fault = None
    watch.seconds += REST_SECONDS
    assert encoder.query("stop") is not None
    assert (encoder.state, encoder.problem) == ("ready", None)
    assert encoder.query("before") is kept


def test_one_that_failed_elsewhere_rests_too(encoder: Encoder, model: Model, watch: Watch) -> None:
    """The texts of a ledger are embedded by whoever asked for the model itself."""
    encoder.failed(EmbeddingFailed("The endpoint is gone."))
    assert (encoder.state, encoder.problem) == ("resting", "The endpoint is gone.")
    assert encoder.query("stop") is None
    watch.seconds += REST_SECONDS
    assert encoder.ready() is model


def test_many_threads_that_ask_at_once_all_get_their_vector(encoder: Encoder) -> None:
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        for turn in range(50):
            found[number] = encoder.query(f"{'x' * (turn % 7)}{number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert sorted(found) == list(range(8))
    assert all(vector is not None for vector in found.values())
