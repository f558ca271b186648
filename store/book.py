"""An open ledger with everything that can be done with it: the store's front door.

`Book.open` finds or makes the ledger of a strategy or run below a root. Writes are answered once they are
durable; searches once they are recorded. Safe to use from many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from .caller import Caller
from .clock import Clock, WallClock
from .commands import Command
from .engines.base import Engine, EngineStatus, Snapshot, Transaction
from .engines.sqlite import SqliteEngine
from .entry import Entry
from .errors import ConfigError, InvalidInput, NotFound, NotRecorded, StoreError
from .events import CallFailed, ClockAdvanced, Delivered, Denied, Genesis
from .idempotency import check_same, keyed
from .ids import RETRIEVAL, new_id
from .inheritance import Inherit, Inheritance, check_inherit, pin_of
from .inputs import identifier
from .ledger import Draft, Ledger, event_of, projected, without_beginning
from .limits import QUERY_CHARS, SEARCH_LIMIT
from .memories import plan
from .paths import absent, ledger_path, make_folders, refuse_links
from .projection import shown_text
from .render import Renderer, as_text
from .replies import Reply, SearchRequest, Written
from .rows import EntryFilter, Filter, Head
from .search import cursor
from .search.recall import Question, recall, selected
from .showing import show_hits, show_memory
from .state import build_state
from .view import Layer, View

WRITE_SECONDS = 10.0
SEARCH_SECONDS = 2.0
DELIVERY_SECONDS = 0.15


class Book:
    """One ledger, open."""

    def __init__(
        self, engine: Engine, ledger: Ledger, inheritance: Inheritance, renderer: Renderer, genesis: Genesis
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._inheritance = inheritance
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
        inherit: Inherit | None = None,
        durability: str = "full",
        clock: Clock | None = None,
        zone: tzinfo | None = None,
        product: str = "deskbook",
    ) -> Book:
        """Open the ledger of a strategy (live) or of one of its runs, making it unless `create` is false.

        A run that is made begins at `begins`, microseconds since the epoch, UTC, and inherits what `inherit`
        says; for one that stands, `inherit` must agree with its genesis (None agrees with any). Raises NotFound
        when the ledger is absent and not to be made, else the error that says why it cannot serve.
        """
        path = ledger_path(root, strategy, run)
        refuse_links(root, path)
        if create and absent(path):
            if run is not None and begins is None:
                # Before anything is made: a run that never began must not lie about as a ledger without a genesis.
                raise without_beginning()
            make_folders(root, path)
        engine = SqliteEngine(
            path, projected, durability="normal" if durability == "normal" else "full", create=create
        )
        ledger = Ledger(clock or WallClock(), strategy, run)
        inheritance = Inheritance()
        try:
            with engine.read() as snapshot:
                begun = snapshot.head() is not None
            if not begun:
                pin = pin_of(root, strategy) if run is not None and inherit == "live" else None
                engine.write(
                    lambda transaction: ledger.begin(transaction, product, begins, pin), timeout=WRITE_SECONDS
                )
            with engine.read() as snapshot:
                genesis = ledger.check(snapshot)
            check_inherit(genesis, inherit)
            inheritance = Inheritance.of(root, strategy, genesis)
        except BaseException:
            engine.close()
            raise
        return cls(engine, ledger, inheritance, Renderer(None if str(zone) == "UTC" else zone), genesis)

    def execute(self, caller: Caller, command: Command, *, idempotency_key: str | None = None) -> Written:
        """Do what a command says and answer once it is durable.

        The same key with the same command gives the first answer back. Raises the InvalidInput, NotFound,
        Conflict, PermissionDenied, ClockError or StoreError that fits; then nothing was stored, or the error
        says otherwise.
        """
        key = None if idempotency_key is None else identifier(idempotency_key, field="idempotency_key")

        def job(transaction: Transaction) -> Written:
            head = _head(transaction)
            at = self._ledger.instant(transaction, head, caller)
            if key is not None and (first := transaction.replay(caller.agent, caller.tool or "", key)):
                check_same(first, command)
                return _written(transaction, first)
            with self._view(transaction, head.sequence, at) as view:
                planned = plan(command, transaction, caller, view)
            if planned.standing is not None:
                return _written(transaction, planned.standing)
            first_draft, *more = planned.drafts
            entries = self._ledger.append(transaction, caller, [keyed(first_draft, command, key), *more])
            return _written(transaction, entries[0])

        return self._engine.write(job, timeout=WRITE_SECONDS)

    def advance_clock(self, caller: Caller, now: int) -> Written:
        """Move a run's clock to `now`, microseconds since the epoch, UTC; the calls after it need no time.

        Raises ClockError on a live ledger and for a time before the run's last entry.
        """

        def job(transaction: Transaction) -> Written:
            event = ClockAdvanced(previous=_head(transaction).latest_effective_at)
            draft = Draft(event, "ledger", "clock")
            entry = self._ledger.append(transaction, replace(caller, now=now), [draft])[0]
            return Written(
                "clock", "clock", "advanced", 1, entry.sequence, entry.event_id, entry.effective_at
            )

        return self._engine.write(job, timeout=WRITE_SECONDS)

    def answer(self, written: Written) -> Reply:
        """The reply that tells a caller of a durable write."""
        body = self._renderer.written(written)
        return Reply(body, as_text(body))

    def search(self, caller: Caller, request: SearchRequest) -> Reply:
        """Search, record the search, and answer.

        Raises NotRecorded when it cannot be recorded within 2 s, InvalidInput for a bad query or cursor.
        """
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
        retrieval_id = new_id(RETRIEVAL)
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, request.as_of)
            start = cursor.Place(cut, at, 0)
            place = self._onward(start, request.cursor, request.query, request.conditions)
            question = Question(request.query, request.conditions, request.limit, place.offset)
            with self._view(snapshot, place.cut, place.at) as view:
                found = recall(view, question)
        reply, given = show_hits(self._renderer, request, place, found, retrieval_id)
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
            with self._view(snapshot, place.cut, place.at) as view:
                version, history = view.version(name), view.history(name)
            if version is None or kind not in (None, version.kind):
                raise NotFound(
                    f"memory_id names no {kind or 'memory'} of this ledger"
                    + (" at that time." if as_of is not None else "."),
                    field="memory_id",
                    hint="Find the id with search_memory.",
                )
        spare = len(',"recorded":false')
        body = show_memory(self._renderer, version, history, place, reply_chars - spare)
        delivered = Delivered(
            surface="memory",
            as_of=as_of,
            cut=view.cut,
            inherited_cut=view.inherited_cut,
            shown=(selected(version),),
        )
        body["recorded"] = self._record_delivery(caller, name, delivered)
        return Reply(body, as_text(body))

    def state(self, caller: Caller, as_of: int | None = None, *, state_chars: int = 16_000) -> Reply:
        """The compact state as it stood, at most `state_chars` characters; the showing is recorded."""
        spare = len(',"recorded":false')
        with self._engine.read() as snapshot:
            cut, at = self._stand(snapshot, caller, as_of)
            with self._view(snapshot, cut, at) as view:
                state = build_state(
                    view, self._renderer, caller, self._ledger.strategy, self._ledger.run, state_chars - spare
                )
        delivered = Delivered(
            surface="state", as_of=as_of, cut=view.cut, inherited_cut=view.inherited_cut, shown=state.shown
        )
        body = state.body | {"recorded": self._record_delivery(caller, "state", delivered)}
        return Reply(body, as_text(body))

    def note_denied(self, caller: Caller, tool: str, count: int = 1) -> None:
        """Record calls the identity was not allowed to make."""
        self._note(caller, Draft(Denied(tool=tool, count=count), "call", tool))

    def note_failed(self, caller: Caller, tool: str, code: str, field: str | None, count: int = 1) -> None:
        """Record changing calls that failed."""
        self._note(caller, Draft(CallFailed(tool=tool, code=code, field=field, count=count), "call", tool))

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

    def head(self) -> Head:
        """The ledger's last entry."""
        with self._engine.read() as snapshot:
            return _head(snapshot)

    def rebuild(self, progress: Callable[[int], None]) -> None:
        """Drop every projection and write it anew from the ledger; `progress` is told sequences."""
        self._engine.rebuild(progress)

    def write_as_of(self, as_of: int, target: Path) -> int:
        """Write the ledger as it stood at `as_of` into a new file, projections rebuilt; gives its entries.

        Raises ConfigError when the target exists. The ledger itself stays as it is.
        """
        if target.exists():
            raise ConfigError(f"{target} exists.", field="--to", hint="Name a file that does not exist yet.")
        with self._engine.read() as snapshot:
            cut = snapshot.cut_at(as_of)
        self._engine.copy_until(cut, target)
        return cut

    def status(self) -> EngineStatus:
        """How the store stands."""
        return self._engine.status()

    def close(self) -> None:
        """Finish what is queued and let go of the files."""
        self._engine.close()
        self._inheritance.close()

    @contextmanager
    def _view(self, snapshot: Snapshot, cut: int, at: int) -> Iterator[View]:
        """What a call sees at a cut of this ledger and an instant, what it inherits included."""
        with self._inheritance.layers(at) as inherited:
            yield View((Layer(snapshot, cut), *inherited), at)

    def _stand(self, snapshot: Snapshot, caller: Caller, as_of: int | None) -> tuple[int, int]:
        """Cut and instant of a reading: how things stand, or the cut at `as_of`.

        That cut holds also where `as_of` is not before now: a clock that stepped back leaves later entries behind.
        """
        head = _head(snapshot)
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
        return cursor.Place(min(place.cut, start.cut), min(place.at, start.at), place.offset)

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


def _cut(snapshot: Snapshot, as_of: int | None) -> int:
    head = _head(snapshot)
    return head.sequence if as_of is None else snapshot.cut_at(as_of)


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
