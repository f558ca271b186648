"""What clients hold open: sessions of the older protocols and streams of the newer one, and who opened each.

Only whoever opened a session may use it. Idle ones end, also when their token is revoked; a session with a request
under way is not idle. When all places are taken, the agent that holds most gives way.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from mcp_types import RequestId

from store.ids import SESSION, new_id

from .callers import Who
from .refusals import over_capacity

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
CLIENTS_KNOWN: Final = 100
"""Client programs of one token whose calls without a session are told apart."""

OWN_IDLE_SECONDS: Final = 10.0
"""How long a session must have been idle before its own agent's next one may take its place."""


@dataclass(slots=True, eq=False)
class Session:
    """One thing that is held open; `key` is the transport's own name for it, `desk_session` the ledger's."""

    key: str
    who: Who
    transport: str
    end: Callable[[], Awaitable[None]]
    desk_session: str = field(default_factory=lambda: new_id(SESSION))
    unanswered: set[RequestId] = field(default_factory=set)
    requests: int = 0
    streams: int = 0
    idle_since: float = field(default_factory=anyio.current_time)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A request of the session is under way."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.idle_since = anyio.current_time()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """A stream of the session is open, on which something may be told at any time."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
            self.idle_since = anyio.current_time()

    def busy(self) -> bool:
        """Whether a call of the session is unanswered."""
        return bool(self.requests or self.unanswered)

    def idle(self) -> float:
        """Seconds since the last request or stream ended, 0 while there is one."""
        return 0.0 if self.streams or self.busy() else anyio.current_time() - self.idle_since


@dataclass(slots=True)
class _Visit:
    """The calls of a client whose protocol has no session, taken together."""

    desk_session: str
    last: float


class Sessions:
    """Everything held open, at most `most` at once; used from one event loop. Times are seconds."""

    def __init__(self, most: int, idle_timeout: float, welcome: Callable[[str | None], bool]) -> None:
        self._most = most
        self._idle_timeout = idle_timeout
        self._welcome = welcome
        self._held: dict[str, Session] = {}
        self._opening: Counter[str] = Counter()
        self._visits: dict[str, OrderedDict[tuple[str, str], _Visit]] = {}

    def __len__(self) -> int:
        return len(self._held)

    @asynccontextmanager
    async def opening(self, who: Who) -> AsyncIterator[Callable[[Session], None]]:
        """Keep a place for what is being opened, and give what puts it there; raises the 503 for no place."""
        agent = who.identity.agent
        await self._make_room(agent)
        kept = Counter({agent: 1})
        self._opening += kept

        def hold(session: Session) -> None:
            self._held[session.key] = session
            self._opening -= kept
            kept.clear()

        try:
            yield hold
        finally:
            self._opening -= kept

    def busy(self) -> bool:
        """Whether a call in some session is unanswered."""
        return any(session.busy() for session in self._held.values())

    def forget(self, key: str) -> None:
        """It was closed by its client or by the transport."""
        self._held.pop(key, None)

    def find(self, key: str) -> Session | None:
        """The session of that name, whoever's it is."""
        return self._held.get(key)

    def visit(self, who: Who, client: tuple[str, str]) -> str:
        """The ledger's session for calls without one: the same for one token and client until they have been idle."""
        visits = self._visits.setdefault(who.owner or who.identity.agent, OrderedDict())
        now = anyio.current_time()
        known = visits.pop(client, None)
        if known is None or now - known.last > self._idle_timeout:
            known = _Visit(new_id(SESSION), now)
        known.last = now
        visits[client] = known
        if len(visits) > CLIENTS_KNOWN:
            visits.popitem(last=False)
        return known.desk_session

    async def watch(self) -> None:
        """End what has been idle for too long and what is no longer welcome, until cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            welcome = {
                owner: self._welcome(owner) for owner in {held.who.owner for held in self._held.values()}
            }
            for session in list(self._held.values()):
                if not welcome.get(session.who.owner, True):
                    await self._end(session, "its token is no longer accepted")
                elif session.idle() > self._idle_timeout:
                    await self._end(session, "it was idle")

    async def end_all(self) -> None:
        """End everything."""
        for session in list(self._held.values()):
            await self._end(session, "the server is ending")

    async def _make_room(self, agent: str) -> None:
        while len(self._held) + self._opening.total() >= self._most:
            held = Counter(session.who.identity.agent for session in self._held.values()) + self._opening
            largest = max(held, key=lambda name: (held[name], name == agent))
            theirs = [session for session in self._held.values() if session.who.identity.agent == largest]
            if largest == agent or held[largest] <= held[agent] + 1:
                giving_way = [session for session in theirs if session.idle() >= OWN_IDLE_SECONDS]
            else:
                giving_way = [session for session in theirs if not session.busy()]
            if not giving_way:
                raise over_capacity(f"All {self._most} sessions of this server are in use.")
            # The longest idle one; where all have a stream open, the one that was opened first.
            await self._end(max(giving_way, key=Session.idle), "another session needed its place")

    async def _end(self, session: Session, why: str) -> None:
        self._held.pop(session.key, None)
        logger.info("a session of %s ended: %s", session.who.identity.agent, why)
        try:
            await session.end()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            logger.debug("the session had ended by itself")
