"""What keeps one agent from taking the server from the others: a rate for each, and turns.

Both count by agent, not by connection, so that opening more sessions brings an agent nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from store.errors import Crowded, StoreClosed, TooManyCalls

MOST_WAITING = 1_000
"""Calls of one agent that may wait for their turn; beyond them a call is refused at once."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Rate:
    """So many calls a minute for each agent: a minute's worth may come at once, and what is spent comes back evenly.

    Safe to use from many threads. Time is monotonic seconds.
    """

    def __init__(self, calls_per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = float(calls_per_minute)
        self._per_second = calls_per_minute / 60
        self._now = now
        self._buckets: dict[str, _Bucket] = {}
        self._mutex = threading.Lock()

    def spend(self, agent: str) -> None:
        """Count one call; raises TooManyCalls, which says when the next one may come."""
        with self._mutex:
            now = self._now()
            bucket = self._buckets.setdefault(agent, _Bucket(self._most, now))
            bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._per_second)
            bucket.at = now
            if bucket.left >= 1:
                bucket.left -= 1
                return
            wait = (1 - bucket.left) / self._per_second
        raise TooManyCalls(
            f"{agent} has used its {int(self._most)} calls a minute.",
            hint=f"Wait {max(1, math.ceil(wait))} s and send the call again; "
            "the operator can raise [limits] calls_per_minute.",
        )


class Turns:
    """Places for calls that run at once. Agents that wait take turns, each agent's own calls in their order.

    An agent with a thousand calls waiting delays another's next call by one call, not by a thousand. Used from one
    event loop.
    """

    def __init__(self, places: int, most_waiting: int = MOST_WAITING) -> None:
        self._places = places
        self._free = places
        self._most_waiting = most_waiting
        self._closed = False
        self._waiting: OrderedDict[str, deque[anyio.Event]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, agent: str) -> AsyncIterator[None]:
        """Hold a place; raises Crowded when too many calls of the agent wait already."""
        await self._take(agent)
        try:
            yield
        finally:
            self._give_back()

    def busy(self) -> bool:
        """Whether a place is held or waited for."""
        return self._free < self._places

    def close(self) -> int:
        """Turn away every call that waits and all that come; gives how many waited."""
        self._closed = True
        waiting = [called for queue in self._waiting.values() for called in queue]
        self._waiting.clear()
        for called in waiting:
            called.set()
        return len(waiting)

    async def _take(self, agent: str) -> None:
        if self._closed:
            raise _ended()
        if self._free:
            self._free -= 1
            return
        queue = self._waiting.setdefault(agent, deque())
        if len(queue) >= self._most_waiting:
            raise Crowded(
                f"{agent} has {self._most_waiting} calls waiting already.",
                hint="Wait for answers before sending more.",
            )
        called = anyio.Event()
        queue.append(called)
        try:
            await called.wait()
        except BaseException:
            if not called.is_set():
                self._leave(agent, called)
            elif not self._closed:  # the place was handed over while the caller gave up
                self._give_back()
            raise
        if self._closed:
            raise _ended()

    def _leave(self, agent: str, called: anyio.Event) -> None:
        queue = self._waiting[agent]
        queue.remove(called)
        if not queue:
            del self._waiting[agent]

    def _give_back(self) -> None:
        """Hand the place to the agent whose turn it is, and put that agent last."""
        if not self._waiting:
            self._free += 1
            return
        agent, queue = self._waiting.popitem(last=False)
        queue.popleft().set()
        if queue:
            self._waiting[agent] = queue


def _ended() -> StoreClosed:
    return StoreClosed("The server is ending; nothing was done.", hint="Send the call again once it is back.")
