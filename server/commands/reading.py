"""status, log and show: what a ledger holds and how it stands."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import Annotated

import typer

from store import Book
from store.clock import format_instant
from store.embedding.bundled import MODEL, missing_parts
from store.embedding.loading import Encoder
from store.engines.base import EngineStatus
from store.entry import Entry
from store.errors import InvalidInput, NotFound, StoreError
from store.events import event_types
from store.export.manifest import read_status
from store.lifecycle import KINDS
from store.rows import EntryFilter, Head
from store.symbols import normalise_symbol

from .. import __version__
from ..embedding import encoder_of
from ..near_miss import did_you_mean
from .matching import matching
from .place import (
    AsOfOption,
    ConfigOption,
    JsonOption,
    Place,
    RootOption,
    RunOption,
    StrategyOption,
    as_of_instant,
    find_place,
)
from .screen import entry_line, entry_record, entry_told, plain, say
from .wording import worded

FOLLOW_SECONDS = 0.5


def status(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where the ledger lies and how it stands. Exit 1 when something is wrong with it."""
    place = find_place(config, root, strategy, run)
    encoder = encoder_of(place.settings, os.environ)
    try:
        book = place.open(encoder)
    except NotFound:
        _say_status(place, None, None, {}, as_json=as_json)
        return
    try:
        found = book.status()
        head = book.head() if found.problem is None else None
        more: dict[str, object] = {}
        if found.problem is None:
            waiting, _ = book.review_queue(limit=1)
            more = {"waiting": waiting, "embedding": _embedding(book, encoder)}
    finally:
        book.close()
    _say_status(place, found, head, more, as_json=as_json)
    if found.problem is not None:
        raise typer.Exit(1)


