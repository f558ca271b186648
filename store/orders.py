"""The order journal: what was intended before the broker was called, and what became of it.

An intent is committed before the broker is called. Nothing here retries and nothing blocks an order: what an
agent should have known is said as a warning, in the reply and as an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from .caller import Caller
from .canonical import canonical
from .commands import IntendOrder, RecordOutcome
from .engines.base import Transaction
from .errors import Conflict, IllegalTransition, InvalidInput, NotFound
from .events import DecisionRecorded, OrderIntended, OrderOutcome, OrderSubmitted, Warned
from .exposure import held_symbols, unseen_theses
from .ids import PREFIXES, new_id
from .inputs import decimal_text, identifier, json_value, short_text
from .ledger import Draft
from .lifecycle import DECISION, ORDER_ACTION, ORDER_STATUSES, check_order_step, check_step
from .limits import IDENTIFIER_CHARS, ORDER_BYTES, SHORT_TEXT_CHARS
from .order_terms import (
    BUYING,
    SUBMIT,
    amount,
    check_size,
    client_id,
    hash_reason,
    read_reason,
    read_terms,
    touched,
    word,
)
from .planning import Plan, about, existing, plan, thesis_of
from .public_reason import screen
from .rows import Version
from .symbols import normalise_symbol
from .view import View

CERTAINTIES = ("acknowledged", "rejected", "unknown", "not_sent", *ORDER_STATUSES)
UNRECONCILED = ("intent", "unknown")
REASON_KEPT = "Reason preview of the order: "
_TERMS = (
    "side", "quantity", "order_type", "limit_price", "stop_price", "time_in_force", "legs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chain:
    """The actions an intent follows: the one before, and the submit that opened its order."""

    previous: Version | None
    submit: Version | None


@plan.register
def _(command: IntendOrder, transaction: Transaction, caller: Caller, view: View) -> Plan:
    reason = read_reason(command, observer=caller.observer)
    terms = read_terms(command)
    own_id = client_id(command)
    chain = _chain(command, own_id, transaction, view)
    symbol = normalise_symbol(command.symbol) or (chain.previous.symbol if chain.previous else None)
    if terms["operation"] == SUBMIT and own_id is not None:
        standing = _first_submit(transaction, view, own_id)
        if standing is not None:
            _check_same_terms(standing, symbol, terms)
            return Plan(standing=transaction.entry(_first_sequence(transaction, standing, view)))
    thesis = None if command.thesis_id is None else thesis_of(view, command.thesis_id)
    touches = touched(symbol, terms.get("legs"))
    action_id = new_id(PREFIXES[ORDER_ACTION])
    decision_id, decision = _decision(command, transaction, caller, view, chain, symbol, terms, reason)
    public, why_not = screen(command.public_reason)
    cautions = [
        *_duplicate_risk(view, touches, action_id),
        *_unseen(transaction, caller, view, touches, action_id),
    ]
    event = OrderIntended(
        text=reason,
        symbol_given=command.symbol if command.symbol != symbol else None,
        notices=(*(caution.message for caution in cautions), *([why_not] if why_not else [])),
        touches=touches,
        client_order_id=own_id,
        thesis_id=thesis.memory_id if thesis else None,
        decision_id=decision_id,
        previous_action_id=chain.previous.memory_id if chain.previous else None,
        submit_action_id=chain.submit.memory_id if chain.submit else None,
        public_reason=public,
        evidence=_object(command.evidence, field="evidence"),
        snapshot=_object(command.snapshot, field="snapshot"),
        revision=caller.revision,
        deployment=caller.deployment,
        **terms,
        **hash_reason(reason),
    )
    check_size(event.model_dump(mode="json", exclude_none=True))
    intent = Draft(event, "memory", action_id, ORDER_ACTION, symbol)
    warnings = [Draft(caution, "memory", action_id, ORDER_ACTION, caution.symbol) for caution in cautions]
    return Plan((intent, *decision, *warnings))


@plan.register
def _(command: RecordOutcome, transaction: Transaction, caller: Caller, view: View) -> Plan:
    action = _action(view, command.action_id, field="action_id")
    certainty = word(command.certainty, CERTAINTIES, field="certainty")
    if certainty is None:
        raise InvalidInput(
            "certainty is missing.", field="certainty", hint=f"One of {', '.join(CERTAINTIES)}."
        )
    told = _told(command)
    standing = _same_outcome(transaction, action, certainty, told, view)
    if standing is not None:
        return Plan(standing=standing)
    if certainty in ORDER_STATUSES:
        return _order_outcome(action, certainty, told, caller, view)
    check_step(ORDER_ACTION, action.status, certainty, field="certainty")
    opens = certainty == "acknowledged" and action.details["operation"] == SUBMIT
    event = OrderOutcome(
        certainty=certainty,
        previous=action.status,
        standing=caller.standing,
        order_status="open" if opens else None,
        **told,
    )
    drafts = [about(action, event)]
    if opens:
        own_id = action.details.get("client_order_id")
        submitted = OrderSubmitted(
            action_id=action.memory_id, client_order_id=own_id, broker_order_id=told.get("broker_order_id")
        )
        subject = own_id or told.get("broker_order_id") or action.memory_id
        drafts.append(Draft(submitted, "order", subject, symbol=action.symbol))
    return Plan(tuple(drafts))


def _order_outcome(action: Version, certainty: str, told: dict[str, Any], caller: Caller, view: View) -> Plan:
    """A fill or a cancellation: it belongs to the order, which its submit opened."""
    submit_id = action.details.get("submit_action_id") or action.memory_id
    submit = _action(view, submit_id, field="action_id")
    order = submit.details.get("order", {})
    check_order_step(order.get("status"), certainty)
    filled, before = told.get("filled_quantity"), order.get("filled_quantity")
    if certainty == "partially_filled":
        if filled is None:
            raise InvalidInput(
                "filled_quantity is missing.", field="filled_quantity", hint="How much is filled so far?"
            )
        if before is not None and Decimal(filled) < Decimal(before):
            raise IllegalTransition(
                f"filled_quantity {filled} is less than the {before} filled before.",
                field="filled_quantity",
                hint="Give the whole filled so far.",
            )
    whole = submit.details.get("quantity")
    if filled is not None and whole is not None and Decimal(filled) > Decimal(whole):
        raise InvalidInput(
            f"filled_quantity {filled} is more than the {whole} ordered.",
            field="filled_quantity",
            hint="Record a modify first, or check the fill.",
        )
    event = OrderOutcome(
        certainty=certainty,
        previous=order.get("status", "open"),
        standing=caller.standing,
        order_status=certainty,
        **told,
    )
    return Plan((about(submit, event),))


def _told(command: RecordOutcome) -> dict[str, Any]:
    filled = decimal_text(command.filled_quantity, field="filled_quantity")
    found = {
        "broker_order_id": short_text(
            command.broker_order_id, field="broker_order_id", longest=IDENTIFIER_CHARS
        ),
        "filled_quantity": filled
        if filled is None or not filled.strip("-0.")
        else amount(filled, field="filled_quantity"),
        "average_price": decimal_text(command.average_price, field="average_price"),
        "error_type": short_text(command.error_type, field="error_type", longest=SHORT_TEXT_CHARS),
    }
    return {name: value for name, value in found.items() if value is not None}


def _same_outcome(
    transaction: Transaction, action: Version, certainty: str, told: dict[str, Any], view: View
) -> Any:
    """The entry that already says exactly this, if it is the action's latest outcome."""
    submit_id = action.details.get("submit_action_id") if certainty in ORDER_STATUSES else None
    history = transaction.history(submit_id or action.memory_id, view.cut)
    outcomes = [entry for entry in history if entry.event_type == "order.outcome"]
    if not outcomes:
        return None
    event = _outcome(outcomes[-1])
    said = event.model_dump(
        exclude_none=True, include={"broker_order_id", "filled_quantity", "average_price", "error_type"}
    )
    return outcomes[-1] if (event.certainty, said) == (certainty, told) else None


