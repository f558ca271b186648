"""What reviewers read of an open ledger: what waits, what is due, what is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..readings import Readings, head_of
from ..view import View
from .items import FlagItem, ReviewItem, due, item_of, open_flags, waiting


class ReviewDesk(Readings):
    """The reading side of a ledger with what is there for a person alone.

    `at` is an instant in microseconds, UTC, by default the ledger's own: the wall clock, or a run's last entry.
    """

    def review_queue(
        self, at: int | None = None, *, agent: str | None = None, limit: int = 50
    ) -> tuple[int, list[ReviewItem]]:
        """How many memories (of an agent) wait and have not waited too long, and the oldest of them."""
        with self._at(at) as view:
            return waiting(view, agent, limit)

    def review_item(self, memory_id: str, at: int | None = None) -> ReviewItem:
        """Any memory, whatever its review state, with what a decision about it must name; raises NotFound."""
        with self._at(at) as view:
            return item_of(view, memory_id)

    def reviews_due(self, at: int | None = None, *, limit: int = 50) -> tuple[int, list[ReviewItem]]:
        """How many open theses and lessons are past their review date, and those that are so longest."""
        with self._at(at) as view:
            return due(view, limit)

    def open_flags(
        self, at: int | None = None, *, reason: str | None = None, limit: int = 50
    ) -> tuple[int, list[FlagItem]]:
        """How many flags stand unanswered, of one reason or of any, and the newest of them."""
        with self._at(at) as view:
            return open_flags(view, reason, limit)

    @contextmanager
    def _at(self, at: int | None) -> Iterator[View]:
        with self._engine.read() as snapshot:
            head = head_of(snapshot)
            now = self._ledger.now(head) if at is None else at
            with self._view(snapshot, head.sequence, now) as view:
                yield view
