"""Every step of every kind is either in the table or refused."""

from __future__ import annotations

import itertools

import pytest

from store.errors import IllegalTransition
from store.lifecycle import (
    ALL_STATUSES,
    KINDS,
    ORDER_STATUSES,
    ORDER_STEPS,
    RESOLUTIONS,
    STATUSES,
    STEPS,
    check_order_step,
    check_step,
    first_status,
)

# The vocabulary as the design fixes it, written down a second time.
VOCABULARY = {
    "memory": "active, superseded, retired",
    "proposal": "proposed, withdrawn",
    "risk_note": "active, resolved",
    "decision": "recorded",
    "lesson": "proposed, validated, contradicted, retired",
    "thesis": "open, closed",
    "order_action": "intent, acknowledged, unknown, rejected, not_sent",
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
    ("order_action", "intent", "acknowledged"),
    ("order_action", "intent", "unknown"),
    ("order_action", "intent", "rejected"),
    ("order_action", "intent", "not_sent"),
    ("order_action", "unknown", "acknowledged"),
    ("order_action", "unknown", "rejected"),
    ("order_action", "unknown", "not_sent"),
}
# An order is known to be at the broker from its acknowledgement on; before that (None) nothing may become of it.
ORDER_ALLOWED = {
    ("open", "partially_filled"),
    ("open", "filled"),
    ("open", "cancelled"),
    ("partially_filled", "partially_filled"),
    ("partially_filled", "filled"),
    ("partially_filled", "cancelled"),
}
ORDER_STANDS = (None, "open", *ORDER_STATUSES, "unheard of")
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
    assert RESOLUTIONS.keys() == set(KINDS) - {"decision", "thesis", "order_action"}


@pytest.mark.parametrize(("stands", "wanted"), list(itertools.product(ORDER_STANDS, ORDER_STANDS[1:])))
def test_an_order_takes_a_step_only_when_its_table_has_it(stands: str | None, wanted: str) -> None:
    if (stands, wanted) in ORDER_ALLOWED:
        check_order_step(stands, wanted)
        return
    with pytest.raises(IllegalTransition) as fault:
        check_order_step(stands, wanted)
    assert fault.value.field == "certainty"
    assert fault.value.hint
    assert (stands or "not known to be at the broker") in fault.value.message


def test_a_filled_or_cancelled_order_is_final_and_every_status_of_an_order_can_be_reached() -> None:
    assert set(ORDER_STATUSES) == {after for steps in ORDER_STEPS.values() for after in steps}
    assert ORDER_STEPS.keys() == {"open", "partially_filled"}
