"""Append to the ledger and read it back: the only writer of memory_events.

Everything here runs inside an engine's transaction, so the chain head that is read is the one extended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .caller import Caller
from .canonical import ZERO_CHAIN, canonical, chain_hash, content_hash, leaf_hash
from .clock import Clock, format_instant
from .engines.base import Snapshot, Transaction
from .entry import SCHEMA_VERSION, Entry, is_blank, leaf_of
from .errors import ClockError, ForeignFile, StoreDamaged
from .event_parts import Event
from .events import AnyEvent, ClockAnomaly, Genesis, Recorded, SessionStarted, read_event
from .ids import EVENT, STORE, new_id
from .projection import CHANGES, Before, project
from .rows import Head, Row

SYSTEM = "deskbook"
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Pin:
    """A ledger's head at one moment: which store, how many entries, and the chain hash (hex) of the last."""

    store_id: str | None
    sequence: int
    chain_sha256: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before it has its place: the event and what it is about."""

    event: Event
    subject_type: str
    subject_id: str
    kind: str | None = None
    symbol: str | None = None
    retrieval_id: str | None = None
    arguments: dict[str, Any] | None = None
    idempotency_key: str | None = None


class Ledger:
    """Places entries: sequence, clocks, hashes, and their projection rows, all in one transaction."""

    def __init__(self, clock: Clock, strategy: str, run: str | None) -> None:
        self._clock = clock
        self.strategy = strategy
        self.run = run

    def begin(
        self, transaction: Transaction, product: str, begins: int | None, inherited: Pin | None = None
    ) -> None:
        """Write the genesis entry unless the ledger has one, and check whose ledger it is.

        A run's clock begins at `begins`, the simulated time of the call that makes it. `inherited` is where the
        live ledger stands whose entries up to there the run may see.
        """
        if transaction.head() is None:
            event = Genesis(
                store_id=new_id(STORE),
                strategy=self.strategy,
                run=self.run,
                mode="live" if self.run is None else "simulated",
                inherit="none" if inherited is None else "live",
                live_store_id=inherited.store_id if inherited else None,
                live_sequence=inherited.sequence if inherited else None,
                live_chain_sha256=inherited.chain_sha256 if inherited else None,
                product=product,
            )
            caller = Caller(agent=SYSTEM, profile=SYSTEM, session_id="")
            draft = Draft(event, "ledger", event.store_id)
            if self.run is not None and begins is None:
                raise without_beginning()
            effective = self._clock.now() if self.run is None or begins is None else begins
            self._place(transaction, None, caller, draft, effective)
        self.check(transaction)

    def check(self, snapshot: Snapshot) -> Genesis:
        """The genesis event; raises ForeignFile when it binds another strategy or run."""
        genesis = genesis_of(snapshot)
        if genesis is None:
            raise ForeignFile("The ledger has no genesis entry.", hint="Restore it from a backup.")
        if (genesis.strategy, genesis.run) != (self.strategy, self.run):
            raise ForeignFile(
                "The ledger at this place belongs to another strategy or run.",
                hint="Ledgers cannot be moved or swapped; restore the right file.",
            )
        return genesis

    def instant(self, snapshot: Snapshot, head: Head, caller: Caller) -> int:
        """The effective time of a call: the wall clock as read or, in a run, the simulated time.

        A run's call brings its time, or takes the one that `clock.advanced` set. Raises ClockError when the two
        kinds of ledger are mixed up, when a run has no time, or when its time runs backwards.
        """
        if self.run is None:
            if caller.now is not None:
                raise ClockError(
                    "A live ledger takes its time from the machine; `now` is not allowed.",
                    field="now",
                    hint="Leave out deskbook/now, or start the server with [clock] mode = 'simulated'.",
                )
            return self._clock.now()
        now = snapshot.advanced_clock() if caller.now is None else caller.now
        if now is None:
            raise ClockError(
                "A call in a run needs its simulated time.",
                field="now",
                hint="The client program sends _meta deskbook/now or DESKBOOK_NOW, say 2026-03-02T21:00:00Z, "
                "or a harness moves the run's clock with advance_clock.",
            )
        if now < head.latest_effective_at:
            own = "The call's time" if caller.now is not None else "The run's advanced clock"
            raise ClockError(
                f"{own} {format_instant(now)} lies before the run's last entry at"
                f" {format_instant(head.latest_effective_at)}.",
                field="now",
                hint="A run's clock never goes back; to look back, use as_of.",
            )
        return now

    def now(self, head: Head) -> int:
        """The ledger's own time, for whoever brings none: the wall clock or, in a run, the latest of its entries."""
        return self._clock.now() if self.run is None else head.latest_effective_at

    def at_least(self, head: Head, caller: Caller) -> Caller:
        """The caller with a time the ledger takes, for noting a call whose own time was the fault."""
        if self.run is None:
            return replace(caller, now=None)
        return replace(caller, now=max(caller.now or head.latest_effective_at, head.latest_effective_at))

    def append(self, transaction: Transaction, caller: Caller, drafts: Iterable[Draft]) -> list[Entry]:
        """Place a call's entries, the session's first entry before them when it is due."""
        head = transaction.head()
        if head is None:
            raise ForeignFile("The ledger has no genesis entry.", hint="Restore it from a backup.")
        effective = self.instant(transaction, head, caller)
        head = self._note_anomaly(transaction, head, caller, effective)
        if not transaction.has_session(caller.session_id, caller.agent):
            started = SessionStarted(
                transport=caller.client.transport,
                client_name=caller.client.name,
                client_version=caller.client.version,
                protocol_version=caller.client.protocol_version,
                token_id=caller.client.token_id,
            )
            draft = Draft(started, "session", caller.session_id)
            head = _after(self._place(transaction, head, caller, draft, effective))
        entries = []
        for draft in drafts:
            entry = self._place(transaction, head, caller, draft, effective)
            entries.append(entry)
            head = _after(entry)
        return entries

    def restore(self, transaction: Transaction, entry: Entry) -> None:
        """Put an entry of another copy of this ledger in its place, with its projection rows.

        What stays of one whose content was taken away has to be known already. Raises StoreDamaged unless it is the
        next one and every hash of it follows, and ForeignFile when it belongs to another strategy or run.
        """
        head = transaction.head()
        if (entry.strategy, entry.run_id) != (self.strategy, self.run):
            raise ForeignFile(
                f"Entry {entry.sequence} belongs to another strategy or run.", hint="Import it under its own."
            )
        check_next(
            entry, 0 if head is None else head.sequence, ZERO_CHAIN if head is None else head.chain_sha256
        )
        transaction.insert_entry(entry)
        try:
            transaction.apply(projected(transaction, transaction.entry(entry.sequence) or entry))
        except ValueError:
            raise _not_whole(entry, "its content is not that of its type") from None

    def _note_anomaly(self, transaction: Transaction, head: Head, caller: Caller, effective: int) -> Head:
        if effective >= head.effective_at:
            return head
        event = ClockAnomaly(previous=head.effective_at, observed=effective)
        return _after(self._place(transaction, head, caller, Draft(event, "ledger", "clock"), effective))

    def _place(
        self, transaction: Transaction, head: Head | None, caller: Caller, draft: Draft, effective: int
    ) -> Entry:
        salt = os.urandom(_SALT_BYTES)
        content = draft.event.to_content()
        hashed: dict[str, Any] = {
            "sequence": 1 if head is None else head.sequence + 1,
            "event_id": new_id(EVENT),
            "event_type": draft.event.type,
            "subject_type": draft.subject_type,
            "subject_id": draft.subject_id,
            "kind": draft.kind,
            "symbol": draft.symbol,
            "effective_at": effective,
            "recorded_at": self._clock.now(),
            "strategy": self.strategy,
            "run_id": self.run,
            "agent": caller.agent,
            "profile": caller.profile,
            "session_id": caller.session_id or None,
            "model_call_id": caller.model_call_id,
            "retrieval_id": draft.retrieval_id,
            "tool": caller.tool,
            "arguments_sha256": None if draft.arguments is None else arguments_hash(salt, draft.arguments),
            "idempotency_key": draft.idempotency_key,
            "content_sha256": content_hash(salt, content.encode()),
            "schema_version": SCHEMA_VERSION,
        }
        leaf = leaf_hash(hashed)
        chain = chain_hash(ZERO_CHAIN if head is None else head.chain_sha256, leaf)
        entry = Entry(content=content, content_salt=salt, leaf_sha256=leaf, chain_sha256=chain, **hashed)
        transaction.insert_entry(entry)
        # From the entry and not from the draft, so that a rebuild gives the same rows: JSON knows no 1.0.
        transaction.apply(projected(transaction, entry))
        return entry


