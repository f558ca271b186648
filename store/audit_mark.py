"""How far a verification had come, kept so that one that was broken off can go on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .rows import (
    Caution,
    Delivery,
    Flag,
    Holdings,
    Intent,
    Redaction,
    Retrieval,
    Row,
    Session,
    Settlement,
    Version,
)

_MOST = 2**63 - 1

TABLES: dict[type[Row], str] = {
    Version: "memory_versions",
    Retrieval: "memory_retrievals",
    Delivery: "memory_deliveries",
    Session: "memory_sessions",
    Flag: "memory_flags",
    Settlement: "memory_settlements",
    Redaction: "memory_redactions",
    Intent: "memory_intents",
    Holdings: "memory_holdings",
    Caution: "memory_warnings",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a verification came: everything up to `sequence` was found sound, and its chain hash is `chain` (hex).

    `expected` counts the rows that the entries up to there account for; the rest is what the next entry needs to
    know of those before it. Raises ValueError or TypeError for what no verification can have left.
    """

    store_id: str
    sequence: int
    chain: str
    expected: dict[str, int]
    memories: int
    terms: int
    clock_rows: int
    latest: int | None

    def __post_init__(self) -> None:
        texts: tuple[object, ...] = (self.store_id, self.chain)  # what a file says they are
        if not all(isinstance(text, str) for text in texts) or type(self.expected) is not dict:
            raise TypeError("not a mark: store_id, chain or expected")
        if not re.fullmatch("[0-9a-f]{64}", self.chain):
            raise ValueError("not a mark: chain")
        if not self.expected.keys() <= set(TABLES.values()):
            raise ValueError("not a mark: expected")
        counts = (self.sequence, self.memories, self.terms, self.clock_rows, *self.expected.values())
        if not all(_whole(count) and count >= 0 for count in counts):
            raise ValueError("not a mark: a count")
        if not (self.latest is None or _whole(self.latest)):
            raise ValueError("not a mark: latest")


def _whole(value: object) -> bool:
    return type(value) is int and abs(value) <= _MOST
