"""Histories of a live ledger and a run beside it, what every reading shows of them, and what it ought to show.

What a reading as of T ought to show is taken from a ledger that only ever received the entries up to T. That
ledger is cut here, in Python, from the whole list of entries, and is then read at its head: nothing of the cuts
under test takes part in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from store import Book, Caller, Filter, SearchRequest
from store.clock import LAST_INSTANT
from store.commands import (
    CloseThesis,
    Command,
    Decide,
    FlagMemory,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.engines.sqlite import SqliteEngine
from store.engines.sqlite.preparation import write_copy
from store.entry import Entry
from store.errors import DeskbookError, NotFound
from store.events import Delivered
from store.inheritance import Inheritance
from store.ledger import Draft, Ledger, projected
from store.render import Renderer
from store.replies import Reply
from store.rows import Delivery, EntryFilter
from store.search.cursor import Place, encode

# 2026-03-02T14:30:00Z; microseconds like all times here.
START = 1_772_461_800_000_000
HOUR = 3_600_000_000
TICKS = (HOUR, 1, 2 * HOUR, -2 * HOUR, HOUR // 2, -1)
STRATEGY, RUN = "fx", "replay"
AGENTS = ("ann", "bob")
WORDS = ("alpha", "beta alpha", "gamma stops", "円高 警戒 alpha", "beta beta beta", "!! ??")
SYMBOLS = ("AAPL", "MSFT", None)
TAGS = ((), ("fx",), ("fx", "carry"), ("carry",))
RESOLVED = {"mem": "retired", "les": "retired", "prop": "withdrawn", "risk": "resolved"}
FITS = {"supersede": "mem", "update": "ths", "close": "ths", "decide": "ths"}
"""What an act is about; so that few of them are refused."""
TABLES = {
    "memory_versions": "sequence_from",
    "memory_flags": "sequence",
    "memory_retrievals": "sequence",
    "memory_deliveries": "sequence",
    "memory_sessions": "sequence",
    "memory_clock": "sequence",
}


class Step(NamedTuple):
    """One thing that happens: what, in the run or live, by whom, and two numbers that choose the rest."""

    act: str
    in_run: bool
    who: int
    a: int
    b: int


@dataclass(frozen=True)
class History:
    """Steps, the run beginning before the one at `begins`, `offset` hours after the first live entry."""

    steps: tuple[Step, ...]
    begins: int
    offset: int
    inherit: str


class SetClock:
    """A clock that shows what it was set to."""

    def __init__(self) -> None:
        self.us = START

    def now(self) -> int:
        return self.us


class Quiet(Book):
    """A book whose readings leave no entry, so that any number of them can be compared."""

    def _record_search(self, caller: Caller, draft: Draft) -> None:
        return

    def _record_delivery(
        self, caller: Caller, subject_id: str, event: Delivered, before: Delivery | None
    ) -> bool:
        return True


class Whole(Quiet):
    """A book of a ledger cut beforehand: every reading sees all of it, at one instant."""

    stand: tuple[int, int]

    def _stand(self, *_: object) -> tuple[int, int]:
        return self.stand

    def _onward(self, start: Place, cursor_text: str | None, query: str, conditions: Filter) -> Place:
        place = super()._onward(start, cursor_text, query, conditions)
        return Place(start.cut, start.at, place.offset)


def standing_at(entries: list[Entry], instant: int) -> list[Entry]:
    """Everything before the first entry after an instant: the rule that every cut must keep."""
    kept: list[Entry] = []
    for entry in entries:
        if entry.effective_at > instant:
            break
        kept.append(entry)
    return kept


def _command(step: Step, at: int, named: list[str], retrievals: list[str]) -> Command:
    """What a step asks to be written; a step may well be refused, as an agent's call may."""
    act, a, b = step.act, step.a, step.b
    text, symbol, tags = WORDS[a % len(WORDS)], SYMBOLS[b % len(SYMBOLS)], TAGS[(a + b) % len(TAGS)]
    fitting = [name for name in named if name.startswith(FITS.get(act, ""))] or named
    picked = fitting[-1 - (7 * a + b) % len(fitting)] if fitting else "mem_none"
    due = at + (a % 4) * HOUR if b % 2 else None
    common: dict[str, Any] = {"text": text, "symbol": symbol, "tags": tags}
    match act:
        case "remember":
            ends = at + (1 + a % 3) * HOUR if b % 3 == 0 else None
            return Remember(**common, expires_at=ends, review_by=due, category="note")
        case "supersede":
            return Remember(**common, supersedes=picked)
        case "propose":
            return Propose(**common, action="buy")
        case "risk":
            return NoteRisk(**common)
        case "decide":
            search = retrievals[a % len(retrievals)] if retrievals and b % 2 else None
            thesis = picked if picked.startswith("ths") else None
            return Decide(**common, action="hold", thesis_id=thesis, retrieval_id=search)
        case "lesson":
            return ProposeLesson(**common, outcome={"pnl": str(a)})
        case "open":
            return OpenThesis(**common, direction="long", review_by=due)
        case "update":
            return UpdateThesis(thesis_id=picked, text=text, symbol=symbol, tags=tags, review_by=due)
        case "close":
            return CloseThesis(thesis_id=picked, result="win", pnl=str(b))
        case "flag":
            other = named[b % len(named)] if named and a % 2 else None
            return FlagMemory(memory_id=picked, reason="wrong", other_id=other, note=text)
    return ResolveMemory(memory_id=picked, status=RESOLVED.get(picked.partition("_")[0], "retired"))


