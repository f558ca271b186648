"""The Parquet copies beside each ledger: whether they can be written, and how the last pass went."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from importlib.util import find_spec

from store.errors import NotFound, StoreError
from store.export.manifest import FOLDER, read_status
from store.inspection import inspect_ledger
from store.paths import ledger_path

from .findings import Finding, fault, ok, warn
from .subject import Subject

NAME = "exports"


def check_exports(subject: Subject) -> Iterator[Finding]:
    """Whether the exports of each agent's ledger are kept up to date; nothing is written."""
    if not subject.settings.export.enabled:
        yield ok(NAME, "off, as the settings say")
        return
    if find_spec("pyarrow") is None:
        yield warn(
            NAME,
            "pyarrow is not installed, so none are written",
            "Install Deskbook with its dependencies again.",
        )
        return
    seen: set[tuple[str, str | None]] = set()
    for identity in subject.identities:
        key = (identity.strategy, identity.run)
        if key in seen or (identity.mode == "simulated" and identity.run is None):
            continue
        seen.add(key)
        yield from _of_ledger(subject, *key)


def _of_ledger(subject: Subject, strategy: str, run: str | None) -> Iterator[Finding]:
    """How one ledger's exports stand; nothing where the ledger itself cannot be read, which its own check tells."""
    name = f"{NAME} {strategy}" if run is None else f"{NAME} {strategy}/{run}"
    path = ledger_path(subject.root, strategy, run)
    folder = path.parent / FOLDER
    try:
        entries = inspect_ledger(subject.root, path, strategy, run).entries
    except NotFound:
        yield ok(name, "none yet; they come with the ledger")
        return
    except StoreError:
        return
    try:
        found = read_status(subject.root, path)
    except StoreError as error:
        yield fault(name, error)
        return
    todo = f"Make {shlex.quote(str(folder))} writable with room on its disk; a running server tries again."
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        yield warn(name, f"{folder} cannot be written; the ledger itself is not affected", todo)
    elif found is None:
        yield ok(name, "none yet; a server makes them soon after its first call")
    elif found.failure is not None:
        yield warn(name, f"the last pass failed at {found.last_failure}: {found.failure}", todo)
    else:
        told = f"{folder}, {found.files:,} files, through sequence {found.through:,}"
        behind = entries - found.through
        more = f", {behind:,} behind: the next call to a server brings them on" if behind > 0 else ""
        yield ok(name, told + more)
