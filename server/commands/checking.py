"""verify and rebuild: proof of the ledger, and projections made anew from it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from store.audit import verify as verify_ledger
from store.errors import ConfigError

from .place import (
    AsOfOption,
    ConfigOption,
    JsonOption,
    RootOption,
    RunOption,
    StrategyOption,
    as_of_instant,
    find_place,
)
from .screen import plain, progress_bar, say
from .wording import counted


def verify(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that no entry was changed, cut out, moved or invented. Exit 1 when something is wrong."""
    place = find_place(config, root, strategy, run)
    place.check_present()
    with progress_bar("verifying") as advance:
        report = verify_ledger(place.path, place.strategy, place.run, advance)
    if as_json:
        say(json.dumps(asdict(report) | {"sound": report.sound}))
    elif report.sound:
        say(f"sound: {counted(report.entries, 'entry', 'entries')}, chain {report.chain}")
    else:
        for finding in report.findings:
            where = "ledger" if finding.sequence is None else f"sequence {finding.sequence}"
            say(f"{where}: {plain(finding.what)}")
        say(f"NOT SOUND: {counted(len(report.findings), 'finding', 'findings')} in {plain(report.path)}")
    if not report.sound:
        raise typer.Exit(1)


def rebuild(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    as_of: AsOfOption = None,
    to: Annotated[Path | None, typer.Option(help="With --as-of: the new file to write.")] = None,
) -> None:
    """Drop the projections (versions, searches, full text) and make them anew from the ledger.

    With --as-of and --to, leave the ledger alone and write it as it stood then, projections rebuilt, to a file.
    """
    if (as_of is None) != (to is None):
        raise ConfigError("--as-of and --to go together.", field="--to", hint="Name both, or neither.")
    place = find_place(config, root, strategy, run)
    instant = as_of_instant(as_of)
    book = place.open()
    try:
        if instant is not None and to is not None:
            entries = book.write_as_of(instant, to.absolute())
            written = counted(entries, "entry", "entries")
            say(f"wrote {written} as they stood at {as_of} to {plain(str(to.absolute()))}")
            return
        total = book.head().sequence
        with progress_bar("rebuilding") as advance:
            book.rebuild(lambda sequence: advance(sequence, total))
        found = book.status()
    finally:
        book.close()
    say(
        f"rebuilt from {counted(found.entries, 'entry', 'entries')}: {counted(found.memories, 'memory', 'memories')}"
    )