class Scene:
    """A strategy's live ledger and one run of it, as a history left them."""

    def __init__(self, folder: Path, history: History) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.history = history
        self.clock = SetClock()
        self.run_now = START + history.offset * HOUR
        self.pinned = 0
        self.named: dict[bool, list[str]] = {False: [], True: []}
        self.retrievals: dict[bool, list[str]] = {False: [], True: []}
        self.books = {False: self._open(None)}
        self._files = 0
        with ExitStack() as stack:
            stack.callback(lambda: [book.close() for book in self.books.values()])
            for index, step in enumerate(history.steps):
                if index == history.begins:
                    self._begin()
                self._play(step)
            if True not in self.books:
                self._begin()
            self.entries = {where: _entries(book) for where, book in self.books.items()}
            self.genesis = {where: book.genesis for where, book in self.books.items()}

    def _open(self, run: str | None, kind: type[Book] = Book, **options: Any) -> Book:
        options = {"durability": "normal", "clock": self.clock, **options}
        return kind.open(self.root, STRATEGY, run, **options)

    def _begin(self) -> None:
        self.pinned = len(_entries(self.books[False]))
        self.books[True] = self._open(RUN, begins=self.run_now, inherit=self.history.inherit)

    def now(self, in_run: bool) -> int:
        """The clock of the live ledger or of the run."""
        return self.run_now if in_run else self.clock.us

    def caller(self, in_run: bool, agent: str = "ann", act: str = "tool") -> Caller:
        now = self.run_now if in_run else None
        return Caller(agent, "solo", f"ses-{agent}", act, now=now)

    def _play(self, step: Step) -> None:
        in_run = step.in_run and True in self.books
        book, caller = self.books[in_run], self.caller(in_run, AGENTS[step.who], step.act)
        named = self.named[in_run]
        if in_run and (step.a == 0 or not named):
            # A run's agent knows the ids of live too: it may read them, and is refused to change them.
            named = self.named[False] + named
        try:
            match step.act:
                case "tick":
                    self._tick(in_run, step)
                case "search":
                    found = book.search(caller, SearchRequest(query=WORDS[step.a]))
                    self.retrievals[in_run].append(found.body["retrieval_id"])
                case "get":
                    book.get(caller, named[step.a % len(named)] if named else "mem_none")
                case "state":
                    book.state(caller)
                case "deny":
                    book.note_denied(caller, "open_thesis")
                case _:
                    asked = _command(step, self.now(in_run), named, self.retrievals[in_run])
                    name = book.execute(caller, asked).id
                    self.named[in_run] += [] if name in self.named[in_run] else [name]
        except DeskbookError:
            return

    def _tick(self, in_run: bool, step: Step) -> None:
        by = TICKS[step.a % len(TICKS)]
        if not in_run:
            self.clock.us += by
            return
        self.run_now += abs(by)
        if step.b % 2:
            self.books[True].advance_clock(self.caller(True, "harness"), self.run_now)

    def instants(self) -> list[int]:
        """Every instant at which something is dated, and the ones just before and after."""
        dated = {entry.effective_at for entries in self.entries.values() for entry in entries}
        return sorted({instant + shift for instant in dated for shift in (-1, 0, 1)})

    @contextmanager
    def book(self, in_run: bool) -> Iterator[Book]:
        """The ledger itself, to be read as of some instant."""
        with closing(self._open(RUN if in_run else None, Quiet, create=False)) as book:
            yield book

    def own(self, in_run: bool, instant: int) -> list[Entry]:
        """The entries of a ledger that stood at an instant."""
        return standing_at(self.entries[in_run], instant)

    @contextmanager
    def received(self, in_run: bool, instant: int) -> Iterator[Whole]:
        """A ledger that only ever received the entries up to an instant, and inherits what had been pinned."""
        own = self.own(in_run, instant)
        with ExitStack() as stack:
            below = Inheritance()
            if in_run and self.history.inherit == "live":
                live = standing_at(self.entries[False][: self.pinned], instant)
                below = Inheritance(self._engine(live), len(live))
            run = RUN if in_run else None
            book = Whole(
                self._engine(own),
                Ledger(self.clock, STRATEGY, run),
                below,
                Renderer(),
                self.genesis[in_run],
            )
            book.stand = (len(own), min(instant, self.now(in_run)))
            stack.callback(book.close)
            yield book

    @staticmethod
    def rows(path: Path) -> dict[str, list[Any]]:
        """Every row of every projection of a ledger's file."""
        with closing(apsw.Connection(str(path))) as connection:
            return {
                table: list(connection.execute(f"SELECT * FROM {table} ORDER BY {order}"))
                for table, order in TABLES.items()
            }

    def new_file(self) -> Path:
        self._files += 1
        return self.folder / f"cut-{self._files}.sqlite"

    def _engine(self, entries: list[Entry]) -> SqliteEngine:
        path = self.new_file()
        write_copy(path, entries, projected)
        return SqliteEngine(path, projected, create=False, writes=False)

    def seen(self, book: Book, in_run: bool, instant: int) -> dict[str, Any]:
        """Everything that readings as of an instant show, by what was read."""
        names = self.named[False] + self.named[True]
        reading = _Reading(book, lambda agent: self.caller(in_run, agent), instant)
        return {
            **{f"search {wanted}": reading.found(**wanted) for wanted in _wanted(instant, names)},
            **{f"pages of {query!r}": reading.pages(query) for query in ("", "alpha", "!!")},
            **{f"onward from a later place in {query!r}": reading.onward(query) for query in ("", "alpha")},
            **{f"get {name}": reading.got(name) for name in names},
            **{
                f"state of {agent} in {size}": reading.state(agent, size)
                for agent in AGENTS
                for size in (16_000, 2_000)
            },
        }


