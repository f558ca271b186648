"""What the ledger answers a caller with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .rows import Filter


@dataclass(frozen=True, slots=True)
class Written:
    """A write that is durable: the memory it concerns as it stands after it, and its place in the ledger.

    `effective_at` is in microseconds since the epoch, UTC.
    """

    id: str
    kind: str
    status: str
    version: int
    sequence: int
    event_id: str
    effective_at: int
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict, hash=False)
    """What the kind adds: an order's reference, a report's holdings; times in microseconds."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reading: the body, and its compact JSON text, which says the same."""

    body: dict[str, Any]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search. `as_of` is an instant in microseconds, UTC; None means as things stand.

    `cursor` continues an earlier search with the same query, conditions and order. `losses_first` puts what tells of
    a failure before the rest.
    """

    query: str = ""
    conditions: Filter = field(default_factory=Filter)
    as_of: int | None = None
    limit: int = 10
    cursor: str | None = None
    order: Literal["relevance", "losses_first"] = "relevance"
    detailed: bool = False
    reply_chars: int = 32_000

    @property
    def asked(self) -> str:
        """The query and order in one text, to which a cursor belongs."""
        return self.query if self.order == "relevance" else f"{self.order}\0{self.query}"
