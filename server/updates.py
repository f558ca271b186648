"""Tells subscribers of the state when it may have changed, whichever process changed it.

A ledger that somebody subscribes to is looked at a few times a second; what only showed or searched memory is no
change. Both protocol eras share the watch: an older client is sent a notification for its session, a newer one an
event on the stream it listens on.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent
from mcp_types import (
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from store import Book, Caller
from store.errors import DeskbookError, NotFound

from .calls import Call
from .dispatch import Dispatch
from .identity import Identity
from .ledgers import OpenLedgers
from .permissions import may_read
from .resources import STATE_URI
from .sdk import connection_state, on_connection_end

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2
_STANDING: Final = "deskbook/subscriptions"

Context: TypeAlias = ServerRequestContext[Any, Any]
Tell: TypeAlias = Callable[[], None]
Forget: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Place:
    """The ledger that a subscriber watches."""

    strategy: str
    run: str | None


@dataclass(slots=True)
class _Watched:
    """A ledger that is watched: who may open it, how far it was looked at, and whom to tell."""

    identity: Identity
    sequence: int
    tells: dict[object, Tell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Bus:
    """A watch in the form that the SDK's stream of a listening client takes its events from."""

    watch: Callable[[Tell], Forget]

    async def publish(self, event: ServerEvent) -> None:
        """Nothing is published here: the ledger is the source."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Forget:
        """Have `listener` told of every change of the state."""
        return self.watch(lambda: listener(ResourceUpdated(uri=STATE_URI)))


class Updates:
    """The subscriptions of one server; used from its event loop, while `running`."""

    def __init__(self, ledgers: OpenLedgers, dispatch: Dispatch, call_of: Callable[[Context], Call]) -> None:
        self._ledgers = ledgers
        self._dispatch = dispatch
        self._call_of = call_of
        self._watched: dict[_Place, _Watched] = {}
        self._wanted = anyio.Event()
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at what is watched for as long as the server serves; entered again, it does nothing more."""
        if self._tasks is not None:
            yield
            return
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._look_on)
            try:
                yield
            finally:
                self._tasks.cancel_scope.cancel()
        self._tasks = None

    async def subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Serve `resources/subscribe` (protocol 2025-11-25 and older): notify this session until it ends.

        Raises the DeskbookError that fits an unknown resource or a caller who may not read the state.
        """
        if params.uri != STATE_URI:
            raise NotFound(
                "This resource cannot be subscribed to.",
                field="uri",
                hint=f"Subscribe to {STATE_URI}; read the rest.",
            )
        watch = await self._open(context)
        standing = _standing(context)
        if not standing and self._tasks is not None:
            send, receive = anyio.create_memory_object_stream[None](1)

            def tell() -> None:
                if not send.statistics().current_buffer_used:
                    send.send_nowait(None)

            standing += [watch(tell), send.close]
            on_connection_end(context.session, lambda: _end(standing))
            self._tasks.start_soon(_notify, context.session, receive)
        return EmptyResult()

    async def unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Serve `resources/unsubscribe`; what was never subscribed to is no error."""
        if params.uri == STATE_URI:
            _end(_standing(context))
        return EmptyResult()

    async def listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve `subscriptions/listen` (protocol 2026-07-28) until the client ends it or its arrival is `ending`.

        Only the state is honoured: nothing else that can be subscribed to ever changes here.
        """
        wanted = STATE_URI in (params.notifications.resource_subscriptions or ())
        honoured = SubscriptionFilter(resource_subscriptions=[STATE_URI] if wanted else None)
        watch = await self._open(context) if wanted else _never
        handler = ListenHandler(_Bus(watch))
        ending = self._call_of(context).arrival.ending
        async with anyio.create_task_group() as tasks:
            if ending is not None:
                tasks.start_soon(_close_when, ending, handler)
            result = await handler(context, params.model_copy(update={"notifications": honoured}))
            tasks.cancel_scope.cancel()
        return result

    async def _open(self, context: Context) -> Callable[[Tell], Forget]:
        """Check that the caller may read the state, and give what watches the ledger it reads it from."""
        call = self._call_of(context)

        def look(book: Book, _caller: Caller) -> tuple[_Place, int]:
            return _Place(book.genesis.strategy, book.genesis.run), book.head().sequence

        allowed = may_read(call.identity, STATE_URI)
        place, sequence = await self._dispatch.read(call, STATE_URI, allowed, look)
        return lambda tell: self._watch(place, call.identity, sequence, tell)

    def _watch(self, place: _Place, identity: Identity, sequence: int, tell: Tell) -> Forget:
        watched = self._watched.setdefault(place, _Watched(identity, sequence))
        watched.tells[tell] = tell
        self._wanted.set()

        def forget() -> None:
            watched.tells.pop(tell, None)
            if not watched.tells and self._watched.get(place) is watched:
                del self._watched[place]

        return forget

    async def _look_on(self) -> None:
        while True:
            if not self._watched:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            for place, watched in list(self._watched.items()):
                if await anyio.to_thread.run_sync(self._has_changed, place, watched):
                    for tell in list(watched.tells.values()):
                        tell()
            await anyio.sleep(LOOK_SECONDS)

    def _has_changed(self, place: _Place, watched: _Watched) -> bool:
        try:
            with self._ledgers.use(watched.identity, place.run, None) as book:
                watched.sequence, changed = book.state_changed(watched.sequence)
        except DeskbookError as fault:
            logger.debug("a watched ledger cannot be looked at now: %s", fault.message)
            return False
        return changed


async def _close_when(ending: anyio.Event, handler: ListenHandler) -> None:
    """End a stream in the way that tells its client so."""
    await ending.wait()
    handler.close()


def _never(_tell: Tell) -> Forget:
    return lambda: None


def _standing(context: Context) -> list[Callable[[], None]]:
    """What ends the subscription of the session, empty when it has none."""
    found: list[Callable[[], None]] = connection_state(context.session).setdefault(_STANDING, [])
    return found


def _end(standing: list[Callable[[], None]]) -> None:
    while standing:
        standing.pop()()


async def _notify(session: ServerSession, changes: MemoryObjectReceiveStream[None]) -> None:
    """A task for each session, so that a client that does not read holds up nobody else's notifications."""
    async with changes:
        async for _ in changes:
            await session.send_resource_updated(STATE_URI)
