"""Every query of docs/queries.md is run by DuckDB against the exports of a desk whose right answers are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from store import Caller
from store.commands import (
    CloseThesis,
    Command,
    Decide,
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    ReportPositions,
    UpdateThesis,
)
from store.export.exporter import bring_up_to_date
from store.policy import Policy
from store.review_commands import Approve, Reject

if TYPE_CHECKING:
    from conftest import Seat

REASON = "Dated evidence, sizing, risks and what would prove it wrong, all of it in some detail here. " * 3
OPEN = "Which thesis was open at the time?"
SEEN = "Did it see the thesis before it changed a held position?"
Answers = dict[str, tuple[list[str], list[tuple[Any, ...]]]]


class Story:
    """A desk that buys AAPL on a thesis it looked up, adds without looking, looks at the state, and trims."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        thesis = seat.do(OpenThesis(text="Long AAPL.", symbol="AAPL"), call="c-1")
        self.thesis = thesis.id
        found = seat.find("AAPL", symbol="AAPL", who=seat.caller(call="c-1"))
        self.retrieval = found["retrieval_id"]
        self.decision = seat.do(
            Decide(
                text="Buy AAPL.",
                action="buy",
                symbol="AAPL",
                evidence={"close": "187.30"},
                thesis_id=self.thesis,
                retrieval_id=self.retrieval,
            ),
            call="c-1",
        ).id
        self.bought = self.order("buy", "10", "c-1", thesis_id=self.thesis, decision_id=self.decision)
        seat.do(ReportPositions(positions=[{"symbol": "AAPL", "quantity": "10"}]))
        seat.do(UpdateThesis(thesis_id=self.thesis, text="Longer AAPL."))
        self.added = self.order("buy", "5", "c-2")
        seat.state(seat.caller(call="c-3"))
        self.trimmed = self.order("sell", "3", "c-3")
        seat.do(CloseThesis(thesis_id=self.thesis, result="win"))
        self.after_close = self.order("sell", "12", "c-4")
        self.lesson = seat.do(ProposeLesson(text="Look before adding.", symbol="AAPL")).id
        seat.do(ProposeLesson(text="Of another instrument.", symbol="MSFT"))
        self.orders = [self.bought, self.added, self.trimmed, self.after_close]

    def order(self, side: str, quantity: str, call: str, **more: Any) -> str:
        intent = IntendOrder(
            operation="submit",
            reason=REASON,
            symbol="AAPL",
            side=side,
            quantity=quantity,
            evidence={"spread": "0.01"},
            **more,
        )
        name = self.seat.do(intent, call=call).id
        self.seat.do(RecordOutcome(action_id=name, certainty="acknowledged"))
        self.seat.do(
            RecordOutcome(
                action_id=name, certainty="filled", filled_quantity=quantity, average_price="187.35"
            )
        )
        return str(name)


