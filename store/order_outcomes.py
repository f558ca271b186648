"""What became of an order action, and of the order that its submit opened.

A fill or a cancellation belongs to the order; it is kept with the action that submitted it. A claim never stands in
the way of an observation: what a harness observes is judged by what was observed before, not by what agents claimed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .caller import Caller
from .commands import RecordOutcome
from .engines.base import Transaction
from .entry import Entry
from .errors import IllegalTransition, InvalidInput
from .events import OrderOutcome, OrderSubmitted
from .inputs import decimal_text, short_text
from .ledger import Draft
from .lifecycle import ORDER_ACTION, ORDER_STATUSES, check_order_step, check_step, first_status
from .limits import IDENTIFIER_CHARS, SHORT_TEXT_CHARS
from .order_terms import SUBMIT, amount, word
from .planning import Plan, about, action_of, plan, refuse_inherited
from .rows import Version
from .view import View

CERTAINTIES = ("acknowledged", "rejected", "unknown", "not_sent", *ORDER_STATUSES)
_TOLD = ("broker_order_id", "filled_quantity", "average_price", "error_type")
_FILL = ("filled_quantity", "average_price")
_TIMEOUT = re.compile(r"time[sd]?[ _-]?out|timeout|deadline", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    """One outcome that was recorded before."""

    entry: Entry
    event: OrderOutcome

    @property
    def is_fill(self) -> bool:
        """Whether it tells of the order and not of the action."""
        return self.event.certainty in ORDER_STATUSES

    @property
    def told(self) -> dict[str, Any]:
        return self.event.model_dump(exclude_none=True, include=set(_TOLD))


@plan.register
def _(command: RecordOutcome, transaction: Transaction, caller: Caller, view: View) -> Plan:
    action = action_of(view, command.action_id, field="action_id")
    certainty = word(command.certainty, CERTAINTIES, field="certainty")
    if certainty is None:
        raise InvalidInput(
            "certainty is missing.", field="certainty", hint=f"One of {', '.join(CERTAINTIES)}."
        )
    told = _told(command, certainty)
    of_order = certainty in ORDER_STATUSES
    subject = _opening(action, view) if of_order else action
    refuse_inherited(subject, field="action_id")
    outcomes = _outcomes(transaction, subject, view)
    same = _fills(outcomes) if of_order else [said for said in outcomes if not said.is_fill]
    last = same[-1] if same else None
    if last is not None and _repeats(last, certainty, told, caller):
        return Plan(standing=last.entry)
    if of_order:
        return _order_outcome(subject, same, certainty, told, transaction, caller, view)
    return _answer(subject, outcomes, same, certainty, told, caller)


def _answer(
    action: Version,
    outcomes: list[_Said],
    answers: list[_Said],
    certainty: str,
    told: dict[str, Any],
    caller: Caller,
) -> Plan:
    """What the broker answered to the action itself."""
    current = action.status
    if _corrects(answers, caller):
        seen = [said.event.certainty for said in answers if said.event.standing == "observed"]
        current = seen[-1] if seen else first_status(ORDER_ACTION)
        if any(said.is_fill and said.event.standing == "observed" for said in outcomes):
            current = "acknowledged"  # an observed fill says that the broker has the order
    check_step(ORDER_ACTION, current, certainty, field="certainty")
    is_order = certainty == "acknowledged" and action.details["operation"] == SUBMIT
    opens = is_order and action.details.get("order", {}).get("status") is None
    event = OrderOutcome(
        certainty=certainty,
        previous=action.status,
        standing=caller.standing,
        order_status="open" if opens else None,
        **told,
    )
    drafts = [about(action, event)]
    if opens and not any(said.event.order_status == "open" for said in outcomes):
        own_id = action.details.get("client_order_id")
        submitted = OrderSubmitted(
            action_id=action.memory_id, client_order_id=own_id, broker_order_id=told.get("broker_order_id")
        )
        drafts.append(Draft(submitted, "order", action.memory_id, symbol=action.symbol))
    return Plan(tuple(drafts))


def _order_outcome(
    submit: Version,
    fills: list[_Said],
    certainty: str,
    told: dict[str, Any],
    transaction: Transaction,
    caller: Caller,
    view: View,
) -> Plan:
    """A fill or a cancellation of the order."""
    order = submit.details.get("order", {})
    current, before = order.get("status"), order.get("filled_quantity")
    if current is not None and _corrects(fills, caller):
        seen = [said.event for said in fills if said.event.standing == "observed"]
        current = seen[-1].certainty if seen else "open"
        before = next((event.filled_quantity for event in reversed(seen) if event.filled_quantity), None)
    check_order_step(current, certainty)
    filled = told.get("filled_quantity")
    if certainty == "partially_filled" and filled is None:
        raise InvalidInput(
            "filled_quantity is missing.", field="filled_quantity", hint="How much is filled so far?"
        )
    if filled is not None and before is not None and Decimal(filled) < Decimal(before):
        raise IllegalTransition(
            f"filled_quantity {filled} is less than the {before} filled before.",
            field="filled_quantity",
            hint="Give the whole filled so far.",
        )
    if filled is not None:
        _check_whole(submit, filled, transaction, view)
    event = OrderOutcome(
        certainty=certainty,
        previous=order.get("status", "open"),
        standing=caller.standing,
        order_status=certainty,
        notices=_gaps(submit, filled or before, told, transaction, view) if certainty == "filled" else (),
        **told,
    )
    return Plan((about(submit, event),))


def _gaps(
    submit: Version, filled: str | None, told: dict[str, Any], transaction: Transaction, view: View
) -> tuple[str, ...]:
    """What a final fill leaves open, in words for whoever reported it; what was ordered is as last modified."""
    found = []
    changes = transaction.changes_of((submit.memory_id,), view.cut)
    quantities = [change.details["quantity"] for change in changes if change.details.get("quantity")]
    ordered = [submit.details.get("quantity"), *quantities][-1]
    if filled is not None and ordered is not None and Decimal(filled) < Decimal(ordered):
        found.append(
            f"The order is filled with {filled} of the {ordered} ordered, and that is final. Working orders are"
            " partially_filled; what was let go is cancelled."
        )
    if "average_price" not in told:
        found.append("The fill has no average_price, so nobody can tell what it cost.")
    return tuple(found)


def _check_whole(submit: Version, filled: str, transaction: Transaction, view: View) -> None:
    """Refuse a fill beyond what was ordered, with every modify that the broker has not turned down."""
    whole = submit.details.get("quantity")
    if whole is None or Decimal(filled) <= Decimal(whole):
        return
    for name in transaction.acting_on(submit.memory_id, view.cut):
        action = view.version(name)
        if action is None or action.kind != ORDER_ACTION or action.status in ("rejected", "not_sent"):
            continue
        changed = action.details.get("quantity") if action.details["operation"] != SUBMIT else None
        if changed is not None and Decimal(changed) > Decimal(whole):
            whole = changed
    if Decimal(filled) > Decimal(whole):
        raise InvalidInput(
            f"filled_quantity {filled} is more than the {whole} ordered.",
            field="filled_quantity",
            hint="Record a modify first, or check the fill.",
        )


def _opening(action: Version, view: View) -> Version:
    """The action whose order a fill is about: the submit that an action follows, else the action itself."""
    submit_id = action.details.get("submit_action_id")
    return action if submit_id is None else action_of(view, str(submit_id), field="action_id")


def _outcomes(transaction: Transaction, subject: Version, view: View) -> list[_Said]:
    return [
        _Said(entry, OrderOutcome.model_validate_json(entry.content))
        for entry in transaction.history(subject.memory_id, view.cut)
        if entry.event_type == "order.outcome"
    ]


def _fills(outcomes: list[_Said]) -> list[_Said]:
    """What was said of the order that stands; an answer other than acknowledged ended the one before."""
    found: list[_Said] = []
    for said in outcomes:
        if said.is_fill:
            found.append(said)
        elif said.event.certainty != "acknowledged":
            found.clear()
    return found


def _repeats(last: _Said, certainty: str, told: dict[str, Any], caller: Caller) -> bool:
    """Whether the latest outcome says exactly this already, with the weight that the caller's word has."""
    if caller.observer and last.event.standing == "claim":
        return False
    return (last.event.certainty, last.told) == (certainty, told)