def arguments_hash(salt: bytes, arguments: dict[str, Any]) -> bytes:
    """Salted hash of a call's arguments, to tell a repeat from a different call under one key."""
    return content_hash(salt, canonical(arguments))


def event_of(entry: Entry) -> AnyEvent:
    """The typed content of an entry."""
    return _read(entry.event_type, entry.content)


@lru_cache(maxsize=16)
def _read(event_type: str, content: str) -> AnyEvent:
    # A write reads its entry twice, for the projections and for the answer; events are frozen.
    return read_event(event_type, json.loads(content))


def genesis_of(snapshot: Snapshot) -> Genesis | None:
    """What a ledger's first entry binds, None when that is no genesis; raises StoreDamaged when it is unreadable."""
    first = snapshot.entry(1)
    if first is None:
        return None
    try:
        event = event_of(first)
    except ValueError:
        raise StoreDamaged(
            "The ledger's genesis entry cannot be read.",
            hint="Run `deskbook verify`, keep the file, and restore the ledger from a backup.",
        ) from None
    return event if isinstance(event, Genesis) else None


def without_beginning() -> ClockError:
    """The error of a call without a time that would make its run."""
    return ClockError(
        "A run begins with its first call's simulated time.", field="now", hint="Send the time with the call."
    )


def projected(transaction: Transaction, entry: Entry) -> list[Row]:
    """The rows an entry adds to the projections as they stood before it."""
    event, cut = event_of(entry), entry.sequence - 1
    # Looked up only where it is asked for: most entries of a ledger need neither.
    version = transaction.version(entry.subject_id, cut) if isinstance(event, CHANGES) else None
    totals = transaction.totals(cut) if isinstance(event, Recorded) else (0, 0)
    return project(entry, event, Before(version, *totals))


def check_next(entry: Entry, sequence: int, chain: bytes) -> None:
    """Raise StoreDamaged unless `entry` follows `sequence` and `chain`, and every hash of it is its own.

    Whether one that is blank may be so, whoever reads on to its redaction has to say.
    """
    if entry.sequence != sequence + 1:
        raise _not_whole(entry, f"it follows entry {sequence}")
    if (
        not is_blank(entry)
        and content_hash(entry.content_salt, entry.content.encode()) != entry.content_sha256
    ):
        raise _not_whole(entry, "its content does not match content_sha256")
    if leaf_of(entry) != entry.leaf_sha256:
        raise _not_whole(entry, "its columns do not match leaf_sha256")
    if chain_hash(chain, entry.leaf_sha256) != entry.chain_sha256:
        raise _not_whole(entry, "chain_sha256 does not follow from the entry before")


def _not_whole(entry: Entry, why: str) -> StoreDamaged:
    return StoreDamaged(
        f"Entry {entry.sequence} is not what was written: {why}.", hint="Take the copy again from its ledger."
    )


def _after(entry: Entry) -> Head:
    return Head(entry.sequence, entry.chain_sha256, entry.effective_at, entry.effective_at)