class Turns:
    """A desk that holds AAPL, MSFT and NVDA, moves a thesis from AAPL to MSFT, and looks before every order."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        held = [{"symbol": symbol, "quantity": "10"} for symbol in ("AAPL", "MSFT", "NVDA")]
        seat.do(ReportPositions(positions=held))
        self.moved = seat.do(OpenThesis(text="Long AAPL.", symbol="AAPL")).id
        self.before = self.looked("m-1", "AAPL")
        seat.do(UpdateThesis(thesis_id=self.moved, text="Really MSFT.", symbol="MSFT"))
        self.old_symbol = self.looked("m-2", "AAPL")
        self.new_symbol = self.looked("m-3", "MSFT")
        self.spread = self.looked("m-4", "MSFT", "AAPL", "SPY")
        self.unseen_spread = self.order("m-5", "AAPL", "MSFT")
        seat.do(CloseThesis(thesis_id=self.moved, result="win"))
        self.old_closed = self.looked("m-6", "AAPL")
        self.new_closed = self.looked("m-7", "MSFT")
        closed = seat.do(OpenThesis(text="Long NVDA.", symbol="NVDA")).id
        seat.do(CloseThesis(thesis_id=closed, result="loss"))
        self.shown_closed = self.looked("n-1", "NVDA", thesis=closed)
        self.anew = seat.do(OpenThesis(text="NVDA anew.", symbol="NVDA")).id
        self.shown_old = self.looked("n-2", "NVDA", thesis=closed)
        self.shown_new = self.looked("n-3", "NVDA", thesis=self.anew)

    def looked(self, call: str, *symbols: str, thesis: str | None = None) -> str:
        self.seat.get(thesis or self.moved, self.seat.caller(call=call))
        return self.order(call, *symbols)

    def order(self, call: str, *symbols: str) -> str:
        legs = [{"symbol": symbol, "side": "sell", "quantity": "1"} for symbol in symbols]
        terms: dict[str, Any] = legs[0] if len(legs) == 1 else {"legs": legs}
        intent = IntendOrder(operation="submit", reason=REASON, evidence={"spread": "0.01"}, **terms)
        return str(self.seat.do(intent, call=call).id)


class Gated:
    """A desk whose theses and lessons wait: one is let in, in other words later, one is rejected, one still waits."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.do(ReportPositions(positions=[{"symbol": "AAPL", "quantity": "10"}]))
        thesis = seat.do(OpenThesis(text="Long AAPL.", symbol="AAPL")).id
        refused = seat.do(OpenThesis(text="Short AAPL.", symbol="AAPL")).id
        seat.do(OpenThesis(text="Flat AAPL.", symbol="AAPL"))
        self.thesis = thesis
        self.waiting = self.order("1", thesis)
        self.reject(refused)
        self.decide(Approve(memory_id=thesis, shown=self.shown(thesis)))
        self.approved = self.order("2", thesis)
        self.of_refused = self.order("3", refused)
        seat.do(UpdateThesis(thesis_id=thesis, text="Longer AAPL."))
        self.update_waits = self.order("4", thesis)
        self.reject(thesis)
        self.update_refused = self.order("5", thesis)
        seat.do(UpdateThesis(thesis_id=thesis, text="Longest AAPL.", symbol="MSFT"))
        self.decide(Approve(memory_id=thesis, shown=self.shown(thesis), text="As long as it holds."))
        self.moved_away = self.order("6", thesis)
        self.moved_to = self.order("7", thesis, "MSFT")
        kept = seat.do(ProposeLesson(text="Look before.", symbol="AAPL")).id
        self.decide(Approve(memory_id=kept, shown=self.shown(kept)))
        self.reject(seat.do(ProposeLesson(text="Never look.", symbol="AAPL")).id)
        seat.do(ProposeLesson(text="Look twice.", symbol="AAPL"))
        self.lesson = kept

    def decide(self, command: Command) -> None:
        self.seat.book.execute(Caller("rita", "reviewer", "ses-r", "review", reviewer=True), command)

    def reject(self, memory_id: str) -> None:
        self.decide(Reject(memory_id=memory_id, shown=self.shown(memory_id), reason="no"))

    def shown(self, memory_id: str) -> str:
        return self.seat.book.review_item(memory_id).shown_sha256

    def order(self, call: str, thesis: str, symbol: str = "AAPL") -> str:
        """An order after a look at a thesis, which its author may read while it waits."""
        self.seat.get(thesis, self.seat.caller(call=call))
        intent = IntendOrder(operation="submit", reason=REASON, symbol=symbol, side="sell", quantity="1")
        name = str(self.seat.do(intent, call=call).id)
        for certainty in ("acknowledged", "filled"):
            filled = {"filled_quantity": "1", "average_price": "187.35"} if certainty == "filled" else {}
            self.seat.do(RecordOutcome(action_id=name, certainty=certainty, **filled))
        return name


@pytest.fixture
def gated(open_seat: Callable[..., Seat], tmp_path: Path) -> Gated:
    gated = Gated(open_seat(policy=Policy(gates={"thesis": "review", "lesson": "review"})))
    _export(gated.seat, tmp_path)
    return gated


@pytest.fixture
def story(seat: Seat, tmp_path: Path) -> Story:
    story = Story(seat)
    _export(seat, tmp_path)
    return story


@pytest.fixture
def turns(seat: Seat, tmp_path: Path) -> Turns:
    turns = Turns(seat)
    _export(seat, tmp_path)
    return turns


def _export(seat: Seat, root: Path) -> None:
    bring_up_to_date(root, seat.path, seat.book.snapshot)
    trace = "model_call_id,model,cost_usd\nc-1,large,0.12\nc-2,small,0.01\n"
    (seat.path.parent / "trace.csv").write_text(trace, encoding="utf-8")


@pytest.fixture
def answers(story: Story, documents: dict[str, Any]) -> Answers:
    return _ask(documents["docs/queries.md"].text, story.seat.path.parent)


def _ask(page: str, folder: Path) -> Answers:
    """Columns and rows that each block gives, by its heading, and by it again for a second block."""
    found: Answers = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for heading, block in _blocks(page):
            placed = re.sub(r"'(exports/|trace)", f"'{folder}/\\1", block)
            relation = connection.execute(placed)
            name = heading if heading not in found else f"{heading} (2)"
            found[name] = [column[0] for column in relation.description], relation.fetchall()
    return found


