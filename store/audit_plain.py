"""The rows of contents of which most ledgers are full, written out by hand.

`projection.project` says the same for every content, at ten times the work. So nothing is found to be wrong here:
these functions give the row of a content that is plain and None for any other, and where another row is stored than
the one they give, `project` is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from json.encoder import JSONEncoder
from math import isfinite
from typing import Any

from .audit_columns import READ, Values
from .lifecycle import STATUSES, first_status
from .terms import count_terms, index_text

VERSION_COLUMNS = (
    "sequence_from memory_id version ordinal terms_total kind status review_state symbol text tags details agent"
    " profile changed_by created_at effective_at stale_at expires_at terms"
).split()
RETRIEVAL_COLUMNS = (
    "retrieval_id sequence agent session_id model_call_id effective_at query mode filters cut total candidates"
    " selected"
).split()
DELIVERY_COLUMNS = "sequence agent session_id model_call_id surface subject_id as_of shown".split()

Content = dict[str, Any]

_AGENT, _AT, _EVENT_TYPE, _KIND = map(READ.index, ("agent", "effective_at", "event_type", "kind"))
_CALL, _PROFILE, _RETRIEVAL = map(READ.index, ("model_call_id", "profile", "retrieval_id"))
_SEQUENCE, _SESSION, _SUBJECT = map(READ.index, ("sequence", "session_id", "subject_id"))
_SYMBOL = READ.index("symbol")

_MOST_DEPTH = 16
_MOST_REMEMBERED = 4_096
_MOST_INTEGER = 2**53 - 1

_WORD = bytes(byte for byte in range(128) if chr(byte).isalnum() or chr(byte) == "_")
_BETWEEN = bytes(set(range(128)) - set(_WORD))
_WORDS = bytes.maketrans(_WORD + _BETWEEN, b"w" * len(_WORD) + b" " * len(_BETWEEN))

_spaced = JSONEncoder(ensure_ascii=False, sort_keys=True).encode
_dense = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode

# What every recorded memory may hold and its details do not repeat.
_COMMON: Mapping[str, type] = {
    "text": str,
    "tags": list,
    "tags_given": list,
    "symbol_given": str,
    "review_by": int,
    "expires_at": int,
    "review_state": str,
    "notices": list,
}
# What every recorded memory may hold and its details do repeat.
_OF_ADMISSION: Mapping[str, type] = {
    "pending_until": int,
    "alike": list,
    "suspicious": list,
    "masked": list,
    "retrievals": list,
}
_ALIKE = {"id", "why"}
_WHYS = ("near_repeat", "direction", "target", "horizon", "number", "negation")
# What else each type may hold: text, or with `object` any JSON.
_DETAILS: Mapping[str, Mapping[str, type]] = {
    "memory.recorded": {"category": str, "supersedes": str},
    "proposal.recorded": {"action": str},
    "risk_note.recorded": {},
    "decision.recorded": {"action": str, "evidence": object, "thesis_id": str},
    "lesson.recorded": {"outcome": object},
    "thesis.opened": {"direction": str, "horizon": str, "target": str, "invalidation": str},
}
_RETRIEVED: Mapping[str, type] = {
    "query": str,
    "mode": str,
    "filters": dict,
    "order": str,
    "as_of": int,
    "cut": int,
    "inherited_cut": int,
    "model": str,
    "watermark": int,
    "inherited_watermark": int,
    "total": int,
    "candidates": list,
    "selected": list,
    "rendered": str,
}
_DELIVERED: Mapping[str, type] = {
    "surface": str,
    "as_of": int,
    "cut": int,
    "inherited_cut": int,
    "shown": list,
}
_MAY_BE_LEFT_OUT = {"order", "as_of", "inherited_cut", "model", "watermark", "inherited_watermark"}
_MODES = ("recent", "terms", "literal", "hybrid")
_SELECTED: Mapping[str, type] = {"id": str, "version": int}
_CANDIDATE: Mapping[str, type] = {
    "id": str,
    "version": int,
    "lexical_rank": int,
    "lexical_score": str,
    "vector_rank": int,
    "vector_score": str,
    "score": str,
}


class PlainVersions:
    """First versions of memories."""

    def __init__(self) -> None:
        self._tags: dict[tuple[str, ...], str] = {(): "[]"}

    def row(self, entry: Values, content: Content, memories: int, terms_total: int) -> Values | None:
        """The columns of VERSION_COLUMNS, where so many memories with so many terms were recorded before."""
        told = _DETAILS.get(entry[_EVENT_TYPE])
        kind = entry[_KIND]
        if told is None or kind not in STATUSES:
            return None
        details = {}
        for name, value in content.items():
            if (wanted := _COMMON.get(name)) is not None:
                if type(value) is not wanted or (type(value) is list and not _texts(value)):
                    return None
            elif (wanted := _OF_ADMISSION.get(name)) is not None:
                if type(value) is not wanted or not (wanted is int or _admitted(name, value)):
                    return None
                details[name] = value
            elif (wanted := told.get(name)) is not None and (
                type(value) is wanted or (wanted is object and _plain(value))
            ):
                details[name] = value
            else:
                return None
        text, review_state = content.get("text"), content.get("review_state", "none")
        if text is None or ("evidence" in told and "action" not in details):
            return None
        if review_state not in ("none", "pending", "approved", "host_confirmed"):
            return None
        if entry[_RETRIEVAL] is not None:
            details["retrieval_id"] = entry[_RETRIEVAL]
        terms, agent, at = _count(text), entry[_AGENT], entry[_AT]
        stale_at, expires_at = content.get("review_by"), content.get("expires_at")
        tags = self._written(content.get("tags", ()))
        written = _spaced(details) if details else "{}"
        # fmt: off
        return (
            entry[_SEQUENCE], entry[_SUBJECT], 1, memories + 1, terms_total + terms, kind, first_status(kind),
            review_state, entry[_SYMBOL], text, tags, written, agent, entry[_PROFILE], agent, at, at,
            stale_at, expires_at, terms,
        )
        # fmt: on

    def _written(self, tags: Iterable[str]) -> str:
        named = tuple(tags)
        written = self._tags.get(named)
        if written is None:
            if len(self._tags) >= _MOST_REMEMBERED:
                self._tags.clear()
            written = self._tags[named] = _spaced(named)
        return written


def plain_retrieval(entry: Values, content: Content) -> Values | None:
    """The columns of RETRIEVAL_COLUMNS."""
    if not _holds(content, _RETRIEVED) or content["mode"] not in _MODES:
        return None
    if content.get("order", "losses_first") != "losses_first":
        return None
    filters, candidates, selected = content["filters"], content["candidates"], content["selected"]
    if not (_simple(filters) and _items(candidates, _CANDIDATE) and _items(selected, _SELECTED)):
        return None
    return (
        *(entry[_SUBJECT], entry[_SEQUENCE], entry[_AGENT], entry[_SESSION], entry[_CALL], entry[_AT]),
        *(content["query"], content["mode"], _dense(filters), content["cut"], content["total"]),
        *(_dense(candidates), _dense(selected)),
    )


def plain_delivery(entry: Values, content: Content) -> Values | None:
    """The columns of DELIVERY_COLUMNS."""
    if not _holds(content, _DELIVERED) or content["surface"] not in ("state", "memory"):
        return None
    if not _items(content["shown"], _SELECTED):
        return None
    return (
        *(
            entry[_SEQUENCE],
            entry[_AGENT],
            entry[_SESSION],
            entry[_CALL],
            content["surface"],
            entry[_SUBJECT],
        ),
        *(content.get("as_of"), _dense(content["shown"])),
    )


def _holds(content: Content, wanted: Mapping[str, type]) -> bool:
    """Whether everything has its type, and nothing is missing that must be there."""
    return all(wanted.get(name) is type(value) for name, value in content.items()) and all(
        name in content or name in _MAY_BE_LEFT_OUT for name in wanted
    )


def _items(items: list[Any], wanted: Mapping[str, type]) -> bool:
    for item in items:
        if type(item) is not dict or "id" not in item or "version" not in item:
            return False
        for name, value in item.items():
            if type(value) is not wanted.get(name) or (type(value) is int and abs(value) > _MOST_INTEGER):
                return False
    return True


def _admitted(name: str, values: Any) -> bool:
    """Whether a list of _OF_ADMISSION holds what it may: memories that are alike and in what, else text."""
    if name != "alike":
        return _texts(values)
    return all(
        type(each) is dict and each.keys() == _ALIKE and type(each["id"]) is str and each["why"] in _WHYS
        for each in values
    )


def _simple(filters: Content) -> bool:
    """Whether both encoders of JSON write it alike: text, lists of text and safe integers under ASCII names."""
    for name, value in filters.items():
        kind = type(value)
        safe = (
            kind is str or (kind is int and abs(value) <= _MOST_INTEGER) or (kind is list and _texts(value))
        )
        if not (safe and name.isascii()):
            return False
    return True


def _texts(values: list[Any]) -> bool:
    return all(type(value) is str for value in values) if values else True


def _plain(value: Any, depth: int = 0) -> bool:
    """Whether a JSON value stays as it is when a model is dumped."""
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return True
    if kind is float:
        return isfinite(value)
    if depth >= _MOST_DEPTH or kind not in (dict, list):
        return False
    return all(_plain(each, depth + 1) for each in (value.values() if kind is dict else value))


def _count(text: str) -> int:
    """How many terms the text has, as `count_terms(index_text(text))` says."""
    if text.isascii():
        return (b" " + text.encode().translate(_WORDS)).count(b" w")
    return count_terms(index_text(text))
