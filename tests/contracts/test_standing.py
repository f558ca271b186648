"""Every engine: what stands is the same to a reader who has followed the ledger and to one who looks anew."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

import pytest

from store import Caller
from store.engines.base import Snapshot, Transaction
from store.engines.sqlite.counting import StandingReads
from store.events import (
    Event,
    LessonRecorded,
    MemoryRecorded,
    OrderIntended,
    OrderOutcome,
    StatusChanged,
    ThesisClosed,
    ThesisOpened,
    ThesisUpdated,
)
from store.ids import new_id
from store.ledger import Draft
from store.rows import Filter

GUARD = 30.0
ANN = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool")
FILTERS = (
    Filter(kind="thesis", status="open"),
    Filter(kind="lesson", status="proposed"),
    Filter(kind="memory", status="active"),
    Filter(kind="memory", status="retired"),
)
HASHED = {"reason_salt": "00", "reason_sha256": "00"}
INSTANTS = (0, 2, 5, 6, 100)


class Desk:
    """Writes one change after another; which, a seed decides."""

    def __init__(self, crew: Any, seed: int) -> None:
        self.crew = crew
        self.random = random.Random(seed)
        self.theses: list[str] = []
        self.notes: list[str] = []
        self.actions: list[str] = []

    def change(self) -> None:
        """One entry, or a few in one transaction."""
        drafts = [self._draft() for _ in range(self.random.choice((1, 1, 3)))]
        self.crew.engine.write(
            lambda transaction: self.crew.ledger.append(transaction, ANN, drafts), timeout=GUARD
        )

    def _draft(self) -> Draft:
        step = self.random.randrange(9)
        if step == 0 and self.theses:
            return self._on(
                self.theses.pop(self.random.randrange(len(self.theses))), ThesisClosed(result="x")
            )
        if step == 1 and self.theses:
            return self._on(
                self.random.choice(self.theses), ThesisUpdated(text="again", review_by=self._instant())
            )
        if step == 2 and self.notes:
            name = self.notes.pop(self.random.randrange(len(self.notes)))
            return self._on(name, StatusChanged(status="retired", previous="active"), "memory")
        if step == 3:
            lesson = LessonRecorded(text="do not chase", review_by=self._instant())
            return self._on(new_id("les"), lesson, "lesson")
        if step == 4:
            self.actions.append(new_id("oac"))
            return self._on(
                self.actions[-1],
                OrderIntended(
                    text="buy", operation="submit", touches=("AAPL",), decision_id="dec_1", **HASHED
                ),
                "order_action",
            )
        if step == 5 and self.actions:
            told = self.random.choice(("acknowledged", "unknown", "partially_filled", "filled"))
            status = {"order_status": told} if "filled" in told else {}
            event = OrderOutcome(certainty=told, previous="intent", standing="observed", **status)
            return self._on(self.random.choice(self.actions), event, "order_action")
        if step == 6:
            self.notes.append(new_id("mem"))
            return self._on(self.notes[-1], MemoryRecorded(text="note", expires_at=self._instant()), "memory")
        self.theses.append(new_id("ths"))
        return self._on(
            self.theses[-1], ThesisOpened(text="long", review_by=self._instant(), expires_at=self._instant())
        )

    def _instant(self) -> int | None:
        return self.random.choice((None, 2, 5, 9))

    @staticmethod
    def _on(name: str, event: Event, kind: str = "thesis") -> Draft:
        return Draft(event, "memory", name, kind, "AAPL")


def standing(snapshot: Snapshot, cut: int) -> dict[str, Any]:
    """All that is read of what stands."""
    found: dict[str, Any] = {
        "unreconciled": (snapshot.unreconciled(None, cut, limit=3), snapshot.count_unreconciled(None, cut)),
        "touching": snapshot.unreconciled(("AAPL",), cut, limit=3),
        "watched": [snapshot.theses_to_observe(named, cut, 4, limit=9) for named in ((), ("AAPL",))],
        "working": (snapshot.open_orders(None, cut, limit=3), snapshot.count_open_orders(("AAPL",), cut)),
    }
    for at in INSTANTS:
        found[f"theses at {at}"] = list(snapshot.open_theses(cut, at))
        found[f"due at {at}"] = (snapshot.due(cut, at, limit=3), snapshot.count_due(cut, at))
        for conditions in FILTERS:
            for limit in (0, 1, 4, 1_000):
                found[f"{conditions} at {at}, {limit}"] = snapshot.versions(conditions, cut, at, limit=limit)
            found[f"{conditions} at {at}"] = snapshot.count_versions(conditions, cut, at)
    return found


def looked_up(crew: Any, cut: int) -> dict[str, Any]:
    """The same from the file alone."""
    with pytest.MonkeyPatch.context() as patch, crew.engine.read() as snapshot:
        patch.setattr(StandingReads, "standing", lambda *_: None)
        return standing(snapshot, cut)


def in_transaction(crew: Any, cut: int) -> dict[str, Any]:
    """The same by a transaction that writes."""
    return dict(crew.engine.write(lambda transaction: standing(transaction, cut), timeout=GUARD))


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_that_follows_the_ledger_sees_what_stands(new_crew: Any, seed: int) -> None:
    crew, follower = new_crew(), new_crew()
    desk = Desk(crew, seed)
    told: dict[int, dict[str, Any]] = {}
    for number in range(60):
        desk.change()
        if number % 3 == 2:
            continue  # more than one change at a time
        with follower.engine.read() as snapshot:
            head = snapshot.head()
            assert head is not None
            cut = head.sequence
            told[cut] = standing(snapshot, cut)
            past = desk.random.choice(list(told))
            assert standing(snapshot, past) == told[past], f"at {past}, after {cut} was looked at"
            assert standing(snapshot, cut + 1_000) == told[cut], "a cut that is yet to come"
        assert told[cut] == looked_up(crew, cut) == in_transaction(crew, cut)
        if number == 30:
            crew.engine.rebuild(lambda _: None)
    with new_crew().engine.read() as snapshot:
        for cut, then in told.items():
            assert standing(snapshot, cut) == then


def test_what_a_transaction_undoes_never_stood(crew: Any) -> None:
    desk = Desk(crew, 1)
    for _ in range(20):
        desk.change()
    with crew.engine.read() as snapshot:
        cut = snapshot.head().sequence
        before = standing(snapshot, cut)

    def fails(transaction: Transaction) -> None:
        crew.ledger.append(transaction, ANN, [Desk._on(new_id("ths"), ThesisOpened(text="undone"))])
        assert standing(transaction, cut + 1) != before
        raise LookupError

    with pytest.raises(LookupError):
        crew.engine.write(fails, timeout=GUARD)
    with crew.engine.read() as snapshot:
        assert standing(snapshot, cut + 1) == before
    assert in_transaction(crew, cut + 1) == before
    with pytest.raises(LookupError):
        crew.engine.write(fails, timeout=GUARD)
    assert crew.write("a note in its place").sequence == cut + 1
    assert in_transaction(crew, cut + 1) == looked_up(crew, cut + 1)


def test_an_error_while_a_reader_follows_leaves_it_where_it_can_go_on(
    crew: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(crew, 3)
    for _ in range(20):
        desk.change()
    with crew.engine.read() as snapshot:
        standing(snapshot, snapshot.head().sequence)
    original, calls = StandingReads._written, iter(range(99))

    def fails_once(*given: Any) -> Any:
        if next(calls) == 4:
            raise LookupError
        return original(*given)

    for _ in range(10):
        desk.change()
    monkeypatch.setattr(StandingReads, "_written", fails_once)
    with crew.engine.read() as snapshot, pytest.raises(LookupError):
        standing(snapshot, snapshot.head().sequence)
    with crew.engine.read() as snapshot:
        cut = snapshot.head().sequence
        assert standing(snapshot, cut) == looked_up(crew, cut)


def test_projections_that_were_made_anew_are_read_anew(crew: Any) -> None:
    crew.write("a note")
    notes = Filter(kind="memory", status="active")
    with crew.engine.read() as snapshot:
        assert snapshot.count_versions(notes, 9, 0) == 1
    with closing(crew.house.raw()) as raw:
        raw.execute("UPDATE memory_versions SET status = 'retired'; CREATE TABLE made_anew (it)")
    crew.write("another")
    with crew.engine.read() as snapshot:
        assert snapshot.count_versions(notes, 9, 0) == 1


def test_a_reader_that_fell_far_behind_looks_anew(new_crew: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.engines.sqlite.counting._FAR", 5)
    crew, follower = new_crew(), new_crew()
    desk = Desk(crew, 7)
    for changes in (1, 3, 20, 1, 9):
        for _ in range(changes):
            desk.change()
        with follower.engine.read() as snapshot:
            cut = snapshot.head().sequence
            assert standing(snapshot, cut) == looked_up(crew, cut)
