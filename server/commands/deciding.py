"""What the decisions of a reviewer share: the ledger, the wording they hold for, the time, and who decides."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

import click
import typer

from store import Book, Caller, Written
from store.clock import format_instant, parse_instant
from store.commands import Command
from store.errors import ClockError, ConfigError, DeskbookError, InvalidInput
from store.review.items import FlagItem, ReviewItem

from ..reviewers import check_named, reviewer_caller
from ..typed import hints_with_place, place_words, with_place
from .items import flag_lines, item_lines
from .place import Place
from .questions import agree, ask_words, leaving
from .screen import one_line, plain, say
from .spelling import TYPED, as_typed

TOOL: Final = "review"
NOW: Final = "DESKBOOK_NOW"
LARGEST: Final = 1_048_576
_EDITORS: Final = ("VISUAL", "EDITOR")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The memory.")]
AsOption = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="The reviewer you are; the only one by default.")
]
HashOption = Annotated[
    str | None, typer.Option("--hash", help="The hash of the wording you saw; `review show` prints it.")
]
NowOption = Annotated[str | None, typer.Option("--now", help="In a run: its time, ISO with offset.")]
NoteOption = Annotated[str | None, typer.Option("--note", help="A word on why, kept with the decision.")]
TextOption = Annotated[str | None, typer.Option("--text", help="The new words.")]
FileOption = Annotated[
    Path | None, typer.Option("--file", help="Read the new words from this file; - is standard input.")
]
TagsOption = Annotated[
    list[str] | None, typer.Option("--tags", help="Tags, with commas between them or once for each.")
]


@dataclass(slots=True)
class Desk:
    """A person at an open ledger; asked who they are at the first decision, and once."""

    place: Place
    book: Book
    as_name: str | None
    now: str | None
    tool: str = TOOL
    names: Mapping[str, str] = field(default_factory=lambda: TYPED)
    _caller: Caller | None = field(default=None, init=False)

    def caller(self) -> Caller:
        """The reviewer, at the run's time in a run; raises what `reviewer_caller` raises."""
        at = self._time()
        if self._caller is None:
            self._caller = reviewer_caller(self.place.settings, self.as_name, os.environ, tool=self.tool)
        return replace(self._caller, now=at)

    def decide(self, command: Command) -> Written:
        """Have the ledger record a decision; raises what it says, in the words that a person typed."""
        with as_typed(self.names):
            return self.book.execute(self.caller(), command)

    def check_reviewer(self) -> None:
        """Raise what `check_named` raises, before a question that would be for nothing."""
        check_named(self.place.settings, self.as_name, os.environ)

    def show(self, item: ReviewItem) -> None:
        """Print a memory whole."""
        for line in item_lines(self.book, item, self.place.zone):
            say(line)

    def next_step(self, text: str) -> None:
        """Say what to do next, its commands completed so that they lead to this ledger."""
        words = place_words(self.place.settings)
        if self.place.settings.set_at_launch("store.strategy"):
            words += ["--strategy", self.place.strategy]
        if self.place.settings.set_at_launch("run"):
            words += ["--run", self.place.run or ""]
        say(plain(with_place(text, words)))

    def _time(self) -> int | None:
        """A run's time: as asked, else that of its last entry; the live ledger has the machine's."""
        origin, text = ("--now", self.now) if self.now is not None else (NOW, os.environ.get(NOW) or None)
        if self.place.run is None:
            if text is not None:
                raise ClockError(
                    f"The live ledger takes its time from the machine, so {origin} is refused.",
                    field=origin,
                    hint="Leave it away, or name a run with --run.",
                )
            return None
        return self.book.head().latest_effective_at if text is None else parse_instant(text, field=origin)


