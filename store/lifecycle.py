"""Which status may follow which, kind by kind: a table, not branches.

`STATUSES[kind]` lists a kind's statuses, the first being where it starts. `STEPS[kind]` maps a status to the
ones that may follow it. A status with no steps is final.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .errors import IllegalTransition

MEMORY, PROPOSAL, RISK_NOTE = "memory", "proposal", "risk_note"
DECISION, LESSON, THESIS = "decision", "lesson", "thesis"
ORDER_ACTION = "order_action"

STATUSES: Final = MappingProxyType(
    {
        MEMORY: ("active", "superseded", "retired"),
        PROPOSAL: ("proposed", "withdrawn"),
        RISK_NOTE: ("active", "resolved"),
        DECISION: ("recorded",),
        LESSON: ("proposed", "validated", "contradicted", "retired"),
        THESIS: ("open", "closed"),
        ORDER_ACTION: ("intent", "acknowledged", "unknown", "rejected", "not_sent"),
    }
)
HIDDEN: Final = ("pending", "rejected")
"""The review states of a memory that recall and state do not show, and that its author alone may read."""

ENDED: Final = ("superseded", "retired", "withdrawn", "resolved")
"""The statuses of memories that are not in use any more."""

REPEATABLE: Final = (MEMORY, PROPOSAL, RISK_NOTE, LESSON, THESIS)
"""The kinds of which an agent's exact repeat is the memory that stands; each decision and order is one of its own."""

KINDS: Final = tuple(STATUSES)
ALL_STATUSES: Final = tuple(dict.fromkeys(status for statuses in STATUSES.values() for status in statuses))

STEPS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        MEMORY: {"active": ("superseded", "retired")},
        PROPOSAL: {"proposed": ("withdrawn",)},
        RISK_NOTE: {"active": ("resolved",)},
        DECISION: {},
        LESSON: {
            "proposed": ("validated", "contradicted", "retired"),
            "validated": ("contradicted", "retired"),
            "contradicted": ("validated", "retired"),
        },
        THESIS: {"open": ("closed",)},
        ORDER_ACTION: {
            "intent": ("acknowledged", "unknown", "rejected", "not_sent"),
            "unknown": ("acknowledged", "rejected", "not_sent"),
        },
    }
)

# What resolve_memory may do, by kind: the other steps belong to their own tools or to reviewers.
RESOLUTIONS: Final = MappingProxyType(
    {MEMORY: "retired", PROPOSAL: "withdrawn", RISK_NOTE: "resolved", LESSON: "retired"}
)


def first_status(kind: str) -> str:
    """The status a new memory of `kind` has."""
    return STATUSES[kind][0]


def check_step(kind: str, current: str, wanted: str, *, field: str = "status") -> None:
    """Raise IllegalTransition, naming `field`, unless a memory of `kind` may go from `current` to `wanted`."""
    following = STEPS[kind].get(current, ())
    if wanted in following:
        return
    allowed = (
        f"From {current} it can only become {' or '.join(following)}."
        if following
        else f"{current} is final."
    )
    raise IllegalTransition(f"A {kind} that is {current} cannot become {wanted}.", field=field, hint=allowed)


# The order that an acknowledged submit opens, apart from the action's own status.
ORDER_STEPS: Final[Mapping[str | None, tuple[str, ...]]] = MappingProxyType(
    {
        "open": ("partially_filled", "filled", "cancelled"),
        "partially_filled": ("partially_filled", "filled", "cancelled"),
    }
)
ORDER_STATUSES: Final = ("partially_filled", "filled", "cancelled")


def check_order_step(current: str | None, wanted: str) -> None:
    """Raise IllegalTransition unless an order may go from `current` (None: not acknowledged) to `wanted`."""
    if wanted in ORDER_STEPS.get(current, ()):
        return
    if current is None:
        raise IllegalTransition(
            f"The order is not known to be at the broker, so it cannot be {wanted}.",
            field="certainty",
            hint="Record acknowledged for its submit first; an acknowledgement is not a fill.",
        )
    raise IllegalTransition(
        f"An order that is {current} cannot become {wanted}.",
        field="certainty",
        hint=f"{current} is final. Only a harness' observation corrects what was claimed; otherwise flag_memory asks"
        " a person to look at the action.",
    )
