"""Rates and turns under any order of calls: no agent gets more than its share, none loses its place to another."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.fairness import Rate, Turns
from store.errors import TooManyCalls

AGENTS = ("ann", "ben", "cid")
GAPS = st.sampled_from([0.0, 0.0, 0.001, 0.5, 1.0, 12.0, 59.9, 60.0, 61.0]) | st.floats(0.0, 90.0)
CALLS = st.lists(st.tuples(GAPS, st.sampled_from(AGENTS)), max_size=120)
# A rounding error of the clock is no call: one is taken or given back whole.
ROUNDING = 1e-6


THROUGH = "through"


class HandClock:
    """Seconds, set by hand."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def timed(calls: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The calls at the instants that their gaps lead to."""
    instants = accumulate((gap for gap, _ in calls), initial=1_000.0)
    return [(at, agent) for at, (_, agent) in zip(list(instants)[1:], calls, strict=True)]


def judged(limit: int, calls: list[tuple[float, str]]) -> list[tuple[float, str, str]]:
    """When each call came, whose it was, and whether it was let through or with which code refused."""
    clock = HandClock(0.0)
    rate = Rate(limit, clock.now)
    found = []
    for at, agent in calls:
        clock.at = at
        try:
            rate.spend(agent)
        except TooManyCalls as fault:
            found.append((at, agent, fault.code))
        else:
            found.append((at, agent, THROUGH))
    return found


@given(limit=st.integers(1, 40), calls=CALLS)
def test_no_span_of_time_lets_more_through_than_a_minutes_worth_and_what_came_back_in_it(
    limit: int, calls: list[tuple[float, str]]
) -> None:
    outcomes = judged(limit, timed(calls))
    assert {outcome for _, _, outcome in outcomes} <= {THROUGH, "rate_limited"}
    for agent in AGENTS:
        times = [at for at, whose, outcome in outcomes if (whose, outcome) == (agent, THROUGH)]
        for first, began in enumerate(times):
            for last, ended in enumerate(times[first:], first):
                assert last - first + 1 <= limit + (ended - began) * limit / 60 + ROUNDING


@given(limit=st.integers(1, 40), calls=CALLS)
def test_an_agent_is_let_through_as_if_it_were_alone(limit: int, calls: list[tuple[float, str]]) -> None:
    together = judged(limit, timed(calls))
    for agent in AGENTS:
        mine = [(at, whose) for at, whose, _ in together if whose == agent]
        assert judged(limit, mine) == [outcome for outcome in together if outcome[1] == agent]


@given(limit=st.integers(1, 40), calls=CALLS)
def test_who_has_not_called_for_a_minute_may_call_a_minutes_worth_at_once(
    limit: int, calls: list[tuple[float, str]]
) -> None:
    before = timed(calls)
    later = (before[-1][0] if before else 0.0) + 61
    outcomes = judged(limit, [*before, *[(later, "ann")] * (limit + 1)])
    assert [outcome for _, _, outcome in outcomes[len(before) :]] == [THROUGH] * limit + ["rate_limited"]


@given(limit=st.integers(1, 1_000), spent=st.integers(0, 2_000), waited=st.floats(0.0, 3.0))
@example(limit=7, spent=7, waited=0.0)
def test_who_waits_as_long_as_the_refusal_says_is_let_through(limit: int, spent: int, waited: float) -> None:
    clock = HandClock(1_000.0)
    rate = Rate(limit, clock.now)
    with pytest.raises(TooManyCalls) as refused:  # noqa: PT012 - how many calls it takes depends on the limit
        for _ in range(limit + spent + 1):
            rate.spend("ann")
    clock.at += min(waited, 0.9 * 60 / limit)
    with pytest.raises(TooManyCalls) as refused:
        rate.spend("ann")
    clock.at += int(str(refused.value.hint).split()[1])
    rate.spend("ann")


class Order:
    """The model: who holds a place, and who waits, each agent's calls in order and the agents in turn."""

    def __init__(self, places: int, most_waiting: int) -> None:
        self.places = places
        self.most_waiting = most_waiting
        self.holding: list[int] = []
        self.waiting: deque[tuple[str, deque[int]]] = deque()

    def ask(self, agent: str, number: int) -> bool:
        """Whether the call holds a place or waits for one; it is refused otherwise."""
        if len(self.holding) < self.places:
            self.holding.append(number)
            return True
        for whose, calls in self.waiting:
            if whose == agent:
                if len(calls) >= self.most_waiting:
                    return False
                calls.append(number)
                return True
        self.waiting.append((agent, deque([number])))
        return True

    def leave(self, number: int) -> None:
        """A call ends or is given up, wherever it stands."""
        if number in self.holding:
            self.holding.remove(number)
            if self.waiting:
                agent, calls = self.waiting.popleft()
                self.holding.append(calls.popleft())
                if calls:
                    self.waiting.append((agent, calls))
            return
        for agent, calls in list(self.waiting):
            if number in calls:
                calls.remove(number)
                if not calls:
                    self.waiting.remove((agent, calls))


