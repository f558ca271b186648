"""The config and what runs it: which file, which agents, Python and packages, and what a host will not hand on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from platformdirs import user_data_path

from store.errors import DeskbookError
from store.inspection import check_sqlite_version

from .. import __version__
from ..identity import Identity
from .findings import Finding, fault, ok, warn
from .subject import Subject

PACKAGES: Final = ("mcp", "apsw", "pydantic", "anyio")
_OWN: Final = "DESKBOOK_"


def check_config(subject: Subject) -> Iterator[Finding]:
    """Which file was read and what stands in force."""
    settings = subject.settings
    if settings.config is None:
        yield ok("config", "no file: one person's desk, without --config or DESKBOOK_CONFIG")
    else:
        yield ok("config", f"{settings.config}, {_agents(len(settings.agents))}")
    for identity in subject.identities:
        yield ok(f"agent {identity.agent}", _standing(identity))


def check_python(_subject: Subject | None = None) -> Iterator[Finding]:
    """Python, this package and those that matter most to it."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    yield ok("python", f"{platform.python_version()}, deskbook {__version__}, {packages}")


def check_sqlite(subject: Subject) -> Iterator[Finding]:
    """Whether SQLite is of a version that is safe."""
    try:
        check_sqlite_version(subject.sqlite)
    except DeskbookError as error:
        yield fault("sqlite", error)
    else:
        yield ok("sqlite", f"{subject.sqlite}, free of the WAL-reset fault (3.7.0 to 3.51.2)")


def check_shell(subject: Subject) -> Iterator[Finding]:
    """What this shell sets and a host does not hand on to the server that it starts."""
    own = sorted(
        name
        for name, value in subject.environ.items()
        if value and name.startswith(_OWN) and not name.endswith("_TOKEN")
    )
    if own:
        yield warn(
            "shell",
            f"{', '.join(own)} set in this shell; a host hands on none of them",
            "Write what they say into the config, or into the entry: `deskbook install` does for config, root, "
            "strategy and agent.",
        )
    base = subject.environ.get("XDG_DATA_HOME")
    if base and not subject.settings.set_at_launch("store.root") and _is_default(subject):
        yield warn(
            "shell",
            f"the root {subject.root} comes from XDG_DATA_HOME, which a host may not hand on",
            "Write the root into the config ([store] root), or give it with --root.",
        )


def _is_default(subject: Subject) -> bool:
    return subject.root == user_data_path("deskbook").resolve()


def _agents(number: int) -> str:
    return f"{number} agent" if number == 1 else f"{number} agents"


def _standing(identity: Identity) -> str:
    clock: str = identity.mode
    if identity.mode == "simulated":
        clock += f", run {identity.run}" if identity.run else ", the run named by each call"
    rights = ", read-only" if identity.read_only else ""
    return f"profile {identity.profile.name}{rights}, strategy {identity.strategy}, clock {clock}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
