"""A model without meaning, files of vectors, the vectors of a seat's ledger, and other processes."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from store.rows import Filter
from store.vectors.base import Near, Wanted
from store.vectors.file import Row, VectorFile, codes_of
from store.vectors.index import VectorIndex
from store.vectors.layout import FOREVER, Head

if TYPE_CHECKING:
    from conftest import Seat

    from store.engines.base import Snapshot

REPOSITORY = Path(__file__).resolve().parents[2]
HAND = Path(__file__).with_name("hand.py")
GUARD = 120.0
LATER = 2**62


def _hand() -> Any:
    spec = importlib.util.spec_from_file_location("vectors_hand", HAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FakeEmbedder = _hand().FakeEmbedder


@pytest.fixture(scope="session")
def make_embedder() -> Callable[..., Any]:
    """Makes models without meaning; each remembers what it was asked."""
    return FakeEmbedder  # type: ignore[no-any-return]


@pytest.fixture
def embedder() -> Any:
    return FakeEmbedder()


def plain_row(sequence: int, **more: Any) -> Row:
    """A row that every search may find, but for what is given."""
    usual = {
        "sequence": sequence,
        "ended": FOREVER,
        "effective": sequence,
        "expires": FOREVER,
        "symbol": 0,
        "agent": 0,
        "tags": 0,
        "source": sequence,
        "kind": 0,
        "status": 0,
        "pending": 0,
        "length": 1.0,
    }
    return Row(**{**usual, **more})


def write_vectors(path: Path, vectors: Any, batches: Sequence[int] = (), **more: Any) -> VectorFile:
    """A file with a row for each vector, from entry 1 on, written in batches; `more` are columns of values."""
    codes, lengths = codes_of(vectors)
    columns = {"sequence": range(1, len(codes) + 1), "length": lengths, **more}
    rows = [
        plain_row(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)
    ]
    file = VectorFile.create(path, Head.of("store", "fake", codes.shape[1], 16))
    bounds = [0, *np.cumsum(batches).tolist(), len(rows)]
    for start, end in pairwise(bounds):
        if end > start:
            file = file.append(rows[start:end], codes[start:end], rows[end - 1].sequence)
    return file


@pytest.fixture(scope="session")
def written() -> Callable[..., VectorFile]:
    return write_vectors


@pytest.fixture(scope="session")
def row() -> Callable[..., Row]:
    return plain_row


def everything(conditions: Filter | None = None, **more: int) -> Wanted:
    """All that stands, but for what is given."""
    return Wanted(conditions or Filter(), **{"cut": LATER, "at": 0, "watermark": LATER, **more})


@pytest.fixture(scope="session")
def wanting() -> Callable[..., Wanted]:
    return everything


class Desk:
    """A seat's ledger and its vectors by one model, as one process sees them."""

    def __init__(self, seat: Seat, embedder: Any) -> None:
        self.seat = seat
        self.embedder = embedder
        self.root = next(place for place in seat.path.parents if (place / "default").exists())
        self.folder = seat.path.parent / "vectors"
        self.index = self.another()

    def another(self) -> VectorIndex:
        """The vectors as a process sees them that has just begun."""
        with self.seat.book.snapshot() as snapshot:
            entry = snapshot.entry(1)
        assert entry is not None
        store_id = json.loads(entry.content)["store_id"]
        return VectorIndex(self.root, self.seat.path, store_id, self.embedder.model)

    @property
    def path(self) -> Path:
        """The file of vectors, which has to be there."""
        (path,) = self.folder.glob("*.vectors")
        return path

    def embed(self, most: int = 32, index: VectorIndex | None = None) -> int:
        """Embed all that is missing; gives how many versions that were."""
        total, more = 0, True
        while more:
            done = (index or self.index).catch_up(self.seat.book.snapshot, self.embedder, most)
            assert not done.busy
            total, more = total + done.versions, done.more
        return total

    def near(
        self, query: str, limit: int = 100, index: VectorIndex | None = None, **wanted: Any
    ) -> list[Near]:
        """What is near to a query, as the ledger stands, or else as `wanted` says."""
        with self.seat.book.snapshot() as snapshot:
            scan = (index or self.index).scan(snapshot)
            head = self.head(snapshot)
            asked = everything(**{"cut": head, "at": self.seat.clock.us, **wanted})
            return [] if scan is None else scan.nearest(self.embedder.vector(query), asked, limit)

    def ids(self, query: str, **wanted: Any) -> list[str]:
        """The memories near to a query, nearest first."""
        with self.seat.book.snapshot() as snapshot:
            found = [snapshot.version_at(near.sequence) for near in self.near(query, **wanted)]
        return [version.memory_id for version in found if version is not None]

    @staticmethod
    def head(snapshot: Snapshot) -> int:
        head = snapshot.head()
        assert head is not None
        return head.sequence

    def reach(self, index: VectorIndex | None = None) -> int:
        """How far vectors reach, of all entries."""
        with self.seat.book.snapshot() as snapshot:
            return (index or self.index).reach(snapshot, self.head(snapshot))

    def held(self, index: VectorIndex | None = None) -> list[tuple[Any, ...]]:
        """Every row with its codes and its sketch, as a process sees them that has just begun."""
        with self.seat.book.snapshot() as snapshot:
            file = (index or self.another()).file(snapshot)
        return [] if file is None else rows_of(file)


def rows_of(file: VectorFile) -> list[tuple[Any, ...]]:
    """Every row of a file with its codes and its sketch."""
    count = file.mark.rows
    columns = [file.column(name, count).tolist() for name in Row.__slots__]
    codes = [code.tobytes() for code in file.codes[:count]]
    sketches = [bits.tobytes() for bits in file.sketch[:, :count].T]
    return list(zip(*columns, codes, sketches, strict=True))


@pytest.fixture(scope="session")
def held_in() -> Callable[[VectorFile], list[tuple[Any, ...]]]:
    return rows_of


@pytest.fixture
def desk_of() -> Callable[..., Desk]:
    return Desk


@pytest.fixture
def desk(seat: Seat, embedder: Any) -> Desk:
    """The vectors of the test's live ledger."""
    return Desk(seat, embedder)