def _entries(book: Book) -> list[Entry]:
    return book.log(EntryFilter(limit=-1))


def _wanted(instant: int, names: list[str]) -> Iterator[dict[str, Any]]:
    yield from ({"query": query} for query in ("", "alpha", "beta gamma alpha", "円高", "!!", "AAPL"))
    yield from ({"kind": kind} for kind in ("thesis", "memory", "lesson"))
    yield from ({"status": status} for status in ("open", "closed", "superseded", "retired"))
    yield {"query": "alpha", "status": "active"}
    yield {"query": "beta", "kind": "thesis", "status": "open"}
    yield {"symbol": "AAPL"}
    yield {"tags": ("fx",)}
    yield {"query": "alpha", "tags": ("fx", "carry")}
    yield {"agent": "bob", "query": "alpha gamma"}
    yield {"since": instant - 2 * HOUR}
    yield {"query": "alpha", "until": instant - HOUR}
    if names:
        yield {"query": f"alpha {names[0]} {names[-1]}"}


class _Reading:
    """Readings of one book as of one instant; what is new in every reply is left out."""

    def __init__(self, book: Book, caller: Callable[[str], Caller], instant: int) -> None:
        self._book = book
        self._caller = caller
        self._instant = instant

    def _search(self, wanted: dict[str, Any], **options: Any) -> Reply:
        query = wanted.get("query", "")
        conditions = Filter(**{name: value for name, value in wanted.items() if name != "query"})
        request = SearchRequest(
            query=query, conditions=conditions, as_of=self._instant, detailed=True, **options
        )
        return self._book.search(self._caller("ann"), request)

    def found(self, **wanted: Any) -> Any:
        body = dict(self._search(wanted, limit=50).body)
        del body["retrieval_id"]
        return body

    def pages(self, query: str) -> Any:
        shown: list[Any] = []
        place: str | None = None
        while True:
            body = self._search({"query": query}, limit=2, cursor=place).body
            shown.append((body["total"], [hit["id"] for hit in body["hits"]]))
            place = body["cursor"]
            if place is None:
                return shown

    def onward(self, query: str) -> Any:
        """What a cursor leads to that a much later reading gave."""
        later = encode(Place(2**40, LAST_INSTANT, 1), query, Filter())
        body = self._search({"query": query}, limit=50, cursor=later).body
        return body["total"], body["hits"]

    def got(self, name: str) -> Any:
        try:
            return self._book.get(self._caller("ann"), name, self._instant).body
        except NotFound:
            return "not found"

    def state(self, agent: str, size: int) -> Any:
        return self._book.state(self._caller(agent), self._instant, state_chars=size).body


MakeScene = Callable[..., Scene]


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeScene]:
    """Play a history; its files go when the session ends."""
    with ExitStack() as stack:

        def start(steps: list[Any], begins: int, offset: int, inherit: str) -> Scene:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()))
            history = History(tuple(Step(*step) for step in steps), begins, offset, inherit)
            return Scene(Path(folder), history)

        yield start
