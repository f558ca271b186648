"""Orders, theses and positions in any order of calls, held against a plain model made of dicts.

The model knows the two rules that matter: which answer may follow which, and that an observation is judged by what
was observed before, while a claim is judged by everything that was said. P117, P121, P125.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from store import Book, Caller
from store.audit import verify
from store.commands import (
    CloseThesis,
    IntendOrder,
    OpenThesis,
    RecordOutcome,
    ReportPositions,
    UpdateThesis,
)
from store.errors import AlreadyClosed, Conflict, DeskbookError
from store.paths import ledger_path
from store.rows import EntryFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import OrderModel

    from store import Written

REASON = "AAPL closed above its 50 day mean on 2026-03-02; half a position, out below 181.20. " * 3
SYMBOLS = ("AAPL", "MSFT", "BTC/USD")
PROJECTIONS = (
    "versions",
    "retrievals",
    "deliveries",
    "sessions",
    "flags",
    "intents",
    "holdings",
    "warnings",
    "clock",
)
ANSWERS = ("acknowledged", "not_sent", "rejected", "unknown")
FILLS = ("cancelled", "filled", "partially_filled")
TRADERS = ("ann", "bob")
HARNESS = "broker-link"

agents = st.sampled_from(TRADERS)
writers = st.sampled_from((*TRADERS, HARNESS))
symbols = st.sampled_from(SYMBOLS)
quantities = st.sampled_from(("1", "2", "5"))
fills = st.tuples(writers, st.sampled_from(FILLS), st.sampled_from((None, "1", "2", "5", "9")))
answers = st.tuples(writers, st.sampled_from(ANSWERS), st.none())
outcomes = st.one_of(answers, fills)


class OrderMachine(RuleBasedStateMachine):
    actions = Bundle("actions")
    theses = Bundle("theses")

    def __init__(self, model: OrderModel) -> None:
        super().__init__()
        self.model = model
        self.root = Path(tempfile.mkdtemp(prefix="orders"))
        self.book = Book.open(self.root, "default", durability="normal")
        self.path = ledger_path(self.root, "default", None)
        self.reader = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        self.by_client_id: dict[str, str] = {}
        self.thesis: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.held: dict[str, str] = {}
        self.positions_observed = False
        self.keys: dict[str, tuple[str, Any, Written]] = {}

    def teardown(self) -> None:
        before = self._rows()
        self.book.rebuild(lambda _: None)
        assert self._rows() == before
        self.reader.close()
        self.book.close()
        report = verify(self.path, "default", None)
        assert report.findings == ()
        shutil.rmtree(self.root)

    # What callers do.

    @rule(target=theses, symbol=symbols, agent=agents)
    def open_a_thesis(self, symbol: str, agent: str) -> Any:
        written = self._do(agent, OpenThesis(text=f"A thesis on {symbol}.", symbol=symbol, direction="long"))
        self.thesis[written.id] = "open"
        return written.id

    @rule(thesis=theses, agent=agents)
    def update_a_thesis(self, thesis: str, agent: str) -> None:
        with self._refused(AlreadyClosed if self.thesis[thesis] == "closed" else None):
            self._do(agent, UpdateThesis(thesis_id=thesis, text="Better said."))

    @rule(thesis=theses, agent=agents, result=st.sampled_from(("win", "loss")))
    def close_a_thesis(self, thesis: str, agent: str, result: str) -> None:
        closed = self.thesis[thesis] == "closed"
        same = closed and self.results[thesis] == result
        with self._refused(AlreadyClosed if closed and not same else None):
            self._do(agent, CloseThesis(thesis_id=thesis, result=result))
        if not closed:
            self.thesis[thesis] = "closed"
            self.results[thesis] = result

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

    def _submit(
        self, symbol: str, quantity: str, agent: str, own_id: str | None, *, legs: bool
    ) -> str | None:
        named = [{"symbol": name, "side": "buy", "quantity": quantity} for name in (symbol, "TSLA")]
        command = (
            IntendOrder(operation="submit", reason=REASON, legs=named, client_order_id=own_id)
            if legs
            else IntendOrder(
                operation="submit",
                reason=REASON,
                symbol=symbol,
                side="buy",
                quantity=quantity,
                client_order_id=own_id,
            )
        )
        terms = (symbol, quantity, legs)
        first = self.by_client_id.get(own_id or "")
        with self._refused(
            Conflict if first and self.model.actions[first]["terms"] != terms else None
        ) as refused:
            written = self._do(agent, command)
        if refused:
            return None
        if first is not None:
            assert written.id == first
            assert "no new order" in written.warnings[-1]
            risky = self.model.actions[first]["track"].status in ("intent", "unknown")
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
            IntendOrder(operation=operation, reason=REASON, previous_action_id=action, quantity=quantity),
        )
        followed = self.model.actions[action]
        submit = followed["submit"] or action
        self._intended(written, operation, followed["touches"], submit, quantity, None)
        assert written.extra["decision_id"] == followed["decision"]
        return written.id

    @initialize(target=actions, who=writers)
    def an_order_at_the_broker(self, who: str) -> Any:
        action = self._submit("AAPL", "5", "ann", None, legs=False)
        self._tell(action, "acknowledged", who, None)
        return action

    @rule(action=actions, certainty=st.sampled_from(ANSWERS), who=writers)
    def tell_an_answer(self, action: str, certainty: str, who: str) -> None:
        self._tell(action, certainty, who, None)

    @rule(
        action=actions,
        certainty=st.sampled_from(FILLS),
        who=writers,
        filled=st.sampled_from((None, "1", "2", "5", "9")),
    )
    def tell_a_fill(self, action: str, certainty: str, who: str, filled: str | None) -> None:
        self._tell(action, certainty, who, filled)

    @rule(action=actions, told=st.lists(outcomes, min_size=2, max_size=6))
    def tell_much_of_one_action(self, action: str, told: list[tuple[str, str, str | None]]) -> None:
        for who, certainty, filled in told:
            self._tell(action, certainty, who, filled)

    def _tell(self, action: str, certainty: str, who: str, filled: str | None) -> None:
        command = RecordOutcome(action_id=action, certainty=certainty, filled_quantity=filled)
        expected = self.model.expect(action, certainty, filled, who == HARNESS)
        with self._refused(expected if isinstance(expected, type) else None) as refused:
            self._do(who, command)
        if not refused and expected is not None:
            self.model.told(action, expected, certainty, filled, who == HARNESS)

    @rule(
        who=st.sampled_from(("ann", HARNESS)),
        rows=st.dictionaries(symbols, st.sampled_from(("0", "3", "-2"))),
    )
    def report_positions(self, who: str, rows: dict[str, str]) -> None:
        positions = [{"symbol": symbol, "quantity": quantity} for symbol, quantity in rows.items()]
        cash = [{"symbol": "USD", "quantity": "1000", "asset_type": "cash"}]
        written = self._do(who, ReportPositions(positions=positions + cash))
        reported = {symbol: quantity for symbol, quantity in rows.items() if quantity != "0"}
        assert written.extra["held"] == list(reported)
        # A claim never takes the place of what was observed.
        if who == HARNESS or not self.positions_observed:
            self.held = reported
        self.positions_observed = self.positions_observed or who == HARNESS

    @rule(agent=agents, key=st.sampled_from(("key-1", "key-2")), quantity=quantities)
    def submit_under_a_key(self, agent: str, key: str, quantity: str) -> None:
        command = IntendOrder(operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity=quantity)
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

    # What must hold after every step.

    @invariant()
    def every_action_stands_as_the_model_says(self) -> None:
        rows = self.reader.execute("SELECT memory_id, kind, status, details FROM memory_index")
        found = {name: (kind, status, json.loads(details)) for name, kind, status, details in rows}
        for name, status in self.thesis.items():
            assert found[name][:2] == ("thesis", status)
        for name, action in self.model.actions.items():
            kind, status, details = found[name]
            assert (kind, status) == ("order_action", action["track"].status)
            order = self.model.orders.get(name)
            assert details.get("order", {}).get("status") == (order.status if order else None)
            if order is not None:
                assert details["order"].get("filled_quantity") == order.filled(observer=False)

    @invariant()
    def what_is_open_and_what_is_held_is_listed(self) -> None:
        caller = self._caller("ann")
        open_now = self.model.open_now()
        told = self.book.unreconciled(caller, None, 50).body
        assert told["total"] == len(open_now)
        assert [row["action_id"] for row in told["orders"]] == open_now[:50]
        for symbol in (*SYMBOLS, "TSLA"):
            on_it = [name for name in open_now if symbol in self.model.actions[name]["touches"]]
            assert self.book.unreconciled(caller, symbol, 50).body["total"] == len(on_it)
        with self.book._engine.read() as snapshot:
            holdings = snapshot.holdings(snapshot.head().sequence)
        rows = [] if holdings is None else json.loads(holdings.positions)
        assert {row["symbol"]: row["quantity"] for row in rows} == self.held

    @invariant()
    def an_order_is_opened_once(self) -> None:
        opened = self.book.log(EntryFilter(event_type="order.submitted", limit=1_000))
        assert sorted(json.loads(entry.content)["action_id"] for entry in opened) == sorted(
            self.model.submitted
        )

    # How the book is called.

    def _intended(
        self,
        written: Written,
        operation: str,
        touches: set[str],
        submit: str | None,
        quantity: str | None,
        terms: Any,
    ) -> None:
        warned = {line.split()[1] for line in written.warnings if line.startswith("duplicate_order_risk")}
        assert warned == self.model.risky(operation, touches)
        decision = written.extra["decision_id"]
        self.model.intended(written.id, operation, touches, submit, quantity, terms, decision)

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


def test_orders_and_theses_follow_the_model(order_model: type[OrderModel]) -> None:
    run_state_machine_as_test(
        lambda: OrderMachine(order_model()),
        settings=settings(max_examples=100, stateful_step_count=30, deadline=None),
    )
