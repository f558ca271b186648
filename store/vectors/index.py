"""The vectors of one ledger: brought up to the ledger's head in the background, and asked by searches.

    <ledger's folder>/vectors/lock                     held by whoever embeds, for one batch at a time
    <ledger's folder>/vectors/MODEL.vectors            one file a model

The file is a cache. One that is missing, cut, of another ledger, model or version, or that knows more than the ledger
does, is made anew. Processes on one ledger take turns batch by batch, so no text is embedded twice.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..engines.base import Snapshot
from ..paths import refuse_link, refuse_links
from ..rows import Text
from .base import Step
from .file import Row, VectorFile, codes_of
from .layout import FIRST_CAPACITY, FOREVER, KIND_NUMBERS, STATUS_NUMBERS, Head, digest, tag_bits
from .scan import Scan

if TYPE_CHECKING:
    from ..embedding.base import Embedder

FOLDER: Final = "vectors"
LOCK: Final = "lock"
SUFFIX: Final = ".vectors"
OpenSnapshot = Callable[[], AbstractContextManager[Snapshot]]


class VectorIndex:
    """One ledger's vectors of one model; safe to use from many threads."""

    def __init__(self, root: Path, ledger: Path, store_id: str, model: str) -> None:
        self._root = root
        self._folder = ledger.parent / FOLDER
        self._store_id = store_id
        self._model = model
        self._path = self._folder / f"{_slug(model)}{SUFFIX}"
        self._file: VectorFile | None = None
        self._mutex = threading.Lock()

    def scan(self, snapshot: Snapshot) -> Scan | None:
        """The vectors, to be searched; None where there are none yet."""
        file = self.file(snapshot)
        return None if file is None else Scan(file)

    def file(self, snapshot: Snapshot) -> VectorFile | None:
        """The file as it stands, mapped to be read; None where there is none that fits the ledger."""
        with self._mutex:
            if self._file is None or not self._file.is_current():
                self._file = _fitting(self._open(writes=False), snapshot)
            return self._file

    def reach(self, snapshot: Snapshot, cut: int) -> int:
        """The last entry up to which every text has its vectors, at most `cut`."""
        file = self.file(snapshot)
        watermark = 0 if file is None else file.mark.watermark
        if watermark >= cut or not snapshot.texts(watermark, cut, limit=1):
            return cut
        return watermark

    def backlog(self, snapshot: Snapshot, cut: int) -> int:
        """How many texts up to the cut have no vectors yet."""
        file = self.file(snapshot)
        return snapshot.count_texts(0 if file is None else file.mark.watermark, cut)

    def catch_up(self, open_snapshot: OpenSnapshot, embedder: Embedder, most: int) -> Step:
        """Embed the next texts, at most `most`.

        Raises EmbeddingFailed for what the model does, StoreError for a link in the folder's place, OSError for what
        the disk does; what was embedded before stays.
        """
        with open_snapshot() as snapshot:
            last = _last(snapshot)
            if not self._wanting(snapshot, last):
                return Step(0, 0, last, more=False)
        with self._alone() as mine:
            if not mine:
                return Step(0, 0, 0, more=True, busy=True)
            with open_snapshot() as snapshot:  # begun with the lock held: nothing in the file is newer
                return self._batch(snapshot, embedder, _last(snapshot), most)

    def forget(self) -> None:
        """Take the file away: it is made anew from the first text on. Raises OSError for what the disk does."""
        refuse_links(self._root, self._folder)
        self._path.unlink(missing_ok=True)

    def _wanting(self, snapshot: Snapshot, last: int) -> bool:
        file = self.file(snapshot)
        watermark = 0 if file is None else file.mark.watermark
        # One that knows entries which the ledger has not is of a ledger that was restored to an earlier state.
        return watermark > last or bool(snapshot.texts(watermark, last, limit=1))

    def _batch(self, snapshot: Snapshot, embedder: Embedder, last: int, most: int) -> Step:
        file = _fitting(self._open(writes=True), snapshot)
        if file is not None and file.mark.watermark > last:
            file.close()
            file = None
        after = 0 if file is None else file.mark.watermark
        texts = snapshot.texts(after, last, limit=most)
        if not texts:  # another process has done it
            if file is not None:
                file.close()
            return Step(0, 0, last, more=False)
        pieces = [embedder.pieces(text.text) for text in texts]
        kept = [_kept(file, text) for text in texts]
        wanted = [piece for own, old in zip(pieces, kept, strict=True) if old is None for piece in own]
        fresh = codes_of(embedder.embed(wanted)) if wanted else None
        if file is None:
            dimensions = fresh[0].shape[1] if fresh is not None else 1
            file = self._make(dimensions)
        elif fresh is not None and fresh[0].shape[1] != file.head.dimensions:
            file.close()
            self._make(fresh[0].shape[1]).close()  # the model's vectors became longer or shorter: begin anew
            return Step(0, 0, 0, more=True)
        rows, codes = _rows(texts, pieces, kept, fresh)
        reached = last if len(texts) < most else texts[-1].sequence_from
        try:
            _end_earlier(file, texts)
            file = file.append(rows, codes, reached)
        finally:
            file.close()
        return Step(len(texts), len(rows), reached, more=reached < last)

    def _make(self, dimensions: int) -> VectorFile:
        head = Head.of(self._store_id, self._model, dimensions, FIRST_CAPACITY)
        return VectorFile.create(self._path, head)

    def _open(self, *, writes: bool) -> VectorFile | None:
        head = Head.of(self._store_id, self._model, 1, 1)
        return VectorFile.open(self._path, head.ledger, head.form, writes=writes)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process alone embeds now; the kernel lets go of the lock when its holder dies."""
        refuse_links(self._root, self._folder)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        refuse_link(self._folder / LOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._folder / LOCK, flags, 0o600)
        try:
            yield _taken(handle)
        finally:
            os.close(handle)


def _last(snapshot: Snapshot) -> int:
    head = snapshot.head()
    return head.sequence if head else 0


def _fitting(file: VectorFile | None, snapshot: Snapshot) -> VectorFile | None:
    """The file, unless its last row within the ledger is of another text than the ledger's: it was restored since."""
    if file is None:
        return None
    held = file.column("sequence", file.mark.rows)
    row = int(np.searchsorted(held, _last(snapshot), "right")) - 1
    if row < 0:
        return file
    entry = snapshot.entry(int(held[row]))
    if entry is not None and _source(entry.content_sha256) == int(file.column("source", row + 1)[row]):
        return file
    file.close()
    return None


