"""The entry in a host's file: whether it is there, what it starts or calls, and whether that would work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from store.errors import DeskbookError

from ..addresses import with_scheme
from ..hosts.documents import standing
from ..hosts.entries import VARIABLE, is_ours, token_of
from ..hosts.faults import UnreadableText
from ..hosts.files import text_of
from ..hosts.table import Host
from ..identity import launch_identity
from ..settings import load_settings
from .calling import check_url
from .findings import Finding, fail, fault, ok, warn
from .launching import bare_environment, check_command, check_launch
from .storing import check_ledgers, check_root
from .subject import Subject
from .web import Credential

_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_ENVIRONMENTS: Final = ("env", "environment")
_KEPT: Final = ("--config", "--agent", "--root", "--strategy")
_FLAGS: Final = {"--root": "root", "--strategy": "strategy", "--agent": "agent", "--run": "run"}


@dataclass(frozen=True, slots=True)
class Looked:
    """Which entry is meant: that of `name` in the host's file; `variable` holds its token whatever it says.

    `chosen` are the options by which it was chosen, for whoever has to install it again.
    """

    host: Host
    name: str
    file: Path
    variable: str | None
    chosen: tuple[str, ...] = ()


def check_entry(looked: Looked, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Find the entry, and start or call what it names as the host would."""
    entry = _entry(looked)
    if isinstance(entry, Finding):
        yield entry
        return
    yield ok("entry", f'"{looked.name}" in {looked.file}')
    if not is_ours(entry):
        yield warn("entry", "it does not look like one of Deskbook's", _again(looked, entry))
    if entry.get("disabled") is True or entry.get("enabled") is False:
        yield warn("entry", "it is switched off", f"Switch it on in {looked.host.title}.")
    words = _words(entry)
    address = next((entry[key] for key in _ADDRESSES if isinstance(entry.get(key), str)), None)
    if words:
        yield from _check_stdio(entry, words, environ)
    elif address is not None:
        yield from _check_http(looked, entry, address, environ)
    else:
        yield fail("entry", "it names neither a command nor an address", _again(looked, entry))


def _entry(looked: Looked) -> Mapping[str, Any] | Finding:
    command = shlex.join(["deskbook", "install", looked.host.name, *looked.chosen])
    todo = f"`{command}{'' if looked.host.writable else ' --print'}` {_verb(looked.host)} it, with the --config and "
    todo += "--agent that it shall serve."
    try:
        text = text_of(looked.file)
        entry = None if text is None else standing(text, looked.host, looked.name)
    except UnreadableText as error:
        at = f" at line {error.line}" if error.line else ""
        return fail("entry", f"{looked.file} does not parse{at}: {error.reason}", "Mend the file first.")
    except DeskbookError as error:
        return fault("entry", error)
    if text is None:
        return fail("entry", f"{looked.host.title} has no file {looked.file}", todo)
    if entry is None:
        place = ".".join(looked.host.path)
        return fail("entry", f'{looked.file} has no entry "{looked.name}" under {place}', todo)
    if not isinstance(entry, Mapping):
        return fail("entry", f'the entry "{looked.name}" in {looked.file} is no table', _again(looked))
    return entry


def _check_stdio(entry: Mapping[str, Any], words: list[str], environ: Mapping[str, str]) -> Iterator[Finding]:
    wrong = list(check_command("command", words[0]))
    yield from wrong or [ok("command", words[0])]
    given = bare_environment(environ) | _own_environment(entry, environ)
    named = list(_check_arguments(words, given))
    yield from named
    if not wrong and not any(finding.mark == "FAIL" for finding in named):
        yield from check_launch("the entry", words, given)


def _check_arguments(words: list[str], given: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the config that a command line of ours names is there and has the agent."""
    if "serve" not in words:
        return
    named = _options(words[words.index("serve") + 1 :])
    config = named.get("--config")
    if config is not None and not Path(config).expanduser().is_absolute():
        yield fail(
            "config",
            f"--config {config} is no whole path, and a host starts its servers in a folder of its own",
            "Write the whole path; `deskbook install HOST --force` does.",
        )
        return
    flags = {flag: named.get(option) for option, flag in _FLAGS.items()}
    try:
        settings = load_settings(config=None if config is None else Path(config), flags=flags, environ=given)
        identity = launch_identity(settings)
    except DeskbookError as error:
        yield fault("config", error)
        return
    yield ok("config", f"{settings.config or 'no file'}, agent {identity.agent}, root {settings.store.root}")
    subject = Subject(settings, (identity,), given)
    yield from check_root(subject)
    yield from check_ledgers(subject)


def _check_http(
    looked: Looked, entry: Mapping[str, Any], address: str, environ: Mapping[str, str]
) -> Iterator[Finding]:
    if not re.match(r"https?://[^/\s]", address):
        meant = with_scheme(address)
        todo = _again(looked, entry) if meant is None else f"Write http:// in front: {meant}"
        yield fail("entry", "its address does not begin with http:// or https://", todo)
        return
    variable, written = token_of(looked.host, entry)
    if looked.variable is None and written is not None:
        yield warn(
            "token",
            f"a token is written out in {looked.file}",
            "Refer to a variable instead, and make another token: this one is in every copy of the file.",
        )
        yield from check_url(address, Credential("the entry", written))
        return
    named = looked.variable or variable
    if named is None and looked.host.inputs is not None and "headers" in entry:
        yield warn(
            "token",
            f"{looked.host.title} asks a person for the token, so it is not known here",
            "Name a variable that holds it with --token-env to have it checked.",
        )
    yield from check_url(address, Credential.from_variable(named, environ))


def _words(entry: Mapping[str, Any]) -> list[str]:
    command, arguments = entry.get("command"), entry.get("args")
    first = [command] if isinstance(command, str) else command if isinstance(command, list) else []
    return [str(word) for word in (*first, *(arguments if isinstance(arguments, list) else []))]


def _own_environment(entry: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the entry itself gives its server, with what they refer to filled in."""
    given: dict[str, str] = {}
    for key in _ENVIRONMENTS:
        table = entry.get(key)
        if isinstance(table, Mapping):
            given |= {str(name): _expanded(str(value), environ) for name, value in table.items()}
    return given


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    return VARIABLE.sub(lambda found: environ.get(found[1]) or found[2] or "", text)


def _options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option.startswith("--"):
            found[option] = value if equals else words[number + 1] if number + 1 < len(words) else ""
    return found


def _again(looked: Looked, entry: Mapping[str, Any] | None = None) -> str:
    """How to write the entry anew, for the same config and agent where the entry still names them."""
    named = _options(_words(entry or {}))
    kept = [word for option in _KEPT if named.get(option) for word in (option, named[option])]
    command = shlex.join(["deskbook", "install", looked.host.name, *looked.chosen, *kept])
    return f"`{command} {'--force' if looked.host.writable else '--print'}` {_verb(looked.host)} it anew."


def _verb(host: Host) -> str:
    return "writes" if host.writable else "shows"
