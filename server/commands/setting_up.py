"""init: a commented configuration to start from."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from store.errors import ConfigError

from .screen import say

TEMPLATE = "desk_template.toml"


def init(
    config: Annotated[Path, typer.Option("--config", help="Where to write it.")] = Path("desk.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented configuration and say what to do next."""
    target = config.expanduser().absolute()
    text = files("server").joinpath(TEMPLATE).read_text(encoding="utf-8")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(
            f"{target} exists.", field="--config", hint="Name another file, or replace it with --force."
        ) from None
    except OSError as fault:
        raise ConfigError(
            f"{target} cannot be written: {fault.strerror}.", field="--config", hint="Name a writable place."
        ) from None
    say(f"wrote {target}")
    say("next: name your agents in it (researcher and trader stand there), then let the host start")
    say(f"  {_command()} serve --config {shlex.quote(str(target))} --agent NAME")


def _command() -> str:
    """The command by its whole path, because a host starts it elsewhere and with another PATH."""
    own = Path(sys.executable).with_name("deskbook")
    return shlex.quote(str(own)) if own.exists() else "deskbook"