@contextmanager
def at_desk(
    place: Place,
    as_name: str | None = None,
    now: str | None = None,
    *,
    tool: str = TOOL,
    make: bool = False,
    names: Mapping[str, str] = TYPED,
) -> Iterator[Desk]:
    """The place's ledger open for a person; errors are in the words of the command, their hints lead here again."""
    with hints_with_place(place.settings), as_typed(names), leaving():
        book = place.open(make=make)
        try:
            desk = Desk(place, book, as_name, now, tool, names)
            if as_name is not None:
                desk.check_reviewer()
            yield desk
        finally:
            book.close()


def shown_wording(desk: Desk, memory_id: str, given: str | None, question: str) -> str:
    """The hash of the wording that is decided on: as given, else that of what is shown here and agreed to.

    Raises ConfigError where none is given and there is no terminal to show anything in.
    """
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise ConfigError(
            "Without a terminal a decision names the wording it is about: --hash HASH.",
            field="--hash",
            hint=f"`deskbook review show {one_line(memory_id, 40)}` shows the memory and its hash.",
        )
    item = desk.book.review_item(memory_id)
    desk.check_reviewer()
    desk.show(item)
    agree(question)
    return item.shown_sha256


def new_wording(text: str | None, old: Callable[[], str]) -> str:
    """Other words for a memory: as given, else as an editor gives them back, else as typed.

    Raises ConfigError without a terminal, and click's Abort where the words stay as they are.
    """
    if text is not None:
        return text
    if not sys.stdin.isatty():
        raise ConfigError("Without a terminal the new words come with --text or --file.", field="--text")
    if not any(os.environ.get(name) for name in _EDITORS):
        return ask_words("New text", "The memory needs some words.")
    before = old()
    edited = click.edit(before, extension=".txt")
    if edited is None or edited.strip() in ("", before.strip()):
        typer.echo("the words are as they were", err=True)
        raise typer.Abort
    return edited.rstrip("\n")


def ask_reason() -> str:
    """Why a memory is kept out, as typed."""
    return ask_words("Why", "A rejection needs a reason, which is kept with it.")


def read_text(text: str | None, file: Path | None, option: str = "--text") -> str | None:
    """The words of `option` or of a file (`-` is standard input), as they are but for the line's end; or None.

    Raises ConfigError for both at once and for what cannot be read, InvalidInput for what is no UTF-8 or too large.
    """
    if file is None:
        return text
    if text is not None:
        raise ConfigError(f"{option} and --file exclude each other.", field="--file")
    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with file.open("rb") as opened:
                raw = opened.read(LARGEST + 1)
    except OSError as fault:
        raise ConfigError(
            f"The file of --file cannot be read: {os.strerror(fault.errno or 0)}.", field="--file", where=file
        ) from None
    if len(raw) > LARGEST:
        raise InvalidInput(f"The text has more than {LARGEST:,} bytes.", field="--file")
    try:
        return raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput("The text is not UTF-8.", field="--file", hint="Save it as UTF-8.") from None


def tag_words(given: list[str] | None) -> tuple[str, ...]:
    """The tags of --tags, which may be given once with commas or several times."""
    return tuple(word.strip() for text in given or () for word in text.split(",") if word.strip())


def show_flag(desk: Desk, found: FlagItem) -> None:
    """Print a flag with the memories it is about."""
    for line in flag_lines(desk.book, found, desk.place.zone):
        say(line)


def tell(desk: Desk, verb: str, written: Written) -> None:
    """Say what a decision did, and what the ledger has to say about it."""
    stands = f"{written.status}, version {written.version}"
    say(plain(f"{verb} {written.id} ({stands}; entry {written.sequence}, {written.event_id})"))
    for warning in written.warnings:
        say(plain(f"  {warning}"))
    if desk.place.run is not None:
        say(f"  in run {one_line(desk.place.run)} at {format_instant(written.effective_at, desk.place.zone)}")


def told(fault: DeskbookError) -> str:
    """An error on the screen of a person who goes on."""
    return plain(f"deskbook: {fault.message}" + (f"\n  {fault.hint}" if fault.hint else ""))
