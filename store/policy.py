"""What a desk asks of new memories: who must agree before one counts, when it is due, and what it must not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from .clock import DAY

Gate = Literal["auto", "review", "ask"]
Conflicts = Literal["ask", "newest", "newest_validated"]
Secrets = Literal["refuse", "mask", "keep"]

_NONE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in force; ages are microseconds, by kind. The defaults let everything in and make nothing due."""

    gates: Mapping[str, Gate] = field(default_factory=lambda: MappingProxyType({}))
    gates_of: Mapping[str, Mapping[str, Gate]] = field(default_factory=lambda: MappingProxyType({}))
    """What differs for a profile, by its name."""
    max_pending: int = 100
    """How many memories of one agent may wait."""
    pending_lasts: int = 30 * DAY
    review_after: Mapping[str, int] = field(default_factory=lambda: _NONE)
    expires_after: Mapping[str, int] = field(default_factory=lambda: _NONE)
    conflicts: Conflicts = "ask"
    secrets: Secrets = "refuse"

    def gate(self, profile: str, kind: str) -> Gate:
        """What happens before a memory of a kind counts that an agent of a profile writes."""
        own = self.gates_of.get(profile, {})
        return own.get(kind, self.gates.get(kind, "auto"))
