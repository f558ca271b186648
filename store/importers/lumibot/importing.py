"""One import of a Lumibot memory: batch by batch, each in a transaction, so that it can be broken off and go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from ...book import Book
from ...caller import Caller, Client
from ...clock import Clock, WallClock
from ...engines.base import Transaction
from ...engines.sqlite import SqliteEngine
from ...errors import ConfigError, Conflict
from ...ids import IMPORT, new_id
from ...import_events import ImportBegun, ImportEnded
from ...inputs import identifier
from ...ledger import Draft, Ledger, projected
from ...paths import absent, ledger_path, refuse_links
from ...rows import EntryFilter
from ...screening.instructions import instructs, texts_in
from ..report import ImportReport
from .known import TOOL, Known
from .mapping import SYSTEM, drafts_of
from .record import Record, event_record, index_record, retrieval_record
from .source import Row, Source, open_source
from .survey import Survey

BATCH = 200
PROFILE = "importer"
_SECONDS = 120.0
Progress = Callable[[int, int], None]


def import_lumibot(
    path: Path,
    root: Path,
    strategy: str | None = None,
    *,
    agent: str = PROFILE,
    into_existing: bool = False,
    dry_run: bool = False,
    durability: str = "full",
    product: str = "deskbook",
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Bring the memory at `path` into the live ledger of a strategy below a root; what is there is not added again.

    `strategy` is the source's own unless it is named. With `dry_run` nothing is written. `progress` is told rows
    done and rows in all. Raises ConfigError when the strategy must be named, Conflict when the ledger holds entries
    of anything but this source and `into_existing` is not set, and the StoreError that fits when source or ledger
    cannot serve.
    """
    with ExitStack() as stack:
        source = stack.enter_context(open_source(path))
        named = identifier(strategy or _only_strategy(source), field="--strategy")
        target = ledger_path(root, named, None)
        refuse_links(root, target)
        importing = _Import(source, agent, into_existing=into_existing)
        engine = None
        if not dry_run and (source.count() or not absent(target)):
            # Makes it, or finishes its making, and refuses one that was moved here.
            Book.open(root, named, durability=durability, clock=clock, product=product).close()
        if not absent(target):
            engine = stack.enter_context(
                closing(
                    SqliteEngine(
                        target,
                        projected,
                        durability="normal" if durability == "normal" else "full",
                        create=False,
                        writes=not dry_run,
                    )
                )
            )
            importing.read(engine)
        if dry_run:
            engine = None
        importing.go(engine, Ledger(clock or WallClock(), named, None), progress or _untold)
        return ImportReport(
            source=SYSTEM,
            files=source.files,
            strategy=named,
            path=str(target),
            rows=dict(importing.survey.rows),
            known=importing.already,
            added=dict(importing.added),
            defects=importing.survey.defects,
            dry_run=dry_run,
        )


