"""Every engine: what is open, held, warned of and was shown is read at a cut as it stood after that entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import pytest

from store import Caller
from store.events import (
    DecisionRecorded,
    Delivered,
    Event,
    OrderIntended,
    OrderOutcome,
    Position,
    PositionsReported,
    Retrieved,
    Selected,
    ThesisClosed,
    ThesisOpened,
    ThesisUpdated,
    Warned,
)
from store.ledger import Draft

GUARD = 30.0
ANN = Caller("ann", "trader", "ses-1", "tool", model_call_id="call-1")
BOB = Caller("bob", "trader", "ses-2", "tool")


def intent(operation: str = "submit", **named: Any) -> OrderIntended:
    hidden = {"text": "why", "decision_id": "dec_0", "reason_salt": "00", "reason_sha256": "11"}
    return OrderIntended(**hidden | {"operation": operation} | named)


def outcome(certainty: str, previous: str = "intent", **named: Any) -> OrderOutcome:
    return OrderOutcome(certainty=certainty, previous=previous, standing="claim", **named)


def report(*symbols: str) -> PositionsReported:
    held = tuple(Position(symbol=symbol, quantity="1") for symbol in symbols)
    return PositionsReported(standing="observed", positions=held)


def invalidated(thesis_id: str) -> Warned:
    return Warned(code="thesis_invalidation_reached", message="reached", symbol="AAPL", related=(thesis_id,))


@dataclass
class Story:
    """What was written, entry by entry: each step's name and the sequence it got."""

    crew: Any
    steps: dict[str, int] = field(default_factory=dict)

    def tell(
        self, step: str, event: Event, subject: str, kind: str | None = None, symbol: str | None = None,
        who: Caller = ANN, retrieval_id: str | None = None,
    ) -> None:  # fmt: skip
        draft = Draft(event, "memory" if kind else subject, subject, kind, symbol, retrieval_id=retrieval_id)
        job: Callable[[Any], Any] = lambda transaction: self.crew.ledger.append(transaction, who, [draft])  # noqa: E731
        self.steps[step] = self.crew.engine.write(job, timeout=GUARD)[-1].sequence

    def act(self, step: str, name: str, event: Event, symbol: str | None = "AAPL", who: Caller = ANN) -> None:
        self.tell(step, event, name, "order_action", symbol, who)

    def thesis(self, step: str, event: Event) -> None:
        self.tell(step, event, "ths_1", "thesis", "AAPL")


@pytest.fixture
def story(crew: Any) -> Story:
    """Orders of two agents on two instruments, what became of them, two reports and warnings on one thesis."""
    told = Story(crew)
    told.thesis("opened", ThesisOpened(text="long", invalidation="205"))
    told.act("first", "act_1", intent(touches=("AAPL",), client_order_id="c-1", thesis_id="ths_1"))
    told.tell(
        "decided", DecisionRecorded(text="buy", action="buy", thesis_id="ths_1"), "dec_1", "decision", "AAPL"
    )
    again = intent(touches=("AAPL", "IBM"), client_order_id="c-1", decision_id="dec_1")
    told.act("second", "act_2", again, None, BOB)
    told.act("timed out", "act_1", outcome("unknown"))
    told.tell("held one", report("AAPL"), "positions", who=BOB)
    change = intent("modify", touches=("AAPL",), previous_action_id="act_1", submit_action_id="act_1")
    told.act("changed", "act_3", change)
    told.act("arrived", "act_1", outcome("acknowledged", "unknown", order_status="open"))
    told.thesis("warned", invalidated("ths_1"))
    told.tell("held two", report("IBM", "AAPL"), "positions", who=BOB)
    told.thesis("reworded", ThesisUpdated(text="still long"))
    told.thesis("warned again", invalidated("ths_1"))
    risk = Warned(code="duplicate_order_risk", message="twice", symbol="IBM", action_id="act_2")
    told.act("risk", "act_2", risk, "IBM", BOB)
    told.act("kept back", "act_2", outcome("not_sent"), None, BOB)
    told.act("filled", "act_1", outcome("filled", "open", order_status="filled"))
    told.thesis("closed", ThesisClosed(result="win"))
    return told


