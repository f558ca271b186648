"""One row of a Lumibot memory, read: its values in the form that a ledger takes, and what was repaired."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from .known import SEARCH
from .source import Row
from .values import (
    NAME_CHARS,
    RAW_CHARS,
    Marks,
    Unreadable,
    instant_of,
    json_of,
    kept_text,
    name_of,
    symbol_of,
    tags_of,
)

INDEX_ONLY = "index:"
"""What the id of a memory begins with that stands in the source's index without an event."""
_OF_KIND = {
    "decision": "decision.recorded",
    "proposal": "proposal.recorded",
    "risk_note": "risk_note.recorded",
    "lesson": "lesson.proposed",
    "thesis": "thesis.updated",
}


@dataclass(slots=True)
class Record:
    """A row of the source. Times are microseconds, UTC; `subject` is the id that the source gave the memory."""

    source_id: str
    event_type: str
    subject_type: str | None
    subject: str | None
    sequence: int | None
    at: int | None
    recorded_at: int | None
    symbol: str | None
    symbol_given: str | None
    agent: str | None
    model_call_id: str | None
    retrieval_id: str | None
    kind: str | None
    status: str | None
    text: str
    tags: tuple[str, ...] = ()
    tags_given: tuple[str, ...] | None = None
    metadata: Any = None
    candidates: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    rendered: str = ""
    filters: dict[str, str] = field(default_factory=dict)
    marks: Marks = field(default_factory=list)
    defects: list[str] = field(default_factory=list)


def event_record(row: Row) -> Record:
    """A row of memory_events."""
    marks: Marks = list(row.damage)
    defects = ["too_large"] if any("too many" in mark for mark in row.damage) else []
    payload = _json(row, "payload_json", marks, defects)
    if not isinstance(payload, dict):
        payload = {}
    if _sha256(row.get("payload_json")) != row.get("payload_hash"):
        defects.append("hash_mismatch")
    metadata = _metadata(row, marks, defects, payload.get("metadata"))
    tags, tags_given = tags_of(
        _json(row, "tags_json", marks, defects, instead=payload.get("tags")) or [], marks
    )
    record = _record(row, row.get("event_id"), row.get("event_type") or "", marks, defects)
    record.subject_type = name_of(row.get("subject_type"), marks, field="subject_type")
    record.subject = name_of(row.get("subject_id"), marks, field="subject_id")
    record.sequence = _whole(row.get("sequence"))
    record.retrieval_id = name_of(row.get("retrieval_id"), marks, field="retrieval_id")
    record.kind = _word(payload.get("kind")) or record.subject_type
    record.status = _word(payload.get("status"))
    record.text = kept_text(row.get("text") or "", marks, field="text")
    record.tags, record.tags_given, record.metadata = tags, tags_given, metadata
    return record


def retrieval_record(row: Row) -> Record:
    """A row of memory_retrievals."""
    marks: Marks = list(row.damage)
    defects = ["too_large"] if any("too many" in mark for mark in row.damage) else []
    record = _record(row, row.get("retrieval_id"), SEARCH, marks, defects)
    record.kind, record.status = row.get("kind"), row.get("status")
    record.text = kept_text(row.get("query") or "", marks, field="query")
    record.candidates = _ids(_json(row, "candidate_ids_json", marks, defects, bounded=False))
    record.selected = _ids(_json(row, "selected_ids_json", marks, defects, bounded=False))
    record.rendered = kept_text(row.get("rendered_text") or "", marks, field="rendered")
    named = {"kind": record.kind, "symbol": record.symbol, "status": record.status}
    record.filters = {
        name: kept_text(value, marks, field=name, longest=128) for name, value in named.items() if value
    }
    record.metadata = {"limit": row.get("result_limit")}
    return record


def index_record(row: Row) -> Record:
    """A row of memory_index that no event of the source accounts for."""
    marks: Marks = list(row.damage)
    defects = ["index_only"]
    kind = row.get("kind") or ""
    name = row.get("memory_id") or ""
    record = _record(row, INDEX_ONLY + name, _OF_KIND.get(kind, "memory.created"), marks, defects)
    record.subject = name_of(name, marks, field="memory_id")
    record.at = instant_of(row.get("created_at"), marks, field="created_at")
    record.kind, record.status = name_of(kind, marks, field="kind"), _word(row.get("status"))
    if kind == "thesis" and record.status == "closed":
        record.event_type = "thesis.closed"
    record.text = kept_text(row.get("text") or "", marks, field="text")
    record.metadata = _metadata(row, marks, defects, None)
    record.tags, record.tags_given = tags_of(_json(row, "tags_json", marks, defects) or [], marks)
    return record


def _record(row: Row, name: str | None, event_type: str, marks: Marks, defects: list[str]) -> Record:
    said = row.get("symbol")
    symbol = symbol_of(said, marks)
    at = instant_of(row.get("timestamp"), marks, field="timestamp")
    if at is None and row.get("timestamp") is not None:
        defects.append("broken_time")
    return Record(
        source_id=_source_id(name, row, marks),
        event_type=kept_text(event_type, marks, field="event_type", longest=128),
        subject_type=None,
        subject=None,
        sequence=None,
        at=at,
        recorded_at=instant_of(row.get("wall_time"), marks, field="wall_time"),
        symbol=symbol,
        symbol_given=kept_text(said, [], field="symbol", longest=128) if said and said != symbol else None,
        agent=name_of(row.get("agent_name"), marks, field="agent_name"),
        model_call_id=name_of(row.get("model_call_id"), marks, field="model_call_id"),
        retrieval_id=None,
        kind=None,
        status=None,
        text="",
        marks=marks,
        defects=defects,
    )


def _json(
    row: Row, column: str, marks: Marks, defects: list[str], *, instead: Any = None, bounded: bool = True
) -> Any:
    """A JSON column; where it is broken what the event's payload says instead, else None and a mark."""
    text = row.get(column)
    if text is None or not text.strip():
        return instead
    try:
        return json_of(text, marks, field=column, bounded=bounded)
    except Unreadable:
        if "broken_json" not in defects:
            defects.append("broken_json")
        told = (
            "taken from the payload"
            if instead is not None
            else f"{kept_text(text, [], field=column)[:200]!r}"
        )
        marks.append(f"{column}: broken, {told}")
        return instead


def _metadata(row: Row, marks: Marks, defects: list[str], instead: Any) -> Any:
    """The metadata; where nothing of it can be read, its text as it stands."""
    value = _json(row, "metadata_json", marks, defects, instead=instead)
    text = row.get("metadata_json")
    if value is None and text is not None and "broken_json" in defects:
        return kept_text(text, marks, field="metadata_json", longest=RAW_CHARS)
    return value


def _source_id(name: str | None, row: Row, marks: Marks) -> str:
    """The row's id; where it has none that can be kept, one made of what stands in it."""
    if name and len(name) <= NAME_CHARS and kept_text(name, [], field="id") == name and name.strip():
        return name
    marks.append("id: none that can be kept")
    return "row:" + _sha256(repr(sorted(row.values.items())))


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _word(value: Any) -> str | None:
    return kept_text(value, [], field="word", longest=128) if isinstance(value, str) and value else None


def _whole(text: str | None) -> int | None:
    digits = text or ""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None


def _sha256(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()
