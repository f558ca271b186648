"""The vector tests' model, and their other processes: run as a script with a task's name; says JSON lines.

A step is whatever changes the vectors' folder: a write, a sync, a file's length, a rename, a temporary file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from store import Book, Caller
from store.commands import Remember
from store.embedding.loading import Encoder
from store.engines.sqlite import SqliteEngine
from store.ledger import projected
from store.paths import ledger_path
from store.rows import Filter
from store.vectors import file as files
from store.vectors.base import Wanted
from store.vectors.file import VectorFile
from store.vectors.index import VectorIndex
from store.vectors.layout import Head
from store.vectors.scan import Scan

MODEL = "fake"
PIECE_MARK = " // "


class FakeEmbedder:
    """A model without meaning: texts are alike as far as they share words. Remembers what it was asked to embed."""

    def __init__(self, dimensions: int = 64, model: str = MODEL) -> None:
        self.model = model
        self.dimensions = dimensions
        self.asked: list[str] = []

    def pieces(self, text: str) -> list[str]:
        """One piece for each part between two slashes."""
        return text.split(PIECE_MARK)

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.extend(texts)
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> Any:
        """The sum of its words' vectors, of length 1."""
        total = sum(map(self._word, text.split()), np.zeros(self.dimensions)) + 1e-3 * self._word(text)
        return (total / np.linalg.norm(total)).astype(np.float32)

    def _word(self, word: str) -> Any:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
        return np.random.default_rng(seed).standard_normal(self.dimensions)