def _blocks(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [
        (heading, block)
        for heading, body in pairs
        for block in re.findall(r"^```sql\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
    ]


def test_every_answer_has_the_columns_that_the_page_names(
    answers: Answers, documents: dict[str, Any], codes: Callable[[str], list[str]]
) -> None:
    told = re.findall(
        r"^Answer: (.+?)\.(?:\s|$)", documents["docs/queries.md"].text, re.MULTILINE | re.DOTALL
    )
    assert [codes(each) for each in told] == [columns for columns, _ in answers.values()]
    assert len(answers) == len(documents["docs/queries.md"].blocks("sql")) == 9


def test_the_answers_are_right(answers: Answers, story: Story) -> None:
    def rows(question: str) -> list[tuple[Any, ...]]:
        return answers[question][1]

    bought, added, trimmed, after = story.orders
    why = rows("Why did the agent trade?")
    assert [row[1:5] for row in why] == [
        ("submit", "buy", Decimal(10), "AAPL"),
        ("submit", "buy", Decimal(5), "AAPL"),
        ("submit", "sell", Decimal(3), "AAPL"),
        ("submit", "sell", Decimal(12), "AAPL"),
    ]
    assert why[0][5:] == (
        REASON, "Buy AAPL.", "Longer AAPL.", "filled", "filled", Decimal(10), Decimal("187.35")
    )  # fmt: skip
    assert [row[7] for row in why[1:]] == [None] * 3

    evidence = rows("Which evidence did it preserve?")
    assert evidence[0] == (
        bought, '{"spread":"0.01"}', '{"close":"187.30"}', "AAPL", "AAPL", [story.thesis]
    )  # fmt: skip
    assert [row[3] for row in evidence[1:]] == [None] * 3

    assert rows(OPEN) == [
        (bought, "AAPL", story.thesis, "Long AAPL."),
        (added, "AAPL", story.thesis, "Longer AAPL."),
        (trimmed, "AAPL", story.thesis, "Longer AAPL."),
    ]
    lessons = rows("Which lesson came after the outcome?")
    assert [(row[0], row[2], row[4]) for row in lessons] == [
        (order, story.lesson, "Look before adding.") for order in story.orders
    ]
    assert all(row[5] > 0 for row in lessons)
    assert rows("Did it search before acting?") == [
        (bought, "AAPL", story.retrieval, "AAPL", True),
        (added, "AAPL", None, None, False),
        (trimmed, "AAPL", None, None, False),
        (after, "AAPL", None, None, False),
    ]
    assert rows(SEEN) == [
        (added, "AAPL", Decimal(10), False),
        (trimmed, "AAPL", Decimal(10), True),
        (after, "AAPL", Decimal(10), False),
    ]
    assert rows("Joined to the host's own trace") == [
        ("c-1", "large", 0.12, story.retrieval, "AAPL", bought, "AAPL", "filled"),
        ("c-2", "small", 0.01, None, None, added, "AAPL", "filled"),
    ]
    (searched,) = rows("Joined to the host's own trace (2)")
    assert searched[0] == story.retrieval
    assert story.thesis in searched[5]
    assert rows("One moment for all tables") == [(story.seat.book.head().sequence, 4)]


def test_a_thesis_is_what_its_last_entry_before_the_order_made_it(
    turns: Turns, documents: dict[str, Any]
) -> None:
    columns, rows = _ask(documents["docs/queries.md"].text, turns.seat.path.parent)[OPEN]
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [(row["action_id"], row["thesis_id"], row["worded"]) for row in found] == [
        (turns.before, turns.moved, "Long AAPL."),
        (turns.new_symbol, turns.moved, "Really MSFT."),
        (turns.spread, turns.moved, "Really MSFT."),
        (turns.unseen_spread, turns.moved, "Really MSFT."),
        (turns.shown_old, turns.anew, "NVDA anew."),
        (turns.shown_new, turns.anew, "NVDA anew."),
    ]
    assert [row["symbol"] for row in found] == ["AAPL", "MSFT", "MSFT", "MSFT", "NVDA", "NVDA"]


def test_only_a_thesis_open_on_the_instrument_at_the_time_counts_as_seen(
    turns: Turns, documents: dict[str, Any]
) -> None:
    _, rows = _ask(documents["docs/queries.md"].text, turns.seat.path.parent)[SEEN]
    assert rows == [
        (turns.before, "AAPL", Decimal(10), True),
        (turns.old_symbol, "AAPL", Decimal(10), False),
        (turns.new_symbol, "MSFT", Decimal(10), True),
        (turns.spread, "AAPL", Decimal(10), False),
        (turns.spread, "MSFT", Decimal(10), True),
        (turns.unseen_spread, "AAPL", Decimal(10), False),
        (turns.unseen_spread, "MSFT", Decimal(10), False),
        (turns.old_closed, "AAPL", Decimal(10), False),
        (turns.new_closed, "MSFT", Decimal(10), False),
        (turns.shown_closed, "NVDA", Decimal(10), False),
        (turns.shown_old, "NVDA", Decimal(10), False),
        (turns.shown_new, "NVDA", Decimal(10), True),
    ]


def test_what_waits_or_was_rejected_is_no_thesis_of_the_time_and_no_lesson(
    gated: Gated, documents: dict[str, Any]
) -> None:
    answers = _ask(documents["docs/queries.md"].text, gated.seat.path.parent)
    assert [(row[0], row[1], row[3]) for row in answers[OPEN][1]] == [
        (gated.approved, "AAPL", "Long AAPL."),
        (gated.of_refused, "AAPL", "Long AAPL."),
        (gated.update_waits, "AAPL", "Long AAPL."),
        (gated.update_refused, "AAPL", "Long AAPL."),
        (gated.moved_to, "MSFT", "As long as it holds."),
    ]
    assert [(row[0], row[3]) for row in answers[SEEN][1]] == [
        (gated.waiting, False),
        (gated.approved, True),
        (gated.of_refused, False),
        (gated.update_waits, True),
        (gated.update_refused, True),
        (gated.moved_away, False),
    ]
    assert {row[2] for row in answers["Which lesson came after the outcome?"][1]} == {gated.lesson}