# From which step on what is read so; before the first of them the reading is empty.
UNRECONCILED = {
    None: {
        "first": ["act_1"],
        "second": ["act_1", "act_2"],
        "changed": ["act_1", "act_2", "act_3"],
        "arrived": ["act_2", "act_3"],
        "kept back": ["act_3"],
    },
    ("AAPL",): {
        "first": ["act_1"],
        "second": ["act_1", "act_2"],
        "changed": ["act_1", "act_2", "act_3"],
        "arrived": ["act_2", "act_3"],
        "kept back": ["act_3"],
    },
    ("IBM",): {"second": ["act_2"], "kept back": []},
    ("IBM", "AAPL"): {
        "first": ["act_1"],
        "second": ["act_1", "act_2"],
        "changed": ["act_1", "act_2", "act_3"],
        "arrived": ["act_2", "act_3"],
        "kept back": ["act_3"],
    },
    ("MSFT",): {},
    (): {},
}
HOLDINGS = {"held one": ["AAPL"], "held two": ["IBM", "AAPL"]}
CAUTIONS = {"warned": ["warned"], "reworded": [], "warned again": ["warned again"], "closed": []}
SUBMITS = {"first": "act_1"}
ACTING_ON = {
    "ths_1": {"first": {"act_1"}, "decided": {"act_1", "dec_1"}},
    "dec_1": {"second": {"act_2"}},
    "dec_0": {"first": {"act_1"}, "changed": {"act_1", "act_3"}},
    "act_1": {"changed": {"act_3"}},
    "act_none": {},
}
LAST_INTENT = {
    ("ann", None): {"first": "first", "changed": "changed"},
    ("ann", ("AAPL",)): {"first": "first", "changed": "changed"},
    ("ann", ("IBM",)): {},
    ("bob", ("IBM",)): {"second": "second"},
    ("bob", ("MSFT", "AAPL")): {"second": "second"},
    ("ann", ()): {},
    ("eve", None): {},
}


def at(told: Story, cut: int, changes: dict[str, Any], before: Any) -> Any:
    """What a table of changes says of a cut."""
    reached = [value for step, value in changes.items() if told.steps[step] <= cut]
    return reached[-1] if reached else before


def every_cut(told: Story) -> range:
    return range(max(told.steps.values()) + 2)


@pytest.mark.parametrize("symbols", UNRECONCILED, ids=str)
def test_open_actions_are_those_that_were_open_then_oldest_first(
    story: Story, symbols: tuple[str, ...] | None
) -> None:
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            wanted = at(story, cut, UNRECONCILED[symbols], [])
            found = snapshot.unreconciled(symbols, cut, limit=9)
            assert [action.memory_id for action in found] == wanted, f"at sequence {cut}"
            assert {action.status for action in found} <= {"intent", "unknown"}
            assert snapshot.count_unreconciled(symbols, cut) == len(wanted)
            assert snapshot.unreconciled(symbols, cut, limit=1) == found[:1]


def test_open_orders_are_those_that_worked_then(story: Story) -> None:
    with story.crew.engine.read() as snapshot:
        for symbols, cut in product(UNRECONCILED, every_cut(story)):
            works = {"arrived": 1, "filled": 0} if symbols is None or "AAPL" in symbols else {}
            found = [submit.memory_id for submit in snapshot.open_orders(symbols, cut, limit=9)]
            assert found == ["act_1"] * at(story, cut, works, 0)
            assert snapshot.count_open_orders(symbols, cut) == len(found)


def test_the_changes_of_an_order_are_the_modifies_acknowledged_by_then(story: Story) -> None:
    story.act("again", "act_4", intent("modify", submit_action_id="act_1"))
    story.act("one", "act_4", outcome("acknowledged"))
    story.act("both", "act_3", outcome("acknowledged"))
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            found = [change.memory_id for change in snapshot.changes_of(("act_1", "act_2"), cut)]
            assert found == at(story, cut, {"one": ["act_4"], "both": ["act_4", "act_3"]}, [])


def test_an_open_action_shows_the_status_it_had_at_the_cut(story: Story) -> None:
    with story.crew.engine.read() as snapshot:
        for step, status in (("first", "intent"), ("timed out", "unknown"), ("changed", "unknown")):
            found = {a.memory_id: a for a in snapshot.unreconciled(None, story.steps[step], limit=9)}
            assert found["act_1"].status == status


def test_holdings_are_those_of_the_latest_report_up_to_the_cut(story: Story) -> None:
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            found = snapshot.holdings(cut)
            wanted = at(story, cut, HOLDINGS, None)
            assert (found is None) == (wanted is None), f"at sequence {cut}"
            if found is not None:
                entry = snapshot.entry(found.sequence)
                assert found.sequence == max(story.steps[s] for s in HOLDINGS if story.steps[s] <= cut)
                assert [found.positions.count(symbol) for symbol in wanted] == [1] * len(wanted)
                assert (found.event_id, found.agent, found.standing, found.effective_at) == (
                    entry.event_id, "bob", "observed", entry.effective_at,
                )  # fmt: skip


