"""verify's short cuts say what the long way says, or nothing: leaves by template, rows of plain contents, terms."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any, get_args

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from store import audit_plain
from store.audit_columns import COLUMNS, READ, Shapes, fits, leaf_of
from store.audit_plain import (
    DELIVERY_COLUMNS,
    RETRIEVAL_COLUMNS,
    VERSION_COLUMNS,
    PlainVersions,
    _count,
    plain_delivery,
    plain_retrieval,
)
from store.entry import HASHED, Entry
from store.event_parts import Alike, Candidate, Selected
from store.events import AnyEvent, Delivered, Retrieved, read_event
from store.projection import Before, project
from store.rows import Delivery, Retrieval, Version
from store.terms import count_terms, index_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", "\0", "\x1f\x7f", "a_b c-d", "Nestlé 目标价", "\u2028", "%s %%", "null", "  two  words "]
)
MAYBE = st.none() | TEXT
NUMBER = st.integers(-(2**63), 2**63 - 1)


def rows_of_entries() -> st.SearchStrategy[tuple[Any, ...]]:
    """The columns of entries as READ orders them, every one of a type that it can have."""
    kinds: dict[str, st.SearchStrategy[Any]] = {}
    for name in READ:
        allowed = [each for each in (0, b"", "", None) if fits(name, each)]
        choices = {int: NUMBER, bytes: st.binary(max_size=33), str: TEXT, type(None): st.none()}
        kinds[name] = st.one_of([choices[type(each)] for each in allowed])
    return st.tuples(*(kinds[name] for name in READ))


@given(st.lists(rows_of_entries(), min_size=1, max_size=4))
def test_a_leaf_by_template_is_the_hash_of_the_canonical_columns(rows: list[tuple[Any, ...]]) -> None:
    shapes = Shapes()
    for row in rows:
        shape = shapes.of(row)
        assert shape.misfits == ()
        named = dict(zip(READ, row, strict=True))
        covered = {
            name: named[name].hex() if isinstance(named[name], bytes) else named[name] for name in HASHED
        }
        written = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        if all(abs(value) < 2**53 for value in covered.values() if isinstance(value, int)):
            assert written.encode() == rfc8785.dumps(covered)
        assert leaf_of(row, shape) == hashlib.sha256(b"\0" + written.encode()).digest()


@given(st.tuples(*(st.sampled_from([None, 1, 1.5, "x", b"x"]) for _ in READ)))
def test_the_shape_of_an_entry_names_the_columns_that_cannot_be(row: tuple[Any, ...]) -> None:
    named = dict(zip(READ, row, strict=True))
    expected = tuple(name for name in COLUMNS if not fits(name, named[name]))
    assert Shapes().of(row).misfits == expected


@given(TEXT)
def test_terms_are_counted_as_they_are_written(text: str) -> None:
    assert _count(text) == count_terms(index_text(text))


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_terms_of_plain_text_are_counted_as_they_are_written(text: str) -> None:
    assert _count(text) == count_terms(index_text(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.lists(TEXT, max_size=3)
ODD = st.none() | st.booleans() | st.floats() | st.lists(JSON, max_size=2) | TEXT
WHY = st.sampled_from([*audit_plain._WHYS, "other"]) | ODD
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("tags", "tags_given", "notices"), TEXTS),
    **dict.fromkeys(("review_by", "expires_at"), NUMBER),
    "text": TEXT,
    "symbol_given": TEXT,
    "review_state": st.sampled_from(["none", "pending", "approved"]),
    "imported": st.just({"system": "x", "import_id": "y", "source_id": "z"}) | ODD,
    **dict.fromkeys(("evidence", "outcome"), JSON),
    **dict.fromkeys(("suspicious", "masked", "retrievals"), TEXTS | ODD),
    "alike": st.lists(st.fixed_dictionaries({"id": TEXT, "why": WHY}, optional={"more": TEXT}), max_size=2)
    | ODD,
    "pending_until": NUMBER | ODD,
    **dict.fromkeys(
        "category supersedes action thesis_id direction horizon target invalidation unknown type".split(),
        TEXT,
    ),
}
OWN = {
    "memory.recorded": "category supersedes",
    "proposal.recorded": "action",
    "risk_note.recorded": "",
    "decision.recorded": "action evidence thesis_id",
    "lesson.recorded": "outcome",
    "thesis.opened": "direction horizon target invalidation",
    "warning": "action",
}
COMMON = (
    "text tags tags_given symbol_given review_by expires_at review_state notices"
    " pending_until alike suspicious masked retrievals"
).split()


@st.composite
def recorded(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A content of a memory: mostly what its type has, now and then what no type has."""
    event_type = draw(st.sampled_from(sorted(OWN)))
    usual = st.sampled_from([*COMMON, *OWN[event_type].split()])
    names = draw(st.lists(usual, unique=True)) + draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=1))
    content = {name: draw(FIELDS[name]) for name in names}
    content.setdefault("text", draw(TEXT))
    if event_type == "decision.recorded" and draw(st.integers(0, 9)):
        content.setdefault("action", "buy")
    if not draw(st.integers(0, 9)):
        content[draw(st.sampled_from(names or ["text"]))] = draw(ODD)
    return event_type, content


