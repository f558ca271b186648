"""Questions to a person at the terminal; who leaves one unanswered is told what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer

UNCHANGED: Final = "Nothing was changed."


def ask(question: str) -> str:
    """What a person types, which may be nothing; raises typer's Abort where they leave."""
    with _own_line():
        typed: str = typer.prompt(question, default="", show_default=False, err=True)
    return typed.strip()


def ask_words(question: str, need: str) -> str:
    """Words that a person types; an empty line is told what it lacks, and asked again."""
    while not (typed := ask(question)):
        typer.echo(need, err=True)
    return typed


def agree(question: str) -> None:
    """Go on with a yes; raises typer's Abort for a no, and where they leave."""
    with _own_line():
        agreed = typer.confirm(question, err=True)
    if not agreed:
        raise typer.Abort


@contextmanager
def leaving(words: str = UNCHANGED) -> Iterator[None]:
    """Where a person says no or leaves at a question inside, say so in these words, and end with exit 1."""
    try:
        yield
    except typer.Abort:
        typer.echo(words, err=True)
        raise typer.Exit(1) from None


@contextmanager
def _own_line() -> Iterator[None]:
    """End the line of a question that is left with ^C or ^D."""
    try:
        yield
    except typer.Abort:
        typer.echo(err=True)
        raise
