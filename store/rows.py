"""Rows of the projections, and the filters that reads share.

A projection row is derived from the ledger alone; an engine may drop and rebuild it at any time. Times are
microseconds since the epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from .symbols import Line


@dataclass(frozen=True, slots=True)
class Head:
    """The ledger's last entry, as far as the next one needs it."""

    sequence: int
    chain_sha256: bytes
    effective_at: int
    latest_effective_at: int
    """The latest effective_at of all entries, which a clock that stepped back leaves behind."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory, valid from `sequence_from` until the next version's entry."""

    sequence_from: int
    memory_id: str
    version: int
    ordinal: int
    """How many memories the ledger held once this one was first recorded, itself included."""
    terms_total: int
    """Terms of the first versions of all those memories together."""
    kind: str
    status: str
    review_state: str
    symbol: str | None
    text: str
    tags: tuple[str, ...]
    details: dict[str, Any]
    agent: str
    profile: str
    changed_by: str
    created_at: int
    effective_at: int
    stale_at: int | None
    expires_at: int | None
    terms: int
    """Length of the indexed text in terms."""
    source: str | None = None
    """The ledger a run inherits the memory from; never stored."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One recorded search, without the text handed over, which stays in its entry."""

    retrieval_id: str
    sequence: int
    agent: str
    session_id: str | None
    model_call_id: str | None
    effective_at: int
    query: str
    mode: str
    filters: str
    cut: int
    total: int
    candidates: str
    selected: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One recorded showing of the state (`subject_id` is `state`) or of a memory."""

    sequence: int
    agent: str
    session_id: str | None
    model_call_id: str | None
    surface: str
    subject_id: str
    as_of: int | None
    shown: str


@dataclass(frozen=True, slots=True)
class Session:
    """A session whose first entry has been written."""

    session_id: str
    sequence: int
    agent: str


@dataclass(frozen=True, slots=True)
class Flag:
    """An open request for a person to look at a memory."""

    sequence: int
    memory_id: str
    reason: str
    other_id: str | None
    note: str | None
    agent: str
    effective_at: int


@dataclass(frozen=True, slots=True)
class Settlement:
    """The answer to a flag."""

    flag_sequence: int
    sequence: int
    resolution: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """What stays of an entry whose content was taken away; `kept` is the JSON text that stands for it."""

    sequence: int
    redacted_by: int
    kept: str


@dataclass(frozen=True, slots=True)
class Intent:
    """One instrument that an order action touches; a multi-leg action has several."""

    sequence: int
    action_id: str
    agent: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """One report of positions, as JSON text."""

    sequence: int
    event_id: str
    agent: str
    standing: str
    effective_at: int
    positions: str


@dataclass(frozen=True, slots=True)
class Caution:
    """One recorded warning."""

    sequence: int
    code: str
    subject_id: str
    symbol: str | None
    agent: str
    effective_at: int
    message: str


INDEX_COLUMNS = (
    "sequence_from",
    "sequence_to",
    *(each.name for each in fields(Version)[1:] if each.name != "source"),
)
"""The columns of the view `memory_index`, the current version of each memory."""

REPORT_COLUMNS = ("sequence", "event_id", "effective_at", "recorded_at", "agent", "standing", "positions")
"""A report of positions with its entry's time of recording; `positions` is JSON text."""

ORDER_COLUMNS = (
    *(
        "sequence",
        "event_id",
        "action_id",
        "version",
        "status",
        "symbol",
        "text",
        "details",
        "agent",
        "profile",
    ),
    *("session_id", "model_call_id", "effective_at", "recorded_at"),
    *("outcome_sequence", "outcome_at", "outcome_recorded_at", "outcome_by"),
)
"""An order action as it stands, with the entry it began with and the one of its latest outcome."""

Row = Version | Retrieval | Delivery | Session | Flag | Settlement | Redaction | Intent | Holdings | Caution


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on a memory's version; None and empty mean any. Several tags mean all of them."""

    kind: str | None = None
    symbol: str | None = None
    status: str | None = None
    tags: tuple[str, ...] = ()
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    expired: bool = False
    """Whether what has expired is found too."""
    lines: tuple[Line, ...] = ()
    """What `symbol` stands for, once a view has looked it up; then it is this that rows must meet."""

    def as_content(self) -> dict[str, Any]:
        """The conditions that are set, for the record of a search."""
        named = {
            "kind": self.kind,
            "symbol": self.symbol,
            "status": self.status,
            "tags": list(self.tags) or None,
            "agent": self.agent,
            "since": self.since,
            "until": self.until,
            "expired": self.expired or None,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Said:
    """A standing memory as far as a new one is held against it; direction, target and horizon are a thesis'."""

    memory_id: str
    kind: str
    symbol: str | None
    text: str
    direction: str | None
    target: str | None
    horizon: str | None


@dataclass(frozen=True, slots=True)
class Text:
    """One version as far as its vectors need it."""

    sequence_from: int
    sequence_to: int | None
    previous_from: int | None
    """The entry that made the version before it."""
    previous_text: str | None
    kind: str
    status: str
    review_state: str
    symbol: str | None
    text: str
    tags: tuple[str, ...]
    agent: str
    effective_at: int
    expires_at: int | None
    content_sha256: bytes
    """Of the entry that made it."""


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Conditions on entries for `log`; None means any."""

    after: int = 0
    until_sequence: int | None = None
    event_type: str | None = None
    agent: str | None = None
    symbol: str | None = None
    kind: str | None = None
    subject_id: str | None = None
    session_id: str | None = None
    since: int | None = None
    until: int | None = None
    newest_first: bool = False
    limit: int = field(default=100)
