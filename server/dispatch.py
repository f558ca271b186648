"""The one place around every call: rate, permission, clock, arguments, limits, the record of refusals, errors.

Tools, resources and prompts come through here and nowhere else. The work runs in worker threads; calls whose
answer waits for the write lock and those that never do have places of their own, so that no reading queues
behind a writer, and agents that wait for a place take turns.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from store import Book, Caller, Reply
from store.admission import ConfirmationNeeded
from store.errors import (
    ClockError,
    Crowded,
    DeskbookError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    StoreError,
    TooManyCalls,
)

from .arguments import Arguments, published_schema, read_arguments
from .asking import Asking, Host
from .calls import Call
from .errors import INTERNAL, describe, error_text
from .fairness import Rate, Turns
from .identity import LABEL_ORIGINS, CallClock, CallLabels, read_labels, resolve_clock
from .ledgers import OpenLedgers
from .near_miss import did_you_mean
from .permissions import REVIEW, Action, for_people, may_call
from .refusals import Refusals
from .sections import DeskSettings, LimitSettings
from .tools import TOOLS, ToolSpec

logger = logging.getLogger(__name__)
T = TypeVar("T")

WAITERS = 64
READERS = 16
SETTLE_SECONDS = 15.0


class Dispatch:
    """Serves calls against the ledgers."""

    def __init__(
        self, ledgers: OpenLedgers, desk: DeskSettings, limits: LimitSettings, refusals: Refusals
    ) -> None:
        self._ledgers = ledgers
        self._desk = desk
        self._limits = limits
        self._refusals = refusals
        self._rate = Rate(limits.calls_per_minute)
        self._waiters = Turns(WAITERS)
        self._readers = Turns(READERS)
        self._threads = anyio.CapacityLimiter(WAITERS + READERS)
        self._begun: set[anyio.CancelScope] = set()

    async def call_tool(
        self, call: Call, name: str, arguments: Mapping[str, Any], asking: Asking
    ) -> CallToolResult | InputRequiredResult:
        """Serve a tool call, asking a person first where one is to agree; what goes wrong is told in the result."""
        tool = TOOLS.get(name)
        places = self._waiters if tool is not None and tool.waits else self._readers
        serve = partial(self._in_turn, places, call, self._serve_tool, call, name, tool, arguments)
        try:
            try:
                reply = await serve(asking.standing())
            except ConfirmationNeeded as wanted:
                answer = await asking.ask(wanted)
                if isinstance(answer, InputRequiredResult):
                    return answer
                reply = await serve(answer)
        except Exception as fault:  # noqa: BLE001 - the boundary: every error becomes the one error shape
            if isinstance(fault, Crowded) and tool is not None and tool.changes:
                self._note_failed(call, name, fault)
            text = error_text(_told(fault, tool))
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        content = TextContent(type="text", text=reply.text)
        return CallToolResult(content=[content], structured_content=reply.body)

    async def read(self, call: Call, surface: str, allowed: bool, work: Callable[[Book, Caller], T]) -> T:
        """Serve a resource; raises the DeskbookError that a client is to be told."""
        return await self._in_turn(self._readers, call, self._serve_reading, call, surface, allowed, work)

    async def prompt(self, call: Call, name: str, allowed: bool, work: Callable[[], T]) -> T:
        """Serve a prompt, which touches no ledger unless it is refused; raises the DeskbookError that fits."""
        return await self._in_turn(self._readers, call, self._serve_prompt, call, name, allowed, work)

    async def refuse(self, call: Call, surface: str) -> None:
        """Record that a caller reached for something that is not open to it, outside of any tool."""
        await self._in_turn(self._readers, call, self._note_denied, call, surface)

    def busy(self) -> bool:
        """Whether a call is being served or waits for its turn."""
        return self._waiters.busy() or self._readers.busy()

    async def settle(self) -> None:
        """Write the sums of refusals once their minute is over, also when nobody calls any more; until cancelled."""
        while True:
            await anyio.sleep(SETTLE_SECONDS)
            await anyio.to_thread.run_sync(self._refusals.flush, abandon_on_cancel=True)

    def drain(self) -> None:
        """Write the sums of refusals that are still open."""
        self._refusals.flush(everything=True)

    def give_up(self) -> bool:
        """Answer for every call that is under way or waits, without waiting for it any more; whether there were any.

        A call that had begun may still be stored, and its answer says that this is unknown.
        """
        begun = list(self._begun)
        waiting = self._waiters.close() + self._readers.close()
        for call in begun:
            call.cancel()
        return bool(begun or waiting)

    async def _in_turn(self, places: Turns, call: Call, work: Callable[..., T], *arguments: Any) -> T:
        """Run in a worker thread, and once begun to the end, also when the client gives up: no commit half known."""
        async with places.turn(call.identity.agent):
            with anyio.CancelScope(shield=True) as begun:
                self._begun.add(begun)
                try:
                    # Nothing but `give_up` cancels here.
                    return await anyio.to_thread.run_sync(
                        partial(work, *arguments), limiter=self._threads, abandon_on_cancel=True
                    )
                finally:
                    self._begun.discard(begun)
            raise OutcomeUnknown(
                "The server ended before the call did.",
                hint="Read the memory back, or send the call again with the same idempotency_key.",
            )

    def _serve_tool(
        self, call: Call, name: str, tool: ToolSpec | None, arguments: Mapping[str, Any], host: Host
    ) -> Reply:
        try:
            self._count(call)
        except TooManyCalls as fault:
            if tool is not None and tool.changes and may_call(call.identity, name):
                self._note_failed(call, name, fault)
            raise
        if tool is None and for_people(name):
            self._note_denied(call, REVIEW)
            raise PermissionDenied(
                "No tool does that: a person does, with a credential of their own.",
                field="name",
                hint="Go on without it; the operator looks at what waits with `deskbook review`.",
            )
        if tool is None:
            raise NotFound(
                f"There is no tool of that name{did_you_mean(name, list(TOOLS))}.",
                field="name",
                hint="tools/list names the tools you may call.",
            )
        if not may_call(call.identity, name):
            self._note_denied(call, name)
            raise _denied(call, name)
        if tool.changes:
            # Only here: a flush may wait for the write lock, which no reading may.
            self._refusals.flush(_ledger(call, self._refused_caller(call, name)[1]))
        try:
            given = read_arguments(tool.arguments, arguments)
            self._check_length(given)
            own_time = tool.time_of(given) if tool.time_of else None
            agreed = _agreed(host)
            with self._ready(call, name, own_time) as (book, caller):
                return tool.handler(book, replace(caller, host=agreed), given, self._limits)
        except ConfirmationNeeded:
            raise
        except Exception as fault:
            if tool.changes:
                self._note_failed(call, name, fault)
            raise

    def _count(self, call: Call) -> None:
        """Hold a live agent to its rate; a backtest runs as fast as it can, and turns keep it fair."""
        if call.identity.mode == "live":
            self._rate.spend(call.identity.agent)

    def _serve_reading(self, call: Call, surface: str, allowed: bool, work: Callable[[Book, Caller], T]) -> T:
        self._count(call)
        if not allowed:
            self._note_denied(call, surface)
            raise _denied(call, surface)
        with self._ready(call, surface) as (book, caller):
            return work(book, caller)

    def _serve_prompt(self, call: Call, name: str, allowed: bool, work: Callable[[], T]) -> T:
        self._count(call)
        if not allowed:
            self._note_denied(call, name)
            raise _denied(call, name)
        return work()

    @contextmanager
    def _ready(self, call: Call, tool: str, own_time: int | None = None) -> Iterator[tuple[Book, Caller]]:
        """The call's ledger and caller; `own_time` is the time of a call that carries it as an argument."""
        labels = _labels(call)
        clock = resolve_clock(call.identity, labels)
        caller = Caller(
            agent=call.identity.agent,
            profile=call.identity.profile.name,
            session_id=labels.session_id or call.session_id,
            tool=tool,
            model_call_id=labels.model_call_id,
            now=clock.now_us if own_time is None else own_time,
            client=call.client,
            revision=self._desk.revision,
            deployment=self._desk.deployment,
            resolves_any=call.identity.profile.resolves == "any",
            observer=call.identity.profile.allows(Action.OBSERVE),
        )
        try:
            with self._ledgers.use(call.identity, clock.run, caller.now) as book:
                yield book, caller
        except ClockError as fault:
            # The store knows only of a time; the client is told which of its labels that is.
            if own_time is None and fault.field == "now":
                fault.field = labels.now_from
            raise

    def _check_length(self, given: Arguments) -> None:
        longest = self._limits.text_chars
        size = len(getattr(given, "text", None) or "")
        if size > longest:
            raise InvalidInput(
                f"text has {size} characters; at most {longest} are allowed.",
                field="text",
                hint="Shorten it, or split it into several memories.",
            )

    def _note_denied(self, call: Call, name: str) -> None:
        caller, run = self._refused_caller(call, name)
        self._refusals.flush(_ledger(call, run))
        if _without_ledger(call, run) or not self._ledgers.begun(call.identity, run):
            return
        key = ("denied", call.identity.strategy, run, caller.agent, name)
        self._refusals.note(
            key,
            partial(self._write_denied, call, caller, run),
            ledger=_ledger(call, run),
        )

    def _note_failed(self, call: Call, name: str, fault: Exception) -> None:
        code = fault.code if isinstance(fault, DeskbookError) else INTERNAL
        field = _known_field(fault, name)
        caller, run = self._refused_caller(call, name)
        if _without_ledger(call, run) or not self._ledgers.begun(call.identity, run):
            return

        key = ("failed", call.identity.strategy, run, caller.agent, name, code, field)
        self._refusals.note(
            key,
            partial(self._write_failed, call, caller, run, code, field),
            # When the ledger itself takes no entries, the note would wait for what the call waited for; a call
            # that found no place must not take one to say so.
            at_once=not isinstance(fault, StoreError | Crowded),
            ledger=_ledger(call, run),
        )

    def _write_denied(self, call: Call, caller: Caller, run: str | None, count: int) -> None:
        with self._ledgers.use(call.identity, run, caller.now) as book:
            book.note_denied(caller, caller.tool or "", count)

    def _write_failed(
        self, call: Call, caller: Caller, run: str | None, code: str, field: str | None, count: int
    ) -> None:
        with self._ledgers.use(call.identity, run, caller.now) as book:
            book.note_failed(caller, caller.tool or "", code, field, count)

    def _refused_caller(self, call: Call, tool: str) -> tuple[Caller, str | None]:
        """The caller and run a refusal is noted under, as far as the call's labels can be trusted."""
        caller = Caller(
            call.identity.agent, call.identity.profile.name, call.session_id, tool, client=call.client
        )
        try:
            labels = _labels(call)
            clock = resolve_clock(call.identity, labels)
        except DeskbookError:
            clock = CallClock(run=call.identity.run, now_us=None)
        else:
            caller = replace(
                caller,
                session_id=labels.session_id or call.session_id,
                model_call_id=labels.model_call_id,
                now=clock.now_us,
            )
        return caller, clock.run