def test_warnings_stand_until_their_thesis_is_reworded_or_closed_and_others_are_none(story: Story) -> None:
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            wanted = [story.steps[step] for step in at(story, cut, CAUTIONS, [])]
            found = snapshot.cautions(cut, limit=9)
            assert [caution.sequence for caution in found] == wanted, f"at sequence {cut}"
            assert {(c.code, c.subject_id, c.symbol, c.agent, c.message) for c in found} <= {
                ("thesis_invalidation_reached", "ths_1", "AAPL", "ann", "reached")
            }


def test_warnings_come_newest_first_and_no_more_than_asked_for(story: Story) -> None:
    for number in (2, 3):
        name = f"ths_{number}"
        story.tell(f"open {number}", ThesisOpened(text="short"), name, "thesis", "IBM")
        story.tell(f"warn {number}", invalidated(name), name, "thesis", "IBM")
    with story.crew.engine.read() as snapshot:
        cut = story.steps["warn 3"]
        assert [caution.subject_id for caution in snapshot.cautions(cut, limit=9)] == ["ths_3", "ths_2"]
        assert [caution.subject_id for caution in snapshot.cautions(cut, limit=1)] == ["ths_3"]


def test_a_client_order_id_names_its_first_submit_and_no_modify(story: Story) -> None:
    early = intent("modify", touches=("AAPL",), client_order_id="c-2", previous_action_id="act_1")
    story.act("modified", "act_4", early)
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            assert snapshot.submit_of("c-1", cut) == at(story, cut, SUBMITS, None), f"at sequence {cut}"
            assert snapshot.submit_of("c-2", cut) is None
            assert snapshot.submit_of("c-", cut) is None


@pytest.mark.parametrize("name", ACTING_ON)
def test_what_acts_on_a_memory_names_it_as_its_decision_thesis_or_action(story: Story, name: str) -> None:
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            found = snapshot.acting_on(name, cut)
            assert len(found) == len(set(found))
            assert set(found) == at(story, cut, ACTING_ON[name], set()), f"at sequence {cut}"


@pytest.mark.parametrize(("agent", "symbols"), LAST_INTENT, ids=str)
def test_the_last_action_of_an_agent_on_any_of_the_instruments(
    story: Story, agent: str, symbols: tuple[str, ...] | None
) -> None:
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            step = at(story, cut, LAST_INTENT[agent, symbols], None)
            wanted = 0 if step is None else story.steps[step]
            assert snapshot.last_intent(agent, symbols, cut) == wanted, f"at sequence {cut}"


def test_the_decision_of_a_model_call_is_the_agents_own_and_latest(story: Story) -> None:
    def found(agent: str, call: str) -> str | None:
        with story.crew.engine.read() as snapshot:
            return snapshot.decision_in_call(agent, call)

    assert found("ann", "call-1") == "dec_1"
    assert found("ann", "call-2") is None
    assert found("bob", "call-1") is None
    hold = DecisionRecorded(text="hold", action="hold")
    story.tell("second decision", hold, "dec_2", "decision", None, ANN)
    story.tell("another's", hold, "dec_3", "decision", None, replace(BOB, model_call_id="call-1"))
    story.tell("another call's", hold, "dec_4", "decision", None, replace(ANN, model_call_id="call-2"))
    assert found("ann", "call-1") == "dec_2"
    assert found("bob", "call-1") == "dec_3"
    assert found("ann", "call-2") == "dec_4"


def test_all_an_agent_left_in_a_model_call_is_read_in_order_up_to_the_cut(story: Story) -> None:
    story.tell("elsewhere", report(), "positions", who=replace(ANN, model_call_id="call-2"))
    story.tell("not ann", report(), "positions", who=replace(BOB, model_call_id="call-1"))
    with story.crew.engine.read() as snapshot:
        for cut in every_cut(story):
            found = [entry.sequence for entry in snapshot.around("ann", "call-1", cut)]
            told = [snapshot.entry(sequence) for sequence in range(1, cut + 1)]
            mine = [e.sequence for e in told if e and (e.agent, e.model_call_id) == ("ann", "call-1")]
            assert found == mine, f"at sequence {cut}"
        assert len(found) > 10
        assert [e.sequence for e in snapshot.around("ann", "call-2", cut)] == [story.steps["elsewhere"]]


def search(name: str, *ids: str) -> Retrieved:
    shown = tuple(Selected(id=one, version=1) for one in ids)
    return Retrieved(
        query=name,
        mode="terms",
        filters={},
        cut=1,
        total=len(ids),
        candidates=(),
        selected=shown,
        rendered="",
    )


def showing(*ids: str) -> Delivered:
    return Delivered(surface="state", cut=1, shown=tuple(Selected(id=one, version=1) for one in ids))


