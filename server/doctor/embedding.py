"""Search by meaning: whether the model can be had, and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from store.embedding.bundled import missing_parts
from store.errors import ConfigError, EmbeddingFailed

from ..embedding import encoder_of
from .findings import Finding, fault, ok, warn
from .subject import Subject

NAME: Final = "embedding"
LOAD_SECONDS: Final = 30.0


def check_embedding(subject: Subject) -> Iterator[Finding]:
    """Whether searches can go by meaning; the model is loaded and asked once."""
    settings = subject.settings.embedding
    if settings.provider == "none":
        yield ok(NAME, "off, as the settings say: searches go by words")
        return
    if settings.provider == "local" and (lacking := missing_parts()):
        yield warn(NAME, f"{lacking}: searches go by words", "Install Deskbook with its dependencies again.")
        return
    try:
        encoder = encoder_of(subject.settings, subject.environ)
    except ConfigError as error:
        yield fault(NAME, error)
        return
    embedder = encoder.ready(LOAD_SECONDS)
    if embedder is None:
        yield warn(
            NAME,
            f"{encoder.problem or 'The model cannot be loaded in time.'} Searches go by words.",
            "Install Deskbook again.",
        )
        return
    try:
        length = embedder.embed(["ready"]).shape[1]
    except EmbeddingFailed as error:
        yield warn(
            NAME, f"{error.message} Searches go by words.", error.hint or "Check [embedding] in the config."
        )
        return
    yield ok(NAME, f"{encoder.model}, vectors of {length} numbers")
