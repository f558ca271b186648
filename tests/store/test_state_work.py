"""What a state and a report of positions cost, counted: statements, and steps of SQLite's machine.

The bound is what they show: open theses, what is held and what changed since, not how much is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store import Caller
from store.commands import (
    CloseThesis,
    Decide,
    IntendOrder,
    NoteRisk,
    OpenThesis,
    RecordOutcome,
    Remember,
    ReportPositions,
    ResolveMemory,
    UpdateThesis,
)

if TYPE_CHECKING:
    from conftest import CountWork, Work

HARNESS = Caller("broker-link", "harness", "ses-2", "report_positions", observer=True)
HELD = [f"SYM{number}" for number in range(20)]
REASON = "It closed above its 50 day mean on 2026-03-02; half a position, out below 181.20. " * 3
SIZES = (200, 2_000)
DAY = 86_400_000_000


def fill(seat: Any, memories: int) -> None:
    """Notes, decisions, risks, theses that were closed and orders that are done; twelve theses stay open."""
    for number in range(memories):
        symbol, text = f"SYM{number % 30}", f"number {number}"
        kind = number % 10
        if kind == 0:
            thesis = seat.do(OpenThesis(text=text, symbol=symbol, review_by=seat.clock.us + DAY)).id
            seat.do(UpdateThesis(thesis_id=thesis, text=f"{text}, again"))
            seat.do(CloseThesis(thesis_id=thesis, result="sold"))
        elif kind == 1:
            terms = {"operation": "submit", "side": "buy", "quantity": "10", "reason": REASON}
            action = seat.do(IntendOrder(symbol=symbol, **terms)).id
            for certainty in ("acknowledged", "filled"):
                seat.book.execute(HARNESS, RecordOutcome(action_id=action, certainty=certainty))
        elif kind == 2:
            seat.do(Decide(text=text, symbol=symbol, action="buy"))
        elif kind in (3, 4):
            risk = seat.do(NoteRisk(text=text, symbol=symbol)).id
            if kind == 4:
                seat.do(ResolveMemory(memory_id=risk, status="resolved"))
        else:
            seat.do(Remember(text=text, symbol=symbol))
    for number in range(12):
        seat.do(OpenThesis(text=f"open {number}", symbol=f"SYM{number}", invalidation="below 10"))
    seat.clock.us += 2 * DAY


def report(seat: Any) -> None:
    held = [{"symbol": symbol, "quantity": "10", "last_price": "101.25"} for symbol in HELD]
    seat.book.execute(HARNESS, ReportPositions(positions=held))


def state(seat: Any) -> None:
    assert seat.state(seat.caller(call=f"call-{seat.clock.us}"))["counts"]["open_theses"] == 12


def dearest(work: Work, call: Callable[[], None], before: Callable[[], object] = lambda: None) -> Work:
    """The work of the dearest of a few calls, without what happens before each."""
    most = type(work)()
    for _ in range(5):
        before()
        work.statements = work.steps = 0
        call()
        most = type(work)(max(most.statements, work.statements), max(most.steps, work.steps))
    return most


def cases(seat: Any, work: Work) -> Iterator[tuple[str, Work]]:
    """The work of each kind of call; a first state of each kind is not counted."""
    for name in ("nothing held", "20 held"):
        state(seat)
        yield f"a state, {name}", dearest(work, lambda: state(seat))
        yield (
            f"a state after a write, {name}",
            dearest(work, lambda: state(seat), lambda: seat.do(NoteRisk(text="new"))),
        )
        report(seat)
    yield "a report", dearest(work, lambda: report(seat))
    yield "a state after a report", dearest(work, lambda: state(seat), lambda: report(seat))

    def next_day() -> None:
        seat.clock.us += DAY

    yield "a report on a new day", dearest(work, lambda: report(seat), next_day)


def test_a_state_and_a_report_cost_no_more_on_a_ledger_of_ten_times_as_many_memories(
    open_seat: Any, tmp_path: Path, counted: CountWork
) -> None:
    found: list[dict[str, Work]] = []
    for size in SIZES:
        with counted() as work:
            seat = open_seat(root=tmp_path / str(size))
            fill(seat, size)
            found.append(dict(cases(seat, work)))
    small, large = found
    for name, few in small.items():
        many = large[name]
        assert many.statements <= few.statements + 2, (name, few, many)
        assert many.steps <= 1.2 * few.steps, (name, few, many)
    assert large["a state, nothing held"].statements <= 45
    assert large["a state, 20 held"].statements <= 60
