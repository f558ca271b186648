"""Takes content away in one transaction: the entry that says so, the blanks, and every row that showed the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..caller import Caller
from ..engines.base import Transaction
from ..entry import Entry
from ..errors import StoreDamaged
from ..event_parts import Covered
from ..events import Recorded
from ..ledger import Draft, Ledger, event_of
from ..projection import CHANGES, Before, project
from ..review_events import Redacted
from ..rows import Row, Version
from .kept import kept_of

AT_ONCE: Final = 100
"""So many entries are named by one redaction: the guard reads the newest one for each of them."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One entry whose content goes: its hash in hex, and what of the content stays."""

    sequence: int
    event_type: str
    content_sha256: str
    kept: dict[str, Any]

    def covered(self) -> Covered:
        """The same as the redaction's entry says it."""
        return Covered(
            sequence=self.sequence,
            event_type=self.event_type,
            content_sha256=self.content_sha256,
            kept=self.kept,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """What the entries of a redaction say besides what they cover."""

    reason: str
    subject_type: str
    subject_id: str
    kind: str | None = None
    symbol: str | None = None
    again: bool = False
    by: str | None = None


def taken_from(transaction: Transaction, sequences: Iterable[int]) -> list[Taken]:
    """What goes of the entries that still have their content."""
    return [
        Taken(
            entry.sequence,
            entry.event_type,
            entry.content_sha256.hex(),
            kept_of(entry.event_type, json.loads(entry.content)),
        )
        for entry in map(transaction.raw_entry, sequences)
        if entry is not None and entry.content
    ]


def take_away(
    transaction: Transaction,
    ledger: Ledger,
    caller: Caller,
    order: Order,
    taken: Sequence[Taken],
    note: Callable[[Sequence[Taken]], None],
) -> list[Entry]:
    """Take the content of entries away and give the entries that say so.

    `note` is told before anything is changed, and what it raises keeps everything as it is. It may be told twice.
    """
    if not taken:
        return []
    note(taken)
    said = []
    for part in _parts(taken):
        event = Redacted(
            reason=order.reason,
            covered=tuple(each.covered() for each in part),
            again=True if order.again else None,
            by=order.by,
        )
        draft = Draft(event, order.subject_type, order.subject_id, order.kind, order.symbol)
        said += ledger.append(transaction, caller, [draft])
        transaction.blank(each.sequence for each in part)
    _show_what_stays(transaction, [each.sequence for each in taken])
    return said


def _parts(taken: Sequence[Taken]) -> Iterator[Sequence[Taken]]:
    for start in range(0, len(taken), AT_ONCE):
        yield taken[start : start + AT_ONCE]


def _show_what_stays(transaction: Transaction, sequences: Sequence[int]) -> None:
    """Write every row anew that the entries led to, from what stays of them."""
    memories: dict[str, None] = {}
    for sequence in sequences:
        entry = transaction.entry(sequence)
        if entry is None:
            continue
        if isinstance(event_of(entry), (Recorded, *CHANGES)):
            memories[entry.subject_id] = None
        else:
            transaction.replace_rows(sequence, project(entry, event_of(entry), Before(None, 0, 0)))
    gone = set(sequences)
    for memory_id in memories:
        versions = []
        for version, others in _replayed(transaction, memory_id):
            versions.append(version)
            if version.sequence_from in gone:
                transaction.replace_rows(version.sequence_from, others)
        transaction.rewrite(memory_id, versions)


def _replayed(transaction: Transaction, memory_id: str) -> Iterator[tuple[Version, list[Row]]]:
    """Every version of a memory as its entries make it now, each with the other rows of its entry."""
    head = transaction.head()
    standing: Version | None = None
    for entry in transaction.history(memory_id, head.sequence if head else 0):
        event = event_of(entry)
        if not isinstance(event, (Recorded, *CHANGES)):
            continue
        old = transaction.version_at(entry.sequence)
        if old is None:
            raise StoreDamaged(f"Entry {entry.sequence} left no version.", hint="Run `deskbook rebuild`.")
        rows = project(entry, event, Before(standing, old.ordinal - 1, old.terms_total - old.terms))
        (standing,) = (row for row in rows if isinstance(row, Version))
        yield standing, [row for row in rows if not isinstance(row, Version)]
