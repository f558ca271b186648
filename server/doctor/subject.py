"""What the local checks look at, fixed once so that all see the same and a test can set any of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from store.inspection import sqlite_version

from ..identity import Identity
from ..settings import Settings


def mounts_of_this_machine() -> str:
    """The text of /proc/mounts; empty on a system without it."""
    try:
        return Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Subject:
    """One desk: its settings, the identities that would be served, and the machine around it.

    `environ` are the variables of the shell that asks; `mounts` gives the text of /proc/mounts, empty where there
    is none; `sqlite` is the version of the SQLite library.
    """

    settings: Settings
    identities: tuple[Identity, ...]
    environ: Mapping[str, str]
    sqlite: str = field(default_factory=sqlite_version)
    mounts: Callable[[], str] = mounts_of_this_machine

    @property
    def root(self) -> Path:
        """Where the ledgers lie, absolute."""
        return self.settings.store.root
