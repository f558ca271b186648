"""Whole copies of a ledger beside it that are not its own any more, and whether they still hold what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from ..engines.sqlite.connection import connect

REPLACED: Final = ".replaced-[0-9]*"
_LOGS: Final = ("-wal", "-shm", "-journal")
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class CopyLeft:
    """A copy that still holds what was taken away: what it is, and what to do."""

    what: str
    hint: str


def older_copies(path: Path, gone: Sequence[int]) -> Iterator[CopyLeft]:
    """The ledgers that a restore moved aside and that still hold the content of entries that are gone here."""
    for copy in sorted(path.parent.glob(f"{path.name}{REPLACED}")):
        if not copy.name.endswith(_LOGS) and _holds(copy, gone):
            yield CopyLeft(
                f"{copy.name}, which a restore moved aside, still holds what was taken away.",
                f"Delete {copy.name} beside the ledger once you do not need it any more.",
            )


def _holds(copy: Path, gone: Sequence[int]) -> bool:
    """Whether it may; a file that cannot be read may."""
    try:
        with closing(connect(copy, "immutable")) as connection:
            for start in range(0, len(gone), _AT_ONCE):
                part = gone[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(part))
                sql = f"SELECT 1 FROM memory_events WHERE sequence IN ({marks}) AND content <> ''"  # noqa: S608
                if connection.execute(sql, tuple(part)).fetchone():
                    return True
    except apsw.Error:
        return True
    logs = [copy.with_name(copy.name + log) for log in ("-wal", "-journal")]
    return any(log.exists() and log.stat().st_size for log in logs)
