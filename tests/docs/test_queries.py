"""Every query of docs/queries.md is run by DuckDB against the exports of a desk whose right answers are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from store.commands import (
    CloseThesis,
    Decide,
    IntendOrder,
    OpenThesis,
    ProposeLesson,
    RecordOutcome,
    ReportPositions,
    UpdateThesis,
)
from store.export.exporter import bring_up_to_date

if TYPE_CHECKING:
    from conftest import Seat

REASON = "Dated evidence, sizing, risks and what would prove it wrong, all of it in some detail here. " * 3
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


@pytest.fixture
def story(seat: Seat, tmp_path: Path) -> Story:
    story = Story(seat)
    bring_up_to_date(tmp_path, seat.path, seat.book.snapshot)
    trace = "model_call_id,model,cost_usd\nc-1,large,0.12\nc-2,small,0.01\n"
    (seat.path.parent / "trace.csv").write_text(trace, encoding="utf-8")
    return story


@pytest.fixture
def answers(story: Story, documents: dict[str, Any]) -> Answers:
    """Columns and rows that each block gives, by its heading, and by it again for a second block."""
    page = documents["docs/queries.md"]
    found: Answers = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for heading, block in _blocks(page.text):
            placed = re.sub(r"'(exports/|trace)", f"'{story.seat.path.parent}/\\1", block)
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

    assert rows("Which thesis was open at the time?") == [
        (bought, story.thesis, "Long AAPL."),
        (added, story.thesis, "Longer AAPL."),
        (trimmed, story.thesis, "Longer AAPL."),
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
    assert rows("Did it see the thesis before it changed a held position?") == [
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