@pytest.fixture
def seen(crew: Any) -> Story:
    """Searches and showings of two agents, in several sessions and model calls, with two acts between them."""
    told = Story(crew)
    other_call, other_session = replace(ANN, model_call_id="call-2"), replace(ANN, session_id="ses-9")
    told.tell("search", search("a", "mem_1", "mem_2"), "ret_1", retrieval_id="ret_1")
    told.tell("state", showing("mem_2", "ths_1"), "state")
    told.tell("nothing", search("z"), "ret_2", retrieval_id="ret_2")
    told.tell("other call", search("b", "mem_3"), "ret_3", who=other_call, retrieval_id="ret_3")
    told.tell("other session", showing("mem_4"), "state", who=other_session)
    told.tell("bob's", showing("mem_5"), "state", who=BOB)
    told.act("acted", "act_1", intent(touches=("AAPL",)))
    told.tell("after", search("c", "mem_6", "mem_1"), "ret_4", retrieval_id="ret_4")
    told.tell("state after", showing("mem_2"), "state")
    told.tell("decided", DecisionRecorded(text="hold", action="hold"), "dec_1", "decision", "AAPL")
    told.tell("last", showing("mem_7"), "state")
    return told


def test_what_an_agent_was_shown_is_bounded_to_call_or_session_and_names_the_latest_showing(
    seen: Story,
) -> None:
    steps = seen.steps
    with seen.crew.engine.read() as snapshot:
        in_call = snapshot.shown("ann", "call-1", None, 0)
        assert in_call == {
            "mem_7": steps["last"], "mem_2": steps["state after"], "mem_6": steps["after"],
            "mem_1": steps["after"], "mem_4": steps["other session"], "ths_1": steps["state"],
        }  # fmt: skip
        assert list(in_call.values()) == sorted(in_call.values(), reverse=True), "newest first"
        assert snapshot.shown("ann", "call-2", None, 0) == {"mem_3": steps["other call"]}
        in_session = snapshot.shown("ann", None, "ses-1", 0)
        assert in_session == {n: s for n, s in in_call.items() if n != "mem_4"} | {
            "mem_3": steps["other call"]
        }
        anywhere = snapshot.shown("ann", None, None, 0)
        assert anywhere == in_call | in_session
        assert snapshot.shown("bob", None, None, 0) == {"mem_5": steps["bob's"]}
        assert snapshot.shown("eve", None, None, 0) == {}


def test_what_an_agent_was_shown_counts_only_after_the_sequence_given(seen: Story) -> None:
    with seen.crew.engine.read() as snapshot:
        everything = snapshot.shown("ann", None, "ses-1", 0)
        for after in range(max(seen.steps.values()) + 1):
            # A memory shown twice is there as long as its latest showing lies after.
            wanted = {name: sequence for name, sequence in everything.items() if sequence > after}
            assert snapshot.shown("ann", None, "ses-1", after) == wanted, f"after sequence {after}"


def test_showings_before_an_act_are_those_of_the_session_since_the_act_before_newest_first(
    seen: Story,
) -> None:
    def steps_before(step: str, limit: int = 9, session: str = "ses-1", agent: str = "ann") -> list[str]:
        names = {sequence: name for name, sequence in seen.steps.items()}
        with seen.crew.engine.read() as snapshot:
            found = snapshot.showings(agent, session, seen.steps[step], limit=limit)
        return [names[entry.sequence] for entry in found]

    assert steps_before("acted") == ["other call", "nothing", "state", "search"]
    assert steps_before("acted", limit=2) == ["other call", "nothing"]
    assert steps_before("state") == ["search"]
    assert steps_before("search") == []
    assert steps_before("decided") == ["state after", "after"]
    assert steps_before("last") == []
    assert steps_before("acted", session="ses-9") == ["other session"]
    assert steps_before("decided", session="ses-2", agent="bob") == ["bob's"]


def test_a_rebuild_leaves_every_reading_of_orders_as_it_was(story: Story) -> None:
    def everything() -> list[Any]:
        with story.crew.engine.read() as snapshot:
            return [
                (
                    snapshot.holdings(cut), snapshot.cautions(cut, limit=9), snapshot.submit_of("c-1", cut),
                    *(snapshot.unreconciled(symbols, cut, limit=9) for symbols in UNRECONCILED),
                    *snapshot.open_orders(None, cut, limit=5), *(snapshot.last_intent(*w, cut) for w in LAST_INTENT),
                    *(sorted(snapshot.acting_on(name, cut)) for name in ACTING_ON),
                )
                for cut in every_cut(story)
            ]  # fmt: skip

    before = everything()
    story.crew.engine.rebuild(lambda _: None)
    assert everything() == before
