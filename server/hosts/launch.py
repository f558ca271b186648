"""How an entry reaches a server: the command that a host starts, or the address that it calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stdio:
    """A command by its absolute path, and its arguments."""

    command: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Http:
    """An address, and the variable that holds the bearer token (None: the server is open).

    `agent` is a word for the agent whose token it is; a host that asks for tokens keeps them apart by it.
    """

    url: str
    variable: str | None
    agent: str = "local"


Launch = Stdio | Http
