"""What is looked at before a checkpoint is signed, so that a note never stands for a ledger that was altered.

Every entry is computed anew, content, leaf and chain, and the root is taken over the computed leaves. Beyond
`FULL_CHECK_ENTRIES` entries, and with an earlier note to start from, only the entries after that note are: the
root of those before is then that of the earlier note itself, proven against its signature and never believed
from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import Conflict, ForeignFile
from .cache import TreeCache
from .checkpoint import Checkpoint, Signed, origin_of
from .source import LedgerSource
from .tree import EMPTY_ROOT, Frontier

FULL_CHECK_ENTRIES = 250_000
"""Up to here every entry is checked each time, which takes some seconds (tests/benchmarks/test_proofs.py)."""

Progress = Callable[[int, int], None]
Prior = tuple[str, Signed]
"""A checkpoint signed earlier, and what it is called in messages."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A state fit to be signed, and the first entry that was computed anew for it."""

    checkpoint: Checkpoint
    checked_from: int


def examine(
    source: LedgerSource,
    cache: TreeCache,
    priors: Sequence[Prior],
    progress: Progress = lambda _done, _total: None,
    *,
    full: bool = False,
) -> Examined:
    """The ledger's state, which continues every prior one.

    Raises ForeignFile when a prior is another ledger's, Conflict when the ledger is no continuation of one, and
    StoreDamaged when an entry is not sound.
    """
    origin = origin_of(source.store_id)
    for name, prior in priors:
        check_origin(name, prior, origin)
    for name, prior in priors:
        if prior.checkpoint.size > source.size:
            raise _cut(name, prior, source.size)
    start = Frontier()
    if not full and source.size > FULL_CHECK_ENTRIES:
        start = _signed_start(cache, priors)
    first = start.size + 1
    sizes = {prior.checkpoint.size for _, prior in priors}
    roots = {size: cache.root(size) for size in sizes if size < start.size} | {start.size: start.root()}
    for leaf in source.checked_leaves(start.size, progress):
        start.add(leaf)
        if start.size in sizes:
            roots[start.size] = start.root()
    different = [
        (name, prior) for name, prior in priors if roots[prior.checkpoint.size] != prior.checkpoint.root
    ]
    if different and first > 1:
        cache.forget()  # it may lie; the ledger itself is asked before it is blamed
        return examine(source, cache, priors, progress, full=True)
    if different:
        agreed = [p.checkpoint.size for _, p in priors if roots[p.checkpoint.size] == p.checkpoint.root]
        raise diverged(different, agreed)
    return Examined(Checkpoint(origin, source.size, start.root()), first)


def divergence(source: LedgerSource, notes: Sequence[Prior]) -> Conflict | None:
    """Where the ledger parts from what was signed, told by all notes that it is long enough for; None if nowhere."""
    notes = [note for note in notes if note[1].checkpoint.size <= source.size]
    leaves = Frontier()
    roots = {0: EMPTY_ROOT}
    sizes = {note.checkpoint.size for _, note in notes}
    for leaf, _ in source.links(0, source.size):
        leaves.add(leaf)
        if leaves.size in sizes:
            roots[leaves.size] = leaves.root()
    different = [(name, note) for name, note in notes if roots[note.checkpoint.size] != note.checkpoint.root]
    agreed = [
        note.checkpoint.size for _, note in notes if roots[note.checkpoint.size] == note.checkpoint.root
    ]
    return diverged(different, agreed) if different else None


def diverged(different: Sequence[Prior], agreed: Sequence[int]) -> Conflict:
    """The refusal that names the first note the ledger departs from, and between which entries it does."""
    name, first = min(different, key=lambda found: found[1].checkpoint.size)
    size = first.checkpoint.size
    before = max((known for known in agreed if known < size), default=0)
    between = f"entry {size}" if before + 1 == size else f"an entry from {before + 1} to {size}"
    return Conflict(
        f"The ledger is not a continuation of what was signed: {between} is not what {first.names} signed in"
        f" {name}. Nothing was signed.",
        hint="Keep the file and the notes. `deskbook verify --checkpoint FILE` says the same of each note.",
    )


def check_origin(name: str, prior: Signed, origin: str) -> None:
    """Raise ForeignFile when a checkpoint is not of the ledger with that origin."""
    if prior.checkpoint.origin != origin:
        raise ForeignFile(
            f"The checkpoint in {name} is of {prior.checkpoint.origin}, and this ledger is {origin}.",
            hint="Check --root, --strategy and --run, and where the note comes from.",
        )


def _cut(name: str, prior: Signed, size: int) -> Conflict:
    lost = prior.checkpoint.size - size
    return Conflict(
        f"The ledger is not a continuation of what was signed: {prior.names} signed {prior.checkpoint.size} entries"
        f" in {name}, and the ledger has {size}: {lost} were cut off. Nothing was signed.",
        hint="Keep the file and the notes, and restore the ledger from a backup.",
    )


def _signed_start(cache: TreeCache, priors: Sequence[Prior]) -> Frontier:
    """The tree of the largest prior, when the cache can prove it; an empty one else."""
    if not priors:
        return Frontier()
    signed = max((prior.checkpoint for _, prior in priors), key=lambda checkpoint: checkpoint.size)
    frontier = Frontier(signed.size, cache.peaks(signed.size))
    return frontier if frontier.root() == signed.root else Frontier()
