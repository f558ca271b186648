"""checkpoint: sign how the ledger stands, and keep the note where the ledger's owner cannot rewrite it."""

from __future__ import annotations

import re
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from store.errors import ConfigError, Conflict, DeskbookError, ForeignFile, StoreDamaged

from .place import ConfigOption, Place, RootOption, RunOption, StrategyOption, find_place
from .screen import plain, progress_bar, say
from .wording import counted

if TYPE_CHECKING:
    from store.proofs.checkpoint import Signed

    from ..checkpoints import Checkpointer, Made

KeyOption = Annotated[Path | None, typer.Option("--key", help="The file of the private key that signs.")]
NameOption = Annotated[
    str | None, typer.Option("--name", help='The name of the key that signs: "deskbook" unless given.')
]
ToOption = Annotated[
    list[Path] | None,
    typer.Option("--to", help="Another place for the note: a folder, or a file such as desk.note."),
]

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST_SECONDS = 366 * 86_400


def checkpoint(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    to: ToOption = None,
    every: Annotated[
        str | None, typer.Option(help='Go on, at this interval: "15m", "1h". Signs only what is new.')
    ] = None,
    key: KeyOption = None,
    name: NameOption = None,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make a key, print its public half, and end.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Check every entry, also of a large ledger that was signed before.")
    ] = False,
    replaced: Annotated[
        bool, typer.Option("--replaced", help="Sign although another ledger was signed at this place before.")
    ] = False,
) -> None:
    """Sign how many entries the ledger has and the root over them; print the note and keep it."""
    place = find_place(config, root, strategy, run)
    if new_key:
        _make_key(place, key, name)
        return
    seconds = None if every is None else _interval(every)
    place.check_present()
    desk = replace(checkpointer(place, key, name, to or ()), full=full, replaced=replaced)
    if seconds is not None:
        raise typer.Exit(_go_on(desk, seconds))
    if not _sign(desk):
        raise typer.Exit(1)


def checkpointer(
    place: Place,
    key: Path | None,
    name: str | None,
    to: list[Path] | tuple[Path, ...] = (),
) -> Checkpointer:
    """What signs the place's ledger; raises ConfigError for keys or notes inside the store."""
    from store.proofs.places import place_at

    from ..checkpoint_keys import key_file, key_ring, refuse_inside
    from ..checkpoints import Checkpointer, LedgerPlace

    store = place.settings.store.root
    refuse_inside(key_file(key, name), store, "--key")
    ring = key_ring(place.settings, key, name)
    for path in to:
        refuse_inside(path, store, "--to")
    copies = tuple(place_at(path.absolute()) for path in to)
    where = LedgerPlace(store, place.path, place.strategy, place.run)
    return Checkpointer(where, ring, copies, place.settings.checkpoint.endpoint)


def _make_key(place: Place, key: Path | None, name: str | None) -> None:
    from ..checkpoint_keys import key_file, make_key, refuse_inside

    path = key_file(key, name)
    refuse_inside(path, place.settings.store.root, "--key")
    say(str(make_key(path, name)))
    say(f"private key: {plain(str(path))}; keep it where no agent can read it, and a copy elsewhere")
    say(f"public key: {plain(str(path.with_suffix('.pub')))}; give it to whoever shall check this desk")


def _sign(desk: Checkpointer) -> bool:
    """Sign once and hand the note on; false when a place did not take it."""
    with progress_bar("checking") as advance:
        made = desk.make(advance)
    say(made.signed.note.rstrip("\n"))
    sys.stdout.flush()
    _tell(made)
    return _hand_on(desk, made.signed)


def _hand_on(desk: Checkpointer, signed: Signed) -> bool:
    faults = desk.hand_on(signed)
    for fault in faults:
        typer.echo(f"deskbook: {plain(fault)}; the note is kept in {plain(str(desk.history.path))}", err=True)
    return not faults


def _tell(made: Made) -> None:
    """Say to a person who watches what was checked."""
    if not sys.stderr.isatty():
        return
    size = counted(made.signed.checkpoint.size, "entry", "entries")
    if made.examined is None:
        typer.echo(f"nothing was added since this note of {size} was signed", err=True)
    elif made.examined.checked_from == 1:
        typer.echo(f"signed {size}, all of them checked", err=True)
    else:
        first = made.examined.checked_from
        typer.echo(f"signed {size}, those from {first} on checked, those before as signed before", err=True)


def _go_on(desk: Checkpointer, seconds: float) -> int:
    """Sign whenever the ledger has grown, until SIGTERM or SIGINT; gives the exit code."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    handed = True
    while not ended.is_set():
        try:
            if not handed or desk.grown():
                handed = _sign(desk)
        except (Conflict, ForeignFile, StoreDamaged, ConfigError):
            raise
        except DeskbookError as fault:  # busy or full now, and perhaps not the next time
            typer.echo(f"deskbook: {plain(fault.message)} Trying again in {seconds:g} s.", err=True)
        ended.wait(seconds)
    return 0 if handed else 1


def _interval(text: str) -> float:
    """The seconds of --every."""
    found = re.fullmatch(r"([0-9]{1,8})([smhdw])", text.strip())
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ConfigError(
            "--every is no interval.", field="--every", hint='Write it as "30s", "15m", "1h" or "1d".'
        )
    return seconds
