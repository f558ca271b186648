"""The vectors of one ledger: brought up to the ledger's head in the background, and asked by searches.

    <ledger's folder>/vectors/lock                     held by whoever embeds, for one batch at a time
    <ledger's folder>/vectors/MODEL.vectors            one file a model

The file is a cache. One that is missing, cut, of another ledger, model or version, or that knows more than the ledger
does, is made anew. Processes on one ledger take turns batch by batch, so no text is embedded twice.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..engines.base import Snapshot
from ..errors import StoreError
from ..files import lock_at_once
from ..lifecycle import HIDDEN
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
PIECES_AT_ONCE: Final = 64
"""So many pieces are embedded while the lock is held, and more only where one text has more."""

MOST_PIECES: Final = 64
"""Of a text, so many pieces have vectors: some 12,000 words. What comes after them is found by its words."""

TAKEN_AWAY: Final = "-"
"""Embedded in place of a text that is gone, since some models take no empty one; its row is never found."""

OpenSnapshot = Callable[[], AbstractContextManager[Snapshot]]
Fresh = dict[str, tuple[Any, float]]
"""The codes of each piece that was embedded, and their length."""


class VectorIndex:
    """One ledger's vectors of one model; safe to use from many threads."""

    def __init__(self, root: Path, ledger: Path, store_id: str, model: str) -> None:
        self._root = root
        self._folder = ledger.parent / FOLDER
        self._store_id = store_id
        self._model = model
        self._path = self._folder / f"{_slug(model)}{SUFFIX}"
        self._file: VectorFile | None = None
        self._dimensions: int | None = None
        self._told: int | None = None
        self._mutex = threading.Lock()

    def scan(self, snapshot: Snapshot) -> Scan | None:
        """The vectors, to be searched; None where there are none yet."""
        file = self.file(snapshot)
        return None if file is None else Scan(file, self._now_with)

    def file(self, snapshot: Snapshot) -> VectorFile | None:
        """The file as it stands, mapped to be read; None where there is none that fits the ledger."""
        with self._mutex:
            if self._file is not None and self._file.is_current():
                return self._file
            found = self._fitting(snapshot, writes=False)
            # One that knows more than the snapshot may be of another future: it is asked again.
            kept = found is not None and found.mark.watermark <= _last(snapshot)
            self._file = found if kept else None
            return found

    def expect(self, dimensions: int | None) -> None:
        """Heed how long the model's vectors are, where it is known: those of another length count no more.

        The same is heeded once: what a batch or a search finds itself is newer.
        """
        if dimensions not in (None, self._told):
            self._told = dimensions
            self._now_with(dimensions)

    def _now_with(self, dimensions: int | None) -> None:
        with self._mutex:
            if self._dimensions != dimensions:
                self._file, self._dimensions = None, dimensions

    def reach(self, snapshot: Snapshot, cut: int) -> int:
        """The last entry up to which every text has its vectors, at most `cut`."""
        file = self.file(snapshot)
        watermark = 0 if file is None else file.mark.watermark
        if watermark >= cut or not snapshot.texts(watermark, cut, limit=1):
            return cut
        return watermark

    def waiting(self, snapshot: Snapshot, most: int) -> list[str]:
        """The first texts that have no vectors yet, at most `most`."""
        file = self.file(snapshot)
        found = snapshot.texts(0 if file is None else file.mark.watermark, _last(snapshot), limit=most)
        return [text.text for text in found]

    def backlog(self, snapshot: Snapshot, cut: int) -> int:
        """How many texts up to the cut have no vectors yet."""
        file = self.file(snapshot)
        return snapshot.count_texts(0 if file is None else file.mark.watermark, cut)

    def catch_up(
        self, open_snapshot: OpenSnapshot, embedder: Embedder, most: int, dimensions: int | None = None
    ) -> Step:
        """Embed the next texts, at most `most`.

        Anew from the first where they are expected to have other `dimensions` now. Raises EmbeddingFailed for what
        the model does, StoreError for what stands in the folder's place, OSError for what the disk does; what was
        embedded before stays.
        """
        self.expect(dimensions)
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
        with ExitStack() as closing:
            file = self._fitting(snapshot, writes=True)
            if file is not None:
                closing.callback(file.close)
            put_back = file is not None and file.mark.watermark > last
            if put_back:
                file = None
            texts = snapshot.texts(0 if file is None else file.mark.watermark, last, limit=most)
            if not texts:  # another process has done it, or there are none
                if put_back:
                    self._path.unlink(missing_ok=True)
                return Step(0, 0, last, more=False)
            pieces = _pieces(texts, embedder)
            reached = last if len(pieces) == len(texts) < most else texts[len(pieces) - 1].sequence_from
            texts = texts[: len(pieces)]
            kept = [_kept(file, text) for text in texts]
            fresh = _fresh(pieces, kept, embedder)
            size = next((len(codes) for codes, _ in fresh.values()), None)
            if size is not None:
                self._now_with(size)
            if file is None:
                file = self._make(size or 1)
                closing.callback(file.close)
            elif size not in (None, file.head.dimensions):
                return Step(0, 0, 0, more=True)
            rows, codes = _rows(texts, pieces, kept, fresh)
            _end_earlier(file, texts)
            file.append(rows, codes, reached, _chain(snapshot, reached)).close()
            return Step(len(texts), len(rows), reached, more=reached < last)

    def _make(self, dimensions: int) -> VectorFile:
        head = Head.of(self._store_id, self._model, dimensions, FIRST_CAPACITY)
        return VectorFile.create(self._path, head)

    def _fitting(self, snapshot: Snapshot, *, writes: bool) -> VectorFile | None:
        """The file, unless it is of another model, of vectors of another length, or of another ledger or future."""
        head = Head.of(self._store_id, self._model, 1, 1)
        try:
            refuse_links(self._root, self._folder)
        except StoreError:  # whoever embeds is told
            return None
        file = VectorFile.open(self._path, head.ledger, head.form, writes=writes)
        if file is None:
            return None
        if self._dimensions in (None, file.head.dimensions) and _of_this_future(file, snapshot):
            return file
        file.close()
        return None

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether this process alone embeds now; the kernel lets go of the lock when its holder dies."""
        refuse_links(self._root, self._folder)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:
            raise StoreError(
                "What lies in the vectors' place is not a folder.",
                hint="Move it away: vectors are made anew.",
                where=self._folder,
            ) from None
        refuse_link(self._folder / LOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._folder / LOCK, flags, 0o600)
        try:
            yield lock_at_once(handle)
        finally:
            os.close(handle)


def _last(snapshot: Snapshot) -> int:
    head = snapshot.head()
    return head.sequence if head else 0


def _of_this_future(file: VectorFile, snapshot: Snapshot) -> bool:
    """Whether the ledger has not been put back to an earlier state, and written on, since the file was.

    It is told by the entry that the file reaches. A snapshot that does not hold this one began earlier than the file
    was written, or is of a ledger that was put back: it is told by its last text that the file has.
    """
    mark, last = file.mark, _last(snapshot)
    if mark.watermark <= last:
        return _chain(snapshot, mark.watermark) == mark.chain
    held = file.column("sequence", mark.rows)
    row = int(np.searchsorted(held, last, "right")) - 1
    if row < 0:
        return True
    entry = snapshot.entry(int(held[row]))
    return entry is not None and _source(entry.content_sha256) == int(file.column("source", row + 1)[row])


def _chain(snapshot: Snapshot, sequence: int) -> int:
    """The head of an entry's chain hash; 0 before the first entry."""
    entry = snapshot.entry(sequence)
    return 0 if entry is None else int.from_bytes(entry.chain_sha256[:8], "little")


