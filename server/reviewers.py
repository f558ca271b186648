"""Who may review, and the proof of it that no agent process holds: a passphrase, or a reviewer token.

A reviewer is no agent. No transport, label or argument leads here: only the commands of a person do. A wrong
passphrase and an unknown name are told and timed alike, each is an entry of the ledger, and after ten within an hour
none is taken for a minute. A reviewer token (`dbr_` and 256 random bits) neither counts nor waits.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import typer

from store import Book, Caller
from store.caller import Client
from store.clock import SECOND
from store.errors import (
    ConfigError,
    Conflict,
    DeskbookError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    StoreError,
)
from store.ids import SESSION, new_id
from store.ledger import SYSTEM
from store.names import name_fault

from . import __version__
from .config_faults import shown
from .identity import LOCAL_AGENT
from .near_miss import did_you_mean
from .permissions import PROFILES
from .reviewer_file import (
    Reviewer,
    hashed,
    held,
    opens,
    read_reviewers,
    reviewer_path,
    token_hash,
    write_reviewers,
)
from .section_values import NAME
from .settings import Settings
from .typed import place_words, with_place

VARIABLE: Final = "DESKBOOK_REVIEWER_TOKEN"
PREFIX: Final = "dbr_"
SHORTEST: Final = 12
_CONFUSABLE: Final = ("Latin", "Cyrillic", "Greek")
LONGEST: Final = 1_024
FAILURES: Final = 10
"""So many wrong passphrases within an hour close the door for a minute; so does each one after them."""
WINDOW: Final = 3_600 * SECOND
CLOSED: Final = 60 * SECOND

Now = Callable[[], float]
_TOKEN_BYTES: Final = 32
_BEARER: Final = re.compile(r"db[kr]_")


def reviewer_caller(
    settings: Settings, name: str | None, environ: Mapping[str, str], *, tool: str, now: Now = time.time
) -> Caller:
    """The person who proves to be a reviewer, to act as one with the command named `tool`.

    `name` may be None where there is one reviewer, or where a token says who it is. Takes the token in
    DESKBOOK_REVIEWER_TOKEN, else asks in the terminal. Raises PermissionDenied for a wrong proof, ConfigError where
    there is nobody to ask, StoreError where the reviewer file cannot be trusted.
    """
    proven = prove(settings, name, environ, tool=tool, now=now)
    if fault := taken(settings, proven):
        raise PermissionDenied(
            f"The reviewer {shown(proven)} cannot act: {fault}.",
            field="--as",
            hint=_typed("Add a reviewer of another name: `deskbook reviewer add NAME`.", settings),
        )
    client = Client(transport="command", name="deskbook", version=__version__)
    return Caller(proven, "reviewer", new_id(SESSION), tool, client=client, reviewer=True)


def prove(
    settings: Settings, name: str | None, environ: Mapping[str, str], *, tool: str, now: Now = time.time
) -> str:
    """The name of the reviewer whose token or passphrase is at hand; raises as `reviewer_caller` does."""
    path = reviewer_path(settings.store.root)
    known = _known(settings)
    if token := environ.get(VARIABLE):
        return _by_token(settings, known, name, token, tool)
    if name is None:
        name = _only(known)
    if not sys.stdin.isatty():
        raise ConfigError(
            "A reviewer's passphrase is asked for in a terminal, and there is none.",
            field="--as",
            hint=f"Run it in a terminal, or put a reviewer token into {VARIABLE} "
            "(`deskbook reviewer add NAME --token` makes one).",
        )
    given = typer.prompt(f"Passphrase of reviewer {shown(name)}", hide_input=True, err=True)
    _by_passphrase(settings, path, name, given, tool, now)
    return name


def check_named(settings: Settings, name: str | None, environ: Mapping[str, str]) -> None:
    """Raise what is wrong with who somebody says to be, before they are asked anything: names are no secret.

    Raises PermissionDenied where there is no reviewer at all, NotFound where nobody goes by `name`, ConfigError where
    there are several and no name. Beside a token nothing is asked, and `prove` refuses and records what does not fit.
    """
    known = _known(settings)
    if environ.get(VARIABLE):
        return
    names = [reviewer.name for reviewer in known]
    if name is not None and name not in names:
        raise NotFound(
            f"There is no reviewer {shown(name)}{did_you_mean(name, names)}.",
            field="--as",
            hint=_typed("`deskbook reviewer list` names them.", settings),
        )
    if name is None:
        _only(known)


def add_passphrase(path: Path, name: str, passphrase: str, now: Now = time.time) -> None:
    """Let a reviewer, a new or a known one, prove to be one by this passphrase."""
    _put(path, name, now, {"passphrase": hashed(passphrase)})


def add_token(path: Path, name: str, now: Now = time.time) -> str:
    """Let a reviewer, a new or a known one, prove to be one by the fresh token that this gives."""
    secret = base64.b32encode(secrets.token_bytes(_TOKEN_BYTES)).decode("ascii").rstrip("=").lower()
    token = f"{PREFIX}{secret}"
    _put(path, name, now, {"token_sha256": token_hash(token)})
    return token


def remove_reviewer(path: Path, name: str) -> None:
    """Take a reviewer away. Raises NotFound for nobody, Conflict for the last one."""
    with held(path):
        found = read_reviewers(path)
        left = tuple(reviewer for reviewer in found.reviewers if reviewer.name != name)
        if len(left) == len(found.reviewers):
            raise NotFound(
                f"There is no reviewer {shown(name)}.",
                field="NAME",
                hint="`deskbook reviewer list` names them.",
            )
        if not left:
            # Without anybody the next to come would be the first, and asked for nothing.
            raise Conflict(
                f"{shown(name)} is the only reviewer, and a store that had one keeps one.",
                field="NAME",
                hint="Add the next one first: `deskbook reviewer add NAME`.",
            )
        write_reviewers(path, found.model_copy(update={"reviewers": left}))


def check_new_name(settings: Settings, name: str) -> None:
    """Raise InvalidInput for a name that is none, or that an agent or the desk goes by."""
    fault = name_fault(name)
    if fault:
        raise InvalidInput(f"The reviewer's name {fault}.", field="NAME", hint=f"Allowed: {NAME}.")
    if len(scripts := _scripts(name)) > 1:
        raise InvalidInput(
            f"The reviewer's name mixes letters of {' and '.join(scripts)}, some of which look alike.",
            field="NAME",
            hint="Write it in the letters of one script.",
        )
    if fault := taken(settings, name):
        raise InvalidInput(
            f"{shown(name)} cannot be a reviewer's name: {fault}.",
            field="NAME",
            hint="Take the name of a person: a reviewer is no agent.",
        )


def check_passphrase(settings: Settings, passphrase: str, environ: Mapping[str, str], field: str) -> None:
    """Raise InvalidInput for a passphrase that is short, long, or a token of this desk."""
    if not SHORTEST <= len(passphrase) <= LONGEST or not passphrase.strip():
        raise InvalidInput(
            f"A passphrase has {SHORTEST} to {LONGEST:,} characters.", field=field, hint="Four words will do."
        )
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in passphrase):
        raise InvalidInput("A passphrase is one line without control characters.", field=field)
    variables = [environ.get(agent.token_env) for agent in settings.agents.values() if agent.token_env]
    if _BEARER.match(passphrase) or passphrase in variables:
        raise InvalidInput(
            "A token is no passphrase: agents hold tokens.", field=field, hint="Choose words of your own."
        )


def taken(settings: Settings, name: str) -> str | None:
    """Why a name is not a person's here; None where it may be one's."""
    wanted = _alike(name)
    for agent in settings.agents:
        if _alike(agent) == wanted:
            return f"the agent {shown(agent)} of the config goes by it"
    if wanted in {SYSTEM, LOCAL_AGENT}:
        return "Deskbook writes entries of its own by it"
    return f"it is the name of the profile {wanted}" if wanted in PROFILES else None


def refuse_in_server(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raise ConfigError where a server for agents would hold a reviewer's token, or serve a reviewer's name."""
    if environ.get(VARIABLE):
        raise ConfigError(
            f"{VARIABLE} is set, and no process that serves agents may hold a reviewer's token.",
            field=VARIABLE,
            hint="Unset it where the server is started; set it for one command of a person alone.",
        )
    for name, agent in settings.agents.items():
        if agent.token_env and environ.get(agent.token_env, "").startswith(PREFIX):
            raise ConfigError(
                f"The variable {agent.token_env} of agent {shown(name)} holds a reviewer's token.",
                field=agent.token_env,
                hint="Make a token for the agent: `deskbook token new AGENT`.",
            )
    known: tuple[Reviewer, ...] = ()
    with suppress(StoreError):  # where the file cannot be trusted nobody can review, and agents may go on
        known = read_reviewers(reviewer_path(settings.store.root)).reviewers
    names = {_alike(reviewer.name) for reviewer in known}
    for name in settings.agents:
        if _alike(name) in names:
            raise ConfigError(
                f"The agent {shown(name)} goes by the name of a reviewer of this store.",
                field="agents",
                hint="Rename the agent, or remove the reviewer: `deskbook reviewer remove NAME`.",
            )