def _corrects(said: list[_Said], caller: Caller) -> bool:
    """Whether an observation meets a mere claim."""
    return caller.observer and bool(said) and said[-1].event.standing == "claim"


def _told(command: RecordOutcome, certainty: str) -> dict[str, Any]:
    filled = decimal_text(command.filled_quantity, field="filled_quantity", percent=False)
    none_filled = filled is not None and Decimal(filled) == 0
    found = {
        "broker_order_id": short_text(
            command.broker_order_id, field="broker_order_id", longest=IDENTIFIER_CHARS
        ),
        "filled_quantity": "0"
        if none_filled and certainty not in ("filled", "partially_filled")
        else amount(filled, field="filled_quantity"),
        "average_price": decimal_text(command.average_price, field="average_price", percent=False),
        "error_type": short_text(command.error_type, field="error_type", longest=SHORT_TEXT_CHARS),
    }
    told = {name: value for name, value in found.items() if value is not None}
    if certainty not in ORDER_STATUSES:
        _refuse_fill(told, certainty)
    if certainty == "rejected" and _TIMEOUT.search(told.get("error_type", "")):
        raise InvalidInput(
            "A timeout is no rejection: whether the broker has the order is unknown.",
            field="certainty",
            hint="Record unknown, then reconcile it once the broker answers.",
        )
    return told


def _refuse_fill(told: dict[str, Any], certainty: str) -> None:
    for name in _FILL:
        if Decimal(told.pop(name, "0")) != 0:
            raise InvalidInput(
                f"{name} is not kept with {certainty}, which says nothing of a fill.",
                field=name,
                hint="An acknowledgement is not a fill: record partially_filled or filled as well.",
            )