def say(what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def opened(root: str) -> tuple[SqliteEngine, VectorIndex]:
    """The live ledger, without any thread of its own, and its vectors."""
    ledger = ledger_path(Path(root), "default", None)
    engine = SqliteEngine(ledger, projected, create=False, writes=False)
    with engine.read() as snapshot:
        genesis = snapshot.entry(1)
        assert genesis is not None
        store_id = json.loads(genesis.content)["store_id"]
    return engine, VectorIndex(Path(root), ledger, store_id, MODEL)


class Dying:
    """Stands before `os` and dies by SIGKILL at its n-th step: before it, or within a write."""

    def __init__(self, step: int, *, within: bool) -> None:
        self._left = step
        self._within = within

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def pwrite(self, descriptor: int, content: bytes, at: int) -> int:
        if self._within and self._left == 1:
            os.pwrite(descriptor, bytes(content)[: len(content) // 2], at)
        self.count()
        return os.pwrite(descriptor, content, at)

    def fdatasync(self, descriptor: int) -> None:
        self.count()
        os.fdatasync(descriptor)

    def ftruncate(self, descriptor: int, length: int) -> None:
        self.count()
        os.ftruncate(descriptor, length)


def _die_at(step: int, *, within: bool) -> None:
    dying = Dying(step, within=within)
    files.os = dying  # type: ignore[attr-defined]

    def heed(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"os.rename", "os.remove", "tempfile.mkstemp"} and "vectors" in str(arguments):
            dying.count()

    sys.addaudithook(heed)


def kill_at_each_step(root: str, capacity: str, most: str, how: str) -> None:
    """Embed a ledger's texts again and again, dying one step later each time; says how far each got.

    Before each turn the vectors are those of the folder `begun`. The last line says that one lived.
    """
    files.FIRST_CAPACITY = int(capacity)  # type: ignore[misc]
    folder, begun = Path(root, "default", "vectors"), Path(root, "begun")
    step = 0
    while True:
        step += 1
        shutil.rmtree(folder, ignore_errors=True)
        if begun.exists():
            shutil.copytree(begun, folder)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _die_at(step, within=how == "within")
            _embed_all(root, int(most), writing)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            reached = [int(line) for line in told]
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), status
        say({"step": step, "reached": max(reached, default=0), "lived": status == 0})
        if status == 0:
            return
        sys.stdin.readline()


def _embed_all(root: str, most: int, told: int) -> None:
    engine, index = opened(root)
    embedder = FakeEmbedder()
    more = True
    while more:
        done = index.catch_up(engine.read, embedder, most)
        more = done.more
        if done.versions:
            os.write(told, b"%d\n" % done.watermark)


def embed_at_once(root: str, most: str) -> None:
    """Embed beside others until nothing is left; says the texts that this one embedded, and how often it waited."""
    engine, index = opened(root)
    embedder = FakeEmbedder()
    say("ready")
    sys.stdin.readline()
    busy, more = 0, True
    while more:
        done = index.catch_up(engine.read, embedder, int(most))
        busy, more = busy + done.busy, done.more
        if done.busy:
            threading.Event().wait(0.001)
    say({"asked": embedder.asked, "busy": busy})


def nearest(path: str, queries: str, limit: str) -> None:
    """Say the answers of a file to each query, to the last bit."""
    head = Head.of("store", MODEL, 1, 1)
    file = VectorFile.open(Path(path), head.ledger, head.form)
    assert file is not None
    wanted = Wanted(Filter(), 2**62, 0, 2**62)
    for query in np.load(queries):
        found = Scan(file).nearest(query, wanted, int(limit))
        say([(near.sequence, near.cosine.hex()) for near in found])


def on_small_disk(disk: str) -> None:
    """Embed on a disk that is full before the vectors fit: says what happened to each search and write."""
    root = Path(disk)
    encoder = Encoder(MODEL, lambda: FakeEmbedder(384))
    encoder.ready(60)
    book = Book.open(root, "default", encoder=encoder)
    caller = Caller(agent="ann", profile="solo", session_id="ses-1", tool="tool")
    for number in range(40):
        book.execute(caller, Remember(text=f"note {number} of the desk"))
    first = book.embed_next(20)
    index = book._vectors._index  # type: ignore[attr-defined]
    with book.snapshot() as snapshot:
        held = index.file(snapshot).mark.rows
    filler = root / "filler"
    _fill(filler, root)
    faults, rows = [], []
    for _ in range(3):
        try:
            book.embed_next(20)
        except OSError as fault:
            faults.append(fault.errno)
        with book.snapshot() as snapshot:
            rows.append(index.file(snapshot).mark.rows)
    with book.snapshot() as snapshot:
        near = index.scan(snapshot).nearest(FakeEmbedder(384).vector("note 3"), _all_of(snapshot), 5)
    filler.unlink()
    left = book.embed_next(40)
    with book.snapshot() as snapshot:
        reach = index.reach(snapshot, snapshot.head().sequence)
    names = sorted(path.name for path in (root / "default" / "vectors").iterdir())
    say({
        "first": first.versions,
        "held": held,
        "faults": faults,
        "rows": rows,
        "near": len(near),
        "left": left.versions,
        "reach": reach,
        "head": book.head().sequence,
        "names": names,
    })  # fmt: skip
    book.close()


def read_only(root: str) -> None:
    """Search and embed in a folder that may not be written: says what happened."""
    engine, index = opened(root)
    faults = []
    for _ in range(2):
        try:
            index.catch_up(engine.read, FakeEmbedder(), 3)
        except OSError as fault:
            faults.append(fault.errno)
    with engine.read() as snapshot:
        scan = index.scan(snapshot)
        assert scan is not None
        near = scan.nearest(FakeEmbedder().vector("note number1 of the desk"), _all_of(snapshot), 9)
    say({"faults": faults, "near": len(near)})


def _all_of(snapshot: Any) -> Wanted:
    head = snapshot.head().sequence
    return Wanted(Filter(), head, 0, head)


def _fill(filler: Path, root: Path) -> None:
    with filler.open("ab", buffering=0) as taken:
        for size in (2**20, 2**16, 2**12):
            with suppress(OSError):
                while os.statvfs(root).f_bavail * os.statvfs(root).f_frsize >= size:
                    taken.write(b"\0" * size)


TASKS = {
    task.__name__.replace("_", "-"): task
    for task in (kill_at_each_step, embed_at_once, nearest, on_small_disk, read_only)
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