def _outcome(entry: Any) -> OrderOutcome:
    return OrderOutcome.model_validate_json(entry.content)


def _action(view: View, action_id: str, *, field: str) -> Version:
    found = existing(view, action_id, field=field)
    if found.kind != ORDER_ACTION:
        raise NotFound(
            f"{field} names a {found.kind}, not an order action.",
            field=field,
            hint="Use the action_id that record_order_intent returned; list_unreconciled_orders names the open ones.",
        )
    return found


def _chain(command: IntendOrder, own_id: str | None, transaction: Transaction, view: View) -> _Chain:
    previous = None
    if command.previous_action_id is not None:
        previous = _action(
            view,
            identifier(command.previous_action_id, field="previous_action_id"),
            field="previous_action_id",
        )
    operation = (command.operation or "").strip().lower()
    if previous is None and operation != SUBMIT and own_id is not None:
        previous = _first_submit(transaction, view, own_id)
    if previous is None or operation == SUBMIT:
        return _Chain(previous, None)
    submit_id = previous.details.get("submit_action_id")
    if submit_id is None and previous.details["operation"] == SUBMIT:
        return _Chain(previous, previous)
    return _Chain(previous, None if submit_id is None else view.version(submit_id))


def _first_submit(transaction: Transaction, view: View, own_id: str) -> Version | None:
    name = transaction.submit_of(own_id, view.cut)
    return None if name is None else view.version(name)


