"""What is wrong in a source, found while its rows go by in order; the same every time the source is read."""

from __future__ import annotations

import hashlib
from collections import Counter

from ..report import Defects
from .known import SEARCH
from .record import INDEX_ONLY, Record

CREATES = frozenset(
    "memory.created decision.recorded proposal.recorded risk_note.recorded lesson.proposed lesson.validated"
    " thesis.opened".split()
)
_KINDS_OF_THEIR_OWN = frozenset({"decision", "proposal", "risk_note", "lesson", "thesis", "order_action"})
_UNKNOWN = "unknown"


class Survey:
    """Looks at each record once, notes its defects in it and in the report, and counts what it saw."""

    def __init__(self) -> None:
        self.defects = Defects()
        self.rows: Counter[str] = Counter()
        self.latest: dict[str, str] = {}
        """The last event that the source's index should show, by memory."""
        self._status: dict[str, str] = {}
        self._texts: dict[bytes, str] = {}
        self._sequence = 0
        self._time: int | None = None
        self._retrievals: set[str] = set()
        self._intents: dict[str, str] = {}

    def look(self, record: Record) -> None:
        """Take the next record of the source."""
        self.rows[record.event_type] += 1
        if record.event_type == SEARCH:
            self._retrievals.add(record.source_id)
        elif not record.source_id.startswith(INDEX_ONLY):
            self._order(record)
        if record.event_type in CREATES:
            self._created(record)
        elif record.event_type in {"thesis.updated", "thesis.closed"}:
            self._changed(record)
        elif record.event_type in {"order.intent", "order.action_outcome"}:
            self._ordered(record)
        if record.retrieval_id is not None and record.retrieval_id not in self._retrievals:
            record.defects.append("retrieval_missing")
        if record.marks:
            record.defects.append("repaired")
        for code in dict.fromkeys(record.defects):
            self.defects.note(code, record.source_id)

    def finish(self) -> None:
        """Note what only the whole source shows."""
        for action in self._intents.values():
            self.defects.note("outcome_unknown", action)

    def behind(self, memory_id: str, latest_event_id: str | None) -> bool:
        """Whether the source's index shows another event of a memory than its last one; noted as a defect."""
        if self.latest.get(memory_id, latest_event_id) == latest_event_id:
            return False
        self.defects.note("projection_behind", memory_id)
        return True

    def _order(self, record: Record) -> None:
        if record.sequence is None or record.sequence != self._sequence + 1:
            record.defects.append("sequence_gap")
        self._sequence = record.sequence if record.sequence is not None else self._sequence + 1
        if record.at is None:
            return
        if self._time is not None and record.at < self._time:
            record.defects.append("out_of_order")
        self._time = record.at if self._time is None else max(self._time, record.at)

    def _created(self, record: Record) -> None:
        if record.subject is not None:
            if record.subject in self._status:
                record.defects.append("id_twice")
            self.latest[record.subject] = record.source_id
            self._status[record.subject] = "open" if record.event_type == "thesis.opened" else "other"
        if record.event_type == "memory.created" and record.kind in _KINDS_OF_THEIR_OWN:
            record.defects.append("kind_by_remember")
        if record.event_type == "lesson.validated":
            record.defects.append("validated_there")
        if not record.text.strip():
            record.defects.append("blank_text")
        said = "\0".join((record.agent or "", record.kind or "", record.symbol or "", record.text))
        digest = hashlib.sha256(said.encode()).digest()
        if digest in self._texts:
            record.defects.append("duplicate")
        self._texts.setdefault(digest, record.source_id)

    def _changed(self, record: Record) -> None:
        subject = record.subject or ""
        status = self._status.get(subject)
        closing = record.event_type == "thesis.closed"
        if status is None:
            record.defects.append("phantom_thesis")
        elif status == "other":
            record.defects.append("thesis_of_another_kind")
        elif status == "closed":
            record.defects.append("closed_again" if closing else "reopened_thesis")
        if not record.text.strip():
            record.defects.append("blank_text")
        self.latest[subject] = record.source_id
        self._status[subject] = "closed" if closing else "open"

    def _ordered(self, record: Record) -> None:
        subject = record.subject or ""
        if record.event_type == "order.intent":
            self._intents[subject] = record.source_id
            self.latest[subject] = record.source_id
            return
        told = record.metadata if isinstance(record.metadata, dict) else {}
        if told.get("certainty") not in (None, _UNKNOWN):
            self._intents.pop(subject, None)
