"""What stays of a content is lawful, holds no text, and is said of every event type there is."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from store.event_parts import Event
from store.events import AnyEvent, event_types, read_event
from store.redaction.kept import KEPT, WITHOUT_TEXT, can_be_redacted, kept_of
from store.terms import count_terms, index_text

SECRET = "Quorvex, a secret"
MODELS: dict[str, type[Event]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(AnyEvent)[0])
}


def test_every_event_type_is_one_that_can_be_redacted_or_one_that_cannot() -> None:
    assert KEPT.keys() | WITHOUT_TEXT == set(event_types())
    assert KEPT.keys() & WITHOUT_TEXT == set()
    assert [name for name in event_types() if can_be_redacted(name)] == [
        name for name in event_types() if name in KEPT
    ]


def test_the_table_names_no_field_that_an_event_does_not_have() -> None:
    for name, rules in KEPT.items():
        assert rules.keys() <= MODELS[name].model_fields.keys(), name


def _filled(kind: type[BaseModel]) -> dict[str, Any]:
    """A content with the secret wherever a text can stand; the product's own words where only those can."""
    return {
        name: value
        for name, field in kind.model_fields.items()
        if name != "type" and (value := _value(field.annotation)) is not None
    }


def _value(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not type(None)]
    if annotation is str:
        return SECRET
    if annotation is int:
        return 7
    if annotation is Any:
        return {"deep": [SECRET]}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _filled(annotation)
    origin = getattr(annotation, "__origin__", None)
    if origin is tuple:
        inner = _value(parts[0])
        return [] if inner is None else [inner]
    if origin is dict:
        return {} if int in parts else {"some": SECRET}
    if parts and all(isinstance(part, str | bool) for part in parts):
        return parts[0]
    return _value(parts[0]) if parts else None


# Ids, words of the config and instruments stay: docs/redaction.md says so.
IDS = {
    *(
        "store_id",
        "transport",
        "protocol_version",
        "token_id",
        "id",
        "supersedes",
        "thesis_id",
        "decision_id",
    ),
    *(
        "previous_action_id",
        "submit_action_id",
        "client_order_id",
        "broker_order_id",
        "action_id",
        "other_id",
    ),
    *("replaced_by", "retrievals", "touches", "revision", "deployment", "reason_sha256", "related"),
    *("retrieved_instead", "outcome_ids", "import_id", "source_id", "follows", "system", "symbol", "kind"),
    *("marketplace_listing_id", "community_publication_id", "parent_post_id", "reconciled", "shown_sha256"),
    *("contradicts", "model", "status", "previous", "certainty", "order_status"),
    # Numbers as text, of a report of positions and of scores.
    "quantity",
    *("origin", "source_type", "source_subject", "agent", "model_call_id", "retrieval_id"),
    *("lexical_score", "vector_score", "score"),
}


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(each) for name, each in value.items() if name not in IDS}
    return [_without_ids(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("event_type", sorted(KEPT))
def test_what_stays_is_lawful_and_holds_no_text(event_type: str) -> None:
    content = _filled(MODELS[event_type])
    read_event(event_type, content)
    kept = kept_of(event_type, content)
    read_event(event_type, kept)
    assert SECRET not in json.dumps(_without_ids(kept))
    assert kept_of(event_type, kept).keys() == kept.keys(), "what stays stays as it is"


@given(st.text())
def test_a_decimal_number_and_a_ticker_stay_and_no_other_text_passes_for_one(text: str) -> None:
    kept = kept_of("thesis.closed", {"notices": [], "pnl": text})
    assert "pnl" not in kept or float(kept["pnl"]) is not None
    found = kept_of("memory.retrieved", {"filters": {"symbol": text}})["filters"]
    assert found == {} or (found["symbol"].isascii() and " " not in found["symbol"])


@given(st.text())
def test_counts_stay(text: str) -> None:
    kept = kept_of(
        "memory.recorded", {"text": text, "tags": [text], "notices": [text], "review_state": "none"}
    )
    assert kept["redacted"] == count_terms(index_text(text))
    assert (kept["text"], kept["tags"], kept["notices"]) == ("", [], [])
