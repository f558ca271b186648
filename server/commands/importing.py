"""import: what another system or another copy of a ledger kept, brought into a ledger here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..checkpoint_keys import register_folder
from .place import ConfigOption, JsonOption, Place, RootOption, StrategyOption, find_place
from .screen import one_line, plain, progress_bar, say
from .wording import counted

if TYPE_CHECKING:
    from store.importers.jsonl import Restored

imports = typer.Typer(
    name="import", help="Bring in what another system or another copy kept.", no_args_is_help=True
)
IDS_SHOWN = 5

PathArgument = Annotated[Path, typer.Argument(metavar="PATH", help="The file to import; it is not changed.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be added, and write nothing.")]


@imports.command()
def lumibot(
    path: PathArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    name: Annotated[str, typer.Option("--as", help="Who imports; every entry says so.")] = "importer",
    into_existing: Annotated[
        bool, typer.Option("--into-existing", help="Also into a ledger that holds other entries.")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Import the memory.sqlite of a Lumibot 4.6 strategy; once more adds only what is new.

    What is wrong in the source is reported, and no failure.
    """
    from store.importers.lumibot import import_lumibot

    place = find_place(config, root, strategy, None)
    with progress_bar("importing") as advance:
        report = import_lumibot(
            path.expanduser().absolute(),
            place.settings.store.root,
            _named(place),
            agent=name,
            into_existing=into_existing,
            dry_run=dry_run,
            durability=place.settings.store.durability,
            product=f"deskbook {__version__}",
            progress=advance,
        )
    content = report.content()
    if as_json:
        say(json.dumps(content, ensure_ascii=False))
        return
    for file in report.files:
        say(f"read {plain(str(file['name']))}: {file['bytes']} bytes, sha256 {file['sha256']}")
    total = sum(report.rows.values())
    new = total - report.known
    say(f"{counted(total, 'row', 'rows')} in the source, {report.known} known, {new} new:")
    for kind, count in content["rows"].items():
        say(f"  {count:>6}  {one_line(kind)}")
    said = "would add, by type there" if dry_run else "added"
    say(f"{said}: {_counts(content['added'])}")
    _say_defects(content["defects"])
    say(f"{'would go' if dry_run else 'stands'} in strategy {plain(report.strategy)}: {plain(report.path)}")


@imports.command()
def jsonl(
    path: PathArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the ledger of an `export --format jsonl` anew, equal in every column; every line is proven first."""
    from store.importers.jsonl import import_jsonl

    place = find_place(config, root, strategy, None)
    with progress_bar("importing") as advance:
        made = import_jsonl(
            path.expanduser().absolute(),
            place.settings.store.root,
            strategy=_named(place),
            dry_run=dry_run,
            durability=place.settings.store.durability,
            progress=advance,
        )
    again = 0 if dry_run else _redacted_again(place, made)
    if as_json:
        say(json.dumps(asdict(made), ensure_ascii=False))
        return
    entries = counted(made.entries, "entry", "entries")
    run = f", run {plain(made.run)}" if made.run is not None else ""
    say(f"proven: {entries}, chain {made.chain_sha256}")
    said = "would add" if dry_run else "added"
    say(f"{said} {made.added} to strategy {plain(made.strategy)}{run}: {plain(made.path)}")
    if again:
        say(f"took the content of {counted(again, 'entry', 'entries')} away again, which were redacted since")


def _redacted_again(place: Place, made: Restored) -> int:
    """Take away what was redacted since the export was made; gives of how many entries."""
    from store.redaction.again import redact_again
    from store.redaction.opening import opened
    from store.redaction.purging import purge
    from store.redaction.register import Register

    path, root = Path(made.path), place.settings.store.root
    with opened(path, made.strategy, made.run, writes=False) as ledger:
        lines = Register(register_folder()).lines(ledger.store_id)
    again = redact_again(path, made.strategy, made.run, lines)
    if again:
        purge(root, path)
    return again


def _named(place: Place) -> str | None:
    """The strategy that this launch names; what a config says in general is no wish for this source."""
    return place.strategy if place.settings.set_at_launch("store.strategy") else None


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {one_line(name)}" for name, count in counts.items()) or "nothing"


def _say_defects(defects: dict[str, Any]) -> None:
    if not defects:
        say("no defects in the source")
        return
    say("defects in the source:")
    for code, found in defects.items():
        ids = ", ".join(one_line(name) for name in found["ids"][:IDS_SHOWN])
        more = found["total"] - min(found["total"], IDS_SHOWN)
        say(f"  {found['total']:>6}  {code}: {ids}{f' and {more} more (--json names them)' if more else ''}")
