"""What is known of a call before anything of it is done: who, through which client, in which session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from store import Client

from .identity import NOTHING, Identity


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a request reached this process: whose it is, in which session, and what lies beside its body.

    `headers` and `environ` may carry labels and a clock, never identity.
    """

    identity: Identity
    session_id: str
    transport: str
    headers: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    environ: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    token_id: str | None = None
    """The public id of the token, where one was needed."""
    ending: anyio.Event | None = None
    """Set when what the request holds open is to end."""


Arrivals: TypeAlias = Callable[[], Arrival]
"""Tells of the request that is being served now; every transport brings its own."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client; `meta` may carry labels and a clock, never identity."""

    arrival: Arrival
    client: Client
    meta: Mapping[str, Any] | None

    @property
    def identity(self) -> Identity:
        """Who is calling."""
        return self.arrival.identity

    @property
    def session_id(self) -> str:
        """The session the transport knows; a label of the client program goes before it."""
        return self.arrival.session_id
