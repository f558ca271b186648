"""Everything that is read from a ledger, each through one view; searches and showings are recorded.

A search is answered once it is recorded. A showing of the state or of a memory is recorded at once or says that it
is not. Reading changes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from .caller import Caller
from .canonical import check_text
from .engines.base import Engine, Snapshot
from .entry import Entry
from .errors import InvalidInput, NotFound, NotRecorded, StoreError
from .events import Delivered, Genesis
from .explain import EXPLAINED, Explanation, explain
from .ids import RETRIEVAL, new_id
from .inheritance import Inheritance
from .inputs import identifier, known_conditions
from .ledger import Draft, Ledger
from .limits import QUERY_CHARS, SEARCH_LIMIT
from .policy import Policy
from .projection import shown_text
from .render import NOTICE, Renderer, as_text
from .replies import Reply, SearchRequest
from .rows import Delivery, EntryFilter, Filter, Head, Version
from .screening.commands import screen_search
from .search import cursor
from .search.meaning import LedgerVectors, Meaning
from .search.recall import Question, recall, selected
from .search.trust import Ranking
from .showing import show_hits, show_memory
from .state import build_state, working_orders
from .symbols import Symbols
from .view import Layer, View, as_on_the_first_page

SEARCH_SECONDS = 2.0
DELIVERY_SECONDS = 0.15
CHANGES_LOOKED_AT = 200
UNCHANGING = frozenset(
    "memory.retrieved memory.delivered memory.repeated session.started permission.denied call.failed"
    " publication.begun publication.ended".split()
)
"""The entries that change nothing of what the state shows."""


class Readings:
    """The reading side of an open ledger."""

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        inheritance: Inheritance,
        renderer: Renderer,
        genesis: Genesis,
        symbols: Symbols | None = None,
        vectors: LedgerVectors | None = None,
        ranking: Ranking | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._inheritance = inheritance
        self._renderer = renderer
        self._symbols = symbols or Symbols()
        self._vectors = vectors or LedgerVectors()
        self._ranking = ranking or Ranking()
        self._policy = policy or Policy()
        self.genesis = genesis

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """One consistent view of the ledger, for whoever copies it; never waits for a writer."""
        return self._engine.read()

    def search(self, caller: Caller, request: SearchRequest) -> Reply:
        """Search, record the search, and answer.

        Raises NotRecorded when it cannot be recorded within 2 s, InvalidInput for a bad query or cursor.
        """
        check_text(request.query, field="query")
        if len(request.query) > QUERY_CHARS:
            raise InvalidInput(
                f"query has {len(request.query)} characters; at most {QUERY_CHARS} are allowed.",
                field="query",
                hint="Ask with the telling words only.",
            )
        if not 1 <= request.limit <= SEARCH_LIMIT:
            raise InvalidInput(
                f"limit must lie between 1 and {SEARCH_LIMIT}.",
                field="limit",
                hint="Page on with the cursor.",
            )
        typed, request = request.conditions, replace(request, conditions=known_conditions(request.conditions))
        retrieval_id = new_id(RETRIEVAL)
        meaning = self._meant(request.query)
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, request.as_of)
            start = cursor.Place(cut, at, 0)
            place = self._onward(start, request.cursor, request.asked, request.conditions)
            by_words = request.cursor is not None and not place.watermarks
            question = Question(
                request.query,
                request.conditions,
                request.limit,
                place.offset,
                request.order,
                meaning.by_words() if by_words else meaning,
                self._ranking,
            )
            with self._view(
                snapshot,
                place.cut,
                place.at,
                place.watermarks,
                meaning=meaning.model is not None,
                caller=caller,
            ) as view:
                found = recall(view, question)
                conflicts = view.conflicts(hit.version.memory_id for hit in found.hits)
                similar = () if found.total else self._similar(view, request.conditions.symbol)
        reply, given = show_hits(self._renderer, request, place, found, retrieval_id, similar, conflicts)
        recorded = screen_search(question, typed, self._policy.secrets)
        event = found.record(recorded, request.as_of, given, reply.text)
        draft = Draft(event, "retrieval", retrieval_id, retrieval_id=retrieval_id)
        self._record_search(caller, draft)
        return reply

    def get(
        self,
        caller: Caller,
        memory_id: str,
        as_of: int | None = None,
        *,
        kind: str | None = None,
        cursor_text: str | None = None,
        detailed: bool = False,
        reply_chars: int = 32_000,
    ) -> Reply:
        """One memory whole, with its history, as it stood; the showing is recorded.

        `detailed` adds the explanation of an order, decision or thesis. A text too long for one reply goes on where
        `cursor_text`, the reply's cursor, says. Raises NotFound when the id names nothing (as of that time), or
        nothing of `kind`.
        """
        name = identifier(memory_id, field="memory_id")
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            place = self._onward(cursor.Place(cut, at, 0), cursor_text, name, Filter())
            with self._view(snapshot, place.cut, place.at, caller=caller) as view:
                version, history = view.version(name), view.history(name)
                conflicts = view.conflicts([name]).get(name, [])
                story = self._story(view, version) if detailed else None
            before = _last_shown(snapshot, caller, name, place.cut)
            if version is None or kind not in (None, version.kind):
                raise NotFound(
                    f"memory_id names no {kind or 'memory'} of this ledger"
                    + (" at that time." if as_of is not None else "."),
                    field="memory_id",
                    hint="Find the id with search_memory.",
                )
        spare = len(',"recorded":false')
        body = show_memory(self._renderer, version, history, place, reply_chars - spare, story, conflicts)
        delivered = Delivered(
            surface="memory",
            as_of=as_of,
            cut=view.cut,
            inherited_cut=view.inherited_cut,
            shown=(selected(version),),
        )
        body["recorded"] = self._record_delivery(caller, name, delivered, before)
        return Reply(body, as_text(body))

    def state(self, caller: Caller, as_of: int | None = None, *, state_chars: int = 16_000) -> Reply:
        """The compact state as it stood, at most `state_chars` characters; the showing is recorded."""
        spare = len(',"recorded":false')
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            with self._view(snapshot, cut, at, caller=caller) as view:
                state = build_state(
                    view, self._renderer, caller, self._ledger.strategy, self._ledger.run, state_chars - spare
                )
            before = _last_shown(snapshot, caller, "state", cut)
        delivered = Delivered(
            surface="state", as_of=as_of, cut=view.cut, inherited_cut=view.inherited_cut, shown=state.shown
        )
        body = state.body | {"recorded": self._record_delivery(caller, "state", delivered, before)}
        return Reply(body, as_text(body))

    def state_changed(self, after: int) -> tuple[int, bool]:
        """The last sequence, and whether an entry after `after` may have changed the state."""
        with self._engine.read() as snapshot:
            last = head_of(snapshot).sequence
            if last <= after:
                return last, False
            entries = snapshot.entries(
                EntryFilter(after=after, until_sequence=last, limit=CHANGES_LOOKED_AT + 1)
            )
            seen = [entry.event_type for entry in entries]
        return last, len(seen) > CHANGES_LOOKED_AT or any(found not in UNCHANGING for found in seen)

    def explain(self, memory_id: str, as_of: int | None = None) -> Explanation:
        """Why an order, decision or thesis came about, as the ledger stood at `as_of`.

        Raises NotFound for an id that names none.
        """
        with self._engine.read() as snapshot:
            cut, at = _cut(snapshot, as_of), head_of(snapshot).latest_effective_at if as_of is None else as_of
            with self._view(snapshot, cut, at) as view:
                return explain(view, self._renderer, identifier(memory_id, field="memory_id"))

    def unreconciled(
        self,
        caller: Caller,
        symbol: str | None,
        limit: int,
        as_of: int | None = None,
        *,
        reply_chars: int = 32_000,
    ) -> Reply:
        """Actions whose outcome is not known, and orders still working; oldest first, with age, as they stood."""
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            with self._view(snapshot, cut, at) as view:
                named = None if symbol is None else view.spellings(symbol)
            found = snapshot.unreconciled(named, cut, limit=limit)
            total = snapshot.count_unreconciled(named, cut)
            working = working_orders(snapshot, self._renderer, named, cut, at, limit)
            working_total = snapshot.count_open_orders(named, cut)
        body: dict[str, Any] = {
            "notice": NOTICE,
            "total": total,
            "open_orders_total": working_total,
            "truncated": total > len(found) or working_total > len(working),
            "orders": [self._renderer.open_order(action, at) for action in found],
            "open_orders": working,
        }
        while len(as_text(body)) > reply_chars and (body["orders"] or working):
            (body["orders"] if len(body["orders"]) > len(working) else working).pop()
            body["truncated"] = True
        return Reply(body, as_text(body))

    def log(self, conditions: EntryFilter, as_of: int | None = None) -> list[Entry]:
        """Entries that meet the conditions, in order of sequence, as the ledger stood at `as_of`."""
        with self._engine.read() as snapshot:
            cut = _cut(snapshot, as_of)
            last = cut if conditions.until_sequence is None else min(cut, conditions.until_sequence)
            return list(snapshot.entries(replace(conditions, until_sequence=last)))

    def show(self, name: str, as_of: int | None = None) -> list[Entry]:
        """All entries about a memory, retrieval, session or event id, as the ledger stood at `as_of`.

        Raises NotFound when there is none.
        """
        with self._engine.read() as snapshot:
            cut = _cut(snapshot, as_of)
            found = snapshot.history(name, cut)
            single = snapshot.entry_of_event(name)
        if single is not None and single.sequence <= cut and not found:
            found = [single]
        if not found:
            raise NotFound(
                f"Nothing in this ledger has the id {name}.", hint="`deskbook log` lists the entries."
            )
        return found

    def _story(self, view: View, version: Version | None) -> dict[str, Any] | None:
        """The explanation of a memory that has one."""
        if version is None or version.kind not in EXPLAINED:
            return None
        told = explain(view, self._renderer, version.memory_id).body
        return {name: told[name] for name in ("related", "steps_total", "steps")}

    def _similar(self, view: View, symbol: str | None) -> tuple[str, ...]:
        """Spellings like a symbol under which memory does hold something, for one that holds nothing."""
        if symbol is None:
            return ()
        return tuple(
            name
            for name in self._symbols.similar(symbol, view.at)
            if view.count_versions(Filter(symbol=name))
        )

    def _meant(self, query: str) -> Meaning:
        """What a query means; in a run, once the vectors of all that it may see are there, live of nearly all."""
        in_run = self._ledger.run is not None
        meaning = self._vectors.meant(query, in_run=in_run)
        if in_run and meaning.model is not None:
            self._vectors.wait()
            self._inheritance.wait()
        elif meaning.model is not None:
            self._vectors.catch_few()
        return meaning

    @contextmanager
    def _view(
        self,
        snapshot: Snapshot,
        cut: int,
        at: int,
        watermarks: tuple[int, ...] | None = None,
        *,
        meaning: bool = False,
        caller: Caller | None = None,
    ) -> Iterator[View]:
        """What a call sees at a cut of this ledger and an instant, what it inherits included; without a caller, all.

        With `meaning` it may be asked for what is alike, up to the watermarks of the layers where they are given.
        """
        vectors, watermark = self._vectors.at(snapshot, cut) if meaning else (None, 0)
        with self._inheritance.layers(at, meaning=meaning) as inherited:
            own = Layer(snapshot, cut, None, vectors, watermark)
            yield View(
                as_on_the_first_page((own, *inherited), watermarks or ()),
                at,
                self._renderer.zone,
                self._symbols,
                self._ledger.run is not None,
                self._policy,
                None if caller is None or caller.reviewer else caller.agent,
            )

    def _stand(self, snapshot: Snapshot, caller: Caller, as_of: int | None) -> tuple[int, int]:
        """Cut and instant of a reading: as things stand at the call's time, or as they stood at `as_of`.

        A clock gone wrong may have left entries that lie after an `as_of` of today: those stay hidden.
        """
        head = head_of(snapshot)
        now = self._ledger.instant(snapshot, head, caller)
        if as_of is None:
            return head.sequence, now
        return snapshot.cut_at(as_of), min(as_of, now)

    def _onward(
        self, start: cursor.Place, cursor_text: str | None, query: str, conditions: Filter
    ) -> cursor.Place:
        """Where a reading goes on: at its cursor, yet never past the cut and time the call may see."""
        if cursor_text is None:
            return start
        place = cursor.decode(cursor_text, query, conditions)
        return replace(place, cut=min(place.cut, start.cut), at=min(place.at, start.at))

    def _record_search(self, caller: Caller, draft: Draft) -> None:
        try:
            self._engine.write(
                lambda transaction: self._ledger.append(transaction, caller, [draft]),
                timeout=SEARCH_SECONDS,
                grace=0.5,
            )
        except StoreError as fault:
            raise NotRecorded.because_of(fault) from fault

    def _record_delivery(
        self, caller: Caller, subject_id: str, event: Delivered, before: Delivery | None
    ) -> bool:
        """Record a showing unless the same was shown `before`; False when it cannot be done at once."""
        if before is not None and _same_showing(before, event):
            return True
        draft = Draft(event, event.surface, subject_id)
        try:
            self._engine.write(
                lambda transaction: self._ledger.append(transaction, caller, [draft]),
                timeout=DELIVERY_SECONDS,
                grace=DELIVERY_SECONDS,
            )
        except StoreError:
            return False
        return True


def _last_shown(snapshot: Snapshot, caller: Caller, subject_id: str, cut: int) -> Delivery | None:
    """What the agent was last shown of a subject in this session and model call.

    Once the agent has acted, a showing counts anew: it is asked what was seen since its last order.
    """
    last = snapshot.last_delivery(caller.agent, caller.session_id, caller.model_call_id, subject_id)
    if last is None or snapshot.last_intent(caller.agent, None, cut) >= last.sequence:
        return None
    return last


def head_of(snapshot: Snapshot) -> Head:
    """The last entry; raises NotFound for a ledger that was never begun."""
    head = snapshot.head()
    if head is None:
        raise NotFound("The ledger has no entry yet.", hint="Restore it from a backup.")
    return head


def _cut(snapshot: Snapshot, as_of: int | None) -> int:
    head = head_of(snapshot)
    return head.sequence if as_of is None else snapshot.cut_at(as_of)


def _same_showing(last: Delivery, event: Delivered) -> bool:
    return last.shown == shown_text(event) and last.as_of == event.as_of
