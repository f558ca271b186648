"""Where a host keeps its servers on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from store.errors import ConfigError

from .table import Host, Scope, System

_VARIABLE: Final = re.compile(r"\$\{(\w+):-([^}]*)\}")
_SYSTEMS: Final[Mapping[str, System]] = {"darwin": "mac", "win32": "windows"}


def file_of(
    host: Host, scope: Scope, environ: Mapping[str, str], folder: Path, system: str = sys.platform
) -> Path:
    """The absolute path of the host's file in a scope; `folder` is that of the project.

    Raises ConfigError for a scope that the host does not know, and where the home folder cannot be told.
    """
    if scope == "user":
        return _expanded(host.user[_SYSTEMS.get(system, "linux")], environ)
    if host.project is None:
        raise ConfigError(
            f"{host.title} keeps its servers for the user alone.", field="--scope", hint="Leave --scope out."
        )
    return folder.absolute() / host.project


def _expanded(place: str, environ: Mapping[str, str]) -> Path:
    told = _VARIABLE.sub(lambda found: environ.get(found[1]) or found[2], place)
    if not told.startswith("~"):
        return Path(told).absolute()
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not home:
        raise ConfigError(
            "The home folder is not known: HOME is not set.", field="HOME", hint="Name the file with --file."
        )
    return Path(home).absolute() / told.removeprefix("~").lstrip("/")
