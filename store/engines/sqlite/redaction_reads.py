"""Reads for taking content away: what stays of it, and where else a text stands."""

from __future__ import annotations

from collections.abc import Iterator

from ...ids import MEMORY_ID
from ...rows import Redaction, Version
from .reading import STANDING, VERSION, Reading

_ASKED_ONE_BY_ONE = 4


class RedactionReads(Reading):
    """The redaction side of a snapshot."""

    def kept_until(self, cut: int) -> list[Redaction]:
        rows = self._connection.execute(
            "SELECT sequence, redacted_by, kept FROM memory_redactions WHERE sequence <= ? ORDER BY sequence",
            (cut,),
        )
        return [Redaction(*row) for row in rows]

    def redaction_of(self, sequence: int) -> Redaction | None:
        row = self._one(
            "SELECT sequence, redacted_by, kept FROM memory_redactions WHERE sequence = ?", (sequence,)
        )
        return None if row is None else Redaction(*row)

    def count_redacted(self) -> int:
        row = self._one("SELECT count(*) FROM memory_redactions")
        return int(row[0]) if row else 0

    def searched(self, memory_ids: tuple[str, ...]) -> list[int]:
        if len(memory_ids) > _ASKED_ONE_BY_ONE:
            wanted = frozenset(memory_ids)
            rows = self._connection.execute(
                "SELECT sequence, candidates || selected FROM memory_retrievals ORDER BY sequence"
            )
            return [
                int(sequence)
                for sequence, met in rows
                if not wanted.isdisjoint(found.group() for found in MEMORY_ID.finditer(met))
            ]
        held = " OR ".join(["instr(candidates || selected, ?) > 0"] * len(memory_ids)) or "0"
        asked = tuple(f'"{name}"' for name in memory_ids)
        rows = self._connection.execute(
            f"SELECT sequence FROM memory_retrievals WHERE {held} ORDER BY sequence", asked
        )
        return [int(sequence) for (sequence,) in rows]

    def saying(self, texts: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
        if not texts:
            return
        held = " OR ".join(["instr(content, ?) > 0"] * len(texts))
        yield from self._connection.execute(
            f"SELECT sequence, event_type, subject_id FROM memory_events WHERE {held} ORDER BY sequence",
            texts,
        )

    def unchanged_since(self, instant: int) -> list[tuple[str, int]]:
        rows = self._connection.execute(
            "SELECT memory_id, sequence_from FROM memory_index WHERE effective_at < ? AND text <> ''"
            " ORDER BY sequence_from",
            (instant,),
        )
        return [(str(name), int(sequence)) for name, sequence in rows]

    def all_of_kind(self, kind: str, cut: int) -> list[Version]:
        return self._versions(
            f"SELECT {VERSION} FROM memory_versions v WHERE v.kind = ? AND {STANDING} ORDER BY v.sequence_from",
            (kind, cut, cut),
        )
