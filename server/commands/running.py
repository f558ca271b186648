"""run and leaks: the runs of a strategy, and proof that one never saw past its clock."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import tzinfo
from typing import Annotated

import typer

from store.clock import format_instant
from store.leaks import find_leaks
from store.runs import RunSummary, describe_run, list_runs, remove_run

from .place import ConfigOption, JsonOption, RootOption, StrategyOption, find_place
from .questions import agree, leaving
from .screen import plain, progress_bar, say
from .wording import counted, worded

runs = typer.Typer(name="run", help="List, show or remove the runs of a strategy.", no_args_is_help=True)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]


@runs.command("list")
def list_all(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a strategy with their extent."""
    place = find_place(config, root, strategy, None)
    found = list_runs(place.settings.store.root, place.strategy)
    if as_json:
        say(json.dumps([_record(run) for run in found]))
        return
    for run in found:
        say(_line(run, place.zone))
    if not found:
        say(f"no runs of strategy {place.strategy} in {place.settings.store.root}")


@runs.command()
def show(
    run: RunArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe one run."""
    place = find_place(config, root, strategy, None)
    found = describe_run(place.settings.store.root, place.strategy, run)
    if as_json:
        say(json.dumps(_record(found)))
        return
    for name, value in _record(found, place.zone).items():
        say(f"{name:<14} {plain(worded(value))}")


@runs.command()
def rm(
    run: RunArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove one run for good, after asking."""
    place = find_place(config, root, strategy, None)
    found = describe_run(place.settings.store.root, place.strategy, run)
    say(f"goes for good: {plain(str(found.folder))}")
    say(f"  {_line(found, place.zone)}")
    if not yes:
        with leaving():
            agree("Remove it?")
    freed = remove_run(place.settings.store.root, place.strategy, run)
    say(f"removed run {plain(run)}; {freed} bytes are free")


def leaks(
    run: RunArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove from the record that a run was shown nothing later than its clock. Exit 1 when it was."""
    place = find_place(config, root, strategy, None)
    with progress_bar("reading") as advance:
        report = find_leaks(place.settings.store.root, place.strategy, run, advance)
    if as_json:
        say(json.dumps(asdict(report)))
    else:
        for leak in report.leaks:
            say(f"sequence {leak.sequence}: {plain(leak.what)}")
        say(
            f"{'LEAKED' if report.leaks else 'no leak'}: {counted(report.searches, 'search', 'searches')} and"
            f" {counted(report.showings, 'showing', 'showings')}"
            f" with {counted(report.versions, 'version', 'versions')} read again,"
            f" {counted(len(report.leaks), 'leak', 'leaks')}"
        )
    if report.leaks:
        raise typer.Exit(1)


def _line(run: RunSummary, zone: tzinfo | None) -> str:
    if run.problem is not None:
        return f"{plain(run.name)}  {run.size_bytes} bytes  {plain(run.problem)}"
    return (
        f"{plain(run.name)}  {counted(run.entries, 'entry', 'entries')},"
        f" {counted(run.memories, 'memory', 'memories')}, {run.size_bytes} bytes,"
        f" {format_instant(run.began_at, zone)} to {format_instant(run.last_entry_at, zone)}, inherits {run.inherit}"
    )


def _record(run: RunSummary, zone: tzinfo | None = None) -> dict[str, object]:
    return asdict(run) | {
        "folder": str(run.folder),
        "began_at": format_instant(run.began_at, zone),
        "last_entry_at": format_instant(run.last_entry_at, zone),
    }