ITEM = st.fixed_dictionaries(
    {"id": TEXT, "version": st.integers(0, 2**60)},
    optional={
        "source": st.just("live"),
        **dict.fromkeys(("lexical_rank", "vector_rank"), st.integers(0, 9)),
        **dict.fromkeys(("lexical_score", "vector_score", "score"), TEXT),
    },
)
SHOWN = st.fixed_dictionaries(
    {"id": TEXT, "version": st.integers(0, 9)}, optional={"source": st.sampled_from(["live", "other"])}
)
FILTERS = st.dictionaries(
    TEXT | st.sampled_from(["kind", "tags", "since"]), TEXT | TEXTS | NUMBER | JSON, max_size=3
)


@st.composite
def shown(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A content of a search or of a showing, with one thing missing or odd now and then."""
    cuts = {
        "as_of": st.none() | NUMBER,
        "order": st.sampled_from(["losses_first", "other"]),
        "model": TEXT,
        **dict.fromkeys(("inherited_cut", "watermark", "inherited_watermark"), st.integers(0, 9)),
        "imported": FIELDS["imported"],
    }
    search = {
        "query": TEXT,
        "mode": st.sampled_from(["recent", "terms", "literal", "hybrid", "other"]),
        "filters": FILTERS,
        "cut": st.integers(0, 9),
        "total": st.integers(0, 9),
        "candidates": st.lists(ITEM, max_size=3),
        "selected": st.lists(SHOWN, max_size=3),
        "rendered": TEXT,
    }
    showing = {
        "surface": st.sampled_from(["state", "memory", "other"]),
        "cut": st.integers(0, 9),
        "shown": st.lists(SHOWN, max_size=3),
    }
    event_type, needed = draw(st.sampled_from([("memory.retrieved", search), ("memory.delivered", showing)]))
    content = draw(st.fixed_dictionaries(needed, optional=cuts))
    if not draw(st.integers(0, 4)):
        content[draw(st.sampled_from(sorted(needed)))] = draw(ODD)
    if not draw(st.integers(0, 9)):
        del content[draw(st.sampled_from(sorted(needed)))]
    return event_type, content


def entry_of(event_type: str, content: dict[str, Any], data: st.DataObject) -> Entry:
    kind = "risk_note" if event_type == "warning" else event_type.partition(".")[0]
    return Entry(
        sequence=data.draw(st.integers(1, 99)),
        event_id="ev_1",
        event_type=event_type,
        subject_type="memory",
        subject_id="mem_1",
        kind=data.draw(st.sampled_from([kind, "memory", "other"])),
        symbol=data.draw(MAYBE),
        effective_at=data.draw(NUMBER),
        recorded_at=1,
        strategy="s",
        run_id=None,
        agent=data.draw(TEXT),
        profile=data.draw(TEXT),
        session_id=data.draw(MAYBE),
        model_call_id=data.draw(MAYBE),
        retrieval_id=data.draw(MAYBE),
        tool=None,
        arguments_sha256=None,
        idempotency_key=None,
        content=json.dumps(content),
        content_salt=b"",
        content_sha256=b"",
        leaf_sha256=b"",
        chain_sha256=b"",
        schema_version=1,
    )


def stored(row: Version | Retrieval | Delivery) -> tuple[Any, ...]:
    """The row as it is written."""
    named = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "source"}
    for name in ("tags", "details"):
        if name in named:
            named[name] = json.dumps(named[name], ensure_ascii=False, sort_keys=True)
    return tuple(named.values())


def projected(entry: Entry) -> list[Any] | None:
    try:
        event = read_event(entry.event_type, json.loads(entry.content))
        return [stored(row) for row in project(entry, event, Before(None, 7, 70))]
    except (ValueError, KeyError):
        return None


PLAIN = PlainVersions()
NAMED = {"memory.retrieved": plain_retrieval, "memory.delivered": plain_delivery}


@given(recorded() | shown(), st.data())
def test_a_plain_content_has_the_row_that_project_gives_it(
    told: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    event_type, _ = told
    entry = entry_of(*told, data)
    columns = tuple(getattr(entry, name) for name in READ)
    content = json.loads(entry.content)
    row = NAMED[event_type](columns, content) if event_type in NAMED else PLAIN.row(columns, content, 7, 70)
    assert row is None or [row] == projected(entry)


def test_what_a_desk_writes_is_plain() -> None:
    told = {"text": "Nestlé", "tags": ["a"], "notices": ["n"], "review_state": "none", "review_by": 5}
    evidence = {"close": "101.25", "deep": [{"n": [1, 0.5, True]}]}
    for event_type, more in {
        "memory.recorded": {"category": "x", "tags_given": ["A"], "symbol_given": "aapl"},
        "risk_note.recorded": {},
        "decision.recorded": {"action": "buy", "evidence": evidence},
        "thesis.opened": {"direction": "long"},
    }.items():
        columns = dict.fromkeys(READ, None) | {
            "event_type": event_type,
            "kind": event_type.partition(".")[0],
            "agent": "ann",
        }
        assert PLAIN.row(tuple(columns.values()), told | more, 0, 0) is not None, event_type


def test_every_field_that_contents_may_hold_is_known_but_that_of_imports() -> None:
    known: dict[type[BaseModel], set[str]] = {
        Retrieved: set(audit_plain._RETRIEVED) | {"type", "imported"},
        Delivered: set(audit_plain._DELIVERED) | {"type"},
        Candidate: set(audit_plain._CANDIDATE) | {"source"},
        Selected: set(audit_plain._SELECTED) | {"source"},
    }
    for event_type, details in audit_plain._DETAILS.items():
        (kind,) = (
            each
            for each in get_args(get_args(AnyEvent)[0])
            if each.model_fields["type"].default == event_type
        )
        admitted = audit_plain._OF_ADMISSION
        # An imported or a redacted memory is left to `project`.
        known[kind] = {*audit_plain._COMMON, *admitted, *details, "type", "imported", "redacted"}
    for kind, names in known.items():
        assert names == set(kind.model_fields), kind


@pytest.mark.parametrize("name", ["alike", "suspicious", "masked", "retrievals"])
def test_what_admission_adds_is_plain_in_its_own_shape_alone(name: str) -> None:
    shapes: dict[str, list[Any]] = {"alike": [{"id": "mem_1", "why": "number"}]}
    shape = shapes.get(name, ["x"])
    odd = [{}, "x", 1, True, [1], [None], [{}], [["x"]], [{"id": "x"}], [{"id": 1, "why": "number"}]]
    odd += [
        [{"id": "x", "why": "other"}],
        [{"id": "x", "why": []}],
        [{"id": "x", "why": "number", "more": 1}],
    ]
    columns = dict.fromkeys(READ, None) | {"event_type": "memory.recorded", "kind": "memory", "agent": "ann"}
    row = tuple(columns.values())
    for value in ([], shape, shape * 2):
        assert PLAIN.row(row, {"text": "x", name: value}, 0, 0) is not None
    for value in odd:
        assert PLAIN.row(row, {"text": "x", name: value}, 0, 0) is None, value


def test_every_way_to_be_alike_is_known() -> None:
    assert get_args(Alike.model_fields["why"].annotation) == audit_plain._WHYS


def test_the_columns_that_are_compared_are_all_there_are() -> None:
    for kind, columns in (
        (Version, VERSION_COLUMNS),
        (Retrieval, RETRIEVAL_COLUMNS),
        (Delivery, DELIVERY_COLUMNS),
    ):
        assert columns == [field.name for field in fields(kind) if field.name != "source"]
