"""backup and restore: a ledger copied whole while it is served, and put back when it proves to be the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from store.backup.manifest import manifest_path
from store.clock import WallClock
from store.redaction.register import Register

from .. import __version__
from ..checkpoint_keys import register_folder
from .place import ConfigOption, JsonOption, RootOption, RunOption, StrategyOption, find_place
from .screen import plain, progress_bar, say
from .wording import counted

if TYPE_CHECKING:
    from store.backup.keeping import Restored


def backup(
    target: Annotated[Path, typer.Argument(help="The file to write; its manifest goes beside it.")],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a ledger into one file while it is served, with a manifest that says what it must be."""
    # Here and not above: what writes Parquet files and vectors takes half a second to import.
    from store.backup.keeping import back_up

    place = find_place(config, root, strategy, run)
    with progress_bar("copying") as advance:
        made = back_up(
            place.path,
            target.expanduser().absolute(),
            product=f"deskbook {__version__}",
            now=WallClock().now(),
            force=force,
            progress=advance,
        )
    if as_json:
        say(json.dumps(asdict(made)))
        return
    written = target.expanduser().absolute()
    say(
        f"wrote {plain(str(written))}: {counted(made.portrait.sequence, 'entry', 'entries')}, {made.size_bytes} bytes"
    )
    say(f"and {plain(str(manifest_path(written)))}")
    say(f"chain {made.portrait.chain}")


def restore(
    source: Annotated[Path, typer.Argument(help="The file that `deskbook backup` wrote.")],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move a ledger that stands there aside and take its place.")
    ] = False,
) -> None:
    """Put a backup in a ledger's place, once it has proved to be what its manifest says.

    Exit 1 when something beside it still holds what was redacted since.
    """
    from store.backup.keeping import restore as put_back

    place = find_place(config, root, strategy, run)
    with progress_bar("proving") as advance:
        done = put_back(
            place.settings.store.root,
            place.strategy,
            place.run,
            source.expanduser().absolute(),
            register=Register(register_folder()),
            force=force,
            progress=advance,
        )
    for moved in done.moved:
        say(f"moved what stood there to {plain(str(moved))}")
    _say_restored(done)
    for what, hint in done.remains:
        say(f"REMAINS: {plain(what)}")
        say(f"  {plain(hint)}")
    if done.remains:
        raise typer.Exit(1)


def _say_restored(done: Restored) -> None:
    """What the backup held, by its manifest, and what the ledger holds where more was written to it."""
    entries = counted(done.portrait.sequence, "entry", "entries")
    as_they_were = (
        f"head, counts and {counted(len(done.portrait.searches), 'search', 'searches')} are as they were"
    )
    if done.head is None:
        say(f"restored {plain(str(done.path))}: {entries}; {as_they_were}")
        say(f"chain {done.portrait.chain}")
        return
    say(f"restored {plain(str(done.path))}")
    say(f"the backup: {entries}; {as_they_were}; chain {done.portrait.chain}")
    say(
        f"took the content of {counted(done.redacted_again, 'entry', 'entries')} away again,"
        " which the register lists; its entry memory.redacted says so"
    )
    say(
        f"the ledger now: {counted(done.head.sequence, 'entry', 'entries')};"
        f" chain {done.head.chain_sha256.hex()}"
    )