def _known(settings: Settings) -> tuple[Reviewer, ...]:
    """Who may review; raises PermissionDenied where nobody may."""
    known = read_reviewers(reviewer_path(settings.store.root)).reviewers
    if not known:
        raise PermissionDenied(
            "Nobody is a reviewer of this store yet.",
            hint=_typed("Become one: `deskbook reviewer add NAME` asks for a passphrase.", settings),
        )
    return known


def _put(path: Path, name: str, now: Now, proof: Mapping[str, object]) -> None:
    with held(path):
        found = read_reviewers(path)
        others = tuple(reviewer for reviewer in found.reviewers if reviewer.name != name)
        mine = next((reviewer for reviewer in found.reviewers if reviewer.name == name), None)
        if mine is None:
            mine = Reviewer(name=name, created=int(now()) * SECOND, passphrase=None, token_sha256=None)
        whole = (*others, mine.model_copy(update=dict(proof)))
        write_reviewers(path, found.model_copy(update={"reviewers": whole}))


def _by_token(
    settings: Settings, known: tuple[Reviewer, ...], name: str | None, token: str, tool: str
) -> str:
    sha256 = token_hash(token)
    owners = [
        reviewer.name
        for reviewer in known
        if reviewer.token_sha256 and hmac.compare_digest(reviewer.token_sha256, sha256)
    ]
    if not owners or name not in (None, owners[0]):
        raise _refused(settings, name, tool)
    return owners[0]