def log(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    agent: Annotated[str | None, typer.Option(help="Only entries of this agent.")] = None,
    event: Annotated[str | None, typer.Option(help="Only this event type, e.g. memory.retrieved.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only memories of this kind.")] = None,
    symbol: Annotated[
        str | None, typer.Option(help="Only this instrument, and the searches narrowed to it.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    since: Annotated[str | None, typer.Option(help="From this ISO time on, or this date.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this ISO time, or the start of this date.")] = None,
    as_of: AsOfOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as entries arrive.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print entries of the ledger, the newest last."""
    place = find_place(config, root, strategy, run)
    conditions = {
        "agent": agent,
        "event_type": _known(event, event_types(), "--event"),
        "kind": _known(kind, KINDS, "--kind"),
        "symbol": normalise_symbol(symbol),
        "session_id": session,
        "since": place.instant(since, "--since"),
        "until": place.instant(until, "--until"),
    }
    instant, zone = as_of_instant(as_of), place.zone
    book = place.open()
    try:
        newest = EntryFilter(**conditions, newest_first=True, limit=limit)  # type: ignore[arg-type]
        shown = matching(book, newest, instant)
        after = book.head().sequence
        _print(reversed(shown), zone, as_json=as_json)
        if not shown:
            typer.echo("no entries match", err=True)
        while follow and as_of is None:
            sys.stdout.flush()
            time.sleep(FOLLOW_SECONDS)
            last = book.head().sequence
            if last > after:
                _print(_between(book, conditions, after, last), zone, as_json=as_json)
                after = last
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    finally:
        book.close()


def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A memory, search, session or event id.")],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print every entry about one memory, search or session, whole."""
    place = find_place(config, root, strategy, run)
    instant = as_of_instant(as_of)
    book = place.open()
    try:
        found = book.show(name, instant)
    except NotFound as fault:
        raise NotFound(
            fault.message, hint="`deskbook log` lists the entries, `deskbook log --kind thesis` the theses."
        ) from None
    finally:
        book.close()
    if as_json:
        _print(found, None, as_json=True)
        return
    for entry in found:
        say(entry_line(entry, place.zone))
        say(plain(json.dumps(entry_told(entry, place.zone), ensure_ascii=False, indent=2)))


def _known(word: str | None, known: Sequence[str], option: str) -> str | None:
    """The word as given; raises InvalidInput when the ledger never holds it."""
    if word is None or word in known:
        return word
    raise InvalidInput(
        f'{option} "{plain(word[:64])}" is not known{did_you_mean(word, known)}.',
        field=option,
        hint=f"One of {', '.join(known)}.",
    )


def explain(
    name: Annotated[str, typer.Argument(metavar="ID", help="An order action, a decision or a thesis.")],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell why it came about: what was shown and searched before, the thesis, the intent, the outcome."""
    place = find_place(config, root, strategy, run)
    instant = as_of_instant(as_of)
    book = place.open()
    try:
        found = book.explain(name, instant)
    except NotFound:
        raise NotFound(
            f'"{plain(name[:64])}" names no order, decision or thesis of this ledger.',
            hint="`deskbook log --kind thesis` lists the theses; so do --kind decision and --kind order_action.",
        ) from None
    finally:
        book.close()
    if as_json:
        say(json.dumps(found.body))
        return
    for line in found.lines():
        say(plain(line))


def _between(book: Book, conditions: Mapping[str, object], after: int, last: int) -> Iterator[Entry]:
    while page := matching(book, EntryFilter(**conditions, after=after, until_sequence=last), None):  # type: ignore[arg-type]
        yield from page
        after = page[-1].sequence


def _print(entries: Iterable[Entry], zone: tzinfo | None, *, as_json: bool) -> None:
    for entry in entries:
        # In ASCII: control characters above it would drive a terminal that the JSON is printed on.
        say(json.dumps(entry_record(entry)) if as_json else entry_line(entry, zone))


def _exports(place: Place) -> object:
    """How the Parquet copies stand: off, none yet, what is wrong in their place, or the whole of it."""
    if not place.settings.export.enabled:
        return "off"
    try:
        found = read_status(place.settings.store.root, place.path)
    except StoreError as fault:
        return fault.message
    return "none yet; a server makes them" if found is None else asdict(found)


def _embedding(book: Book, encoder: Encoder) -> str:
    """How the vectors stand, without loading the model."""
    if not encoder.enabled:
        return "off: searches go by words"
    if encoder.model == MODEL and (lacking := missing_parts()):
        return f"unavailable, searches go by words: {lacking}"
    try:
        waiting = book.embedding_backlog()
    except ImportError:
        return "unavailable, searches go by words: numpy is missing"
    return f"{encoder.model}; " + (f"{waiting:,} texts wait" if waiting else "every text has its vectors")


def _say_status(
    place: Place,
    found: EngineStatus | None,
    head: Head | None,
    more: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    told: dict[str, object] = {
        "version": __version__,
        "root": str(place.settings.store.root),
        "strategy": place.strategy,
        "run": place.run,
        "config": None if place.settings.config is None else str(place.settings.config),
        "path": str(place.path),
        "ledger": "none yet; the first write makes it" if found is None else "open",
    }
    if found is not None:
        told |= {name: value for name, value in asdict(found).items() if name != "path"}
        told["exports"] = _exports(place)
    told |= more
    if head is not None:
        zone = None if as_json else place.zone
        told["last_entry_at"] = format_instant(head.effective_at, zone)
        if head.latest_effective_at > head.effective_at:
            told["clock"] = (
                f"an entry is dated {format_instant(head.latest_effective_at, zone)}, later than the last one: reads "
                "as of a time before it do not see what came after it"
            )
    if as_json:
        say(json.dumps(told))
        return
    for name, value in told.items():
        say(f"{name:<14} {plain(_exports_worded(value) if isinstance(value, dict) else worded(value))}")


def _exports_worded(told: Mapping[str, object]) -> str:
    """The exports on one line."""
    line = f"through sequence {told['through']}, written {told['last_success'] or 'never'}"
    if told["failure"] is not None:
        line += f"; failed {told['last_failure']}: {told['failure']}"
    return line