def _source(content_sha256: bytes) -> int:
    return int.from_bytes(content_sha256[:8], "little")


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


def _pieces(texts: Sequence[Text], embedder: Embedder) -> list[list[str]]:
    """The pieces of the first texts, of as many as one batch takes."""
    found: list[list[str]] = []
    count = 0
    for text in texts:
        own = embedder.pieces(text.text or TAKEN_AWAY)[:MOST_PIECES]
        count += len(own)
        if found and count > PIECES_AT_ONCE:
            break
        found.append(own)
    return found


def _fresh(pieces: list[list[str]], kept: list[Any], embedder: Embedder) -> Fresh:
    """Embed each piece once, of those texts that have no vectors yet."""
    wanted = list(
        dict.fromkeys(piece for own, old in zip(pieces, kept, strict=True) if old is None for piece in own)
    )
    if not wanted:
        return {}
    codes, lengths = codes_of(embedder.embed(wanted))
    return dict(zip(wanted, zip(codes, lengths, strict=True), strict=True))


def _rows(
    texts: Sequence[Text], pieces: list[list[str]], kept: list[Any], fresh: Fresh
) -> tuple[list[Row], Any]:
    rows: list[Row] = []
    blocks: list[Any] = []
    for text, own, old in zip(texts, pieces, kept, strict=True):
        codes, lengths = old or zip(*(fresh[piece] for piece in own), strict=True)
        blocks.extend(codes)
        rows.extend(_row(text, length) for length in lengths)
    return rows, np.stack(blocks)


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
        pending=int(text.review_state in HIDDEN or not text.text),
        length=length,
    )


def _end_earlier(file: VectorFile, texts: Sequence[Text]) -> None:
    """Say of the versions before these that they have ended; those in the same batch say it themselves."""
    for text in texts:
        if text.previous_from is not None:
            for row in range(*_span(file, text.previous_from)):
                file.end(row, text.sequence_from)
