"""What an order is made of, checked: operation, side, amounts, prices, legs, in one normal form."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from .canonical import canonical, check_json
from .commands import IntendOrder
from .errors import InvalidInput
from .inputs import decimal_text, identifier, required_text, short_text
from .limits import LEGS, ORDER_BYTES, REASON_BYTES, REASON_CHARS, REASON_LEAST_CHARS
from .symbols import normalise_symbol

SUBMIT, MODIFY, CANCEL = "submit", "modify", "cancel"
OPERATIONS = (SUBMIT, MODIFY, CANCEL)
SIDES = (
    "buy", "sell", "sell_short", "buy_to_cover", "buy_to_open", "buy_to_close", "sell_to_open", "sell_to_close",
)  # fmt: skip
ORDER_TYPES = ("market", "limit", "stop", "stop_limit", "trailing_stop", "other")
TIMES_IN_FORCE = ("day", "gtc", "ioc", "fok", "opg", "cls", "gtd", "other")
BUYING = frozenset({"buy", "buy_to_open", "buy_to_cover", "buy_to_close"})
_LEG_KEYS = frozenset({"symbol", "side", "quantity", "ratio", "action", "price"})
_TERM = 64


def read_reason(command: IntendOrder, *, observer: bool) -> str:
    """The reason as given; an agent's has at least 200 characters after trimming, a harness' at least one.

    At most 100,000 characters and 400 KiB of JSON-escaped UTF-8.
    """
    reason = required_text(command.reason, field="reason", longest=REASON_CHARS)
    least = 1 if observer else REASON_LEAST_CHARS
    if len(reason.strip()) < least:
        raise InvalidInput(
            f"reason has {len(reason.strip())} characters; at least {least} are needed.",
            field="reason",
            hint="Give dated evidence, sizing, risks and what would prove it wrong, in 600 to 2,500 characters.",
        )
    size = len(json.dumps(reason, ensure_ascii=False).encode()) - 2
    if size > REASON_BYTES:
        raise InvalidInput(
            f"reason has {size} bytes; at most {REASON_BYTES} are allowed.",
            field="reason",
            hint="Shorten it.",
        )
    return reason


def read_terms(command: IntendOrder) -> dict[str, Any]:
    """The order's terms in normal form, absent ones left out; raises InvalidInput that names what is wrong."""
    operation = word(command.operation, OPERATIONS, field="operation")
    if operation is None:
        raise InvalidInput(
            "operation is missing.", field="operation", hint=f"One of {', '.join(OPERATIONS)}."
        )
    legs = read_legs(command.legs)
    terms: dict[str, Any] = {
        "operation": operation,
        "side": word(command.side, SIDES, field="side"),
        "quantity": amount(command.quantity, field="quantity"),
        "order_type": word(command.order_type, ORDER_TYPES, field="order_type"),
        "limit_price": decimal_text(command.limit_price, field="limit_price", percent=False),
        "stop_price": decimal_text(command.stop_price, field="stop_price", percent=False),
        "time_in_force": word(command.time_in_force, TIMES_IN_FORCE, field="time_in_force"),
        "legs": legs,
    }
    if operation == SUBMIT:
        _check_submit(command, terms)
    elif command.previous_action_id is None and command.client_order_id is None:
        raise InvalidInput(
            f"A {operation} must say which order it is about.",
            field="previous_action_id",
            hint="Name the previous_action_id, or the client_order_id.",
        )
    return {name: value for name, value in terms.items() if value is not None}


def read_legs(value: Any) -> tuple[dict[str, Any], ...] | None:
    """Legs in normal form: symbol, side, quantity and what else is known of each; None when there are none."""
    if value is None:
        return None
    check_json(value, field="legs")
    if not isinstance(value, list) or not 1 <= len(value) <= LEGS:
        raise InvalidInput(
            f"legs must be a JSON list of 1 to {LEGS} objects.",
            field="legs",
            hint='For example [{"symbol": "AAPL", "side": "buy", "quantity": "1"}].',
        )
    return tuple(_leg(leg, f"legs[{index}]") for index, leg in enumerate(value))


