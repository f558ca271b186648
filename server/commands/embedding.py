"""embed: make the vectors that searches by meaning need, now and not in the background."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from store.errors import ConfigError, EmbeddingFailed, StoreError

from ..embedding import encoder_of
from .place import ConfigOption, RootOption, RunOption, StrategyOption, find_place
from .screen import progress_bar, say
from .wording import counted

if TYPE_CHECKING:
    from store import Book
    from store.embedding.loading import Encoder

LOAD_SECONDS: Final = 60.0
TURN_SECONDS: Final = 0.2


def embed(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    model: Annotated[
        str | None, typer.Option(help="A model of the configured endpoint instead of its usual one.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Begin anew: the model behind the name has changed.")
    ] = False,
) -> None:
    """Embed every text that has no vectors yet. Stopped at any moment, it goes on from there the next time."""
    place = find_place(config, root, strategy, run)
    settings = place.settings.embedding
    if settings.provider == "none":
        raise ConfigError(
            'embedding.provider is "none": searches go by words.',
            field="embedding.provider",
            hint='Set it to "local" or "openai".',
        )
    if model is not None and settings.provider != "openai":
        raise ConfigError(
            "--model needs an endpoint; the bundled model is the only one that runs here.",
            field="--model",
            hint='Set embedding.provider = "openai" and embedding.url.',
        )
    encoder = encoder_of(place.settings, os.environ, model)
    if encoder.ready(LOAD_SECONDS) is None:
        raise EmbeddingFailed(encoder.problem or "The model is not loaded in time.")
    book = place.open(encoder)
    try:
        if again:
            book.forget_vectors()
        done = _embed_all(book, encoder)
    except OSError as fault:
        raise StoreError(
            f"The vectors cannot be written: {os.strerror(fault.errno or 0)}.",
            hint="Make the folder vectors beside the ledger writable, with room on its disk.",
        ) from None
    finally:
        book.close()
    say(f"{counted(done, 'text', 'texts')} embedded with {encoder.model}; every text has its vectors")


def _embed_all(book: Book, encoder: Encoder) -> int:
    """Embed until nothing is left; another process that embeds meanwhile takes turns with this one."""
    total, done = book.embedding_backlog(), 0
    with progress_bar("embedding") as advance:
        while True:
            step = book.embed_next()
            if step is None:
                raise EmbeddingFailed(
                    encoder.problem or "The model is not ready.", hint="Run it again: it goes on."
                )
            done += step.versions
            advance(done, max(total, done))
            if not step.more:
                return done
            if step.busy:
                time.sleep(TURN_SECONDS)
