"""add: a person writes a memory, which stands approved at once."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from store.commands import Command, NoteRisk, Propose, ProposeLesson, Remember
from store.errors import ConfigError, InvalidInput

from .deciding import AsOption, NowOption, TagsOption, at_desk, read_text, tag_words, tell
from .place import ConfigOption, RootOption, RunOption, StrategyOption, find_place
from .spelling import TYPED

TOOL: Final = "add"


class Kind(StrEnum):
    """The kinds of memory that a person may write."""

    MEMORY = "memory"
    RISK_NOTE = "risk_note"
    LESSON = "lesson"
    PROPOSAL = "proposal"


COMMANDS: Final[dict[Kind, type[Remember | NoteRisk | ProposeLesson | Propose]]] = {
    Kind.MEMORY: Remember,
    Kind.RISK_NOTE: NoteRisk,
    Kind.LESSON: ProposeLesson,
    Kind.PROPOSAL: Propose,
}


def add(
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The words; - reads them from standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the words from this file.")] = None,
    kind: Annotated[Kind, typer.Option("--kind", help="What it is.")] = Kind.MEMORY,
    symbol: Annotated[str | None, typer.Option("--symbol", help="The instrument it is about.")] = None,
    tags: TagsOption = None,
    review_by: Annotated[
        str | None, typer.Option("--review-by", help="When to look at it again: ISO time or date.")
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="When it ends: ISO time or date.")
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_name: AsOption = None,
    now: NowOption = None,
) -> None:
    """Write a memory as a person: it stands approved at once, under your name."""
    place = find_place(config, root, strategy, run)
    words = read_text(None, Path("-")) if text == "-" and file is None else read_text(text, file, "TEXT")
    if words is None:
        raise ConfigError(
            "add takes the words as TEXT, with --file FILE, or from standard input as -.", field="TEXT"
        )
    given: dict[str, Any] = {
        "symbol": symbol,
        "tags": tag_words(tags),
        "review_by": place.instant(review_by, "--review-by"),
        "expires_at": place.instant(expires_at, "--expires-at"),
    }
    command = _command(kind, words, {name: value for name, value in given.items() if value})
    names = {**TYPED, "text": "TEXT" if file is None else "--file"}
    with at_desk(place, as_name, now, tool=TOOL, make=True, names=names) as desk:
        written = desk.decide(command)
        tell(desk, "kept", written)
        desk.next_step(f"Agents find it from now on; `deskbook review show {written.id}` shows it.")


def _command(kind: Kind, text: str, given: dict[str, Any]) -> Command:
    made = COMMANDS[kind]
    taken = {field.name for field in fields(made)}
    for name in given.keys() - taken:
        option = f"--{name.replace('_', '-')}"
        raise InvalidInput(f"A {kind} takes no {option}.", field=option, hint="Leave it away.")
    return made(text=text, **given)
