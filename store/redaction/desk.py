"""A redaction from first look to last trace, in a ledger and in the runs that were shown what it holds.

Runs go first: while the live ledger has its texts, one can look for them. What was begun and broken off, the same
redaction finishes when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..caller import Caller
from ..clock import Clock, WallClock, format_instant
from ..engines.base import Snapshot, Transaction
from ..errors import Conflict, InvalidInput, NotFound, PermissionDenied
from ..inputs import required_text
from ..paths import ledger_path, refuse_links
from ..runs import list_runs
from .applying import Order, Taken, take_away, taken_from
from .coverage import QUOTE_CHARS, Coverage, Subject, covered_by, holders_of, inherited, merged, subject_of
from .opening import COMMIT_SECONDS, WRITE_SECONDS, Opened, opened
from .purging import Purged, purge
from .reasons import Gone, gone_with, telling
from .register import Line, Register
from .retention import past_retention

REASON_CHARS: Final = 1_000
LEAST_TOLD_CHARS: Final = 4
"""A shorter text stands in many a reason by chance."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to go: ids, all that holds a text, or the memories that nothing was written about for so long.

    `older_than` is in microseconds of the ledger's own clock.
    """

    names: tuple[str, ...] = ()
    containing: str | None = None
    older_than: int | None = None
    with_quotes: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What one ledger holds of it: `run` is None for the live ledger."""

    run: str | None
    path: Path
    coverage: Coverage
    redacted_before: int
    """How many entries of the ledger have no content already."""


@dataclass(frozen=True, slots=True)
class Look:
    """What would go, ledger by ledger, and what no redaction reaches."""

    seen: tuple[Seen, ...]
    subjects: tuple[Subject, ...]
    needed: tuple[str, ...] = ()
    """Memories past their time that are still needed, and stay."""
    unreadable: tuple[str, ...] = ()
    """Runs whose ledger cannot be read."""
    gone: Gone = field(default_factory=Gone)
    """The words of what would go, which no reason may say."""

    @property
    def nothing(self) -> bool:
        """Whether nothing has its content still."""
        return not any(seen.coverage.covered for seen in self.seen)


@dataclass(slots=True)
class Redacted:
    """What was done: how many entries of each ledger lost their content, by which entries, and what was purged."""

    entries: dict[str | None, int] = field(default_factory=dict)
    said: dict[str | None, tuple[int, ...]] = field(default_factory=dict)
    purged: dict[str | None, Purged] = field(default_factory=dict)
    quotes: dict[str | None, tuple[int, ...]] = field(default_factory=dict)
    """Sequences of entries that quote a text whole and stay."""
    beyond: dict[str | None, tuple[int, ...]] = field(default_factory=dict)
    """Sequences of entries that hold it and cannot be redacted."""
    quotes_sought: bool = False
    """Whether other entries were searched for the texts; nobody can once they are gone."""

    @property
    def remains(self) -> list[str]:
        """What could not be purged."""
        return [each for purged in self.purged.values() for each in purged.remains]


