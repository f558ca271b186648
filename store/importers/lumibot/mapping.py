"""Which entries a record of the source leads to, given what is in the ledger.

Nothing of a memory that stands is overwritten: what the source wrote over (a decision that became a thesis, a closed
thesis that was opened again) becomes a memory of its own that names the one it goes on from.
"""

from __future__ import annotations

from typing import Any

from ...commands import ACTIONS, DIRECTIONS
from ...engines.base import Transaction
from ...errors import InvalidInput
from ...event_parts import Candidate, Event, Imported, Selected
from ...events import (
    DecisionRecorded,
    LessonRecorded,
    MemoryRecorded,
    ProposalRecorded,
    Recorded,
    Retrieved,
    RiskNoteRecorded,
    ThesisClosed,
    ThesisOpened,
    ThesisUpdated,
)
from ...ids import KEPT, PREFIXES, RETRIEVAL, new_id
from ...import_events import ImportKept
from ...inputs import decimal_text
from ...ledger import Draft
from ...lifecycle import DECISION, LESSON, MEMORY, PROPOSAL, RISK_NOTE, THESIS
from ...limits import CANDIDATES_KEPT, SHORT_TEXT_CHARS
from ...rows import Version
from .known import SEARCH, Known
from .record import Record
from .survey import CREATES
from .values import required

SYSTEM = "lumibot"
_MARKS = 50
_TERMS = ("direction", "horizon", "target", "invalidation")
_OUTCOME = ("pnl", "return_pct", "exit_price")
Values = dict[str, Any]


def drafts_of(record: Record, known: Known, transaction: Transaction, import_id: str) -> list[Draft]:
    """The entries of one record, in order."""
    return _Mapping(record, known, transaction, import_id).drafts()