class Callers:
    """Tasks that ask for turns: which of them were let in, in which order."""

    def __init__(self, turns: Turns, tasks: anyio.abc.TaskGroup) -> None:
        self._turns = turns
        self._tasks = tasks
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._ends: dict[int, anyio.Event] = {}
        self.inside: list[int] = []
        self.let_in: list[int] = []
        self.refused: set[int] = set()

    def ask(self, agent: str, number: int) -> None:
        self._scopes[number] = anyio.CancelScope()
        self._ends[number] = anyio.Event()
        self._tasks.start_soon(self._call, agent, number)

    def finish(self, number: int) -> None:
        self._ends[number].set()

    def give_up(self, number: int) -> None:
        self._scopes[number].cancel()

    @contextmanager
    def _within(self, number: int) -> Any:
        self.inside.append(number)
        self.let_in.append(number)
        try:
            yield
        finally:
            self.inside.remove(number)

    async def _call(self, agent: str, number: int) -> None:
        with self._scopes[number]:
            try:
                async with self._turns.turn(agent):
                    with self._within(number):
                        await self._ends[number].wait()
            except TooManyCalls:
                self.refused.add(number)


async def settle() -> None:
    """Let every task run as far as it can: a turn that is given back reaches whom it goes to in a few steps."""
    for _ in range(8):
        await anyio.lowlevel.checkpoint()


# What happens next: an agent asks, a call inside ends, or one that is inside or waits is given up.
STEP = st.tuples(
    st.sampled_from(["ask", "ask", "ask", "finish", "finish", "give up"]),
    st.integers(0, 200),
    st.sampled_from(AGENTS),
)


@given(places=st.integers(1, 3), most_waiting=st.integers(1, 4), steps=st.lists(STEP, max_size=60))
def test_agents_take_turns_and_each_ones_calls_keep_their_order(
    places: int, most_waiting: int, steps: list[tuple[str, int, str]]
) -> None:
    async def live() -> None:
        turns, order = Turns(places, most_waiting), Order(places, most_waiting)
        refused: set[int] = set()
        async with anyio.create_task_group() as tasks:
            callers = Callers(turns, tasks)
            for number, (what, chosen, agent) in enumerate(steps):
                waiting = [call for _, calls in order.waiting for call in calls]
                there = order.holding if what == "finish" else [*order.holding, *waiting]
                if what == "ask":
                    callers.ask(agent, number)
                    if not order.ask(agent, number):
                        refused.add(number)
                elif there:
                    call = there[chosen % len(there)]
                    (callers.finish if what == "finish" else callers.give_up)(call)
                    order.leave(call)
                await settle()
                assert sorted(callers.inside) == sorted(order.holding)
                assert callers.refused == refused
                assert turns.busy() is bool(order.holding)
            tasks.cancel_scope.cancel()
        assert not turns.busy()
        assert turns._free == places
        assert not turns._waiting

    anyio.run(live)


@given(
    places=st.integers(1, 3), steps=st.lists(STEP, max_size=60), settled=st.lists(st.booleans(), max_size=60)
)
def test_no_place_is_lost_or_held_twice_when_calls_are_given_up_as_places_are_handed_over(
    places: int, steps: list[tuple[str, int, str]], settled: list[bool]
) -> None:
    async def live() -> None:
        turns = Turns(places)
        async with anyio.create_task_group() as tasks:
            callers = Callers(turns, tasks)
            asked: list[int] = []
            for number, (what, chosen, agent) in enumerate(steps):
                if what == "ask":
                    callers.ask(agent, number)
                    asked.append(number)
                elif asked:
                    call = asked.pop(chosen % len(asked))
                    (callers.finish if what == "finish" else callers.give_up)(call)
                if number >= len(settled) or settled[number]:
                    await settle()
                assert len(callers.inside) <= places
            for call in asked:
                callers.finish(call)
            for _ in steps:  # each may have to wait for the one before it
                await settle()
            left = list(callers.inside), list(turns._waiting)
            tasks.cancel_scope.cancel()
        assert left == ([], [])
        assert not callers.refused
        assert not turns.busy()
        assert turns._free == places
        assert not turns._waiting

    anyio.run(live)


def test_an_agent_with_a_thousand_calls_waiting_delays_another_by_one_call() -> None:
    async def live() -> None:
        turns = Turns(1)
        async with anyio.create_task_group() as tasks:
            callers = Callers(turns, tasks)
            for number in range(1_001):
                callers.ask("ann", number)
            await settle()
            callers.ask("ben", 2_000)
            callers.ask("ann", 2_001)  # one more than may wait
            await settle()
            assert callers.refused == {2_001}
            for number in (0, 1, 2_000):
                callers.finish(number)
                await settle()
            assert callers.let_in[:4] == [0, 1, 2_000, 2]
            tasks.cancel_scope.cancel()
        assert not turns.busy()

    anyio.run(live)
