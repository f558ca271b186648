"""Orders, theses and positions in any order of calls, held against a plain model made of dicts.

The model knows the two rules that matter: which answer may follow which, and that an observation is judged by what
was observed before, while a claim is judged by everything that was said. P117, P121, P125.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from store import Book, Caller
from store import commands as say
from store.audit import verify
from store.errors import AlreadyClosed, Conflict, DeskbookError, IllegalTransition, InvalidInput
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store import Written

REASON = "AAPL closed above its 50 day mean on 2026-03-02; half a position, out below 181.20. " * 3
SYMBOLS = ("AAPL", "MSFT", "BTC/USD")
PROJECTIONS = "versions retrievals deliveries sessions flags intents holdings warnings clock".split()
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
TRADERS = ("ann", "bob")
HARNESS = "broker-link"

agents = st.sampled_from(TRADERS)
writers = st.sampled_from((*TRADERS, HARNESS))
symbols = st.sampled_from(SYMBOLS)
quantities = st.sampled_from(("1", "2", "5"))
fills = st.tuples(
    writers, st.sampled_from(sorted(FILLS["open"])), st.sampled_from((None, "1", "2", "5", "9"))
)
answers = st.tuples(writers, st.sampled_from(sorted(ANSWERS.keys() - {"intent"})), st.none())
outcomes = st.one_of(answers, fills)


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
        if observer and not self.said[-1][2]:
            seen = [quantity for _, quantity, observed in self.said if observed and quantity]
            return seen[-1] if seen else None
        standing: str | None = None
        for at, (_, quantity, observed) in enumerate(self.said):
            if observed and at and not self.said[at - 1][2]:
                standing = None  # an observation drops what was only claimed
            standing = quantity or standing
        return standing

    def repeats(self, status: str, quantity: str | None, observer: bool) -> bool:
        last = self.said[-1] if self.said else ("", None, False)
        return last[:2] == (status, quantity) and (last[2] or not observer)


class OrderMachine(RuleBasedStateMachine):
    actions = Bundle("actions")
    theses = Bundle("theses")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="orders"))
        self.book = Book.open(self.root, "default", durability="normal")
        self.path = ledger_path(self.root, "default", None)
        self.reader = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        self.model: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, Track] = {}
        self.by_client_id: dict[str, str] = {}
        self.thesis: dict[str, str] = {}
        self.held: dict[str, str] = {}
        self.keys: dict[str, tuple[str, Any, Written]] = {}
        self.submitted: set[str] = set()

    def teardown(self) -> None:
        before = self._rows()
        self.book.rebuild(lambda _: None)
        assert self._rows() == before
        self.reader.close()
        self.book.close()
        assert verify(self.path, "default", None).findings == ()
        shutil.rmtree(self.root)

    @rule(target=theses, symbol=symbols, agent=agents)
    def open_a_thesis(self, symbol: str, agent: str) -> Any:
        written = self._do(
            agent, say.OpenThesis(text=f"A thesis on {symbol}.", symbol=symbol, direction="long")
        )
        self.thesis[written.id] = "open"
        return written.id

    @rule(thesis=theses, agent=agents)
    def update_a_thesis(self, thesis: str, agent: str) -> None:
        with self._refused(AlreadyClosed if self.thesis[thesis] == "closed" else None):
            self._do(agent, say.UpdateThesis(thesis_id=thesis, text="Better said."))

    @rule(thesis=theses, agent=agents, result=st.sampled_from(("win", "loss")))
    def close_a_thesis(self, thesis: str, agent: str, result: str) -> None:
        closed = self.thesis[thesis] == "closed"
        same = closed and self.model[thesis]["result"] == result
        with self._refused(AlreadyClosed if closed and not same else None):
            self._do(agent, say.CloseThesis(thesis_id=thesis, result=result))
        if not closed:
            self.thesis[thesis] = "closed"
            self.model[thesis] = {"result": result}

    @rule(
        target=actions,
        symbol=symbols,
        quantity=quantities,
        agent=agents,
        own_id=st.sampled_from((None, "order-1", "order-2")),
        legs=st.booleans(),
    )
    def submit(self, symbol: str, quantity: str, agent: str, own_id: str | None, legs: bool) -> Any:
        name = self._submit(symbol, quantity, agent, own_id, legs=legs)
        return multiple() if name is None else name

    def _submit(self, symbol: str, quantity: str, agent: str, own_id: str | None, *, legs: bool) -> Any:
        named = [{"symbol": name, "side": "buy", "quantity": quantity} for name in (symbol, "TSLA")]
        one = {"symbol": symbol, "side": "buy", "quantity": quantity}
        ordered: dict[str, Any] = {"legs": named} if legs else one
        command = say.IntendOrder(operation="submit", reason=REASON, client_order_id=own_id, **ordered)
        terms = (symbol, quantity, legs)
        first = self.by_client_id.get(own_id or "")
        with self._refused(Conflict if first and self.model[first]["terms"] != terms else None) as refused:
            written = self._do(agent, command)
        if refused:
            return None
        if first is not None:
            assert written.id == first
            assert "no new order" in written.warnings[-1]
            risky = self.model[first]["track"].status in ("intent", "unknown")
            assert written.warnings[-1].startswith("duplicate_order_risk") == risky
            return first
        touches = {symbol, "TSLA"} if legs else {symbol}
        self._intended(written, "submit", touches, None, None if legs else quantity, terms)
        if own_id is not None:
            self.by_client_id[own_id] = written.id
        return written.id

    @rule(
        target=actions,
        action=actions,
        operation=st.sampled_from(("modify", "cancel")),
        agent=agents,
        quantity=st.sampled_from((None, "2", "9")),
    )
    def follow(self, action: str, operation: str, agent: str, quantity: str | None) -> Any:
        written = self._do(
            agent,
            say.IntendOrder(operation=operation, reason=REASON, previous_action_id=action, quantity=quantity),
        )
        followed = self.model[action]
        submit = followed["submit"] or action
        self._intended(written, operation, followed["touches"], submit, quantity, None)
        assert written.extra["decision_id"] == followed["decision"]
        return written.id

    @initialize(target=actions, who=writers)
    def an_order_at_the_broker(self, who: str) -> Any:
        action = self._submit("AAPL", "5", "ann", None, legs=False)
        self._tell(action, "acknowledged", who, None)
        return action

    @rule(action=actions, told=outcomes)
    def tell_an_outcome(self, action: str, told: tuple[str, str, str | None]) -> None:
        self._tell(action, told[1], told[0], told[2])

    @rule(action=actions, told=st.lists(outcomes, min_size=2, max_size=6))
    def tell_much_of_one_action(self, action: str, told: list[tuple[str, str, str | None]]) -> None:
        for who, certainty, filled in told:
            self._tell(action, certainty, who, filled)

    def _tell(self, action: str, certainty: str, who: str, filled: str | None) -> None:
        command = say.RecordOutcome(action_id=action, certainty=certainty, filled_quantity=filled)
        expected = self._expect(action, certainty, filled, who == HARNESS)
        with self._refused(expected if isinstance(expected, type) else None) as refused:
            self._do(who, command)
        if not refused and expected is not None:
            expected.said.append((certainty, filled, who == HARNESS))
            self._opened(action, certainty, certainty in FILLS["open"])

    @rule(
        who=st.sampled_from(("ann", HARNESS)),
        rows=st.dictionaries(symbols, st.sampled_from(("0", "3", "-2"))),
    )
    def report_positions(self, who: str, rows: dict[str, str]) -> None:
        positions = [{"symbol": symbol, "quantity": quantity} for symbol, quantity in rows.items()]
        positions.append({"symbol": "USD", "quantity": "1000", "asset_type": "cash"})
        written = self._do(who, say.ReportPositions(positions=positions))
        self.held = {symbol: quantity for symbol, quantity in rows.items() if quantity != "0"}
        assert written.extra["held"] == list(self.held)

    @rule(agent=agents, key=st.sampled_from(("key-1", "key-2")), quantity=quantities)
    def submit_under_a_key(self, agent: str, key: str, quantity: str) -> None:
        command = say.IntendOrder(
            operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity=quantity
        )
        known = self.keys.get(agent + key)
        with self._refused(Conflict if known and known[0] != quantity else None) as refused:
            written = self._do(agent, command, key=key)
        if refused:
            return
        if known is None:
            self._intended(written, "submit", {"AAPL"}, None, quantity, None)
            self.keys[agent + key] = (quantity, command, written)
        else:
            assert written == known[2]

    @invariant()
    def every_action_stands_as_the_model_says(self) -> None:
        rows = self.reader.execute("SELECT memory_id, kind, status, details FROM memory_index")
        found = {name: (kind, status, json.loads(details)) for name, kind, status, details in rows}
        for name, status in self.thesis.items():
            assert found[name][:2] == ("thesis", status)
        for name, action in self.model.items():
            if "track" in action:
                kind, status, details = found[name]
                assert (kind, status) == ("order_action", action["track"].status)
                order = self.orders.get(name)
                assert details.get("order", {}).get("status") == (order.status if order else None)
                if order is not None:
                    assert details["order"].get("filled_quantity") == order.filled(observer=False)

    @invariant()
    def what_is_open_and_what_is_held_is_listed(self) -> None:
        open_now = [name for name, action in self.model.items() if self._is_open(action)]
        told = self.book.unreconciled(self._caller("ann"), None, 50).body
        assert told["total"] == len(open_now)
        assert [row["action_id"] for row in told["orders"]] == open_now[:50]
        for symbol in (*SYMBOLS, "TSLA"):
            on_it = [name for name in open_now if symbol in self.model[name]["touches"]]
            assert self.book.unreconciled(self._caller("ann"), symbol, 50).body["total"] == len(on_it)
        with self.book._engine.read() as snapshot:
            holdings = snapshot.holdings(snapshot.head().sequence)
        rows = [] if holdings is None else json.loads(holdings.positions)
        assert {row["symbol"]: row["quantity"] for row in rows} == self.held

    @invariant()
    def an_order_is_opened_once(self) -> None:
        opened = self.book.log(EntryFilter(event_type="order.submitted", limit=1_000))
        assert sorted(json.loads(entry.content)["action_id"] for entry in opened) == sorted(self.submitted)

    def _intended(
        self,
        written: Written,
        operation: str,
        touches: set[str],
        submit: str | None,
        quantity: str | None,
        terms: Any,
    ) -> None:
        risky = {
            symbol
            for symbol in touches
            if any(self._is_open(action) and symbol in action["touches"] for action in self.model.values())
        }
        warned = {line.split()[1] for line in written.warnings if line.startswith("duplicate_order_risk")}
        assert warned == risky
        self.model[written.id] = {
            "operation": operation,
            "track": Track("intent"),
            "touches": touches,
            "submit": submit,
            "quantity": quantity,
            "terms": terms,
            "decision": written.extra["decision_id"],
        }

    def _expect(self, action: str, certainty: str, filled: str | None, observer: bool) -> Any:
        """The track that takes the outcome, the error that refuses it, or None where it says nothing new."""
        model = self.model[action]
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

    def _opened(self, action: str, certainty: str, is_fill: bool) -> None:
        if is_fill or self.model[action]["operation"] != "submit":
            return
        if certainty == "acknowledged":
            self.orders.setdefault(action, Track("open"))
            self.submitted.add(action)
        else:
            self.orders.pop(action, None)

    def _whole(self, submit: str) -> Decimal | None:
        ordered = self.model[submit]["quantity"]
        if ordered is None:
            return None
        changes = [
            action["quantity"]
            for action in self.model.values()
            if action.get("submit") == submit
            and action["quantity"]
            and action["track"].status not in ("rejected", "not_sent")
        ]
        return max(map(Decimal, (ordered, *changes)))

    @staticmethod
    def _is_open(action: dict[str, Any]) -> bool:
        return "track" in action and action["track"].status in ("intent", "unknown")

    def _caller(self, agent: str) -> Caller:
        profile = "harness" if agent == HARNESS else "solo"
        return Caller(agent, profile, f"ses-{agent}", "tool", observer=agent == HARNESS)

    def _do(self, agent: str, command: Any, key: str | None = None) -> Written:
        return self.book.execute(self._caller(agent), command, idempotency_key=key)

    @contextmanager
    def _refused(self, expected: type[DeskbookError] | None) -> Iterator[list[DeskbookError]]:
        """What is expected to be refused is, and leaves nothing."""
        found: list[DeskbookError] = []
        if expected is None:
            yield found
            return
        before = self.book.head().sequence
        with pytest.raises(expected) as fault:
            yield found
        found.append(fault.value)
        assert fault.value.stored == "no"
        assert self.book.head().sequence == before

    def _rows(self) -> dict[str, list[Any]]:
        return {
            name: sorted(map(repr, self.reader.execute(f"SELECT * FROM memory_{name}")))
            for name in PROJECTIONS
        }


OrderMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestOrdersAndThesesFollowTheModel = OrderMachine.TestCase
