"""Takes away once more, from a ledger that was put back as it stood before, what its register says is gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

from ..caller import Caller
from ..engines.base import Snapshot, Transaction
from ..engines.sqlite.connection import connect, reading_access
from ..engines.sqlite.snapshot import SqliteSnapshot
from ..ids import SESSION, new_id
from ..ledger import SYSTEM
from .applying import Order, Taken, take_away, taken_from
from .opening import COMMIT_SECONDS, WRITE_SECONDS, opened
from .register import Line


def redact_again(path: Path, strategy: str, run: str | None, lines: Sequence[Line]) -> int:
    """Take away what a register's lines say of the ledger file at `path`; gives how many entries had it back.

    The file is left as it is where none has. The caller purges it. Raises the StoreError of a ledger that cannot be
    read or written, apsw.Error for what SQLite does.
    """
    if not _has_any(path, lines):
        return 0

    with opened(path, strategy, run) as ledger:

        def job(transaction: Transaction) -> int:
            head = transaction.head()
            if head is None:
                return 0
            system = Caller(SYSTEM, SYSTEM, new_id(SESSION), tool="restore")
            caller = ledger.ledger.at_least(head, system)
            count = 0
            for order, sequences in _orders(_standing(transaction, lines)):
                taken = taken_from(transaction, sequences)
                take_away(transaction, ledger.ledger, caller, order, taken, _known)
                count += len(taken)
            return count

        return ledger.engine.write(job, timeout=WRITE_SECONDS, grace=COMMIT_SECONDS)


def _has_any(path: Path, lines: Sequence[Line]) -> bool:
    if not lines:
        return False
    with closing(connect(path, reading_access(path))) as connection:
        return bool(_standing(SqliteSnapshot(connection), lines))


def _standing(snapshot: Snapshot, lines: Sequence[Line]) -> list[Line]:
    """The lines whose entry stands here, the same one, with its content."""
    found = []
    for line in lines:
        entry = snapshot.raw_entry(line.sequence)
        if entry is not None and entry.content and entry.content_sha256.hex() == line.content_sha256:
            found.append(line)
    return found


def _orders(lines: Sequence[Line]) -> list[tuple[Order, list[int]]]:
    """What was ordered together goes together."""
    return [
        (
            Order(reason, subject_type, subject_id, again=True, by=by),
            list(dict.fromkeys(line.sequence for line in group)),
        )
        for (reason, subject_type, subject_id, by), group in groupby(
            lines, key=lambda line: (line.reason, line.subject_type, line.subject_id, line.by)
        )
    ]


def _known(_taken: Sequence[Taken]) -> None:
    """The register says so already."""
