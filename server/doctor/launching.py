"""A server started as a host starts it: by its command, with hardly an environment, from another folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from .findings import Finding, fail, ok, warn
from .pipe import GUARD_SECONDS, Child, NoAnswer, StrayOutput
from .seen import HELLO, INITIALIZED, RequestRefused, check_lists, check_protocol, greeting_of

FOLDER: Final = "/"
PATH: Final = "/usr/bin:/bin"


def bare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a host that strips the environment still hands on: the home folder and the system's PATH."""
    return {"HOME": environ.get("HOME") or os.path.expanduser("~"), "PATH": PATH}  # noqa: PTH111 - never raises


def check_command(name: str, command: str) -> Iterator[Finding]:
    """Whether a host finds and may run the command; nothing is told where all is well."""
    path = Path(command)
    install = "`deskbook install HOST` writes the whole path."
    if not path.is_absolute():
        yield fail(
            name,
            f"the command {command} is no absolute path, and a host has another PATH and folder",
            install,
        )
    elif not path.exists():
        yield fail(
            name,
            f"there is no command {command}: its environment was moved, removed or made anew elsewhere",
            f"Install Deskbook there again, or run `deskbook install HOST --force` from where it is now; {install}",
        )
    elif path.is_dir() or not os.access(path, os.X_OK):
        yield fail(name, f"the command {command} is not executable", f"chmod +x it, or: {install}")


def check_launch(
    who: str, words: Sequence[str], environ: Mapping[str, str], guard: float = GUARD_SECONDS
) -> Iterator[Finding]:
    """Start the command and tell what a client of it sees; `environ` is all that the server is given.

    Each answer has `guard` seconds. Nothing is read or written that a ledger would record.
    """
    name = f"start {who}"
    began = time.monotonic()
    try:
        child = Child(words, environ, FOLDER, guard)
    except OSError as error:
        yield _not_run(name, words[0], error)
        return
    with child:
        try:
            greeting = greeting_of(child.ask("initialize", HELLO))
            if greeting is None:
                yield fail(name, "its answer to initialize is none of MCP", "Check what the command starts.")
                return
            took = (time.monotonic() - began) * 1000
            child.tell(INITIALIZED)
            given = ", ".join(sorted(environ))
            yield ok(
                name,
                f"{greeting.server} answered in {took:,.0f} ms, protocol {greeting.protocol} "
                f"(environment {given}; folder {FOLDER})",
            )
            yield from check_protocol(name, greeting)
            yield from check_lists(f"sees {who}", greeting, child.ask)
            if child.end() is None:
                yield warn(
                    name,
                    f"it did not end within {guard:g} s of the end of its input, and was killed",
                    "See its log; a host would leave it behind.",
                )
        except RequestRefused as error:
            yield fail(name, f"it refused initialize: {error}", "Check what the command starts.")
        except StrayOutput as stray:
            yield fail(
                name,
                "its standard output carries something else than MCP",
                "Start `deskbook serve` itself, and nothing before it that prints.",
                (str(stray),),
            )
        except NoAnswer as silence:
            child.end()
            yield _unanswered(name, silence, child.said())


def _not_run(name: str, command: str, error: OSError) -> Finding:
    if isinstance(error, FileNotFoundError) and Path(command).exists():
        return fail(
            name,
            f"the interpreter in the first line of {command} is gone: its environment was moved or removed",
            "Make the environment anew (`make setup`, or install the package again).",
        )
    return fail(
        name, f"{command} cannot be run: {os.strerror(error.errno or 0)}", "Check the command of the entry."
    )


def _unanswered(name: str, silence: NoAnswer, said: tuple[str, ...]) -> Finding:
    if silence.code is None:
        found = f"it gave no answer within {silence.seconds:g} s"
        todo = "Start it by hand and see what it waits for."
    else:
        found = f"it ended with code {silence.code} before it answered"
        todo = "Its own words above say what is wrong." if said else "Start it by hand to see why."
    if any("ModuleNotFoundError" in line or "No module named" in line for line in said):
        todo = "The interpreter lacks a package: install Deskbook anew into that environment."
    return fail(name, found, todo, said)
