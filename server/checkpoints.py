"""Making a checkpoint: look at the ledger, sign, keep the note outside the store, and hand it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from store.errors import Conflict, StoreError
from store.proofs.cache import TreeCache, cache_path
from store.proofs.checkpoint import Signed, open_checkpoint, origin_of
from store.proofs.places import NoteFile, NoteFolder
from store.proofs.signing import Examined, divergence, examine
from store.proofs.source import open_source

from .checkpoint_keys import KeyRing

POST_SECONDS: Final = 10.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Made:
    """A signed checkpoint; `examined` is None when nothing was added since it was signed."""

    signed: Signed
    examined: Examined | None


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """The ledger that is meant: its file below the root, and whose it is."""

    root: Path
    path: Path
    strategy: str
    run: str | None


@dataclass(frozen=True, slots=True)
class Checkpointer:
    """Signs one ledger's checkpoints; `copies` are places that get every note, beside the history."""

    ledger: LedgerPlace
    ring: KeyRing
    copies: Sequence[NoteFolder | NoteFile] = ()
    endpoint: str | None = None
    full: bool = False
    replaced: bool = False

    @property
    def history(self) -> NoteFolder:
        """The folder of every note."""
        return NoteFolder(self.ring.notes)

    def grown(self) -> bool:
        """Whether the ledger has entries that no checkpoint covers yet."""
        with open_source(*self._where) as source:
            last = self.history.last(origin_of(source.store_id), self.ring.known)
            return last is None or source.size != last[1].checkpoint.size

    def make(self, progress: Progress = lambda _done, _total: None) -> Made:
        """Check the ledger and what was signed before, sign, and keep the note in the history.

        Raises Conflict, ForeignFile or StoreDamaged when the ledger is not fit to be signed; nothing was signed then.
        """
        with open_source(*self._where) as source:
            origin = origin_of(source.store_id)
        # The ledger is read under the lock, so that a note another command adds meanwhile is never larger than it.
        with self.history.held(origin), open_source(*self._where) as source:
            self._check_same_ledger(origin_of(source.store_id))
            kept = self.history.last(origin, self.ring.known)
            elsewhere = [place.last(origin, self.ring.known) for place in self.copies]
            priors = [prior for prior in (kept, *elsewhere) if prior is not None]
            with TreeCache(cache_path(self.ledger.path), source) as cache:
                try:
                    examined = examine(source, cache, priors, progress, full=self.full)
                except Conflict as fault:
                    notes = self.history.all(origin, self.ring.known)
                    raise divergence(source, [*notes, *priors]) or fault from None
                self.history.note_place(self.ledger.path, origin)
                if kept is not None and kept[1].checkpoint == examined.checkpoint:
                    return Made(kept[1], None)
                cache.root(source.size)
            note = examined.checkpoint.sign(self.ring.signer)
            signed = open_checkpoint(note.encode(), [self.ring.signer.verifier])
            self.history.put_held(signed)
        return Made(signed, examined)

    def _check_same_ledger(self, origin: str) -> None:
        """Raise Conflict where another ledger was signed before, unless it was replaced on purpose."""
        before = self.history.signed_at(self.ledger.path)
        if before is None or before == origin or self.replaced:
            return
        raise Conflict(
            f"The ledger at this place is {origin}, and {before} was signed here before. Nothing was signed.",
            hint="Put the right ledger back. If it was made anew on purpose, say so with --replaced.",
            where=self.ledger.path,
        )

    def hand_on(self, signed: Signed) -> list[str]:
        """Give the note to every copy and to the endpoint; says what failed."""
        faults = []
        for place in self.copies:
            try:
                place.put(signed)
            except StoreError as fault:
                faults.append(f"{place.path}: {fault.message}")
        if self.endpoint is not None:
            failed = post_note(self.endpoint, signed.note)
            if failed is not None:
                faults.append(failed)
        return faults

    @property
    def _where(self) -> tuple[Path, Path, str, str | None]:
        return self.ledger.root, self.ledger.path, self.ledger.strategy, self.ledger.run


def post_note(endpoint: str, note: str) -> str | None:
    """Send a note as text/plain; gives what went wrong, without the address, which may be a secret."""
    import httpx2  # noqa: PLC0415 - a quarter of a second that only a desk with an endpoint should pay

    try:
        answer = httpx2.post(
            endpoint,
            content=note.encode(),
            headers={"Content-Type": "text/plain; charset=utf-8"},
            timeout=POST_SECONDS,
            follow_redirects=False,
        )
    except httpx2.HTTPError as fault:
        return f"the endpoint of [checkpoint] did not take the note ({type(fault).__name__})"
    if answer.is_success:
        return None
    return f"the endpoint of [checkpoint] answered {answer.status_code} to the note"
