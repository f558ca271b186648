"""A ledger as it is read for a checkpoint or a proof: in one snapshot, without writing anything to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from ..canonical import ZERO_CHAIN, chain_hash, content_hash
from ..clock import WallClock
from ..engines.sqlite.connection import connect, reading_access
from ..engines.sqlite.faults import translate, translate_opening
from ..engines.sqlite.preparation import recognise, schema_of
from ..engines.sqlite.snapshot import SqliteSnapshot
from ..entry import Entry, is_blank, leaf_of
from ..errors import NotFound, StoreDamaged
from ..ledger import Ledger, event_of
from ..paths import absent, refuse_links
from ..review_events import Redacted
from ..rows import EntryFilter

_TOLD_EVERY = 1_000


class LedgerSource:
    """The entries of one ledger as they stood when it was opened."""

    def __init__(self, connection: apsw.Connection, strategy: str, run: str | None) -> None:
        self._connection = connection
        self._snapshot = SqliteSnapshot(connection)
        self._owner = (strategy, run)
        self.store_id = Ledger(WallClock(), strategy, run).check(self._snapshot).store_id
        row = connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        self.size = int(row[0] or 0) if row else 0

    def links(self, start: int, stop: int) -> Iterator[tuple[bytes, bytes]]:
        """Leaf and chain hash, as stored, of the leaves from index `start` to before `stop`."""
        for leaf, chain in self._connection.execute(
            "SELECT leaf_sha256, chain_sha256 FROM memory_events"
            " WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
            (start, stop),
        ):
            yield bytes(leaf), bytes(chain)

    def chain(self, size: int) -> bytes:
        """The chain hash, as stored, of the entry of sequence `size`; that before the first is 32 zero bytes."""
        return next((chain for _, chain in self.links(size - 1, size)), ZERO_CHAIN)

    def entry(self, sequence: int) -> Entry | None:
        """The entry of that sequence, as it is stored."""
        return self._snapshot.raw_entry(sequence)

    def taken_away_by(self, entry: Entry) -> int | None:
        """The later entry that redacted this one, by its own words; None for one that no redaction covers."""
        for redaction in self._snapshot.raw_entries(
            EntryFilter(event_type="memory.redacted", after=entry.sequence, limit=-1)
        ):
            event = event_of(redaction)
            for covered in event.covered if isinstance(event, Redacted) else ():
                if (covered.sequence, covered.content_sha256) == (entry.sequence, entry.content_sha256.hex()):
                    return redaction.sequence
        return None

    def find(self, name: str) -> list[Entry]:
        """The entry of an event id or a sequence, or every entry about an id; raises NotFound."""
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 16 else 0
        single = self.entry(number) if number else self._snapshot.entry_of_event(name)
        told = [single] if single else self._snapshot.history(name, self.size)
        found = [entry for each in told if (entry := self.entry(each.sequence)) is not None]
        if not found:
            raise NotFound(
                f"Nothing in this ledger has the id {name}.", hint="`deskbook log` lists the entries."
            )
        return found

    def checked_leaves(
        self, after: int, progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> Iterator[bytes]:
        """The leaves after entry `after`, each computed from its columns and compared with what is stored.

        Raises StoreDamaged at the first entry whose sequence, owner, content, leaf or chain is not as it must be.
        """
        sequence, chain = after, self.chain(after)
        for entry in self._snapshot.raw_entries(EntryFilter(after=after, limit=self.size)):
            sequence += 1
            try:
                leaf = leaf_of(entry)
                chain = chain_hash(chain, leaf)
                fault = self._fault(entry, sequence, leaf, chain)
            except (TypeError, AttributeError):
                fault, leaf = "a column holds what was never written to it", b""
            if fault:
                raise _broken(sequence, fault)
            if not sequence % _TOLD_EVERY:
                progress(sequence, self.size)
            yield leaf
        if sequence != self.size:
            raise _broken(sequence + 1, "it is missing")

    def _fault(self, entry: Entry, sequence: int, leaf: bytes, follows: bytes) -> str | None:
        if entry.sequence != sequence:
            return "it is missing"
        if (entry.strategy, entry.run_id) != self._owner or (entry.event_type == "genesis") != (
            sequence == 1
        ):
            return "it belongs to another ledger"
        if is_blank(entry):
            if self.taken_away_by(entry) is None:
                return "its content was taken away, and no redaction covers it"
        elif content_hash(entry.content_salt, entry.content.encode()) != entry.content_sha256:
            return "its content does not match its hash"
        if leaf != entry.leaf_sha256:
            return "a column does not match its hash"
        return None if follows == entry.chain_sha256 else "the chain is broken"


@contextmanager
def open_source(root: Path, path: Path, strategy: str, run: str | None) -> Iterator[LedgerSource]:
    """Open the ledger at `path`, below `root`, to be read in one snapshot.

    Raises NotFound where there is none, and the StoreError that fits one that cannot be read.
    """
    refuse_links(root, path)
    if absent(path):
        raise NotFound("There is no ledger here yet.", hint="Check --root, --strategy and --run.")
    try:
        recognise(path)
        connection = connect(path, reading_access(path))
    except (apsw.Error, OSError) as fault:
        raise translate_opening(fault) from None
    with closing(connection):
        try:
            if not schema_of(connection, path):
                raise NotFound("The ledger's file is empty.", hint="The first write makes the ledger.")
            connection.execute("BEGIN")
            yield LedgerSource(connection, strategy, run)
        except apsw.Error as fault:
            raise translate(fault) from None
        except UnicodeDecodeError:
            raise StoreDamaged(
                "A text in the ledger is not UTF-8: it was changed.",
                hint="Run `deskbook verify` to see what is wrong.",
                where=path,
            ) from None


def _broken(sequence: int, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"Entry {sequence} is not sound: {what}. Nothing was signed.",
        hint="Run `deskbook verify` to see what is wrong.",
    )
