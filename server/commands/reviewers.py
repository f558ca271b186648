"""reviewer: say who may review, and by what they prove it."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Annotated

import typer

from store.clock import format_instant
from store.errors import ConfigError, InvalidInput

from ..config_faults import shown
from ..reviewer_file import Reviewer, read_reviewers, reviewer_path
from ..reviewers import (
    VARIABLE,
    add_passphrase,
    add_token,
    check_named,
    check_new_name,
    check_passphrase,
    prove,
    remove_reviewer,
)
from ..settings import Settings
from ..typed import hints_with_place, place_words, with_place
from .deciding import AsOption
from .place import ConfigOption, JsonOption, RootOption, find_place
from .questions import leaving
from .screen import aligned, one_line, plain, say

TOOL = "reviewer"
_LARGEST = 8_192
reviewers = typer.Typer(
    name="reviewer", help="Add, list or remove the people who may review.", no_args_is_help=True
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name; no agent's.")]


@reviewers.command()
def add(
    name: NameArgument,
    config: ConfigOption = None,
    root: RootOption = None,
    passphrase_file: Annotated[
        Path | None, typer.Option("--passphrase-file", help="Read the passphrase from this file (mode 0600).")
    ] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Print a reviewer token instead, once, for scripts.")
    ] = False,
    as_name: AsOption = None,
) -> None:
    """Let a person review. The first is added freely, each later one by somebody who is a reviewer already."""
    place = find_place(config, root, None, None)
    settings = place.settings
    path = reviewer_path(settings.store.root)
    with hints_with_place(settings), leaving():
        if token and passphrase_file is not None:
            raise ConfigError("--token and --passphrase-file exclude each other.", field="--token")
        check_new_name(settings, name)
        _prove_to_add(settings, path, name, as_name)
        if token:
            say(add_token(path, name))
            how = f"set {VARIABLE} to it for one command, and never where an agent runs"
        else:
            passphrase = _asked() if passphrase_file is None else _from_file(passphrase_file)
            field = "passphrase" if passphrase_file is None else "--passphrase-file"
            check_passphrase(settings, passphrase, os.environ, field)
            add_passphrase(path, name, passphrase)
            how = "every decision asks for the passphrase"
    for line in (
        f"{name} may review: {how}. {path} keeps only a hash.",
        with_place("`deskbook review` goes through what waits.", place_words(settings)),
    ):
        typer.echo(plain(line), err=True)


@reviewers.command("list")
def list_all(config: ConfigOption = None, root: RootOption = None, as_json: JsonOption = False) -> None:
    """List who may review, and by what each proves it; never a hash."""
    place = find_place(config, root, None, None)
    path = reviewer_path(place.settings.store.root)
    with hints_with_place(place.settings):
        found = read_reviewers(path).reviewers
    if as_json:
        told = [
            {"name": each.name, "created": format_instant(each.created), "proofs": _proofs(each)}
            for each in found
        ]
        say(json.dumps({"file": str(path), "reviewers": told}))
        return
    if not found:
        made = with_place("`deskbook reviewer add NAME` adds one", place_words(place.settings))
        say(plain(f"no reviewers in {path}; {made}"))
        return
    rows = [
        (one_line(each.name), format_instant(each.created, place.zone), ", ".join(_proofs(each)))
        for each in found
    ]
    for line in aligned([("name", "added", "proves it by"), *rows]):
        say(line)


@reviewers.command()
def remove(
    name: NameArgument, config: ConfigOption = None, root: RootOption = None, as_name: AsOption = None
) -> None:
    """Let a person review no more, from the next command on."""
    place = find_place(config, root, None, None)
    path = reviewer_path(place.settings.store.root)
    with hints_with_place(place.settings), leaving():
        check_named(place.settings, as_name, os.environ)
        prove(place.settings, as_name, os.environ, tool=TOOL)
        remove_reviewer(path, name)
    say(plain(f"{name} is no reviewer any more; what {name} decided stays decided"))


def _prove_to_add(settings: Settings, path: Path, name: str, as_name: str | None) -> None:
    """Ask for an existing reviewer's credential; nothing is asked for where there is none."""
    names = {reviewer.name for reviewer in read_reviewers(path).reviewers}
    if not names:
        return
    wanted = name if as_name is None and name in names else as_name
    check_named(settings, wanted, os.environ)
    who = prove(settings, wanted, os.environ, tool=TOOL)
    if name in names and who != name:
        raise InvalidInput(
            f"{shown(name)} is a reviewer, and changes passphrase or token alone.",
            field="--as",
            hint="Remove the name first, then add it anew.",
        )


def _asked() -> str:
    if not sys.stdin.isatty():
        raise ConfigError(
            "A passphrase is asked for in a terminal, and there is none.",
            field="--passphrase-file",
            hint="Give a private file with --passphrase-file FILE, or make a token with --token.",
        )
    asked: str = typer.prompt(
        "New passphrase", hide_input=True, confirmation_prompt="The same again", err=True
    )
    return asked


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(_LARGEST + 1)
    except OSError as fault:
        raise ConfigError(
            f"The file of --passphrase-file cannot be read: {os.strerror(fault.errno or 0)}.",
            field="--passphrase-file",
            where=path,
        ) from None
    if not stat.S_ISREG(mode) or mode & 0o077:
        raise ConfigError(
            "The file of --passphrase-file is open to others, or is no file.",
            field="--passphrase-file",
            hint="chmod 600 it, and choose another passphrase where others could read this one.",
            where=path,
        )
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidInput(
            "The passphrase file is not UTF-8.", field="--passphrase-file", where=path
        ) from None


def _proofs(reviewer: Reviewer) -> list[str]:
    kinds = {"passphrase": reviewer.passphrase, "token": reviewer.token_sha256}
    return [kind for kind, kept in kinds.items() if kept is not None]
