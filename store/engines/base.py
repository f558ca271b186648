"""What a ledger needs from a database: snapshots to read, one transaction at a time to write.

An engine stores rows and answers queries; it knows nothing of what an entry means. The contract every engine
keeps stands in tests/contracts. All times are microseconds since the epoch, UTC. `cut` is a sequence: a read
at a cut sees the ledger as it stood after that entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..entry import Entry
from ..rows import (
    Caution,
    Delivery,
    EntryFilter,
    Filter,
    Flag,
    Head,
    Holdings,
    Redaction,
    Retrieval,
    Row,
    Said,
    Text,
    Version,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How a store stands, for `status`: absolute path, sizes in bytes, schema and SQLite versions."""

    path: str
    engine: str
    schema: int
    size_bytes: int
    wal_bytes: int
    entries: int
    redacted: int
    memories: int
    writable: bool
    problem: str | None


class Snapshot(Protocol):
    """One consistent view of the store.

    An entry whose content was taken away is read with what stays of it; `raw_entry` and `raw_entries` give it as it
    is stored.
    """

    def head(self) -> Head | None:
        """The last entry, or None before the genesis entry."""

    def cut_at(self, instant: int) -> int:
        """The sequence before the first entry whose effective_at is after `instant`."""

    def entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence."""

    def entry_of_event(self, event_id: str) -> Entry | None:
        """The entry with an event id."""

    def entries(self, conditions: EntryFilter) -> Iterator[Entry]:
        """Entries that meet the conditions, in order of sequence."""

    def raw_entry(self, sequence: int) -> Entry | None:
        """The entry at a sequence as it is stored, blank where its content was taken away."""

    def raw_entries(self, conditions: EntryFilter) -> Iterator[Entry]:
        """As `entries`, each as it is stored."""

    def kept_until(self, cut: int) -> list[Redaction]:
        """What stays of the entries up to the cut whose content was taken away."""

    def redaction_of(self, sequence: int) -> Redaction | None:
        """What stays of an entry whose content was taken away; None for any other."""

    def count_redacted(self) -> int:
        """How many entries have no content any more."""

    def searched(self, memory_ids: tuple[str, ...]) -> list[int]:
        """The entries of the searches that considered or handed over one of the memories."""

    def saying(self, texts: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
        """Sequence, event type and subject of the entries whose content, as it is stored, holds one of the texts."""

    def all_of_kind(self, kind: str, cut: int) -> list[Version]:
        """Every memory of a kind as it stood at the cut, whoever may see it, oldest version first."""

    def unchanged_since(self, instant: int) -> list[tuple[str, int]]:
        """The memories whose last entry is before an instant and that have a text, with that entry."""

    def history(self, subject_id: str, cut: int) -> list[Entry]:
        """All entries about a subject up to the cut, oldest first."""

    def replay(self, agent: str, tool: str | None, key: str) -> Entry | None:
        """The entry an idempotency key was first used for."""

    def version(self, memory_id: str, cut: int) -> Version | None:
        """A memory's version as it stood at the cut."""

    def versions_at(self, sequences: list[int], cut: int) -> list[tuple[Version, bool]]:
        """The versions that these entries created, in order, and whether each stood at the cut."""

    def version_at(self, sequence_from: int) -> Version | None:
        """The version an entry created."""

    def versions(self, conditions: Filter, cut: int, at: int, *, limit: int) -> list[Version]:
        """Versions standing at the cut that meet the conditions and have not expired at `at`, newest first.

        Without what waits, what was rejected, and notes and lessons whose text was taken away.
        """

    def count_versions(self, conditions: Filter, cut: int, at: int) -> int:
        """How many versions `versions` would give without a limit."""

    def open_theses(self, cut: int, at: int) -> Iterator[tuple[int, str, str | None, int]]:
        """The open theses that `versions` would give, by sequence_from, memory id, symbol and effective_at alone."""

    def containing(self, literal: str, conditions: Filter, cut: int, at: int, *, scan: int) -> list[int]:
        """sequence_from of standing versions whose text holds `literal`, among the `scan` newest."""

    def match(
        self, term: str, conditions: Filter, cut: int, at: int, *, limit: int, symbols: tuple[str, ...] = ()
    ) -> list[tuple[int, int]]:
        """Standing versions whose text or labels hold the term, or the phrase it stands for, newest first.

        And those about one of `symbols`, as they stand in their column; with an empty term only these. Each is its
        sequence_from and how many terms its text has.
        """

    def holding(self, term: str, sequences: list[int], *, symbols: tuple[str, ...] = ()) -> list[int]:
        """Those of the versions that hold the term or are about one of the symbols, standing or not."""

    def changed_by(self, agent: str, cut: int, *, limit: int) -> list[Version]:
        """The versions an agent wrote up to the cut, newest first, without notes whose text was taken away."""

    def count_matches(
        self, term: str, conditions: Filter, cut: int, *, most: int, symbols: tuple[str, ...] = ()
    ) -> int:
        """About how many versions, standing or ended, the full-text index holds for a term.

        Counted up to `most`, the newest first, and beyond that estimated from how far these reach back.
        """

    def texts(self, after: int, until: int, *, limit: int) -> list[Text]:
        """Versions with after < sequence_from <= until whose text is searched, in that order; no order actions."""

    def count_texts(self, after: int, until: int) -> int:
        """How many versions `texts` would give without a limit."""

    def has_symbol(self, symbol: str, cut: int) -> bool:
        """Whether a version up to the cut is about the symbol, as it stands in its column."""

    def totals(self, cut: int) -> tuple[int, int]:
        """How many memories stood at the cut, and the terms of their first versions together."""

    def flags(self, cut: int, *, limit: int) -> list[Flag]:
        """Flags that stand unanswered at the cut, on memories that are still in use, newest first."""

    def count_flags(self, cut: int) -> int:
        """How many flags `flags` would give without a limit."""

    def flag_at(self, sequence: int, cut: int) -> tuple[Flag, str | None] | None:
        """The flag that an entry raised, and how it was answered up to the cut, None while it is not."""

    def flags_on(self, memory_ids: tuple[str, ...], cut: int) -> list[Flag]:
        """Flags unanswered at the cut that are on, or name, one of the memories, whatever became of those."""

    def settled_before(self, one: str, other: str, cut: int) -> bool:
        """Whether a conflict of the two memories was flagged and answered up to the cut."""

    def pending(self, agent: str | None, cut: int, at: int, *, limit: int) -> list[Version]:
        """Memories (of an agent) that wait at the cut and have not waited too long at `at`, oldest first."""

    def count_pending(self, agent: str | None, cut: int, at: int) -> int:
        """How many memories `pending` would give without a limit."""

    def same(self, mark: str, cut: int) -> list[Version]:
        """Standing versions whose agent, kind, symbol and text have the mark of `terms.same_mark`, newest first."""

    def said_on(self, symbol: str, cut: int, at: int, *, limit: int) -> list[Said]:
        """What stands in use under a symbol as it is in its column, without decisions and orders, newest first."""

    def said_at(self, sequences: list[int], cut: int, at: int) -> list[Said]:
        """Those of these versions that stand in use, without decisions and orders, newest first."""

    def count_repeats(self, memory_id: str, cut: int) -> int:
        """How often a memory was said again word for word."""

    def searches_before(
        self, agent: str, model_call_id: str | None, session_id: str | None, cut: int, *, limit: int
    ) -> list[tuple[str, int]]:
        """An agent's searches (in a model call, in a session) up to the cut, newest first, with their entries."""

    def last_decision(self, agent: str, after: int) -> int:
        """The sequence of the agent's latest decision after an entry, 0 for none."""

    def due(self, cut: int, at: int, *, limit: int) -> list[Version]:
        """Open theses and lessons in use at the cut whose review date is not after `at`, earliest first."""

    def count_due(self, cut: int, at: int) -> int:
        """How many versions `due` would give without a limit."""

    def holdings(self, cut: int) -> Holdings | None:
        """The latest observed report of positions up to the cut; a claim only where nothing was ever observed."""

    def unreconciled(self, symbols: tuple[str, ...] | None, cut: int, *, limit: int) -> list[Version]:
        """Order actions that touch one of the symbols (None: any) and are still intent or unknown, oldest first."""

    def count_unreconciled(self, symbols: tuple[str, ...] | None, cut: int) -> int:
        """How many actions `unreconciled` would give without a limit."""

    def open_orders(self, symbols: tuple[str, ...] | None, cut: int, *, limit: int) -> list[Version]:
        """Submits whose order touches one of the symbols (None: any) and still works at the broker, oldest first."""

    def count_open_orders(self, symbols: tuple[str, ...] | None, cut: int) -> int:
        """How many submits `open_orders` would give without a limit."""

    def changes_of(self, submits: tuple[str, ...], cut: int) -> list[Version]:
        """The modifies of the submits' orders that stood acknowledged at the cut, in order of their answers."""

    def cautions(self, cut: int, *, limit: int) -> list[Caution]:
        """Invalidation warnings on open theses that have not been updated since, newest first."""

    def theses_to_observe(self, symbols: tuple[str, ...], cut: int, at: int, *, limit: int) -> list[Version]:
        """Open theses as `versions` gives them: those on a symbol, and those whose invalidation may name a date."""

    def observed(self, theses: tuple[str, ...], after: int, cut: int) -> list[tuple[str, str]]:
        """Thesis id and content of the observations of theses with after < sequence <= cut, in order."""

    def submit_of(self, client_order_id: str, cut: int) -> str | None:
        """The action id of the first submit under a client order id."""

    def decision_in_call(self, agent: str, model_call_id: str) -> str | None:
        """The latest decision an agent recorded in a model call."""

    def last_intent(self, agent: str, symbols: tuple[str, ...] | None, cut: int) -> int:
        """The sequence of the agent's latest order action that touches one of the symbols (None: any), 0 for none."""

    def shown(
        self, agent: str, model_call_id: str | None, session_id: str | None, after: int
    ) -> dict[str, int]:
        """The memories an agent was shown after a sequence, newest first, with the entry that showed each.

        Bounded to a model call or a session where one is given.
        """

    def showings(self, agent: str, session_id: str, before: int, *, limit: int) -> list[Entry]:
        """What an agent searched and was shown in a session before an entry, since it acted last, newest first."""

    def acting_on(self, memory_id: str, cut: int) -> list[str]:
        """The order actions and decisions that name a decision, thesis or action as theirs."""

    def around(self, agent: str, model_call_id: str, cut: int) -> list[Entry]:
        """All entries an agent left in one model call, in order."""

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        """A recorded search."""

    def last_delivery(
        self, agent: str, session_id: str | None, model_call_id: str | None, subject_id: str
    ) -> Delivery | None:
        """What an agent was last shown of a subject in one session and model call."""

    def advanced_clock(self) -> int | None:
        """The simulated time the run's clock was last advanced to."""

    def has_session(self, session_id: str, agent: str) -> bool:
        """Whether the agent's session has its first entry."""

    def entry_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        """Entries with after < sequence <= until as tuples of `entry.COLUMNS`, in order of sequence."""

    def retrieval_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        """Searches with after < sequence <= until as tuples of `rows.Retrieval`, in order of sequence."""

    def report_rows(self, after: int, until: int) -> Iterator[tuple[Any, ...]]:
        """Reports of positions with after < sequence <= until as tuples of `rows.REPORT_COLUMNS`, in order."""

    def index_rows(self, after: int, until: int, cut: int) -> Iterator[tuple[Any, ...]]:
        """Memories first recorded with after < sequence <= until, as they stood at the cut, in that order.

        Each is the sequence of its first entry and then the values of `rows.INDEX_COLUMNS`, lists as JSON text.
        """

    def order_rows(self, after: int, until: int, cut: int) -> Iterator[tuple[Any, ...]]:
        """Order actions recorded with after < sequence <= until as they stood at the cut: `rows.ORDER_COLUMNS`."""

    def changed_births(self, kind: str | None, after: int, until: int) -> list[int]:
        """Where memories (of a kind) began that an entry with after < sequence <= until gave a new version.

        Only of those that began at `after` or before it.
        """