class Desk:
    """Redactions of one strategy's live ledger, with the runs that inherit it, or of one run."""

    def __init__(
        self,
        root: Path,
        strategy: str,
        run: str | None,
        register: Register,
        *,
        legal_hold: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._root, self._strategy, self._run = root, strategy, run
        self._register = register
        self._legal_hold = legal_hold
        self._clock = clock or WallClock()

    def refuse_on_hold(self) -> None:
        """Raise Conflict under a legal hold, which wins over everything."""
        if self._legal_hold:
            raise Conflict(
                "A legal hold is on: nothing may be taken away.",
                field="retention.legal_hold",
                hint="Whoever set legal_hold in the config lifts it; a hold wins over retention and redaction.",
            )

    def look(self, wanted: Wanted) -> Look:
        """What would go; raises NotFound for an id that names nothing, InvalidInput for one without a text."""
        with self._opened(self._run, writes=False) as own, own.engine.read() as snapshot:
            names, needed = self._names(own, snapshot, wanted)
            subjects = tuple(subject_of(snapshot, name) for name in names)
            coverage = _coverage(snapshot, subjects, wanted)
            seen = [Seen(self._run, self._path(self._run), coverage, snapshot.count_redacted())]
            gone = _gone(snapshot, coverage, wanted)
        unreadable = []
        for summary in list_runs(self._root, self._strategy) if self._run is None else ():
            if summary.problem is not None:
                unreadable.append(summary.name)
            elif summary.inherit == "live" or wanted.containing is not None:
                with self._opened(summary.name, writes=False) as run, run.engine.read() as snapshot:
                    found = _coverage_of_run(snapshot, subjects, wanted)
                    path = self._path(summary.name)
                    seen.append(Seen(summary.name, path, found, snapshot.count_redacted()))
        return Look(tuple(seen), subjects, tuple(needed), tuple(unreadable), gone)

    def check_reason(self, reason: str, look: Look, wanted: Wanted) -> str:
        """The reason as it will stand; raises InvalidInput for one that says what is to go."""
        told = required_text(reason, field="reason", longest=REASON_CHARS).strip()
        gone = [text for subject in look.subjects for text in subject.texts]
        gone += [] if wanted.containing is None else [wanted.containing]
        for text in gone:
            if len(text.strip()) >= LEAST_TOLD_CHARS and text.strip().casefold() in told.casefold():
                raise _telling("it holds the text whole")
        if (which := telling(told, look.gone)) is not None:
            raise _telling(which)
        return told

    def redact(self, caller: Caller, wanted: Wanted, reason: str) -> Redacted:
        """Take away what is wanted, in every ledger, and purge its traces.

        Raises PermissionDenied without a reviewer's credential, Conflict under a legal hold, StoreError where the
        register cannot be written; then nothing was changed. What could not be purged stands in the answer.
        """
        if not caller.reviewer:
            raise PermissionDenied(
                "Only a reviewer may redact.",
                hint="`deskbook redact` asks a person for a reviewer's credential.",
            )
        self.refuse_on_hold()
        look = self.look(wanted)
        told = self.check_reason(reason, look, wanted)
        done = Redacted(quotes_sought=_seeks_quotes(look, wanted))
        for seen in reversed(look.seen):  # the live ledger last
            with self._opened(seen.run) as ledger:
                self._register.check_writable(ledger.store_id)
                said, count, coverage = self._take(ledger, caller, look, wanted, told, seen.run)
            if count:
                done.entries[seen.run], done.said[seen.run] = count, tuple(said)
            if coverage.quotes:
                done.quotes[seen.run] = tuple(coverage.quotes)
            if coverage.beyond:
                done.beyond[seen.run] = tuple(coverage.beyond)
        for seen in look.seen:
            if seen.run in done.entries or seen.redacted_before:
                done.purged[seen.run] = purge(self._root, seen.path)
        return done

    def _take(
        self, ledger: Opened, caller: Caller, look: Look, wanted: Wanted, reason: str, run: str | None
    ) -> tuple[list[int], int, Coverage]:
        """The redaction of one ledger, in one transaction; what came since one looked is covered too."""
        first = look.subjects[0] if look.subjects else None

        def job(transaction: Transaction) -> tuple[list[int], int, Coverage]:
            head = transaction.head()
            if head is None:
                return [], 0, Coverage()
            coverage = (
                _coverage(transaction, self._anew(transaction, look), wanted)
                if run == self._run
                else _coverage_of_run(transaction, look.subjects, wanted)
            )
            order = (
                Order(reason, "ledger", ledger.store_id)
                if first is None or len(look.subjects) > 1
                else Order(reason, first.subject_type, first.about, first.kind, first.symbol)
            )
            taken = taken_from(transaction, sorted(coverage.covered))
            stamped = ledger.ledger.at_least(head, caller)
            said = take_away(
                transaction,
                ledger.ledger,
                stamped,
                order,
                taken,
                lambda all_of_it: self._note(ledger, caller, order, all_of_it),
            )
            return [entry.sequence for entry in said], len(taken), coverage

        return ledger.engine.write(job, timeout=WRITE_SECONDS, grace=COMMIT_SECONDS)

    @staticmethod
    def _anew(transaction: Transaction, look: Look) -> list[Subject]:
        return [subject_of(transaction, subject.name) for subject in look.subjects]

    def _note(self, ledger: Opened, caller: Caller, order: Order, taken: Sequence[Taken]) -> None:
        at = format_instant(self._clock.now())
        self._register.add(
            ledger.store_id,
            [
                Line(
                    each.sequence,
                    each.event_type,
                    each.content_sha256,
                    each.kept,
                    order.subject_type,
                    order.subject_id,
                    order.reason,
                    caller.agent,
                    at,
                )
                for each in taken
            ],
        )

    @staticmethod
    def _names(own: Opened, snapshot: Snapshot, wanted: Wanted) -> tuple[list[str], list[str]]:
        head = snapshot.head()
        if wanted.older_than is None or head is None:
            return list(wanted.names), []
        going, needed = past_retention(snapshot, own.ledger.now(head) - wanted.older_than)
        return [*wanted.names, *going], needed

    def _path(self, run: str | None) -> Path:
        return ledger_path(self._root, self._strategy, run)

    @contextmanager
    def _opened(self, run: str | None, *, writes: bool = True) -> Iterator[Opened]:
        path = self._path(run)
        refuse_links(self._root, path)
        if not path.exists():
            raise NotFound("There is no ledger here yet.", hint="Check --root, --strategy and --run.")
        with opened(path, self._strategy, run, writes=writes, clock=self._clock) as ledger:
            yield ledger


def _coverage(snapshot: Snapshot, subjects: Sequence[Subject], wanted: Wanted) -> Coverage:
    parts = [
        covered_by(
            snapshot, subjects, with_quotes=wanted.with_quotes, look_for_quotes=wanted.older_than is None
        )
    ]
    if wanted.containing is not None:
        parts.append(holders_of(snapshot, wanted.containing))
    return merged(parts)


def _coverage_of_run(snapshot: Snapshot, subjects: Sequence[Subject], wanted: Wanted) -> Coverage:
    memories = [name for subject in subjects for name in subject.memories]
    texts = [text for subject in subjects for text in subject.texts] if wanted.older_than is None else []
    parts = [inherited(snapshot, memories, texts, with_quotes=wanted.with_quotes)]
    if wanted.containing is not None:
        parts.append(holders_of(snapshot, wanted.containing))
    return merged(parts)


def _gone(snapshot: Snapshot, coverage: Coverage, wanted: Wanted) -> Gone:
    """The words of what would go; of whatever is past its time, any two words in a row stand there somewhere."""
    entries = filter(None, map(snapshot.raw_entry, coverage.covered))
    texts = [] if wanted.containing is None else [wanted.containing]
    return gone_with(entries, texts, in_a_row=wanted.older_than is None)


def _seeks_quotes(look: Look, wanted: Wanted) -> bool:
    if wanted.older_than is not None or look.nothing:
        return False
    texts = (text for subject in look.subjects for text in subject.texts)
    return wanted.containing is not None or any(len(text) >= QUOTE_CHARS for text in texts)


def _telling(which: str) -> InvalidInput:
    return InvalidInput(
        f"The reason says what is to be taken away, and would keep it: {which}.",
        field="reason",
        hint="Say why without its names, numbers and phrases, such as `written by mistake`.",
    )
