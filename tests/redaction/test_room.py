"""What was redacted takes no room from what lives, waits for nobody, and is said to be redacted where one looks."""

from __future__ import annotations

from typing import Any

import pytest

from store import Caller
from store.clock import DAY
from store.commands import Decide, NoteRisk, OpenThesis, Propose, ProposeLesson, Remember
from store.errors import AlreadyDecided
from store.policy import Policy
from store.redaction.kept import kept_of
from store.review_commands import Approve, Reject, Revise

RITA = Caller("rita", "reviewer", "ses-rita", "review", reviewer=True)
MADE = {
    "memory": lambda number: Remember(text=f"Quorvex note {number}", symbol="AAPL"),
    "proposal": lambda number: Propose(text=f"Quorvex proposal {number}", symbol="AAPL", action="buy"),
    "risk_note": lambda number: NoteRisk(text=f"Quorvex risk {number}", symbol="AAPL"),
    "lesson": lambda number: ProposeLesson(text=f"Quorvex lesson {number}", symbol="AAPL"),
}


@pytest.mark.parametrize("kind", MADE)
def test_redacted_memories_crowd_none_out_of_a_listing(seat: Any, redact: Any, kind: str) -> None:
    living = seat.do(MADE[kind](0)).id
    gone = [seat.do(MADE[kind](number)).id for number in range(1, 7)]
    assert seat.ids(symbol="AAPL", kind=kind, limit=3) == gone[:2:-1]
    redact(*gone)
    assert seat.ids(symbol="AAPL", kind=kind, limit=3) == [living]
    listed = seat.find(symbol="AAPL")
    assert ([hit["id"] for hit in listed["hits"]], listed["total"]) == ([living], 1)
    assert seat.get(gone[0])["memory"]["redacted"] is True
    assert seat.ids(gone[0]) == [gone[0]]


def test_the_state_shows_the_living_and_an_open_thesis_whose_text_went(seat: Any, redact: Any) -> None:
    thesis = seat.do(OpenThesis(text="Quorvex holds", symbol="AAPL", review_by=seat.clock.us + DAY)).id
    lesson = seat.do(ProposeLesson(text="Quorvex teaches", review_by=seat.clock.us + DAY)).id
    living = seat.do(NoteRisk(text="living")).id
    gone = [seat.do(MADE["risk_note"](number)).id for number in range(6)]
    seat.clock.us += 2 * DAY
    before = seat.state()
    assert living not in {note["id"] for note in before["risk_notes"]}
    assert {item["memory_id"] for item in before["reviews_due"]} == {thesis, lesson}
    redact(*gone, lesson, thesis)
    after = seat.state()
    assert [note["id"] for note in after["risk_notes"]] == [living]
    assert (after["counts"]["risk_notes"], after["omitted"]["risk_notes"]) == (1, 0)
    assert [item["id"] for item in after["open_theses"]] == [thesis]
    assert {item["memory_id"] for item in after["reviews_due"]} == {thesis}
    assert not any(name in line for line in after["recent"] for name in (*gone, lesson))


def test_a_decision_and_a_proposal_keep_what_they_were_to_do(seat: Any, redact: Any) -> None:
    decision = seat.do(Decide(text="Quorvex decides", action="reduce", symbol="AAPL")).id
    proposal = seat.do(MADE["proposal"](1)).id
    redact(decision, proposal)
    assert seat.get(decision)["memory"]["details"]["action"] == "reduce"
    assert seat.get(proposal)["memory"]["details"]["action"] == "buy"
    (step,) = (
        step for step in seat.book.explain(decision).body["steps"] if step["event"] == "decision.recorded"
    )
    assert step["what"] == "decision.recorded AAPL: reduce (redacted)"


@pytest.mark.parametrize("event_type", ["decision.recorded", "proposal.recorded"])
@pytest.mark.parametrize(("action", "stays"), [("hold", "hold"), ("Quorvex", None), ("sell quorvex", None)])
def test_an_action_of_no_list_goes(event_type: str, action: str, stays: str | None) -> None:
    content = {"text": "x", "tags": [], "notices": [], "review_state": "none", "action": action}
    assert (kept_of(event_type, content).get("action") or None) == stays


def test_a_search_whose_query_went_is_not_told_as_a_listing(seat: Any, redact: Any) -> None:
    seat.find("Quorvex")
    seat.find("", symbol="AAPL")
    made = seat.do(Decide(text="Quorvex decides", action="buy", symbol="AAPL")).id
    for entry in seat.entries("memory.retrieved"):
        redact(str(entry.sequence))
    told = [step["what"] for step in seat.book.explain(made).body["steps"]]
    assert told[0].startswith('searched for "(redacted)"')
    assert told[1].startswith('searched for "the newest"')


@pytest.fixture
def waits(open_seat: Any) -> Any:
    return open_seat(policy=Policy(gates={"proposal": "review", "thesis": "review"}))


def test_what_waited_and_was_redacted_leaves_the_queue_and_is_not_decided(waits: Any, redact: Any) -> None:
    living = waits.do(MADE["proposal"](0)).id
    gone = waits.do(MADE["proposal"](1)).id
    assert waits.book.review_queue()[0] == 2
    redact(gone)
    total, items = waits.book.review_queue()
    assert (total, [item.version.memory_id for item in items]) == (1, [living])
    shown = waits.book.review_item(gone).shown_sha256
    for command in (
        Approve(memory_id=gone, shown=shown),
        Approve(memory_id=gone, shown=shown, text="other words"),
        Reject(memory_id=gone, shown=shown, reason="no"),
        Revise(memory_id=gone, shown=shown, text="other words"),
    ):
        with pytest.raises(AlreadyDecided, match="its content was redacted"):
            waits.book.execute(RITA, command)


def test_review_log_and_show_say_so(run: Any, noted: tuple[str, int], root: Any) -> None:
    assert run("redact", noted[0], "--reason", "by mistake", "--yes").code == 0
    assert "(redacted)" in run("review", "show", noted[0]).out
    log = run("log").out.splitlines()
    (search,) = (line for line in log if "memory.retrieved" in line)
    assert search.endswith("handed over for: (redacted)")
    (kept,) = (line for line in log if "memory.recorded" in line and noted[0] in line)
    assert kept.endswith("(redacted)")