def _by_passphrase(settings: Settings, path: Path, name: str, given: str, tool: str, now: Now) -> None:
    # One attempt after the other: many at once must not all be made before the first is counted.
    with held(path):
        found = read_reviewers(path)
        at = int(now() * SECOND)
        # A time further away than any closing lasts was written under another clock.
        if found.closed_until is not None and at < found.closed_until <= at + CLOSED:
            left = max(1, (found.closed_until - at) // SECOND)
            raise PermissionDenied(
                f"Too many wrong passphrases; the next may be tried in {left} s.",
                field="--as",
                hint=f"Wait, or use a reviewer token in {VARIABLE}.",
            )
        kept = next((each.passphrase for each in found.reviewers if each.name == name), None)
        if opens(kept, given):
            return
        failures = (*(each for each in found.failures if at - WINDOW < each <= at), at)[-FAILURES:]
        closed = at + CLOSED if len(failures) >= FAILURES else None
        write_reviewers(path, found.model_copy(update={"failures": failures, "closed_until": closed}))
    raise _refused(settings, name, tool)


def _refused(settings: Settings, name: str | None, tool: str) -> PermissionDenied:
    """The one answer to a wrong proof, once the ledger has it on record where there is a ledger."""
    hint = "`deskbook reviewer list` names the reviewers."
    try:
        _record(settings, tool)
    except DeskbookError as fault:
        hint += f" The attempt could not be recorded: {fault.message}"
    whose = "of any reviewer" if name is None else f"of {shown(name)}"
    return PermissionDenied(f"That is not the credential {whose}.", field="--as", hint=_typed(hint, settings))


def _record(settings: Settings, tool: str) -> None:
    # The name is only claimed, so the entry stands under the desk's own.
    caller = Caller(SYSTEM, SYSTEM, new_id(SESSION), tool, client=Client(transport="command"))
    try:
        book = Book.open(settings.store.root, settings.store.strategy, settings.run, create=False)
    except NotFound:
        return
    try:
        book.note_denied(caller, tool)
    finally:
        book.close()


def _only(known: tuple[Reviewer, ...]) -> str:
    if len(known) == 1:
        return known[0].name
    raise ConfigError(
        "This store has several reviewers.",
        field="--as",
        hint=f"Say who you are: --as NAME, one of {', '.join(shown(each.name) for each in known)}.",
    )


def _scripts(name: str) -> list[str]:
    """Which of the scripts whose letters pass for each other's a name has letters of."""
    letters = [unicodedata.name(letter, "") for letter in unicodedata.normalize("NFKC", name)]
    return [script for script in _CONFUSABLE if any(each.startswith(script.upper()) for each in letters)]


def _alike(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _typed(hint: str, settings: Settings) -> str:
    return with_place(hint, place_words(settings))