def _told(fault: Exception, tool: ToolSpec | None) -> dict[str, Any]:
    """What the client is told; where the ledger failed, with what the tool's callers must then know."""
    told = describe(fault)
    at_fault = isinstance(fault, StoreError) or not isinstance(fault, DeskbookError)
    if tool is not None and tool.if_it_fails and at_fault:
        told["hint"] = f"{tool.if_it_fails} {told['hint']}".rstrip()
    return told


def _labels(call: Call) -> CallLabels:
    return read_labels(call.meta, call.arrival.environ, call.arrival.headers)


def _ledger(call: Call, run: str | None) -> tuple[str, str | None]:
    return call.identity.strategy, run


def _known_field(fault: Exception, tool: str) -> str | None:
    """The argument at fault, as the tool calls it: what a caller made up neither fills the ledger nor its sums."""
    named = fault.field if isinstance(fault, DeskbookError) else None
    head = re.split(r"[.\[ ]", named, maxsplit=1)[0] if named else None
    known = published_schema(TOOLS[tool].arguments)["properties"] if tool in TOOLS else {}
    return head if head in known or (head is not None and head.startswith(LABEL_ORIGINS)) else None


def _without_ledger(call: Call, run: str | None) -> bool:
    """Whether a refusal has no ledger: a simulated call that names no run must not reach the live one."""
    if call.identity.mode == "live" or run is not None:
        return False
    logger.warning("a refused call of %s named no run, so no ledger records it", call.identity.agent)
    return True


def _agreed(host: Host) -> Literal["none", "asks", "confirmed"]:
    """What the client's person has said, unless that is no."""
    if host == "declined":
        raise PermissionDenied(
            "The person at the client declined to keep it; nothing was stored.",
            hint="Do not send it again unless they ask for it.",
        )
    return host


def _denied(call: Call, name: str) -> PermissionDenied:
    return PermissionDenied(
        f"{call.identity.agent} (profile {call.identity.profile.name}) may not use {name}.",
        hint="Use a tool that tools/list names, or ask the operator for another profile.",
    )
