"""redact: take what should never have been written out of a ledger, for good, and every trace of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.errors import ConfigError, InvalidInput

from ..checkpoint_keys import refuse_inside, register_folder
from ..reviewers import check_named, reviewer_caller
from ..typed import hints_with_place
from .deciding import AsOption
from .place import ConfigOption, JsonOption, Place, RootOption, RunOption, StrategyOption, find_place
from .questions import agree, leaving
from .screen import one_line, plain, say
from .spelling import as_typed
from .wording import counted

if TYPE_CHECKING:
    from store.redaction.desk import Look, Redacted, Wanted

TOOL = "redact"
MOST_LISTED = 20
MOST_BYTES = 1_048_576
LEAST_CHARS = 4


def redact(
    name: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="A memory, a search, an event id or a sequence."),
    ] = None,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, in words that stay.")] = None,
    containing: Annotated[
        Path | None, typer.Option("--containing-file", help="Also every entry that holds this file's text.")
    ] = None,
    with_quotes: Annotated[
        bool, typer.Option("--with-quotes", help="Also what others wrote and that quotes it whole.")
    ] = False,
    past_retention: Annotated[
        bool, typer.Option("--past-retention", help="All memories older than [retention] keep.")
    ] = False,
    as_name: AsOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take content away for good: only its structure stays, and the proof that nothing else was changed."""
    # Here and not above: what writes Parquet files and vectors takes half a second to import.
    from store.redaction.desk import Desk
    from store.redaction.register import Register

    place = find_place(config, root, strategy, run)
    with hints_with_place(place.settings), as_typed(), leaving():
        place.check_present()
        desk = Desk(
            place.settings.store.root,
            place.strategy,
            place.run,
            Register(register_folder()),
            legal_hold=place.settings.retention.legal_hold,
        )
        refuse_inside(register_folder(), place.settings.store.root, "--root")
        desk.refuse_on_hold()
        wanted = _wanted(place, name, containing, with_quotes=with_quotes, past_retention=past_retention)
        look = desk.look(wanted)
        if past_retention and not look.subjects and name is None and containing is None:
            _say_none_is_due(look, as_json=as_json)
            return
        told = desk.check_reason(_reason(reason), look, wanted)
        if not as_json:
            _say_look(look, place)
        check_named(place.settings, as_name, os.environ)
        _confirm(look, yes=yes)
        caller = reviewer_caller(place.settings, as_name, os.environ, tool=TOOL)
        done = desk.redact(caller, wanted, told)
    _say_done(done, as_json=as_json)
    if done.remains or look.unreadable:
        raise typer.Exit(1)


def _wanted(
    place: Place, name: str | None, containing: Path | None, *, with_quotes: bool, past_retention: bool
) -> Wanted:
    from store.redaction.desk import Wanted

    keep = place.settings.retention.keep
    if past_retention and keep is None:
        raise ConfigError(
            "Nothing is past its time: content is kept forever.",
            field="retention.keep",
            hint='Say how long in the config, such as [retention] keep = "365d".',
        )
    if name is None and containing is None and not past_retention:
        raise InvalidInput(
            "Nothing was named.", field="ID", hint="Name an id, --containing-file or --past-retention."
        )
    return Wanted(
        names=() if name is None else (name,),
        containing=None if containing is None else _text_of(containing),
        older_than=keep if past_retention else None,
        with_quotes=with_quotes,
    )


