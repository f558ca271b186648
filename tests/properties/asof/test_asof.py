"""Every reading as of T shows what a ledger shows that only ever received the entries up to T.

Random histories of a live ledger and of a run that may inherit it: superseding, updates and closes, several
entries at one instant, a live clock that steps back, entries after the pin, expiry and review dates. Below, each
part of the cut is broken on purpose, and the same comparison must tell.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Book
from store.engines.sqlite.preparation import write_copy
from store.engines.sqlite.snapshot import SqliteSnapshot
from store.errors import NotFound
from store.inheritance import Inheritance
from store.ledger import projected
from store.rows import EntryFilter
from store.search.cursor import Place, decode
from store.view import LIVE, Layer

if TYPE_CHECKING:
    from conftest import MakeScene, Scene

ACTS = (
    "tick tick tick remember supersede propose risk decide lesson open update close flag resolve search get"
    " state deny"
).split()
EXAMPLES = max(10, settings.default.max_examples // 5)

_small = st.integers(0, 5)
_steps = st.lists(
    st.tuples(st.sampled_from(ACTS), st.booleans(), st.integers(0, 1), _small, _small),
    min_size=4,
    max_size=40,
)
histories = st.tuples(
    _steps, st.integers(0, 20), st.integers(-3, 8), st.sampled_from(["live", "live", "none"])
)


def expected(scene: Scene, in_run: bool, instant: int) -> dict[str, Any]:
    """What readings ought to show, from a ledger that stops at the instant."""
    with scene.received(in_run, instant) as whole:
        return scene.seen(whole, in_run, instant)


def wrong(seen: dict[str, Any], due: dict[str, Any]) -> list[str]:
    """The readings that show something else than they ought to."""
    return [name for name in due if seen[name] != due[name]]


def assert_same(seen: dict[str, Any], due: dict[str, Any]) -> None:
    for name in wrong(seen, due):
        assert seen[name] == due[name], name


def assert_pages_are_the_whole(seen: dict[str, Any]) -> None:
    """Pages of two, one after the other, hand over the same memories in the same order as one long reply."""
    for query in ("", "alpha", "!!"):
        whole = seen[f"search {{'query': {query!r}}}"]
        pages = seen[f"pages of {query!r}"]
        assert {total for total, _ in pages} == {whole["total"]}
        if whole["total"] <= 50:
            assert [name for _, page in pages for name in page] == [hit["id"] for hit in whole["hits"]]


def assert_entries_as_of(scene: Scene, book: Book, in_run: bool, instant: int) -> None:
    """log, show and the file that write_as_of writes hold the entries up to the instant, and no others."""
    own = scene.own(in_run, instant)
    assert book.log(EntryFilter(limit=-1), instant) == own
    named = book.log(EntryFilter(agent="ann", newest_first=True, limit=3), instant)
    assert named == [entry for entry in reversed(own) if entry.agent == "ann"][:3]
    for name in {entry.subject_id for entry in scene.entries[in_run]}:
        about = [entry for entry in own if entry.subject_id == name]
        assert shown(book, name, instant) == about
    last = scene.entries[in_run][-1]
    assert shown(book, last.event_id, instant) == [entry for entry in own if entry is last or entry == last]
    written, cut = scene.new_file(), scene.new_file()
    assert book.write_as_of(instant, written) == len(own)
    write_copy(cut, own, projected)
    assert scene.rows(written) == scene.rows(cut)


def shown(book: Book, name: str, instant: int) -> list[Any]:
    try:
        return book.show(name, instant)
    except NotFound:
        return []


@given(histories, st.lists(st.integers(0, 400), min_size=2, max_size=2))
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_a_reading_as_of_an_instant_shows_what_a_ledger_shows_that_stops_there(
    play: MakeScene, history: Any, chosen: list[int]
) -> None:
    scene = play(*history)
    instants = scene.instants()
    for in_run in (False, True):
        with scene.book(in_run) as book:
            for instant in {instants[choice % len(instants)] for choice in chosen}:
                seen = scene.seen(book, in_run, instant)
                assert_same(seen, expected(scene, in_run, instant))
                assert_pages_are_the_whole(seen)
                assert_entries_as_of(scene, book, in_run, instant)


@given(histories)
@settings(max_examples=EXAMPLES // 2, suppress_health_check=[HealthCheck.too_slow])
def test_a_rebuild_changes_no_reading_of_the_past(play: MakeScene, history: Any) -> None:
    scene = play(*history)
    instants = scene.instants()
    instant = instants[len(instants) // 2]
    for in_run in (False, True):
        with scene.book(in_run) as book:
            before = scene.seen(book, in_run, instant)
            book.rebuild(lambda _sequence: None)
            assert_same(scene.seen(book, in_run, instant), before)


Due = list[tuple[bool, int, dict[str, Any]]]


@pytest.fixture(scope="module")
def long_scene(play: MakeScene) -> Scene:
    """A long history with everything in it, drawn once and for all."""
    drawn = random.Random(3)
    steps = [
        (drawn.choice(ACTS), drawn.random() < 0.5, drawn.randrange(2), drawn.randrange(6), drawn.randrange(6))
        for _ in range(180)
    ]
    steps.insert(10, ("remember", False, 0, 5, 3))  # one that only a literal finds, and that expires
    steps.insert(60, ("remember", False, 0, 1, 1))  # the first live entry after the pin
    steps += [("tick", False, 0, 3, 0)] * 3  # the live clock ends behind its entries
    return play(steps, 60, 3, "live")


@pytest.fixture(scope="module")
def due(long_scene: Scene) -> Due:
    """What the long history ought to show at a good many instants, live and in the run."""
    instants = long_scene.instants()
    return [
        (in_run, instant, expected(long_scene, in_run, instant))
        for instant in instants[:: len(instants) // 24]
        for in_run in (False, True)
    ]


def first_wrong(scene: Scene, due: Due) -> str | None:
    """The first reading of the long history that shows what it must not; None when all is right."""
    for in_run, instant, shows in due:
        with scene.book(in_run) as book:
            for name in wrong(scene.seen(book, in_run, instant), shows):
                return name
    return None


def test_the_long_history_is_shown_right_at_every_instant_and_holds_everything(
    long_scene: Scene, due: Due
) -> None:
    assert first_wrong(long_scene, due) is None
    live, run = ({entry.event_type for entry in long_scene.entries[where]} for where in (False, True))
    assert "clock.anomaly" in live
    for types in (live, run):
        assert types >= {
            "memory.recorded", "memory.status_changed", "memory.flagged", "thesis.opened", "thesis.updated",
            "thesis.closed", "memory.retrieved", "memory.delivered",
        }  # fmt: skip
    assert long_scene.pinned < len(long_scene.entries[False])


Break = Callable[[pytest.MonkeyPatch], None]
FAR = 2**53 - 1


def without(name: str, argument: str, value: Callable[[SqliteSnapshot], int]) -> Break:
    """One reading of the snapshot takes another cut or instant than it was given."""
    right = getattr(SqliteSnapshot, name)
    signature = inspect.signature(right)

    def read(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.arguments[argument] = value(bound.arguments["self"])
        return right(*bound.args, **bound.kwargs)

    return lambda patch: patch.setattr(SqliteSnapshot, name, read)


def head(snapshot: SqliteSnapshot) -> int:
    found = snapshot.head()
    assert found is not None
    return found.sequence


def cut_by(sql: str) -> Break:
    """The cut is found by another statement; `?` is the instant."""

    def cut_at(snapshot: SqliteSnapshot, instant: int) -> int:
        row = snapshot._one(sql, (instant,))
        return int(row[0]) if row is not None and row[0] is not None else head(snapshot)

    return lambda patch: patch.setattr(SqliteSnapshot, "cut_at", cut_at)


def layers_by(cut: Callable[[SqliteSnapshot, int, int], int]) -> Break:
    """The inherited layer is cut elsewhere; the function is given snapshot, instant and pin."""

    @contextmanager
    def layers(inheritance: Inheritance, at: int, *, meaning: bool = False) -> Iterator[tuple[Layer, ...]]:
        if inheritance._engine is None:
            yield ()
            return
        with inheritance._engine.read() as snapshot:
            yield (Layer(snapshot, cut(snapshot, at, inheritance._pinned), LIVE),)

    return lambda patch: patch.setattr(Inheritance, "layers", layers)


def stand_at_now(book: Book, snapshot: Any, caller: Any, as_of: int) -> tuple[int, int]:
    return snapshot.cut_at(as_of), book._ledger.instant(snapshot, snapshot.head(), caller)


def stand_unless_earlier(book: Book, snapshot: Any, caller: Any, as_of: int) -> tuple[int, int]:
    now = book._ledger.instant(snapshot, snapshot.head(), caller)
    return (head(snapshot), now) if as_of >= now else (snapshot.cut_at(as_of), as_of)


def onward_unbounded(book: Book, start: Place, text: str | None, query: str, conditions: Any) -> Place:
    return start if text is None else decode(text, query, conditions)


FIRST_AFTER = "(SELECT min(sequence) FROM memory_events WHERE effective_at {} ?)"
BROKEN: dict[str, Break] = {
    "one entry too many": cut_by(f"SELECT {FIRST_AFTER.format('>')}"),
    "one entry too few": cut_by(f"SELECT {FIRST_AFTER.format('>')} - 2"),
    "entries at the instant itself left out": cut_by(f"SELECT {FIRST_AFTER.format('>=')} - 1"),
    "the latest entry not after the instant": cut_by(
        "SELECT coalesce(max(sequence), 0) FROM memory_events WHERE effective_at <= ?"
    ),
    "the newest entry always": cut_by("SELECT max(sequence) FROM memory_events WHERE ? IS NOT NULL"),
    "expiry and reviews as of now": lambda patch: patch.setattr(Book, "_stand", stand_at_now),
    "no cut where as_of is not before now": lambda patch: patch.setattr(Book, "_stand", stand_unless_earlier),
    "a cursor may lead past the cut": lambda patch: patch.setattr(Book, "_onward", onward_unbounded),
    "no pin": layers_by(lambda snapshot, at, _pin: snapshot.cut_at(at)),
    "a pin one entry late": layers_by(lambda snapshot, at, pin: min(snapshot.cut_at(at), pin + 1)),
    "the pin alone": layers_by(lambda _snapshot, _at, pin: pin),
    **{
        f"no cut in {name}": without(name, "cut", head)
        for name in (
            "history", "version", "versions", "count_versions", "containing", "match", "changed_by", "totals",
            "flags", "due",
        )
    },
    **{
        f"no expiry of its time in {name}": without(name, "at", lambda _snapshot: FAR)
        for name in ("versions", "count_versions", "containing", "match", "due")
    },
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_cut_is_told(
    long_scene: Scene, due: Due, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    BROKEN[broken](monkeypatch)
    assert first_wrong(long_scene, due) is not None


def log_whole(book: Book, conditions: EntryFilter, as_of: int | None = None) -> list[Any]:
    with book._engine.read() as snapshot:
        return list(snapshot.entries(conditions))


def show_any_event(book: Book, name: str, as_of: int) -> list[Any]:
    with book._engine.read() as snapshot:
        single = snapshot.entry_of_event(name)
        return [single] if single else snapshot.history(name, snapshot.cut_at(as_of))


def write_one_more(book: Book, as_of: int, target: Any) -> int:
    with book._engine.read() as snapshot:
        cut = snapshot.cut_at(as_of)
    book._engine.copy_until(cut + 1, target)
    return cut


@pytest.mark.parametrize(
    ("method", "broken"), [("log", log_whole), ("show", show_any_event), ("write_as_of", write_one_more)]
)
def test_a_broken_cut_of_a_command_is_told(
    long_scene: Scene, monkeypatch: pytest.MonkeyPatch, method: str, broken: Any
) -> None:
    instants = long_scene.instants()
    middle = instants[len(instants) // 2]
    with long_scene.book(False) as book:
        assert_entries_as_of(long_scene, book, False, middle)
        monkeypatch.setattr(Book, method, broken)
        with pytest.raises(AssertionError):
            assert_entries_as_of(long_scene, book, False, middle)
