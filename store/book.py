"""An open ledger with everything that can be done with it: the store's front door.

`Book.open` finds or makes the ledger of a strategy or run below a root. Writes are answered once they are
durable; searches once they are recorded. Safe to use from many threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from .caller import Caller
from .canonical import check_text
from .clock import Clock, WallClock
from .commands import Command
from .engines.base import Engine, EngineStatus, Snapshot, Transaction
from .engines.sqlite import SqliteEngine
from .entry import Entry
from .errors import IdempotencyConflict, InvalidInput, NotFound, NotRecorded, StoreError
from .events import CallFailed, Delivered, Denied, Genesis, Selected
from .ids import RETRIEVAL, new_id
from .inputs import identifier, known_conditions
from .ledger import Draft, Ledger, arguments_hash, event_of, projected
from .limits import QUERY_CHARS, SEARCH_LIMIT
from .memories import Moment, plan
from .paths import absent, ledger_path, make_folders, refuse_links
from .projection import shown_text
from .render import NOTICE, Renderer, as_text
from .replies import Reply, SearchRequest, Written
from .rows import EntryFilter, Filter, Head
from .search import cursor
from .search.recall import Found, Question, recall
from .showing import show_memory
from .state import build_state

WRITE_SECONDS = 10.0
SEARCH_SECONDS = 2.0
DELIVERY_SECONDS = 0.15
_CONCISE_CHARS = 280
_CONCISE_BYTES = 380


class Book:
    """One ledger, open."""

    def __init__(self, engine: Engine, ledger: Ledger, renderer: Renderer, genesis: Genesis) -> None:
        self._engine = engine
        self._ledger = ledger
        self._renderer = renderer
        self.genesis = genesis

    @classmethod
    def open(
        cls,
        root: Path,
        strategy: str,
        run: str | None = None,
        *,
        create: bool = True,
        begins: int | None = None,
        durability: str = "full",
        clock: Clock | None = None,
        zone: tzinfo | None = None,
        product: str = "deskbook",
    ) -> Book:
        """Open the ledger of a strategy (live) or of one of its runs, making it unless `create` is false.

        A run that is made begins at `begins`, microseconds since the epoch, UTC. Raises NotFound when the ledger
        is absent and not to be made, else the StoreError that says why it cannot serve.
        """
        path = ledger_path(root, strategy, run)
        refuse_links(root, path)
        if create and absent(path):
            make_folders(root, path)
        engine = SqliteEngine(
            path, projected, durability="normal" if durability == "normal" else "full", create=create
        )
        ledger = Ledger(clock or WallClock(), strategy, run)
        try:
            with engine.read() as snapshot:
                begun = snapshot.head() is not None
            if not begun:
                engine.write(
                    lambda transaction: ledger.begin(transaction, product, begins), timeout=WRITE_SECONDS
                )
            with engine.read() as snapshot:
                genesis = ledger.check(snapshot)
        except BaseException:
            engine.close()
            raise
        return cls(engine, ledger, Renderer(None if str(zone) == "UTC" else zone), genesis)

    def execute(self, caller: Caller, command: Command, *, idempotency_key: str | None = None) -> Written:
        """Do what a command says and answer once it is durable.

        The same key with the same command gives the first answer back. Raises the InvalidInput, NotFound,
        Conflict, PermissionDenied, ClockError or StoreError that fits; then nothing was stored, or the error
        says otherwise.
        """
        key = None if idempotency_key is None else identifier(idempotency_key, field="idempotency_key")

        def job(transaction: Transaction) -> Written:
            head = _head(transaction)
            at = self._ledger.instant(head, caller)
            if key is not None and (first := transaction.replay(caller.agent, caller.tool, key)):
                _check_same(first, command)
                return _written(transaction, first)
            planned = plan(command, transaction, caller, Moment(head.sequence, at))
            if planned.standing is not None:
                return _written(transaction, planned.standing)
            first_draft, *more = planned.drafts
            entries = self._ledger.append(transaction, caller, [_keyed(first_draft, command, key), *more])
            return _written(transaction, entries[0])

        return self._engine.write(job, timeout=WRITE_SECONDS)

    def answer(self, written: Written) -> Reply:
        """The reply that tells a caller of a durable write."""
        body = self._renderer.written(written)
        return Reply(body, as_text(body))

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
        request = replace(request, conditions=known_conditions(request.conditions))
        retrieval_id = new_id(RETRIEVAL)
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, request.as_of)
            start = cursor.Place(cut, at, 0)
            place = self._onward(start, request.cursor, request.query, request.conditions)
            question = Question(request.query, request.conditions, request.limit, place.offset)
            found = recall(snapshot, question, place.cut, place.at)
        reply, given = self._answer(request, place, found, retrieval_id)
        event = found.record(question, request.as_of, given, reply.text)
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
        reply_chars: int = 32_000,
    ) -> Reply:
        """One memory whole, with its history, as it stood; the showing is recorded.

        A text too long for one reply goes on where `cursor_text`, the reply's cursor, says. Raises NotFound when
        the id names nothing (as of that time), or nothing of `kind`.
        """
        name = identifier(memory_id, field="memory_id")
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            place = self._onward(cursor.Place(cut, at, 0), cursor_text, name, Filter())
            version = snapshot.version(name, place.cut)
            if version is None or kind not in (None, version.kind):
                raise NotFound(
                    f"memory_id names no {kind or 'memory'} of this ledger"
                    + (" at that time." if as_of is not None else "."),
                    field="memory_id",
                    hint="Find the id with search_memory.",
                )
            history = snapshot.history(name, place.cut)
        spare = len(',"recorded":false')
        body = show_memory(self._renderer, version, history, place, reply_chars - spare)
        shown = (Selected(id=version.memory_id, version=version.version),)
        delivered = Delivered(surface="memory", as_of=as_of, cut=place.cut, shown=shown)
        body["recorded"] = self._record_delivery(caller, name, delivered)
        return Reply(body, as_text(body))

    def state(self, caller: Caller, as_of: int | None = None, *, state_chars: int = 16_000) -> Reply:
        """The compact state as it stood, at most `state_chars` characters; the showing is recorded."""
        spare = len(',"recorded":false')
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            state = build_state(
                snapshot,
                self._renderer,
                caller,
                self._ledger.strategy,
                self._ledger.run,
                cut,
                at,
                state_chars - spare,
            )
        delivered = Delivered(surface="state", as_of=as_of, cut=cut, shown=state.shown)
        body = state.body | {"recorded": self._record_delivery(caller, "state", delivered)}
        return Reply(body, as_text(body))

    def note_denied(self, caller: Caller, tool: str, count: int = 1) -> None:
        """Record calls the identity was not allowed to make."""
        self._note(caller, Draft(Denied(tool=tool, count=count), "call", tool))

    def note_failed(self, caller: Caller, tool: str, code: str, field: str | None, count: int = 1) -> None:
        """Record changing calls that failed."""
        self._note(caller, Draft(CallFailed(tool=tool, code=code, field=field, count=count), "call", tool))

    def log(self, conditions: EntryFilter) -> list[Entry]:
        """Entries that meet the conditions, in order of sequence."""
        with self._engine.read() as snapshot:
            return list(snapshot.entries(conditions))

    def show(self, name: str) -> list[Entry]:
        """All entries about a memory, retrieval, session or event id; raises NotFound when there is none."""
        with self._engine.read() as snapshot:
            head = snapshot.head()
            found = snapshot.history(name, head.sequence if head else 0)
            single = snapshot.entry_of_event(name)
        if single is not None and not found:
            found = [single]
        if not found:
            raise NotFound(
                f"Nothing in this ledger has the id {name}.", hint="`deskbook log` lists the entries."
            )
        return found

    def head(self) -> Head:
        """The ledger's last entry."""
        with self._engine.read() as snapshot:
            return _head(snapshot)

    def rebuild(self, progress: Callable[[int], None]) -> None:
        """Drop every projection and write it anew from the ledger; `progress` is told sequences."""
        self._engine.rebuild(progress)

    def status(self) -> EngineStatus:
        """How the store stands."""
        return self._engine.status()

    def close(self) -> None:
        """Finish what is queued and let go of the files."""
        self._engine.close()

    def _stand(self, snapshot: Snapshot, caller: Caller, as_of: int | None) -> tuple[int, int]:
        """Cut and instant of a reading: as things stand at the call's time, or as they stood at `as_of`.

        A clock gone wrong may have left entries that lie after an `as_of` of today: those stay hidden.
        """
        head = _head(snapshot)
        now = self._ledger.instant(head, caller)
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
        return cursor.Place(min(place.cut, start.cut), min(place.at, start.at), place.offset)

    def _answer(
        self, request: SearchRequest, place: cursor.Place, found: Found, retrieval_id: str
    ) -> tuple[Reply, int]:
        """The reply with as many hits as fit, and how many those are."""
        longest = max(200, request.reply_chars // 4) if request.detailed else _CONCISE_CHARS
        hits = []
        for hit in found.hits:
            if request.detailed:
                shown = self._renderer.detailed(hit.version, place.at, longest)
                shown["provenance"] = {"rank": hit.rank, "lexical_score": hit.score and round(hit.score, 4)}
            else:
                shown = self._renderer.concise(hit.version, place.at, longest, _CONCISE_BYTES)
            hits.append(shown)
        while True:
            end = place.offset + len(hits)
            more = end < found.total and bool(hits)
            onward = cursor.encode(cursor.Place(place.cut, place.at, end), request.query, request.conditions)
            body: dict[str, Any] = {
                "notice": NOTICE,
                "retrieval_id": retrieval_id,
                "total": found.total,
                "truncated": more,
                "cursor": onward if more else None,
                "hits": hits,
            }
            if not found.total:
                body["message"] = "Nothing relevant is recorded. Do not invent a memory."
            text = as_text(body)
            if len(text) <= request.reply_chars or len(hits) <= 1:
                return Reply(body, text), len(hits)
            hits.pop()

    def _record_search(self, caller: Caller, draft: Draft) -> None:
        try:
            self._engine.write(
                lambda transaction: self._ledger.append(transaction, caller, [draft]),
                timeout=SEARCH_SECONDS,
                grace=0.5,
            )
        except StoreError as fault:
            raise NotRecorded(
                f"The search could not be recorded, so it is not answered: {fault.message}",
                hint=fault.hint,
                stored=fault.stored,
            ) from fault

    def _record_delivery(self, caller: Caller, subject_id: str, event: Delivered) -> bool:
        """Record a showing unless the same was the last one shown; False when it cannot be done at once."""
        with self._engine.read() as snapshot:
            last = snapshot.last_delivery(caller.agent, caller.session_id, caller.model_call_id, subject_id)
        if last is not None and last.shown == shown_text(event) and last.as_of == event.as_of:
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

    def _note(self, caller: Caller, draft: Draft) -> None:
        def job(transaction: Transaction) -> None:
            head = _head(transaction)
            stamped = self._ledger.at_least(head, caller)
            self._ledger.append(transaction, stamped, [draft])

        self._engine.write(job, timeout=SEARCH_SECONDS)


def _head(snapshot: Snapshot) -> Head:
    head = snapshot.head()
    if head is None:
        raise NotFound("The ledger has no entry yet.", hint="Restore it from a backup.")
    return head


def _keyed(draft: Draft, command: Command, key: str | None) -> Draft:
    return replace(draft, arguments=command.arguments(), idempotency_key=key)


def _check_same(first: Entry, command: Command) -> None:
    if arguments_hash(first.content_salt, command.arguments()) != first.arguments_sha256:
        raise IdempotencyConflict(
            f"The idempotency_key was used at sequence {first.sequence} with other arguments.",
            field="idempotency_key",
            hint="Use a new key for a new call.",
        )


def _written(transaction: Transaction, entry: Entry) -> Written:
    version = transaction.version(entry.subject_id, entry.sequence)
    if version is None:
        raise LookupError(f"entry {entry.sequence} left no version of {entry.subject_id}")
    return Written(
        id=version.memory_id,
        kind=version.kind,
        status=version.status,
        version=version.version,
        sequence=entry.sequence,
        event_id=entry.event_id,
        effective_at=entry.effective_at,
        warnings=tuple(getattr(event_of(entry), "notices", ())),
    )
