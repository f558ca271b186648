"""The model that the order machine is held against: which answer may follow which, and what of it was observed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from store.errors import IllegalTransition, InvalidInput

ANSWERS = {
    "intent": {"acknowledged", "rejected", "unknown", "not_sent"},
    "unknown": {"acknowledged", "rejected", "not_sent"},
    "acknowledged": set(),
    "rejected": set(),
    "not_sent": set(),
}
FILLS: dict[str | None, set[str]] = {
    None: set(),
    "open": {"partially_filled", "filled", "cancelled"},
    "partially_filled": {"partially_filled", "filled", "cancelled"},
    "filled": set(),
    "cancelled": set(),
}


class Track:
    """What was said of one action's answer, or of one order's fills: all of it, and what of it was observed."""

    def __init__(self, start: str | None) -> None:
        self.start = start
        self.said: list[tuple[str, str | None, bool]] = []

    @property
    def status(self) -> str | None:
        return self.said[-1][0] if self.said else self.start

    def base(self, observer: bool) -> str | None:
        if not observer or not self.said or self.said[-1][2]:
            return self.status
        seen = [status for status, _, observed in self.said if observed]
        return seen[-1] if seen else self.start

    def filled(self, observer: bool) -> str | None:
        """The latest fill that counts for who speaks now."""
        if not self.said:
            return None
        claimed = not self.said[-1][2]
        if observer and claimed:
            seen = [quantity for _, quantity, observed in self.said if observed and quantity]
            return seen[-1] if seen else None
        standing: str | None = None
        for at, (_, quantity, observed) in enumerate(self.said):
            if observed and at and not self.said[at - 1][2]:
                standing = None  # an observation drops what was only claimed
            standing = quantity or standing
        return standing

    def repeats(self, status: str, quantity: str | None, observer: bool) -> bool:
        return (
            bool(self.said) and self.said[-1][:2] == (status, quantity) and (self.said[-1][2] or not observer)
        )


class OrderModel:
    """Orders and their actions as plain dicts, and what the next outcome must lead to."""

    def __init__(self) -> None:
        self.actions: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, Track] = {}
        self.submitted: set[str] = set()

    def intended(
        self,
        name: str,
        operation: str,
        touches: set[str],
        submit: str | None,
        quantity: str | None,
        terms: Any,
        decision: str,
    ) -> None:
        """An action was journalled; nothing is known of it yet."""
        self.actions[name] = {
            "operation": operation,
            "track": Track("intent"),
            "touches": touches,
            "submit": submit,
            "quantity": quantity,
            "terms": terms,
            "decision": decision,
        }

    def told(self, action: str, track: Track, certainty: str, filled: str | None, observer: bool) -> None:
        """An outcome was taken; an acknowledged submit opens the order."""
        track.said.append((certainty, filled, observer))
        if certainty in FILLS["open"] or self.actions[action]["operation"] != "submit":
            return
        if certainty == "acknowledged":
            self.orders.setdefault(action, Track("open"))
            self.submitted.add(action)
        else:
            self.orders.pop(action, None)

    def risky(self, operation: str, symbols: set[str]) -> set[str]:
        """Those of the symbols on which an outcome is not known or, before a submit, an order is at work."""
        at_work = [name for name, order in self.orders.items() if FILLS[order.status]]
        named = self.open_now() + (at_work if operation == "submit" else [])
        return {symbol for name in named for symbol in self.actions[name]["touches"] & symbols}

    def open_now(self) -> list[str]:
        """The actions whose outcome is not known, oldest first."""
        return [
            name for name, action in self.actions.items() if action["track"].status in ("intent", "unknown")
        ]

    def expect(self, action: str, certainty: str, filled: str | None, observer: bool) -> Any:
        """The track that takes the outcome, the error that refuses it, or None where it says nothing new."""
        model = self.actions[action]
        if certainty not in FILLS["open"]:
            track = model["track"]
            if track.repeats(certainty, None, observer):
                return None
            base = track.base(observer)
            observed_fill = any(observed for _, _, observed in self.orders.get(action, Track(None)).said)
            if observer and track.said and not track.said[-1][2] and observed_fill:
                base = "acknowledged"
            return track if certainty in ANSWERS[base] else IllegalTransition
        submit = model["submit"] or action
        order = self.orders.get(submit)
        if order is None:
            return IllegalTransition
        if order.repeats(certainty, filled, observer):
            return None
        if certainty not in FILLS[order.base(observer)]:
            return IllegalTransition
        if certainty == "partially_filled" and filled is None:
            return InvalidInput
        before = order.filled(observer)
        if filled and before and Decimal(filled) < Decimal(before):
            return IllegalTransition
        whole = self._whole(submit)
        return InvalidInput if filled and whole and Decimal(filled) > whole else order

    def _whole(self, submit: str) -> Decimal | None:
        ordered = self.actions[submit]["quantity"]
        if ordered is None:
            return None
        changes = [
            action["quantity"]
            for action in self.actions.values()
            if action.get("submit") == submit
            and action["quantity"]
            and action["track"].status not in ("rejected", "not_sent")
        ]
        return max(map(Decimal, (ordered, *changes)))


@pytest.fixture
def order_model() -> type[OrderModel]:
    """Makes a model that knows nothing yet."""
    return OrderModel