class _Import:
    def __init__(self, source: Source, agent: str, *, into_existing: bool) -> None:
        self.survey = Survey()
        self.known = Known()
        self.already = 0
        self.added: Counter[str] = Counter()
        self._source = source
        self._origin = source.origin() or ""
        self._into_existing = into_existing
        self._id = new_id(IMPORT)
        self._begun = False
        self._caller = Caller(
            agent=identifier(agent, field="--as"),
            profile=PROFILE,
            session_id=self._id,
            tool=TOOL,
            client=Client(transport="command"),
        )

    def read(self, engine: SqliteEngine) -> None:
        """Learn from the ledger what it holds; raises Conflict when it may not take this source."""
        with engine.read() as snapshot:
            self.known.learn(snapshot.entries(EntryFilter(limit=-1)))
        self._check(self.known)

    def go(self, engine: SqliteEngine | None, ledger: Ledger, progress: Progress) -> None:
        """Take every row of the source; without an engine only look at them."""
        total, done = self._source.count(), 0
        batch: list[Record] = []
        for record in self._records():
            done += 1
            if self.known.holds(record.event_type, record.source_id):
                self.already += 1
                continue
            batch.append(record)
            if len(batch) == BATCH:
                self._write(engine, ledger, batch)
                batch = []
                progress(done, total)
        self._write(engine, ledger, batch)
        self.survey.finish()
        progress(done, total)
        if engine is not None:
            self._end(engine, ledger)

    def _records(self) -> Iterator[Record]:
        for record in _in_order(self._source):
            self.survey.look(record)
            yield record
        for row in self._source.index():
            name = row.get("memory_id") or ""
            if name in self.survey.latest:
                self.survey.behind(name, row.get("latest_event_id"))
                continue
            record = index_record(row)
            self.survey.look(record)
            yield record

    def _write(self, engine: SqliteEngine | None, ledger: Ledger, batch: list[Record]) -> None:
        if not batch:
            return
        if engine is None:
            self.added.update(record.event_type for record in batch)
            return

        def job(transaction: Transaction) -> tuple[Known, Counter[str]]:
            known, added = self._up_to_date(transaction), Counter[str]()
            if not self._begun:
                known.learn(ledger.append(transaction, self._caller, [self._beginning()]))
            for record in batch:
                if known.holds(record.event_type, record.source_id):
                    continue
                drafts = [_marked(each) for each in drafts_of(record, known, transaction, self._id)]
                known.learn(ledger.append(transaction, self._caller, drafts))
                added.update(draft.event.type for draft in drafts)
            return known, added

        known, added = engine.write(job, timeout=_SECONDS, grace=_SECONDS)
        self._begun = True
        self.known.merge(known)
        self.added.update(added)

    def _end(self, engine: SqliteEngine, ledger: Ledger) -> None:
        """Say that all is in, once for every import that was begun, the one that was broken off included."""
        if self.known.open_import is None:
            return
        event = ImportEnded(added=dict(sorted(self.added.items())), defects=self.survey.defects.content())

        def job(transaction: Transaction) -> None:
            known = self._up_to_date(transaction)
            if known.open_import is not None:
                ledger.append(transaction, self._caller, [Draft(event, "import", known.open_import)])

        engine.write(job, timeout=_SECONDS, grace=_SECONDS)

    def _up_to_date(self, transaction: Transaction) -> Known:
        """What the ledger holds now: another import, or an agent, may have written since it was last read."""
        known = self.known.child()
        known.learn(transaction.entries(EntryFilter(after=known.sequence, limit=-1)))
        self._check(known)
        return known

    def _check(self, known: Known) -> None:
        if self._into_existing or self._origin in known.origins or not (known.others or known.origins):
            return
        raise Conflict(
            "The strategy's ledger holds entries that do not come from this memory.",
            field="--strategy",
            hint="Name another --strategy, or add to this one with --into-existing.",
        )

    def _beginning(self) -> Draft:
        source = self._source
        event = ImportBegun(
            system=SYSTEM,
            versions=source.versions,
            origin=self._origin,
            strategies=source.strategies,
            files=source.files,
            rows=source.count(),
        )
        return Draft(event, "import", self._id)


def _in_order(source: Source) -> Iterator[Record]:
    """Events in their order, each retrieval before the first event that names it or was written after it."""
    retrievals = source.retrievals()
    waiting = _next(retrievals)
    given: set[str] = set()
    for row in source.events():
        record = event_record(row)
        while waiting is not None and _before(waiting, record):
            if waiting.source_id not in given:
                given.add(waiting.source_id)
                yield waiting
            waiting = _next(retrievals)
        if record.retrieval_id is not None and record.retrieval_id not in given:
            found = source.retrieval(record.retrieval_id)
            if found is not None:
                given.add(record.retrieval_id)
                yield retrieval_record(found)
        yield record
    while waiting is not None:
        if waiting.source_id not in given:
            yield waiting
        waiting = _next(retrievals)


def _next(retrievals: Iterator[Row]) -> Record | None:
    row = next(retrievals, None)
    return None if row is None else retrieval_record(row)


def _before(retrieval: Record, event: Record) -> bool:
    if retrieval.recorded_at is None:
        return True
    return event.recorded_at is not None and retrieval.recorded_at < event.recorded_at


def _only_strategy(source: Source) -> str:
    if len(source.strategies) == 1:
        return source.strategies[0]
    told = "several strategies" if source.strategies else "no strategy"
    raise ConfigError(f"The memory names {told}.", field="--strategy", hint="Name the one to import into.")


def _untold(_done: int, _total: int) -> None:
    """Nobody watches."""


def _marked(draft: Draft) -> Draft:
    """The draft with why its words seem to instruct their reader, as whatever is written here is marked."""
    event = draft.event
    if "suspicious" not in type(event).model_fields:
        return draft
    told = event.model_dump(
        exclude={"type": True, "notices": True, "imported": {"defects", "repaired"}}, exclude_none=True
    )
    origin = told.pop("imported", {})
    words = [*told.values(), *origin.values(), draft.symbol]
    why = instructs("\n".join(text for value in words for text in texts_in(value)))
    return replace(draft, event=event.model_copy(update={"suspicious": why})) if why else draft