def _source(content_sha256: bytes) -> int:
    return int.from_bytes(content_sha256[:8], "little")


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _slug(model: str) -> str:
    """A model's name as a file name, injective by its digest."""
    plain = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:60]
    return f"{plain}-{digest(model):016x}"


def _kept(file: VectorFile | None, text: Text) -> Any:
    """The codes and lengths of the version before, where its text was the same and it has them."""
    if file is None or text.previous_from is None or text.previous_text != text.text:
        return None
    first, last = _span(file, text.previous_from)
    if first == last:
        return None
    return file.codes[first:last].copy(), file.column("length", last)[first:].tolist()


def _span(file: VectorFile, sequence: int) -> tuple[int, int]:
    held = file.column("sequence", file.mark.rows)
    first, last = np.searchsorted(held, [sequence, sequence + 1], "left")
    return int(first), int(last)


def _rows(
    texts: Sequence[Text], pieces: list[list[str]], kept: list[Any], fresh: Any
) -> tuple[list[Row], Any]:
    rows: list[Row] = []
    blocks = []
    at = 0
    for text, own, old in zip(texts, pieces, kept, strict=True):
        if old is None:
            codes, lengths = fresh[0][at : at + len(own)], fresh[1][at : at + len(own)]
            at += len(own)
        else:
            codes, lengths = old
        blocks.append(codes)
        rows.extend(_row(text, length) for length in lengths)
    return rows, np.concatenate(blocks)


def _row(text: Text, length: float) -> Row:
    return Row(
        sequence=text.sequence_from,
        ended=FOREVER if text.sequence_to is None else text.sequence_to,
        effective=text.effective_at,
        expires=FOREVER if text.expires_at is None else text.expires_at,
        symbol=0 if text.symbol is None else digest(text.symbol),
        agent=digest(text.agent),
        tags=tag_bits(text.tags),
        source=_source(text.content_sha256),
        kind=KIND_NUMBERS[text.kind],
        status=STATUS_NUMBERS[text.status],
        pending=int(text.review_state not in ("none", "approved")),
        length=length,
    )


def _end_earlier(file: VectorFile, texts: Sequence[Text]) -> None:
    """Say of the versions before these that they have ended; those in the same batch say it themselves."""
    for text in texts:
        if text.previous_from is not None:
            for row in range(*_span(file, text.previous_from)):
                file.end(row, text.sequence_from)