class _Mapping:
    def __init__(self, record: Record, known: Known, transaction: Transaction, import_id: str) -> None:
        self._record = record
        self._known = known
        self._transaction = transaction
        self._import_id = import_id
        self._metadata: Values = record.metadata if isinstance(record.metadata, dict) else {}

    def drafts(self) -> list[Draft]:
        record = self._record
        standing = self._standing(record.subject)
        if record.event_type == SEARCH:
            return [self._search()]
        if record.event_type in CREATES and standing is None:
            return [self._created()]
        if record.event_type == "thesis.updated":
            return [self._updated(standing)]
        if record.event_type == "thesis.closed":
            return self._closed(standing)
        return [self._kept(standing)]

    def _standing(self, subject: str | None) -> Version | None:
        name = self._known.memories.get(subject) if subject is not None else None
        return None if name is None else self._transaction.version(name, self._known.sequence)

    def _created(self) -> Draft:
        text, record = required(self._record.text, self._record.marks), self._record
        if record.event_type == "decision.recorded":
            evidence = self._metadata.get("evidence") or None
            said = self._action() or "other"
            return self._new(
                DECISION, DecisionRecorded(text=text, action=said, evidence=evidence, **self._common())
            )
        if record.event_type == "proposal.recorded":
            return self._new(PROPOSAL, ProposalRecorded(text=text, action=self._action(), **self._common()))
        if record.event_type == "risk_note.recorded":
            return self._new(RISK_NOTE, RiskNoteRecorded(text=text, **self._common()))
        if record.event_type in {"lesson.proposed", "lesson.validated"}:
            outcome = self._metadata.get("outcome") or None
            return self._new(LESSON, LessonRecorded(text=text, outcome=outcome, **self._common()))
        if record.event_type == "thesis.opened":
            return self._new(THESIS, ThesisOpened(text=text, **self._terms(), **self._common()))
        category = (record.kind or MEMORY).strip()[:SHORT_TEXT_CHARS]
        return self._new(
            MEMORY,
            MemoryRecorded(text=text, category=None if category == MEMORY else category, **self._common()),
        )

    def _updated(self, standing: Version | None) -> Draft:
        text, record = required(self._record.text, self._record.marks), self._record
        if standing is None or standing.kind != THESIS or standing.status == "closed":
            return self._opened_again(text, standing)
        event = ThesisUpdated(
            text=text,
            tags=record.tags or None,
            tags_given=record.tags_given if record.tags else None,
            symbol=record.symbol if record.symbol != standing.symbol else None,
            symbol_given=record.symbol_given if record.symbol != standing.symbol else None,
            imported=self._block(),
            **self._terms(),
        )
        return self._about(standing, event)

    def _closed(self, standing: Version | None) -> list[Draft]:
        if standing is not None and standing.kind == THESIS:
            return [
                self._kept(standing) if standing.status == "closed" else self._about(standing, self._end())
            ]
        opened = self._opened_again(required(self._record.text, self._record.marks), standing)
        closed = Draft(
            self._end(), "memory", opened.subject_id, THESIS, opened.symbol, retrieval_id=opened.retrieval_id
        )
        return [opened, closed]

    def _opened_again(self, text: str, before: Version | None) -> Draft:
        """A thesis of its own for what the source wrote over another memory, or over nothing."""
        record = self._record
        common = self._common(before)
        if before is not None and not record.tags:
            common["tags"] = before.tags
        event = ThesisOpened(text=text, **self._terms(), **common)
        symbol = record.symbol or (before.symbol if before is not None else None)
        return self._new(THESIS, event, symbol)

    def _end(self) -> ThesisClosed:
        outcome = self._metadata.get("outcome")
        told: Values = outcome if isinstance(outcome, dict) else {}
        numbers = {name: _decimal(told.get(name), name) for name in _OUTCOME}
        rest = {name: value for name, value in told.items() if numbers.get(name) is None and name != "result"}
        result = told.get("result")
        if not isinstance(result, str) or not 0 < len(result.strip()) <= SHORT_TEXT_CHARS:
            rest |= {"result": result} if result is not None else {}
            result = None
        return ThesisClosed(
            result=result.strip() if result is not None else None,
            note=self._record.text.strip() or None,
            imported=self._block(more={"outcome": rest} if rest else {}),
            **numbers,
        )

    def _kept(self, standing: Version | None) -> Draft:
        record = self._record
        event = ImportKept(text=required(record.text, record.marks), imported=self._block(whole=True))
        retrieval_id = self._retrieval()
        if standing is not None:
            return self._about(standing, event)
        subject = self._known.kept.get(record.subject or "") or new_id(KEPT)
        return Draft(event, "import", subject, None, record.symbol, retrieval_id)

    def _search(self) -> Draft:
        record = self._record
        candidates = self._shown(record.candidates, CANDIDATES_KEPT)
        selected = self._shown(record.selected, CANDIDATES_KEPT)
        more = {"candidates": len(record.candidates), "selected": len(record.selected)}
        filters = record.filters | ({"symbol": record.symbol} if record.symbol is not None else {})
        retrieval_id = new_id(RETRIEVAL)
        event = Retrieved(
            query=record.text,
            mode="terms" if record.text.strip() else "recent",
            filters=dict(filters),
            cut=self._known.sequence,
            total=len(record.candidates),
            candidates=tuple(Candidate(id=name, version=version) for name, version in candidates),
            selected=tuple(Selected(id=name, version=version) for name, version in selected),
            rendered=record.rendered,
            imported=self._block(more=more),
        )
        return Draft(event, "retrieval", retrieval_id, retrieval_id=retrieval_id)

    def _shown(self, names: tuple[str, ...], most: int) -> list[tuple[str, int]]:
        """The versions here that ids of the source stand for: of memories, or of events about them."""
        found: dict[tuple[str, int], None] = {}
        for name in names:
            if len(found) >= most:
                break
            event = self._known.event(name)
            memory, cut = event or (self._known.memories.get(name), self._known.sequence)
            version = None if memory is None else self._transaction.version(memory, cut)
            if version is not None:
                found[version.memory_id, version.version] = None
        return list(found)

    def _new(self, kind: str, event: Recorded, symbol: str | None = None) -> Draft:
        name = new_id(PREFIXES[kind])
        return Draft(event, "memory", name, kind, symbol or self._record.symbol, self._retrieval())

    def _about(self, memory: Version, event: Event) -> Draft:
        symbol = self._record.symbol or memory.symbol
        return Draft(event, "memory", memory.memory_id, memory.kind, symbol, self._retrieval())

    def _retrieval(self) -> str | None:
        return self._known.retrievals.get(self._record.retrieval_id or "")

    def _common(self, before: Version | None = None) -> Values:
        record = self._record
        return {
            "tags": record.tags,
            "tags_given": record.tags_given,
            "symbol_given": record.symbol_given,
            "imported": self._block(before),
        }

    def _block(
        self, before: Version | None = None, *, more: Values | None = None, whole: bool = False
    ) -> Imported:
        record = self._record
        rest = dict(self._metadata) if whole else self._untold()
        rest |= more or {}
        raw = record.metadata if not isinstance(record.metadata, dict) else None
        return Imported(
            system=SYSTEM,
            import_id=self._import_id,
            source_id=record.source_id,
            source_type=record.event_type,
            source_subject=record.subject,
            source_sequence=record.sequence,
            source_at=record.at,
            source_recorded_at=record.recorded_at,
            agent=record.agent,
            model_call_id=record.model_call_id,
            retrieval_id=record.retrieval_id,
            status=record.status,
            follows=before.memory_id if before is not None else None,
            metadata=(rest or None) if raw is None else raw,
            defects=tuple(record.defects),
            repaired=_bounded(record.marks),
        )

    def _untold(self) -> Values:
        """The metadata that no field of the entry says."""
        record, rest = self._record, dict(self._metadata)
        said: Values = {"symbol": record.symbol_given or record.symbol, "status": record.status}
        if record.event_type.startswith("thesis."):
            said["thesis_id"] = record.subject
        if record.event_type in {"decision.recorded", "proposal.recorded"}:
            said["action"] = self._action()
        for name, value in said.items():
            if rest.get(name) == value:
                rest.pop(name, None)
        whole = {"decision.recorded": "evidence", "lesson.proposed": "outcome", "lesson.validated": "outcome"}
        rest.pop(whole.get(record.event_type, ""), None)
        if record.event_type == "thesis.closed" and isinstance(rest.get("outcome"), dict):
            rest.pop("outcome")
        return rest

    def _action(self) -> str | None:
        said = self._metadata.get("action")
        plain = said.strip().lower() if isinstance(said, str) else ""
        return plain if plain in ACTIONS else None

    def _terms(self) -> Values:
        """The terms of a thesis that the source's metadata names in words of ours."""
        told = {name: self._metadata.get(name) for name in _TERMS}
        found = {
            name: value.strip()
            for name, value in told.items()
            if isinstance(value, str) and 0 < len(value.strip()) <= SHORT_TEXT_CHARS
        }
        direction = found.pop("direction", "").lower()
        return found | ({"direction": direction} if direction in DIRECTIONS else {})


def _bounded(marks: list[str]) -> tuple[str, ...]:
    more = len(marks) - _MARKS
    return (*marks[:_MARKS], f"and {more} more") if more > 0 else tuple(marks)


def _decimal(value: Any, name: str) -> str | None:
    """A number of an outcome as decimal text; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return decimal_text(str(value), field=name, percent=False)
    except InvalidInput:
        return None