class Transaction(Snapshot, Protocol):
    """A snapshot that can also be written; committed or rolled back as a whole."""

    def insert_entry(self, entry: Entry) -> None:
        """Append the ledger row."""

    def apply(self, rows: Iterable[Row]) -> None:
        """Write projection rows; a new version ends the memory's current one."""

    def blank(self, sequences: Iterable[int]) -> None:
        """Take content and salt of entries away, each of which a later redaction names."""

    def rewrite(self, memory_id: str, versions: list[Version]) -> None:
        """Write all versions of a memory anew, in its full text too."""

    def replace_rows(self, sequence: int, rows: Iterable[Row]) -> None:
        """Write those rows of an entry anew that are no versions and may hold a text."""


class Engine(Protocol):
    """A store that is open."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """A consistent snapshot; never waits for a writer."""

    def write(self, job: Callable[[Transaction], T], *, timeout: float, grace: float = 5.0) -> T:
        """Run `job` in a transaction of the writer and return its result once it is durable.

        The job's turn must come within `timeout` seconds and its commit end within `grace` more. An exception
        of the job undoes the job alone. Raises StoreBusy when the job's turn did not come in time,
        OutcomeUnknown when its commit did not end in time. A job may run again when a transaction it shared
        was lost, so it must have no effect outside the transaction.
        """

    def rebuild(self, progress: Callable[[int], None]) -> None:
        """Drop every projection and write it anew from the ledger, in one transaction."""

    def copy_until(self, cut: int, target: Path) -> None:
        """Write the entries up to `cut` into a new store at `target`, with its projections."""

    def status(self) -> EngineStatus:
        """How the store stands."""

    def close(self) -> None:
        """Finish what is queued and let go of the files."""
