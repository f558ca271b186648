"""An open ledger with everything that can be done with it: the store's front door.

`Book.open` finds or makes the ledger of a strategy or run below a root. Writes are answered once they are
durable; searches once they are recorded. Safe to use from many threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from .admission import Admission
from .answers import written
from .caller import Caller
from .clock import Clock, WallClock
from .commands import Command
from .embedding.loading import Encoder
from .engines.base import EngineStatus, Transaction
from .engines.sqlite import SqliteEngine
from .errors import ConfigError, NotFound
from .events import CallFailed, ClockAdvanced, Denied
from .handlers import plan
from .idempotency import check_same, keyed
from .inheritance import Inherit, Inheritance, check_inherit, pin_of
from .inputs import identifier
from .ledger import Draft, Ledger, projected, without_beginning
from .paths import LEDGER_FILE, absent, ledger_path, make_folders, refuse_links
from .policy import Policy
from .publications import Publications
from .readings import head_of
from .render import Renderer, as_text
from .replies import Reply, Written
from .review.desk import ReviewDesk
from .rows import Head
from .screening.commands import screen
from .search.meaning import BATCH, LedgerVectors
from .search.trust import Ranking
from .symbols import Symbols
from .vectors.base import Step

WRITE_SECONDS = 10.0
NOTE_SECONDS = 2.0


class Book(ReviewDesk, Publications):
    """One ledger, open."""

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
        symbols: Symbols | None = None,
        encoder: Encoder | None = None,
        ranking: Ranking | None = None,
        policy: Policy | None = None,
        product: str = "deskbook",
    ) -> Book:
        """Open the ledger of a strategy (live) or of one of its runs, making it unless `create` is false.

        A run that is made begins at `begins`, microseconds since the epoch, UTC, and inherits what `inherit`
        says; for one that stands, `inherit` must agree with its genesis (None agrees with any). With an `encoder`
        searches go by meaning too; `ranking` says what standing and age count in them, `policy` what is asked of new
        memories. Raises NotFound when the ledger is absent and not to be made, else the error that says why it cannot
        serve.
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
                _may_begin(create)
                pin = pin_of(root, strategy) if run is not None and inherit == "live" else None
                engine.write(
                    lambda transaction: ledger.begin(transaction, product, begins, pin), timeout=WRITE_SECONDS
                )
            with engine.read() as snapshot:
                genesis = ledger.check(snapshot)
            check_inherit(genesis, inherit)
            inheritance = Inheritance.of(root, strategy, genesis, encoder)
            vectors = LedgerVectors.of(root, path, genesis.store_id, encoder, engine.read)
        except BaseException:
            engine.close()
            inheritance.close()
            raise
        renderer = Renderer(None if str(zone) == "UTC" else zone)
        return cls(engine, ledger, inheritance, renderer, genesis, symbols, vectors, ranking, policy)

    def execute(self, caller: Caller, command: Command, *, idempotency_key: str | None = None) -> Written:
        """Do what a command says and answer once it is durable.

        The same key with the same command gives the first answer back. Raises the InvalidInput, NotFound,
        Conflict, PermissionDenied, ClockError or StoreError that fits; then nothing was stored, or the error
        says otherwise. Raises ConfirmationNeeded where the caller's person is to be asked first.
        """
        key = None if idempotency_key is None else identifier(idempotency_key, field="idempotency_key")
        screened = screen(command, self._policy.secrets, key)

        def job(transaction: Transaction) -> Written:
            head = head_of(transaction)
            if key is not None and (first := transaction.replay(caller.agent, caller.tool, key)):
                check_same(first, screened.command)
                return written(transaction, first)
            at = self._ledger.instant(transaction, head, caller)
            with self._view(transaction, head.sequence, at, caller=caller) as view:
                planned = plan(screened.command, transaction, caller, view)
                planned = Admission(transaction, caller, view, self._policy, screened).admit(planned)
            if planned.standing is not None:
                found = written(transaction, planned.standing)
                return replace(found, warnings=(*found.warnings, *planned.warnings))
            first_draft, *more = planned.drafts
            drafts = [*planned.before, keyed(first_draft, screened.command, key), *more]
            entries = self._ledger.append(transaction, caller, drafts)
            entry = entries[-1 - len(more)]
            if planned.then is not None and (following := planned.then(entry)):
                self._ledger.append(transaction, caller, following)
            return written(transaction, entry)

        return self._engine.write(job, timeout=WRITE_SECONDS)

    def advance_clock(self, caller: Caller, now: int) -> Written:
        """Move a run's clock to `now`, microseconds since the epoch, UTC; the calls after it need no time.

        Raises ClockError on a live ledger and for a time before the run's last entry.
        """

        def job(transaction: Transaction) -> Written:
            event = ClockAdvanced(previous=head_of(transaction).latest_effective_at)
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

    def note_denied(self, caller: Caller, tool: str, count: int = 1) -> None:
        """Record calls the identity was not allowed to make."""
        self._note(caller, Draft(Denied(tool=tool, count=count), "call", tool))

    def note_failed(self, caller: Caller, tool: str, code: str, field: str | None, count: int = 1) -> None:
        """Record changing calls that failed."""
        self._note(caller, Draft(CallFailed(tool=tool, code=code, field=field, count=count), "call", tool))

    def head(self) -> Head:
        """The ledger's last entry."""
        with self._engine.read() as snapshot:
            return head_of(snapshot)

    def rebuild(self, progress: Callable[[int], None]) -> None:
        """Drop every projection and write it anew from the ledger; `progress` is told sequences."""
        self._engine.rebuild(progress)

    def write_as_of(self, as_of: int, target: Path) -> int:
        """Write the ledger as it stood at `as_of` into a new file, projections rebuilt; gives its entries.

        Raises ConfigError when the target exists. The ledger itself stays as it is.
        """
        if target.exists():
            raise ConfigError(f"{target} exists.", field="--to", hint="Name a file that does not exist yet.")
        if target.name.endswith(("-wal", "-shm", "-journal")) or (target.parent / LEDGER_FILE).exists():
            raise ConfigError(
                f"{target} lies where a ledger has files of its own.",
                field="--to",
                hint="Name another folder.",
            )
        with self._engine.read() as snapshot:
            cut = snapshot.cut_at(as_of)
        self._engine.copy_until(cut, target)
        return cut

    def embed_next(self, most: int = BATCH) -> Step | None:
        """Embed the next texts that have no vectors, at most `most`; None where no model is ready.

        Raises StoreError for what stands in the vectors' place, OSError for what the disk does.
        """
        return self._vectors.step(most)

    def forget_vectors(self) -> None:
        """Take the vectors of the encoder's model away; they are made anew from the first text on."""
        self._vectors.forget()

    def embedding_backlog(self) -> int:
        """How many texts have no vectors yet; 0 where there is no model."""
        return self._vectors.backlog()

    def status(self) -> EngineStatus:
        """How the store stands."""
        return self._engine.status()

    def close(self) -> None:
        """Finish what is queued and let go of the files."""
        self._engine.close()
        self._inheritance.close()

    def _note(self, caller: Caller, draft: Draft) -> None:
        def job(transaction: Transaction) -> None:
            head = head_of(transaction)
            stamped = self._ledger.at_least(head, caller)
            self._ledger.append(transaction, stamped, [draft])

        self._engine.write(job, timeout=NOTE_SECONDS)


def _may_begin(create: bool) -> None:
    if not create:
        raise NotFound("There is no ledger here yet.", hint="The first write makes it.")
