"""prove: one entry, readable, with the proof that it stands in a ledger somebody signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from store.errors import ConfigError, Conflict, InvalidInput, StoreDamaged

from .checkpointing import KeyOption, NameOption, checkpointer
from .place import ConfigOption, Place, RootOption, RunOption, StrategyOption, find_place
from .screen import entry_line, plain, say

if TYPE_CHECKING:
    from store.entry import Entry
    from store.proofs.checkpoint import Signed
    from store.proofs.note import Verifier
    from store.proofs.source import LedgerSource

CHECKER = "check_proof.py"
MOST_LISTED = 50

CheckpointKeyOption = Annotated[
    str | None,
    typer.Option("--checkpoint-key", help="The signer's public key, or a file that holds it; else your own."),
]


def prove(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An event id, a sequence, or what entries are about.")
    ],
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    entry: Annotated[
        int | None, typer.Option(min=1, help="Of several entries about ID, the one of this sequence.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Prove it under this note; else under your newest, or a fresh one.")
    ] = None,
    checkpoint_key: CheckpointKeyOption = None,
    key: KeyOption = None,
    key_name: NameOption = None,
    out: Annotated[Path | None, typer.Option(help="Write the proof to this file.")] = None,
    with_checker: Annotated[
        bool, typer.Option("--with-checker", help="Put the script that checks it beside the file.")
    ] = False,
) -> None:
    """Write one entry with the proof that it stands under a signed checkpoint."""
    if with_checker and out is None:
        raise ConfigError(
            "--with-checker goes with --out.", field="--with-checker", hint="Name a file with --out."
        )
    from store.proofs.files import write_whole
    from store.proofs.source import open_source

    place = find_place(config, root, strategy, run)
    place.check_present()
    where = (place.settings.store.root, place.path, place.strategy, place.run)
    with open_source(*where) as source:
        chosen = _chosen(source.find(name), name, entry, place)
        given = _given(place, source, chosen, checkpoint, checkpoint_key, key)
    signed, known = given or _own(place, source.store_id, chosen, key, key_name)
    with open_source(*where) as source:
        text = _proof(place, source, chosen, signed, known)
    if out is None:
        say(text.rstrip("\n"))
        return
    write_whole(out.absolute(), text.encode())
    if with_checker:
        write_whole(out.absolute().with_name(CHECKER), _checker())


def _chosen(found: list[Entry], name: str, sequence: int | None, place: Place) -> Entry:
    """The one entry that is meant; raises InvalidInput after it has listed several."""
    wanted = found if sequence is None else [each for each in found if each.sequence == sequence]
    if len(wanted) == 1:
        return wanted[0]
    for each in found[:MOST_LISTED]:
        typer.echo(entry_line(each, place.zone), err=True)
    if len(found) > MOST_LISTED:
        typer.echo(f"... and {len(found) - MOST_LISTED} more", err=True)
    if sequence is None:
        raise InvalidInput(
            f"{len(found)} entries are about {name}.",
            field="ID",
            hint="Choose one: --entry and its sequence.",
        )
    raise InvalidInput(
        f"Entry {sequence} is not about {name}.", field="--entry", hint="Choose one of those above."
    )


def _given(
    place: Place,
    source: LedgerSource,
    chosen: Entry,
    file: Path | None,
    checkpoint_key: str | None,
    key: Path | None,
) -> tuple[Signed, tuple[Verifier, ...]] | None:
    """The checkpoint that was named, which must be this ledger's and cover the entry."""
    if file is None:
        return None
    from store.proofs.checkpoint import open_checkpoint, origin_of
    from store.proofs.signing import check_origin

    from ..checkpoint_keys import trusted_keys

    known = trusted_keys(place.settings, checkpoint_key, key)
    signed = open_checkpoint(note_bytes(file), known)
    check_origin(str(file), signed, origin_of(source.store_id))
    if signed.checkpoint.size < chosen.sequence:
        raise Conflict(
            f"The checkpoint covers {signed.checkpoint.size} entries, and this is entry {chosen.sequence}.",
            hint="Leave --checkpoint away to sign a fresh one, or name a later one.",
        )
    return signed, known


def _own(
    place: Place, store_id: str, chosen: Entry, key: Path | None, name: str | None
) -> tuple[Signed, tuple[Verifier, ...]]:
    """The desk's own newest checkpoint that covers the entry, or one signed now."""
    from store.proofs.checkpoint import origin_of

    desk = checkpointer(place, key, name)
    signed = desk.history.covering(origin_of(store_id), chosen.sequence, desk.ring.known)
    return signed or desk.make().signed, desk.ring.known


def _proof(
    place: Place, source: LedgerSource, chosen: Entry, signed: Signed, known: tuple[Verifier, ...]
) -> str:
    """The proof's text, checked as a stranger would before it is given away."""
    from store.entry import leaf_of
    from store.proofs.cache import TreeCache, cache_path
    from store.proofs.inclusion import read_proof, write_proof
    from store.proofs.tree import root_by_path

    index, checkpoint = chosen.sequence - 1, signed.checkpoint
    if checkpoint.size > source.size:
        raise Conflict(
            f"{signed.names} signed {checkpoint.size} entries, and the ledger has {source.size}.",
            hint="A tail was cut off: `deskbook verify --checkpoint FILE` says so too.",
        )
    with TreeCache(cache_path(place.path), source) as cache:
        path = cache.path(index, checkpoint.size)
        if root_by_path(leaf_of(chosen), index, checkpoint.size, path) != checkpoint.root:
            cache.forget()  # the cache may lie; the ledger itself is asked before it is blamed
            path = cache.path(index, checkpoint.size)
    if root_by_path(leaf_of(chosen), index, checkpoint.size, path) != checkpoint.root:
        raise Conflict(
            f"The ledger does not hold what {signed.names} signed at {checkpoint.size} entries.",
            hint="`deskbook verify --checkpoint FILE` says what was changed.",
        )
    try:
        text = write_proof(chosen, path, signed)
        read_proof(text.encode(), known)
    except (ValueError, InvalidInput):
        raise StoreDamaged(
            f"Entry {chosen.sequence} is not sound: its content does not match its hash.",
            hint="Run `deskbook verify` to see what is wrong.",
        ) from None
    return text


def note_bytes(file: Path) -> bytes:
    """The bytes of a checkpoint's file; raises ConfigError when there is none."""
    from store.proofs.files import read_small

    try:
        return read_small(file)
    except FileNotFoundError:
        raise ConfigError(
            f"There is no checkpoint at {plain(str(file))}.",
            field="--checkpoint",
            hint="`deskbook checkpoint` prints one.",
        ) from None


def _checker() -> bytes:
    """The script that checks a proof without Deskbook, as it is shipped."""
    from importlib.resources import files

    return files("store.proofs").joinpath(CHECKER).read_bytes()
