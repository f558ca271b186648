"""verify and rebuild: proof of the ledger, and projections made anew from it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from store.audit import Finding
from store.audit import verify as verify_ledger
from store.audit_tree import Claim
from store.errors import ConfigError, InvalidInput

from .marks import MarkFile
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
from .proving import CheckpointKeyOption, note_bytes
from .screen import plain, progress_bar, say
from .wording import counted


def verify(
    config: ConfigOption = None,
    root: RootOption = None,
    strategy: StrategyOption = None,
    run: RunOption = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(help="A note that was signed earlier: finds a cut tail and a rewritten ledger."),
    ] = None,
    checkpoint_key: CheckpointKeyOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a verification that was broken off had come to.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Prove that no entry was changed, cut out, moved or invented. Exit 1 when something is wrong."""
    place = find_place(config, root, strategy, run)
    place.check_present()
    claims, refused = _claims(place, checkpoint or [], checkpoint_key)
    mark = MarkFile(place.path)
    since = mark.read() if resume else None
    with progress_bar("verifying") as advance:
        report = verify_ledger(
            place.path, place.strategy, place.run, advance, claims, since=since, keep=mark.keep
        )
    mark.forget()
    beside = () if report.findings else (*_copies(place), *_vectors(place))
    report = replace(report, findings=(*refused, *report.findings, *beside))
    if as_json:
        say(json.dumps(asdict(report) | {"sound": report.sound}))
    elif report.sound:
        say(f"sound: {counted(report.entries, 'entry', 'entries')}, chain {report.chain}")
        for held in report.checkpoints:
            signed = counted(held.size, "entry", "entries")
            say(
                f"checkpoint {plain(held.name)}: begins with the {signed} that {plain(held.signed_by)} signed"
            )
    else:
        for finding in report.findings:
            where = "ledger" if finding.sequence is None else f"sequence {finding.sequence}"
            say(f"{where}: {plain(finding.what)}")
        say(f"NOT SOUND: {counted(len(report.findings), 'finding', 'findings')} in {plain(report.path)}")
    if not report.sound:
        raise typer.Exit(1)


def _copies(place: Place) -> tuple[Finding, ...]:
    """What is wrong with the Parquet copies beside the ledger; they prove nothing, but should not mislead."""
    if not (place.path.parent / "exports").is_dir():
        return ()
    from store.export.checking import check_exports

    return tuple(
        Finding(
            None,
            f"exports, {wrong.file or wrong.table or 'manifest'}: {wrong.what}; remove the folder exports",
        )
        for wrong in check_exports(place.path)
    )


def _vectors(place: Place) -> tuple[Finding, ...]:
    """What is wrong with the vectors beside the ledger, where there are any."""
    if not (place.path.parent / "vectors").is_dir():
        return ()
    try:
        from store.vectors.checking import check_vectors
    except ImportError:  # without numpy nothing can use them either
        return ()

    return tuple(
        Finding(None, f"vectors, {wrong.file}: {wrong.what}; deskbook embed --again makes them anew")
        for wrong in check_vectors(place.path)
    )


def _claims(place: Place, files: list[Path], key: str | None) -> tuple[list[Claim], list[Finding]]:
    """What the checkpoints say whose signature holds, and what is wrong with the others."""
    if not files:
        return [], []
    from store.proofs.checkpoint import open_checkpoint

    from ..checkpoint_keys import trusted_keys

    known, claims, refused = trusted_keys(place.settings, key), [], []
    for file in files:
        try:
            signed = open_checkpoint(note_bytes(file), known)
        except InvalidInput as fault:
            refused.append(Finding(None, f"checkpoint {file} proves nothing: {fault.message}"))
            continue
        state = signed.checkpoint
        claims.append(Claim(str(file), state.origin, state.size, state.root, signed.names))
    return claims, refused


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
