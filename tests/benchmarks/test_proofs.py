"""What checkpoints and proofs cost at 100,000 and 1,000,000 entries, beside reading the leaves raw."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from store.canonical import ZERO_CHAIN, canonical, chain_hash, content_hash
from store.engines.sqlite import schema
from store.entry import COLUMNS, Entry, leaf_of
from store.events import Genesis
from store.paths import ledger_path
from store.proofs.cache import TreeCache, cache_path
from store.proofs.checkpoint import Checkpoint, open_checkpoint, origin_of
from store.proofs.inclusion import read_proof, write_proof
from store.proofs.note import Signer
from store.proofs.signing import examine
from store.proofs.source import open_source

if TYPE_CHECKING:
    from conftest import Print

pytestmark = pytest.mark.bench

SIZES = (100_000, 1_000_000)
START = 1_772_461_800_000_000
PROOFS = 200
STORE = "store_0000000000000"
SIGNER = Signer("bench", bytes(range(32)))


def entries(size: int) -> Iterator[tuple[Any, ...]]:
    """A ledger's rows as `Ledger` would place them, without their projections."""
    chain = ZERO_CHAIN
    genesis = Genesis(store_id=STORE, strategy="default", mode="live", product="bench")
    for sequence in range(1, size + 1):
        text = (
            genesis.to_content()
            if sequence == 1
            else canonical({"text": f"note {sequence} " + "word " * 30}).decode()
        )
        salt = sequence.to_bytes(16, "big")
        bare = Entry(
            sequence, f"ev_{sequence:013}", "genesis" if sequence == 1 else "memory.recorded", "memory",
            f"mem_{sequence:013}", "memory", "AAPL", START + sequence, START + sequence,
            "default", None, "ann", "solo", "ses-1", None, None, "remember", None, None, text, salt,
            content_hash(salt, text.encode()), b"", b"", 1,
        )  # fmt: skip
        leaf = leaf_of(bare)
        chain = chain_hash(chain, leaf)
        row = tuple(getattr(bare, name) for name in COLUMNS)
        yield (*row[:-3], leaf, chain, 1)


def add(path: Path, rows: Iterator[tuple[Any, ...]]) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO memory_events VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        connection.execute("COMMIT")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(root: Path, path: Path, size: int) -> Sequence[str]:
    file = cache_path(path)
    chance = random.Random(1)
    with open_source(root, path, "default", None) as source:
        raw = seconds(lambda: sum(1 for _ in source.links(0, source.size)))
        checked = seconds(lambda: sum(1 for _ in source.checked_leaves(0)))
        with TreeCache(file, source) as cache:
            built = seconds(lambda: cache.root(size))
        with TreeCache(file, source) as cache:
            state = Checkpoint(origin_of(STORE), size, cache.root(size))
        signed = open_checkpoint(state.sign(SIGNER).encode(), [SIGNER.verifier])
        taken, reads, checks = [], [], []
        for _ in range(PROOFS):
            entry = source.entry(chance.randrange(size) + 1)
            assert entry is not None
            with TreeCache(file, source) as cache:
                proofs: list[str] = []
                work = lambda: proofs.append(write_proof(entry, cache.path(entry.sequence - 1, size), signed))  # noqa: B023, E731
                taken.append(seconds(work))
                reads.append(cache.rows_read)
            checks.append(seconds(lambda: read_proof(proofs[0].encode(), [SIGNER.verifier])))  # noqa: B023
        with TreeCache(file, source) as cache:
            again = seconds(lambda: examine(source, cache, [("last", signed)]))
    one = statistics.median(taken)
    return (
        f"{size:,}", f"{raw:.2f} s", f"{checked:.1f} s ({checked / raw:.0f}x)", f"{built:.2f} s ({built / raw:.1f}x)",
        f"{file.stat().st_size / 1e6:.1f} MB", f"{again:.2f} s", f"{one * 1e3:.2f} ms ({raw / one:,.0f}x less)",
        f"{statistics.median(reads):.0f}, at most {max(reads)}", f"{statistics.median(checks) * 1e3:.2f} ms",
    )  # fmt: skip


def test_checkpoints_and_proofs_at_size(tmp_path: Path, show: Print) -> None:
    rows = []
    for size in SIZES:
        root = tmp_path / str(size)
        path = ledger_path(root, "default", None)
        path.parent.mkdir(parents=True)
        with closing(apsw.Connection(str(path))) as connection:
            schema.create(connection)
        add(path, entries(size))
        rows.append(measured(root, path, size))
    show(
        "checkpoints and proofs",
        ("entries", "raw read of leaves", "every entry checked", "tree built", "its file", "examine, nothing new",
         "one proof, median", "rows read", "its check"),
        rows,
    )  # fmt: skip
