"""Who calls, from where and when: what every entry carries besides its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Client:
    """The program on the other end, as it claims to be; a label, never an identity."""

    transport: str = "local"
    name: str | None = None
    version: str | None = None
    protocol_version: str | None = None
    token_id: str | None = None
    """The public id of the bearer token that the session was opened with."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One call's identity, labels and clock.

    `now` is the simulated time of a run in microseconds since the epoch, UTC; None on a live ledger.
    `resolves_any` lets the caller end memories of other authors.
    """

    agent: str
    profile: str
    session_id: str
    tool: str | None = None
    model_call_id: str | None = None
    now: int | None = None
    client: Client = Client()
    revision: str | None = None
    deployment: str | None = None
    """What the desk's config says of the program that trades, carried into order references."""
    observer: bool = False
    """Whether what the caller reports counts as observed; otherwise it is a claim."""
    resolves_any: bool = False
    reviewer: bool = False
    """Whether a person calls who proved to be a reviewer: set by the commands of a person alone, by no transport."""

    host: Literal["none", "asks", "confirmed"] = "none"
    """Whether the client program can ask its person about this call, and whether that person has said yes."""

    @property
    def standing(self) -> Literal["observed", "claim"]:
        """What the caller's reports count as."""
        return "observed" if self.observer else "claim"
