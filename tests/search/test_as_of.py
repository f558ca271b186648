"""A search by meaning at a cut shows only what stood there, however far ahead the vectors are.

Random histories of a live ledger under a clock set by hand; the expected answer is counted from the entries.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Book, Caller, Filter, SearchRequest
from store.commands import CloseThesis, OpenThesis, Remember, ResolveMemory, UpdateThesis
from store.errors import DeskbookError
from store.search.meaning import LedgerVectors
from store.vectors.scan import Scan

if TYPE_CHECKING:
    from conftest import Seat

    from store.embedding.loading import Encoder

START = 1_772_461_800_000_000
HOUR = 3_600_000_000
TEXTS = ("revenue rose", "turnover slid", "sales dropped", "broker refused", "something else")
QUERIES = ("sales fell", "dealer", "revenue climbed", "unrelated words")
EXAMPLES = max(15, settings.default.max_examples // 3)

_steps = st.lists(
    st.tuples(
        st.sampled_from(["note", "note", "replace", "open", "update", "close", "retire", "expire", "embed"]),
        st.integers(0, len(TEXTS) - 1),
        st.integers(0, 9),
    ),
    min_size=3,
    max_size=16,
)


class Told:
    """A clock that shows what it was set to."""

    us = START

    def now(self) -> int:
        return self.us


class Tale:
    """One ledger and the steps that were done to it, with every version's life counted from the entries."""

    def __init__(self, root: Path, encoder: Encoder, steps: list[tuple[str, int, int]]) -> None:
        self.clock = Told()
        self.book = Book.open(root, "s", clock=self.clock, durability="normal", encoder=encoder)
        self.who = Caller("ann", "solo", "ses", "tool")
        self.lives: list[tuple[str, int, int, int, int | None]] = []
        """Memory, version, the instants from and up to which it stood, and when it expires."""
        self.ids: list[str] = []
        for step in steps:
            self.clock.us += HOUR
            self._step(*step)

    def _step(self, act: str, text: int, target: int) -> None:
        if act == "embed":
            self.book.embed_next(1 + target)
            return
        about = self.ids[target % len(self.ids)] if self.ids else "mem_none"
        expires = self.clock.us + HOUR + HOUR // 2 if act == "expire" else None
        said = TEXTS[text]
        command: Any = {
            "note": lambda: Remember(text=said),
            "expire": lambda: Remember(text=said, expires_at=expires),
            "replace": lambda: Remember(text=said, supersedes=about),
            "open": lambda: OpenThesis(text=said),
            "update": lambda: UpdateThesis(thesis_id=about, text=said),
            "close": lambda: CloseThesis(thesis_id=about, result="win"),
            "retire": lambda: ResolveMemory(memory_id=about, status="retired"),
        }[act]()
        try:
            written = self.book.execute(self.who, command)
        except DeskbookError:
            return
        if "repeat" in written.extra:
            return
        if act == "replace":
            self._begins(about, None)
        self._begins(written.id, expires)
        if written.id not in self.ids:
            self.ids.append(written.id)

    def _begins(self, memory_id: str, expires: int | None) -> None:
        now, version = self.clock.us, 1
        for at, (name, number, since, until, ends) in enumerate(self.lives):
            if name == memory_id and until == 2**60:
                self.lives[at] = (name, number, since, now, ends)
                version, expires = number + 1, ends
        self.lives.append((memory_id, version, now, 2**60, expires))

    def standing(self, instant: int) -> set[tuple[str, int]]:
        """What stood then; a time that is still to come is now."""
        instant = min(instant, self.clock.us)
        return {
            (name, version)
            for name, version, since, until, expires in self.lives
            if since <= instant < until and (expires is None or expires > instant)
        }

    def catch_up(self) -> None:
        while (step := self.book.embed_next()) is not None and step.more:
            pass

    def found(self, query: str, instant: int, **conditions: Any) -> list[dict[str, Any]]:
        request = SearchRequest(
            query=query, as_of=instant, limit=50, detailed=True, conditions=Filter(**conditions)
        )
        return list(self.book.search(self.who, request).body["hits"])

    def close(self) -> None:
        self.book.close()


@given(_steps, st.data())
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_search_by_meaning_as_of_then_shows_what_stood_then_and_nothing_else(
    encoder: Encoder, steps: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tale = Tale(Path(folder), encoder, steps)
        try:
            instants = [START + HOUR * at + HOUR // 2 for at in range(len(steps) + 2)]
            for caught_up in (False, True):
                if caught_up:
                    tale.catch_up()
                instant = data.draw(st.sampled_from(instants))
                for query in QUERIES:
                    hits = tale.found(query, instant)
                    shown = {(hit["id"], hit["version"]) for hit in hits}
                    assert len(shown) == len(hits)
                    assert shown <= tale.standing(instant)
                    if caught_up:
                        assert shown == tale.standing(instant)
        finally:
            tale.close()


@given(_steps)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_search_of_the_past_gives_the_same_scores_as_it_did_when_it_was_the_present(
    encoder: Encoder, steps: list[tuple[str, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tale = Tale(Path(folder), encoder, steps)
        try:
            tale.catch_up()
            then = tale.clock.us + HOUR // 2
            tale.clock.us = then
            before = [tale.found(query, then) for query in QUERIES]
            for text in ("sales fell", "dealer", "revenue climbed"):
                tale.clock.us += HOUR
                for name in tale.ids[:3]:
                    tale._step("replace", 2, tale.ids.index(name))
                tale.book.execute(tale.who, Remember(text=text))
            tale.catch_up()
            assert [tale.found(query, then) for query in QUERIES] == before
        finally:
            tale.close()


Break = Callable[[pytest.MonkeyPatch], None]


def _without_the_cut(patch: pytest.MonkeyPatch) -> None:
    """The vectors give all they have, whatever is asked."""
    right = Scan.nearest

    def nearest(scan: Scan, query: Any, wanted: Any, limit: int) -> Any:
        whole = type(wanted)(Filter(), 2**50, 0, 2**50)
        return right(scan, query, whole, limit)

    patch.setattr(Scan, "nearest", nearest)


def _with_a_mark_too_far(patch: pytest.MonkeyPatch) -> None:
    right = LedgerVectors.at
    patch.setattr(LedgerVectors, "at", lambda self, snapshot, cut: (right(self, snapshot, cut)[0], 2**50))


@pytest.mark.parametrize("broken", [_without_the_cut, _with_a_mark_too_far])
def test_vectors_that_know_too_much_lead_to_nothing_that_did_not_stand(
    meant: Seat, embed: Callable[[Seat], int], monkeypatch: pytest.MonkeyPatch, broken: Break
) -> None:
    """The vectors are a cache: whatever they name is looked up at the cut before it is shown."""
    thesis = meant.do(OpenThesis(text="turnover slid")).id
    expired = meant.do(Remember(text="turnover fell", expires_at=meant.clock.us + HOUR)).id
    then = meant.clock.us
    meant.do(UpdateThesis(thesis_id=thesis, text="sales declined"))
    later = meant.do(Remember(text="revenue dropped")).id
    embed(meant)
    broken(monkeypatch)
    found = meant.find("sales dropped", as_of=then, detailed=True)["hits"]
    assert {(hit["id"], hit["version"]) for hit in found} <= {(thesis, 1), (expired, 1)}
    assert later not in [hit["id"] for hit in found]
    meant.clock.us += 2 * HOUR
    shown = [(hit["id"], hit["version"]) for hit in meant.find("sales dropped", detailed=True)["hits"]]
    assert set(shown) == {(thesis, 2), (later, 1)}
    assert len(shown) == 2
