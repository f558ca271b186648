"""init: a commented configuration to start from."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from store.errors import ConfigError

from ..settings import load_settings
from .own_command import own_command
from .screen import plain, say

TEMPLATE = "desk_template.toml"
ROOT_EXAMPLE = '# root = "~/deskbook"\n'


def init(
    config: Annotated[Path, typer.Option("--config", help="Where to write it.")] = Path("desk.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented configuration that names where ledgers lie, and say what to do next.

    Folders on the way to it are made, and named.
    """
    target = config.expanduser().absolute()
    root = _root(os.environ)
    text = files("server").joinpath(TEMPLATE).read_text(encoding="utf-8")
    missing = [folder for folder in reversed(target.parents) if not folder.exists()]
    try:
        whole = text.replace(ROOT_EXAMPLE, f"{ROOT_EXAMPLE}root = {_quoted(root)}\n", 1).encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb" if force else "xb") as out:
            out.write(whole)
    except FileExistsError:
        raise ConfigError(
            f"{target} exists.", field="--config", hint="Name another file, or replace it with --force."
        ) from None
    except UnicodeEncodeError:
        raise ConfigError(
            f"{str(root)!r} is no text that a configuration can hold.",
            field="root",
            hint="Set DESKBOOK_ROOT.",
        ) from None
    except OSError as fault:
        raise ConfigError(
            f"{target} cannot be written: {fault.strerror}.", field="--config", hint="Name a writable place."
        ) from None
    for folder in missing:
        say(f"made folder {plain(str(folder))}")
    say(f"wrote {plain(str(target))}")
    say(f"ledgers go to {plain(str(root))} ([store] root in it)")
    say("next: name your agents in it (researcher and trader stand there), then let the host start")
    say(f"  {shlex.join(own_command())} serve --config {shlex.quote(str(target))} --agent NAME")


def _root(environ: Mapping[str, str]) -> Path:
    """Where this shell's ledgers lie without a configuration, whole: DESKBOOK_ROOT, else the platform's folder."""
    named = {name: value for name, value in environ.items() if name == "DESKBOOK_ROOT"}
    return load_settings(config=None, flags={}, environ=named).store.root


def _quoted(path: Path) -> str:
    """A TOML string, which is a JSON string but for DEL."""
    return json.dumps(str(path), ensure_ascii=False).replace("\x7f", "\\u007f")
