"""Every step of every kind is either in the table or refused."""

from __future__ import annotations

import itertools

import pytest

from store.errors import IllegalTransition
from store.lifecycle import ALL_STATUSES, KINDS, RESOLUTIONS, STATUSES, STEPS, check_step, first_status

# The vocabulary as the design fixes it, written down a second time; orders come with their own table.
VOCABULARY = {
    "memory": "active, superseded, retired",
    "proposal": "proposed, withdrawn",
    "risk_note": "active, resolved",
    "decision": "recorded",
    "lesson": "proposed, validated, contradicted, retired",
    "thesis": "open, closed",
}
ALLOWED = {
    ("memory", "active", "superseded"),
    ("memory", "active", "retired"),
    ("proposal", "proposed", "withdrawn"),
    ("risk_note", "active", "resolved"),
    ("lesson", "proposed", "validated"),
    ("lesson", "proposed", "contradicted"),
    ("lesson", "proposed", "retired"),
    ("lesson", "validated", "contradicted"),
    ("lesson", "validated", "retired"),
    ("lesson", "contradicted", "validated"),
    ("lesson", "contradicted", "retired"),
    ("thesis", "open", "closed"),
}
STEPS_TRIED = list(itertools.product(KINDS, (*ALL_STATUSES, "unheard of"), (*ALL_STATUSES, "unheard of")))


def test_kinds_and_statuses_are_those_of_the_vocabulary() -> None:
    assert {kind: ", ".join(statuses) for kind, statuses in STATUSES.items()} == VOCABULARY


@pytest.mark.parametrize(("kind", "status", "wanted"), STEPS_TRIED)
def test_a_step_is_taken_only_when_the_table_has_it(kind: str, status: str, wanted: str) -> None:
    if (kind, status, wanted) in ALLOWED:
        check_step(kind, status, wanted)
        return
    with pytest.raises(IllegalTransition) as fault:
        check_step(kind, status, wanted)
    assert fault.value.hint
    assert status in fault.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_every_status_of_a_kind_can_be_reached_from_its_first(kind: str) -> None:
    reached, frontier = set(), {first_status(kind)}
    while frontier:
        reached |= frontier
        frontier = {after for status in frontier for after in STEPS[kind].get(status, ())} - reached
    assert reached == set(STATUSES[kind])


def test_what_resolve_memory_may_do_is_a_final_step_of_the_table() -> None:
    for kind, status in RESOLUTIONS.items():
        assert status in STEPS[kind][first_status(kind)]
        assert status not in STEPS[kind], f"{kind} {status} is not final"
    assert RESOLUTIONS.keys() == set(KINDS) - {"decision", "thesis"}
