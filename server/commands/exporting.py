"""export: the ledger in other forms, in a folder of one's own."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from store.errors import ConfigError, NotFound
from store.symbols import normalise_symbol

from .place import (
    AsOfOption,
    ConfigOption,
    Place,
    RootOption,
    RunOption,
    StrategyOption,
    as_of_instant,
    find_place,
)
from .screen import plain, progress_bar, say
from .wording import counted

if TYPE_CHECKING:
    from store.export.handmade import Handmade
    from store.export.selection import Selection


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


class Format(StrEnum):
    """The forms of an export."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    form: Annotated[Format, typer.Option("--format", help="The form of the copy.")] = Format.PARQUET,
    since: Annotated[str | None, typer.Option(help="From this ISO time on, or this date.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this ISO time, or the start of this date.")] = None,
    symbol: Annotated[
        str | None, typer.Option(help="Only this instrument, and the searches narrowed to it.")
    ] = None,
    as_of: AsOfOption = None,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Parquet: one file for each table.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the export that is there.")] = False,
) -> None:
    """Write the ledger as Parquet, JSON lines or CSV into a folder. Nothing is overwritten without --force."""
    if single_file and form is not Format.PARQUET:
        raise ConfigError(
            "--single-file goes with --format parquet.",
            field="--single-file",
            hint="JSON lines are one file, and CSV is one for each table.",
        )
    if (scheme := _SCHEME.match(str(folder))) is not None:
        raise ConfigError(
            f"DIR is the path of a folder, and `{scheme[1]}:` begins an address.",
            field="DIR",
            hint="Name the folder itself, such as exports/march.",
        )
    place = find_place(config, root, strategy, run)
    instants = place.instant(since, "--since"), place.instant(until, "--until"), as_of_instant(as_of)
    place.check_present()
    done = _write(place, folder.absolute(), form, instants, symbol, single_file=single_file, force=force)
    rows = ", ".join(f"{table} {count:,}" for table, count in done.rows.items())
    say(f"{counted(len(done.files), 'file', 'files')} in {plain(str(folder.absolute()))}")
    say(f"rows: {rows}; up to sequence {done.through}")


def _write(
    place: Place,
    folder: Path,
    form: Format,
    instants: tuple[int | None, int | None, int | None],
    symbol: str | None,
    *,
    single_file: bool,
    force: bool,
) -> Handmade:
    try:
        from store.export.handmade import Export, check_target
    except ImportError as fault:
        raise NotFound(
            f"pyarrow cannot be imported: {fault}.", hint="Install Deskbook with its dependencies again."
        ) from None
    from store.export.source import ledger_snapshot

    settings = place.settings
    check_target(folder, settings.store.root, force=force)
    with ledger_snapshot(settings.store.root, place.strategy, place.run) as snapshot:
        head = snapshot.head()
        selection = _selection(place, instants, symbol, head.latest_effective_at if head else None)
        with progress_bar("exporting") as advance:
            made = Export(folder, snapshot, selection, advance)
            if form is Format.PARQUET:
                return made.parquet(single_file=single_file)
            return made.csv() if form is Format.CSV else made.jsonl()


def _selection(
    place: Place, instants: tuple[int | None, int | None, int | None], symbol: str | None, now: int | None
) -> Selection:
    from store.export.selection import Selection

    since, until, as_of = instants
    rules = place.settings.symbols.rules
    at = now if as_of is None else as_of
    return Selection(since, until, normalise_symbol(symbol), rules.lines(symbol, at, field="--symbol"), as_of)