def _text_of(file: Path) -> str:
    """The text in a file, which so stays out of the shell's history; a last line break is none of it."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
        text = raw.decode("utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            "The file cannot be read as text.", field="--containing-file", hint="Name a file in UTF-8."
        ) from None
    if not LEAST_CHARS <= len(text) <= MOST_BYTES:
        raise InvalidInput(
            f"The text has {len(text)} characters; at least {LEAST_CHARS} are needed.",
            field="--containing-file",
            hint="A shorter text stands in too much that has nothing to do with it.",
        )
    return text


def _reason(given: str | None) -> str:
    if given is None:
        raise InvalidInput(
            "A redaction needs a reason.", field="--reason", hint="Say why, without saying what it is."
        )
    return given


def _confirm(look: Look, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            "Redacting is asked about in a terminal, and there is none.",
            field="--yes",
            hint="Run it in a terminal, or add --yes.",
        )
    asked = "Purge its traces again?" if look.nothing else "Take this away for good?"
    agree(asked)


def _say_look(look: Look, place: Place) -> None:
    if look.nothing:
        say("Nothing of it has its content any more.")
    for seen in look.seen:
        counts = seen.coverage.counts()
        if counts:
            where = "the ledger" if seen.run == place.run else f"run {one_line(str(seen.run))}"
            say(f"in {where}, of {counted(sum(counts.values()), 'entry', 'entries')} the content goes:")
            for event_type, count in counts.items():
                say(f"  {count:>6}  {event_type}")
        _say_some(
            seen.coverage.quotes,
            "quotes it whole and stays (--with-quotes takes it too):",
            "quote it whole and stay (--with-quotes takes them too):",
        )
        _say_some(seen.coverage.beyond, "holds it and cannot be redacted:", "hold it and cannot be redacted:")
    _say_needed(look)
    for run in look.unreadable:
        say(f"run {one_line(run)} cannot be read, and may hold copies: `deskbook run list` says why")


def _say_needed(look: Look) -> None:
    if look.needed:
        say(f"past the time and still needed: {counted(len(look.needed), 'memory', 'memories')}")
        for memory_id in look.needed[:MOST_LISTED]:
            say(f"  {one_line(memory_id)}")


def _say_none_is_due(look: Look, *, as_json: bool) -> None:
    from store.redaction.desk import Redacted

    if as_json:
        say(json.dumps(_told(Redacted())))
        return
    say("Nothing that may go is past its time." if look.needed else "Nothing is past its time.")
    _say_needed(look)


def _say_some(found: dict[int, str], one: str, many: str) -> None:
    if not found:
        return
    say(f"{counted(len(found), 'entry', 'entries')} {one if len(found) == 1 else many}")
    for sequence, name in list(found.items())[:MOST_LISTED]:
        say(f"  {sequence:>6}  {one_line(name)}")


def _say_done(done: Redacted, *, as_json: bool) -> None:
    if as_json:
        say(json.dumps(_told(done)))
        return
    for run, count in done.entries.items():
        where = "" if run is None else f" of run {one_line(run)}"
        said = ", ".join(map(str, done.said[run]))
        say(f"took the content of {counted(count, 'entry', 'entries')}{where} away; entry {said} says so")
    if not done.entries:
        say("its traces were purged again")
    for purged in done.purged.values():
        for removed in purged.removed:
            say(f"removed {plain(removed)}")
        for what, hint in zip(purged.remains, purged.hints, strict=True):
            say(f"REMAINS: {plain(what)}")
            say(f"  {plain(hint)}")
    _say_what_holds_it(done)
    if not done.remains:
        _say_end(done)


def _say_what_holds_it(done: Redacted) -> None:
    for run, sequences in done.quotes.items():
        one, where = len(sequences) == 1, "" if run is None else f" --run {one_line(run)}"
        say(
            f"{_named(sequences, run)} still {'holds' if one else 'hold'} it:"
            f" {'it quotes' if one else 'they quote'} it whole and {'stays' if one else 'stay'}"
        )
        say(
            "  --with-quotes takes such entries too. Now that the text is gone, take each by its number,"
            f" such as `deskbook redact {sequences[0]}{where}`"
        )
    for run, sequences in done.beyond.items():
        holds = "holds" if len(sequences) == 1 else "hold"
        say(f"{_named(sequences, run)} still {holds} it and cannot be redacted")


def _named(sequences: tuple[int, ...], run: str | None) -> str:
    word = "entry" if len(sequences) == 1 else "entries"
    more = f" and {len(sequences) - MOST_LISTED} more" if len(sequences) > MOST_LISTED else ""
    where = "" if run is None else f" of run {one_line(run)}"
    return f"{word} {', '.join(map(str, sequences[:MOST_LISTED]))}{more}{where}"


def _say_end(done: Redacted) -> None:
    elsewhere = "backups and exports made elsewhere are yours to delete"
    if done.quotes or done.beyond:
        say(f"nothing else in the store holds it; {elsewhere}")
    elif done.quotes_sought:
        say(f"no trace remains in the store; {elsewhere}")
    else:
        say("no copy that Deskbook made of it remains in the store; who else quotes it was not looked for")
        say(f"(--containing-file does that); {elsewhere}")


def _told(done: Redacted) -> dict[str, Any]:
    return {
        "redacted": [
            {"run": run, "entries": count, "said_by": list(done.said[run])}
            for run, count in done.entries.items()
        ],
        "quoted_by": _held_by(done.quotes),
        "held_by": _held_by(done.beyond),
        "removed": [name for purged in done.purged.values() for name in purged.removed],
        "remains": done.remains,
    }


def _held_by(found: dict[str | None, tuple[int, ...]]) -> list[dict[str, Any]]:
    return [{"run": run, "sequences": list(sequences)} for run, sequences in found.items()]
