"""What is known of one call before anything of it is done: who, through which client, in which session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from store import Client

from .identity import Identity


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the transport brought it; `meta` and `environ` may carry labels and a clock, never identity."""

    identity: Identity
    client: Client
    session_id: str
    meta: Mapping[str, Any] | None
    environ: Mapping[str, str]
