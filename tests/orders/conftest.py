"""A trading floor: one ledger, agents whose outcomes are claims, and a harness whose outcomes are observed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from store import Caller
from store.commands import (
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    ReportPositions,
    ValidateLesson,
)
from store.errors import DeskbookError

if TYPE_CHECKING:
    from conftest import Seat

    from store import Written
    from store.commands import Command

HARNESS = "broker-link"
# 255 characters: an agent's reason needs 200.
REASON = "AAPL closed above its 50 day mean on 2026-03-02; half a position, out below 181.20. " * 3


class Floor:
    """Everyone who trades in one ledger; calls without a name are ann's, observations are the harness'."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.book = seat.book

    def caller(self, agent: str = "ann", **labels: Any) -> Caller:
        """Who calls; only the harness observes."""
        labels = {"session_id": f"ses-{agent}", "tool": "tool", **labels}
        return Caller(agent, "harness" if agent == HARNESS else "solo", observer=agent == HARNESS, **labels)

    def do(self, command: Command, agent: str = "ann", *, key: str | None = None, **labels: Any) -> Written:
        return self.book.execute(self.caller(agent, **labels), command, idempotency_key=key)

    def submit(
        self, agent: str = "ann", *, key: str | None = None, labels: Any = None, **terms: Any
    ) -> Written:
        """A submit of ten AAPL unless told otherwise."""
        named = {"symbol": "AAPL", "side": "buy", "quantity": "10"} if "legs" not in terms else {}
        command = IntendOrder(**{"operation": "submit", "reason": REASON, **named, **terms})
        return self.do(command, agent, key=key, **(labels or {}))

    def follow(self, operation: str, action: str | None = None, agent: str = "ann", **terms: Any) -> Written:
        """A modify or cancel of an action."""
        labels = terms.pop("labels", {})
        command = IntendOrder(
            **{"operation": operation, "reason": REASON, "previous_action_id": action, **terms}
        )
        return self.do(command, agent, **labels)

    def outcome(
        self, action: str, certainty: str, agent: str = HARNESS, *, key: str | None = None, **told: Any
    ) -> Written:
        return self.do(RecordOutcome(action_id=action, certainty=certainty, **told), agent, key=key)

    def fill(self, action: str, agent: str = HARNESS, **told: Any) -> Written:
        """Acknowledge and fill an action's order; gives the fill."""
        self.outcome(action, "acknowledged", agent)
        return self.outcome(action, "filled", agent, **told)

    def report(self, *rows: dict[str, Any], agent: str = HARNESS, **labels: Any) -> Written:
        return self.do(ReportPositions(positions=list(rows)), agent, **labels)

    def hold(self, *symbols: str, agent: str = HARNESS) -> Written:
        return self.report(*({"symbol": symbol, "quantity": "10"} for symbol in symbols), agent=agent)

    def thesis(self, symbol: str | None = "AAPL", agent: str = "ann", **terms: Any) -> Written:
        return self.do(OpenThesis(**{"text": f"A thesis on {symbol}.", "symbol": symbol, **terms}), agent)

    def lesson(self, agent: str = "ann", **terms: Any) -> Written:
        return self.do(ProposeLesson(**{"text": "Breakouts on volume hold.", **terms}), agent)

    def judge(self, lesson: str, verdict: str, *outcomes: str, agent: str = "ann", **more: Any) -> Written:
        command = ValidateLesson(lesson_id=lesson, verdict=verdict, outcome_ids=outcomes, **more)
        return self.do(command, agent)

    def state(self, agent: str = "ann", **labels: Any) -> dict[str, Any]:
        as_of = labels.pop("as_of", None)
        return self.book.state(self.caller(agent, **labels), as_of).body

    def open_orders(self, symbol: str | None = None, **wanted: Any) -> list[dict[str, Any]]:
        return list(self.book.unreconciled(self.caller(), symbol, 50, **wanted).body["orders"])

    def status(self, memory_id: str) -> str:
        with self.book._engine.read() as snapshot:
            return str(snapshot.version(memory_id, snapshot.head().sequence).status)

    def warned(self, code: str | None = None) -> list[dict[str, Any]]:
        """The contents of warning entries, of one code or all."""
        found = [json.loads(entry.content) for entry in self.seat.entries("warning")]
        return [content for content in found if code in (None, content["code"])]

    def told(self, event_type: str) -> list[dict[str, Any]]:
        return [json.loads(entry.content) for entry in self.seat.entries(event_type)]

    def refuses(
        self, kind: type[DeskbookError], command: Command, agent: str = "ann", **labels: Any
    ) -> DeskbookError:
        """The command is refused with a next step, and nothing is stored."""
        before = self.book.head().sequence
        with pytest.raises(kind) as fault:
            self.do(command, agent, **labels)
        assert fault.value.hint
        assert fault.value.stored == "no"
        assert self.book.head().sequence == before
        return fault.value


@pytest.fixture
def harness() -> str:
    return HARNESS


@pytest.fixture
def reason() -> str:
    return REASON


@pytest.fixture
def floor(seat: Seat) -> Floor:
    """A floor at a live ledger."""
    return Floor(seat)


@pytest.fixture
def floor_at(open_seat: Callable[..., Seat]) -> Callable[..., Floor]:
    """Open a floor at another ledger, with what `Book.open` takes."""
    return lambda *place, **options: Floor(open_seat(*place, **options))
