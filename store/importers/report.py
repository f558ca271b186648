"""What an import found and did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

IDS_KEPT = 10_000
IDS_RECORDED = 20


@dataclass(slots=True)
class Defects:
    """What is wrong in a source: for each kind of defect how often, and the first ids that have it."""

    totals: dict[str, int] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def note(self, code: str, name: str) -> None:
        """Count one more, and keep its id while there are not too many."""
        self.totals[code] = self.totals.get(code, 0) + 1
        kept = self.ids.setdefault(code, [])
        if len(kept) < IDS_KEPT:
            kept.append(name)

    def content(self, most: int = IDS_RECORDED) -> dict[str, Any]:
        """Totals and at most `most` ids of each kind, as JSON values."""
        return {
            code: {"total": total, "ids": self.ids[code][:most]}
            for code, total in sorted(self.totals.items())
        }


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome of one import; `added` counts what was new by event type here, `rows` by event type there."""

    source: str
    files: tuple[dict[str, Any], ...]
    strategy: str
    path: str
    rows: dict[str, int]
    known: int
    """Rows of the source that were in the ledger already."""
    added: dict[str, int]
    defects: Defects
    dry_run: bool = False

    def content(self) -> dict[str, Any]:
        """The report as JSON values, with every id that was kept."""
        return {
            "source": self.source,
            "files": list(self.files),
            "strategy": self.strategy,
            "path": self.path,
            "rows": dict(sorted(self.rows.items())),
            "known": self.known,
            "added": dict(sorted(self.added.items())),
            "defects": self.defects.content(IDS_KEPT),
            "dry_run": self.dry_run,
        }