def _first_sequence(transaction: Transaction, action: Version, view: View) -> int:
    return transaction.history(action.memory_id, view.cut)[0].sequence


def _check_same_terms(first: Version, symbol: str | None, terms: dict[str, Any]) -> None:
    before = {name: first.details.get(name) for name in _TERMS}
    now = {name: terms.get(name) for name in _TERMS}
    if (first.symbol, canonical(_plain(before))) != (symbol, canonical(_plain(now))):
        raise Conflict(
            f"client_order_id was submitted before with other terms, as {first.memory_id}.",
            field="client_order_id",
            hint="Use a new client_order_id for a new order, or modify the first one.",
        )


def _plain(terms: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in terms.items()}


def _decision(
    command: IntendOrder,
    transaction: Transaction,
    caller: Caller,
    view: View,
    chain: _Chain,
    symbol: str | None,
    terms: dict[str, Any],
    reason: str,
) -> tuple[str, tuple[Draft, ...]]:
    """The decision behind an intent: named, the previous action's, this model call's latest, or a new one."""
    if command.decision_id is not None:
        found = existing(view, command.decision_id, field="decision_id")
        if found.kind != DECISION:
            raise NotFound(
                f"decision_id names a {found.kind}, not a decision.",
                field="decision_id",
                hint="Use the id that remember_decision returned, or leave it out.",
            )
        return found.memory_id, ()
    if chain.previous is not None:
        return str(chain.previous.details["decision_id"]), ()
    latest = (
        None
        if caller.model_call_id is None
        else transaction.decision_in_call(caller.agent, caller.model_call_id)
    )
    if latest is not None:
        return latest, ()
    new = new_id(PREFIXES[DECISION])
    side = terms.get("side")
    action = "other" if side is None or terms["operation"] != SUBMIT else "buy" if side in BUYING else "sell"
    event = DecisionRecorded(text=reason, action=action, thesis_id=command.thesis_id)
    return new, (Draft(event, "memory", new, DECISION, symbol),)


def _duplicate_risk(view: View, touches: tuple[str, ...], action_id: str) -> list[Warned]:
    found = []
    for symbol in touches:
        open_actions = view.unreconciled(symbol, limit=5)
        if open_actions:
            names = tuple(action.memory_id for action in open_actions)
            message = (
                f"duplicate_order_risk: {symbol} has order actions whose outcome is not known: {', '.join(names)}."
                " Reconcile them with record_order_outcome before this order is sent."
            )
            found.append(
                Warned(
                    code="duplicate_order_risk",
                    message=message,
                    symbol=symbol,
                    action_id=action_id,
                    related=names,
                )
            )
    return found


def _unseen(
    transaction: Transaction, caller: Caller, view: View, touches: tuple[str, ...], action_id: str
) -> list[Warned]:
    """Warn where a held symbol, or one with an open thesis, is touched by one who has not been shown the thesis."""
    held = held_symbols(view)
    found = []
    for symbol in touches:
        unseen = unseen_theses(transaction, caller, view, symbol)
        if unseen is None or (not unseen.thesis_ids and view.instrument(symbol) not in held):
            continue
        what = f"the open thesis {', '.join(unseen.thesis_ids)}" if unseen.thesis_ids else "no thesis"
        message = (
            f"position_order_without_memory_thesis: {symbol} has {what}, which was not shown to {caller.agent} "
            "before this order. Search memory for it."
            if unseen.thesis_ids
            else f"position_order_without_memory_thesis: {symbol} is held, but no open thesis explains why."
        )
        found.append(
            Warned(
                code="position_order_without_memory_thesis",
                symbol=symbol,
                message=message,
                action_id=action_id,
                related=unseen.thesis_ids,
                retrieved_instead=unseen.retrieved,
            )
        )
    return found


def _object(value: Any, *, field: str) -> Any:
    checked = json_value(value, field=field, most=ORDER_BYTES)
    if checked is not None and not isinstance(checked, dict):
        raise InvalidInput(
            f"{field} must be a JSON object.", field=field, hint='For example {"close": "187.30"}.'
        )
    return checked
