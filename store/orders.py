"""The order journal: what was intended before the broker was called; `order_outcomes` says what became of it.

An intent is committed before the broker is called. Nothing here retries and nothing blocks an order: what an
agent should have known is said as a warning, in the reply and as an entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .caller import Caller
from .canonical import canonical
from .commands import IntendOrder
from .engines.base import Transaction
from .errors import Conflict, InvalidInput, NotFound
from .events import DecisionRecorded, OrderIntended, Warned
from .exposure import held_symbols, unseen_theses
from .ids import PREFIXES, new_id
from .inputs import json_value
from .ledger import Draft
from .lifecycle import DECISION, ORDER_ACTION
from .limits import ORDER_BYTES
from .order_terms import (
    BUYING,
    SUBMIT,
    check_size,
    client_id,
    hash_reason,
    read_reason,
    read_terms,
    touched,
)
from .planning import Plan, action_of, existing, plan, refuse_inherited, thesis_of
from .public_reason import screen
from .rows import Version
from .symbols import normalise_symbol
from .view import View

UNRECONCILED = ("intent", "unknown")
_NAMED = 5
_TERMS = (
    "side", "quantity", "order_type", "limit_price", "stop_price", "time_in_force", "legs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chain:
    """The actions an intent follows: the one before, and the submit that opened its order."""

    previous: Version | None
    submit: Version | None
    opens: bool = False
    """Whether the intent opens an order of its own."""

    @property
    def touches(self) -> tuple[str, ...]:
        """What the order is on, which a modify or cancel need not say again."""
        order = self.submit or self.previous
        return () if order is None or self.opens else tuple(order.details.get("touches", ()))


@plan.register
def _(command: IntendOrder, transaction: Transaction, caller: Caller, view: View) -> Plan:
    reason = read_reason(command, observer=caller.observer)
    terms = read_terms(command)
    own_id = client_id(command)
    chain = _chain(command, own_id, transaction, view)
    symbol = normalise_symbol(command.symbol) or (chain.previous.symbol if chain.previous else None)
    touches = touched(symbol, terms.get("legs"), chain.touches)
    if terms["operation"] == SUBMIT and own_id is not None:
        standing = _first_submit(transaction, view, own_id)
        if standing is not None:
            _check_same_terms(standing, symbol, terms)
            entry = transaction.entry(_first_sequence(transaction, standing, view))
            return Plan(standing=entry, warnings=(_repeated(standing),))
    thesis = None if command.thesis_id is None else thesis_of(view, command.thesis_id)
    action_id = new_id(PREFIXES[ORDER_ACTION])
    decision_id, decision = _decision(command, transaction, caller, view, chain, symbol, terms, reason)
    public, why_not = screen(command.public_reason)
    cautions = [
        *_duplicate_risk(transaction, view, touches, action_id, submits=terms["operation"] == SUBMIT),
        *_unseen(transaction, caller, view, touches, action_id),
    ]
    event = OrderIntended(
        text=reason,
        symbol_given=command.symbol if command.symbol != symbol else None,
        notices=(
            *(caution.message for caution in cautions),
            *([why_not] if why_not else []),
            *_unknown_order(chain, own_id),
        ),
        touches=touches,
        client_order_id=own_id,
        thesis_id=thesis.memory_id if thesis else None,
        decision_id=decision_id,
        previous_action_id=chain.previous.memory_id if chain.previous else None,
        submit_action_id=chain.submit.memory_id if chain.submit else None,
        public_reason=public,
        evidence=_object(command.evidence, field="evidence"),
        snapshot=json_value(command.snapshot, field="snapshot", most=ORDER_BYTES),
        revision=caller.revision,
        deployment=caller.deployment,
        **terms,
        **hash_reason(reason),
    )
    check_size(event.model_dump(mode="json", exclude_none=True))
    intent = Draft(event, "memory", action_id, ORDER_ACTION, symbol)
    warnings = [Draft(caution, "memory", action_id, ORDER_ACTION, caution.symbol) for caution in cautions]
    return Plan((intent, *decision, *warnings))


def _chain(command: IntendOrder, own_id: str | None, transaction: Transaction, view: View) -> _Chain:
    previous = None
    if command.previous_action_id is not None:
        previous = action_of(view, command.previous_action_id, field="previous_action_id")
    operation = (command.operation or "").strip().lower()
    if previous is None and operation != SUBMIT and own_id is not None:
        previous = _first_submit(transaction, view, own_id)
    if previous is None or operation == SUBMIT:
        return _Chain(previous, None, operation == SUBMIT)
    refuse_inherited(previous, field="previous_action_id")
    submit_id = previous.details.get("submit_action_id")
    if submit_id is None and previous.details["operation"] == SUBMIT:
        return _Chain(previous, previous)
    return _Chain(previous, None if submit_id is None else view.version(submit_id))


def _unknown_order(chain: _Chain, own_id: str | None) -> tuple[str, ...]:
    """A notice to who modifies or cancels an order that was never journaled."""
    if chain.opens or chain.previous is not None or own_id is None:
        return ()
    return (
        "No submit of this client_order_id is known here, so the action follows none. Name previous_action_id.",
    )


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


def _repeated(first: Version) -> str:
    """What a second submit under one client_order_id is told: it is the first one, and whether it may be sent."""
    message = (
        f"client_order_id was journaled before, as {first.memory_id}, which is {first.status}: no new order."
    )
    if first.status in UNRECONCILED:
        return (
            f"duplicate_order_risk: {message} Reconcile it with record_order_outcome before anything is sent."
        )
    return f"{message} A new order needs a client_order_id of its own."


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


def _duplicate_risk(
    transaction: Transaction, view: View, touches: tuple[str, ...], action_id: str, *, submits: bool
) -> list[Warned]:
    """Warn of actions on a symbol that nobody knows the outcome of and, before a submit, of orders at work there."""
    found = []
    for symbol in touches:
        unknown = tuple(action.memory_id for action in view.unreconciled(symbol, limit=_NAMED))
        working = (
            tuple(
                order.memory_id
                for order in transaction.open_orders(view.spellings(symbol), view.cut, limit=_NAMED)
            )
            if submits
            else ()
        )
        said = []
        if unknown:
            said.append(
                f"{symbol} has order actions whose outcome is not known: {', '.join(unknown)}."
                " Reconcile them with record_order_outcome before this order is sent."
            )
        if working:
            said.append(
                f"{symbol} has orders still at work at the broker: {', '.join(working)}."
                " Modify or cancel them if this order is to take their place."
            )
        if said:
            found.append(
                Warned(
                    code="duplicate_order_risk",
                    message=f"duplicate_order_risk: {' '.join(said)}",
                    symbol=symbol,
                    action_id=action_id,
                    related=tuple(dict.fromkeys((*unknown, *working))),
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
        message = (
            f"position_order_without_memory_thesis: {symbol} has the open thesis {', '.join(unseen.thesis_ids)},"
            f" which was {unseen.told}. Search memory for it."
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