def touched(
    symbol: str | None, legs: tuple[dict[str, Any], ...] | None, before: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Every instrument an action touches, its own, its legs' and those of the order it follows, each once."""
    named = [symbol, *(leg["symbol"] for leg in legs or ()), *before]
    return tuple(dict.fromkeys(name for name in named if name))


def check_size(content: dict[str, Any]) -> None:
    """Raise InvalidInput when reason, evidence, snapshot and terms together exceed 1 MiB of JSON."""
    size = len(canonical(content))
    if size > ORDER_BYTES:
        raise InvalidInput(
            f"The order's reason, evidence, snapshot and terms have {size} bytes; at most {ORDER_BYTES} are allowed.",
            field="evidence",
            hint="Keep what the order rests on.",
        )


def hash_reason(reason: str) -> dict[str, str]:
    """A salt and the salted SHA-256 of the reason, in hex, to prove later what was meant without showing it."""
    salt = os.urandom(16)
    return {"reason_salt": salt.hex(), "reason_sha256": hashlib.sha256(salt + reason.encode()).hexdigest()}


def word(value: Any, allowed: tuple[str, ...], *, field: str) -> str | None:
    """A listed word, spaces, hyphens and capitals aside; None when blank."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    plain = value.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""
    if plain not in allowed:
        raise InvalidInput(
            f"{field} is not a known value.", field=field, hint=f"One of {', '.join(allowed)}."
        )
    return plain


def amount(value: Any, *, field: str) -> str | None:
    """A positive decimal number; None when blank."""
    number = decimal_text(None if value is None else str(value), field=field, percent=False)
    if number is not None and (number.startswith("-") or not number.strip("0.")):
        raise InvalidInput(
            f"{field} must be greater than zero.", field=field, hint="The side says the direction."
        )
    return number


def _check_submit(command: IntendOrder, terms: dict[str, Any]) -> None:
    symbol = normalise_symbol(command.symbol)
    if terms["legs"] is None:
        for name, value in (("symbol", symbol), ("side", terms["side"]), ("quantity", terms["quantity"])):
            if value is None:
                raise InvalidInput(
                    f"{name} is missing.",
                    field=name,
                    hint="A submit names symbol, side and quantity, or legs.",
                )
    for index, leg in enumerate(terms["legs"] or ()):
        for name in ("side", "quantity"):
            if name not in leg:
                raise InvalidInput(
                    f"legs[{index}].{name} is missing.",
                    field=f"legs[{index}].{name}",
                    hint="Each leg of a submit names symbol, side and quantity (or ratio).",
                )
    for name, kinds in (("limit_price", ("limit", "stop_limit")), ("stop_price", ("stop", "stop_limit"))):
        if terms["order_type"] in kinds and terms[name] is None:
            raise InvalidInput(
                f"{name} is missing.", field=name, hint=f"A {terms['order_type']} order needs a {name}."
            )


def _leg(leg: Any, field: str) -> dict[str, Any]:
    if not isinstance(leg, dict):
        raise InvalidInput(
            f"{field} is not an object.", field=field, hint="Each leg has symbol, side, quantity."
        )
    unknown = sorted(leg.keys() - _LEG_KEYS)
    if unknown:
        raise InvalidInput(
            f"{field} holds the unknown key '{unknown[0][:_TERM]}'.",
            field=field,
            hint=f"Known: {', '.join(sorted(_LEG_KEYS))}.",
        )
    symbol = leg.get("symbol")
    normal = normalise_symbol(symbol, field=f"{field}.symbol") if isinstance(symbol, str) else None
    if normal is None:
        raise InvalidInput(
            f"{field}.symbol is missing.", field=f"{field}.symbol", hint="Name its instrument."
        )
    read = {
        "symbol": normal,
        "symbol_given": symbol if symbol != normal else None,
        "side": word(leg.get("side", leg.get("action")), SIDES, field=f"{field}.side"),
        "quantity": amount(leg.get("quantity", leg.get("ratio")), field=f"{field}.quantity"),
        "price": decimal_text(_text(leg.get("price")), field=f"{field}.price", percent=False),
    }
    return {name: value for name, value in read.items() if value is not None}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def client_id(command: IntendOrder) -> str | None:
    """The caller's own order id, trimmed; None when not given."""
    given = short_text(command.client_order_id, field="client_order_id", longest=128)
    return None if given is None else identifier(given, field="client_order_id")
