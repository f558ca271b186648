"""Every engine: a read at a cut sees the ledger as it stood after that entry, and filters mean what they say."""

from __future__ import annotations

from typing import Any

import pytest

from store import Caller
from store.events import (
    LessonRecorded,
    MemoryRecorded,
    StatusChanged,
    ThesisClosed,
    ThesisOpened,
    ThesisUpdated,
)
from store.ids import new_id
from store.ledger import Draft, Ledger
from store.rows import EntryFilter, Filter

GUARD = 30.0
FAR = 2**52


class _Clock:
    """A clock that shows one reading after another, steps back and all."""

    def __init__(self, readings: list[int]) -> None:
        self.readings = readings
        self.at = 0

    def now(self) -> int:
        return self.readings[self.at]


def _append(crew: Any, *drafts: Draft, agent: str = "ann") -> int:
    who = Caller(agent=agent, profile="solo", session_id="ses-1", tool="tool")
    return int(
        crew.engine.write(lambda transaction: crew.ledger.append(transaction, who, drafts), timeout=GUARD)[
            -1
        ].sequence
    )


def _history(crew: Any) -> list[str]:
    """A few memories that change, and the ids they have."""
    thesis, note, lesson = new_id("ths"), new_id("mem"), new_id("les")
    opened = ThesisOpened(text="long breakout", tags=("swing",), review_by=5, direction="long")
    _append(crew, Draft(opened, "memory", thesis, "thesis", "AAPL"))
    _append(
        crew, Draft(MemoryRecorded(text="earnings note", tags=("a", "b")), "memory", note, "memory", "IBM")
    )
    _append(
        crew, Draft(ThesisUpdated(text="breakout failed"), "memory", thesis, "thesis", "AAPL"), agent="bob"
    )
    _append(
        crew, Draft(LessonRecorded(text="do not chase a breakout"), "memory", lesson, "lesson"), agent="bob"
    )
    _append(crew, Draft(StatusChanged(status="retired", previous="active"), "memory", note, "memory", "IBM"))
    _append(crew, Draft(ThesisClosed(result="sold"), "memory", thesis, "thesis", "AAPL"))
    return [thesis, note, lesson]


def _view(snapshot: Any, cut: int, ids: list[str]) -> dict[str, Any]:
    """Everything that can be read at a cut."""
    return {
        "versions": snapshot.versions(Filter(), cut, 0, limit=100),
        "count": snapshot.count_versions(Filter(), cut, 0),
        "each": [snapshot.version(memory_id, cut) for memory_id in ids],
        "history": [snapshot.history(memory_id, cut) for memory_id in ids],
        "breakout": snapshot.match("breakout", Filter(), cut, 0, limit=100),
        "open": snapshot.match("breakout", Filter(status="open"), cut, 0, limit=100),
        "literal": snapshot.containing("breakout", Filter(), cut, 0, scan=100),
        "ann": snapshot.changed_by("ann", cut, limit=100),
        "bob": snapshot.changed_by("bob", cut, limit=100),
        "totals": snapshot.totals(cut),
        "due": snapshot.due(cut, 10, limit=100),
        "flags": snapshot.flags(cut, limit=100),
        "counted": (snapshot.count_due(cut, 10), snapshot.count_flags(cut)),
    }


def test_a_read_at_every_cut_equals_the_read_that_was_made_then(crew: Any) -> None:
    seen: dict[int, dict[str, Any]] = {}
    ids: list[str] = []
    original = crew.ledger.append

    def watched(transaction: Any, *given: Any) -> Any:
        entries = original(transaction, *given)
        for name in (entry.subject_id for entry in entries if entry.subject_type == "memory"):
            if name not in ids:
                ids.append(name)
        head = transaction.head().sequence
        seen[head] = _view(transaction, head, ids)
        return entries

    crew.ledger.append = watched
    _history(crew)
    assert len(seen) == 6
    with crew.engine.read() as snapshot:
        for cut, then in seen.items():
            known = ids[: len(then["each"])]
            assert _view(snapshot, cut, known) == then, f"at sequence {cut}"


@pytest.mark.parametrize(
    "readings",
    [[10, 20, 30, 40], [10, 20, 15, 30, 25, 25, 30, 40], [50, 10, 20, 60], [10, 10, 10], [30, 20, 10]],
    ids=["steady", "steps back twice", "far back at once", "stands still", "runs backwards"],
)
def test_the_cut_at_an_instant_lies_before_the_first_entry_after_it(house: Any, readings: list[int]) -> None:
    clock = _Clock(readings)
    ledger = Ledger(clock, "default", None)
    engine = house.open()
    try:
        engine.write(lambda transaction: ledger.begin(transaction, "test", None), timeout=GUARD)
        who = Caller(agent="ann", profile="solo", session_id="ses-1")
        for at in range(len(readings)):
            clock.at = at
            draft = Draft(MemoryRecorded(text=f"note {at}"), "memory", new_id("mem"), "memory")
            engine.write(lambda transaction, one=draft: ledger.append(transaction, who, [one]), timeout=GUARD)
        with engine.read() as snapshot:
            entries = list(snapshot.entries(EntryFilter(limit=1_000)))
            for instant in range(0, 70, 5):
                later = [entry.sequence for entry in entries if entry.effective_at > instant]
                assert snapshot.cut_at(instant) == (min(later) - 1 if later else len(entries))
            head = snapshot.head()
            assert head is not None
            assert head.latest_effective_at == max(readings)
            assert head.effective_at == readings[-1]
    finally:
        engine.close()


CONDITIONS = {
    "kind": (Filter(kind="lesson"), {2}),
    "status": (Filter(status="closed"), {0}),
    "symbol": (Filter(symbol="IBM"), {1}),
    "author": (Filter(agent="bob"), {2}),
    "one tag": (Filter(tags=("a",)), {1}),
    "all tags": (Filter(tags=("b", "a")), {1}),
    "tags that are not all there": (Filter(tags=("a", "c")), set()),
    "part of a tag": (Filter(tags=("swin",)), set()),
    "several at once": (Filter(kind="thesis", symbol="AAPL", status="closed", tags=("swing",)), {0}),
    "contradicting": (Filter(kind="lesson", symbol="AAPL"), set()),
    "nothing": (Filter(), {0, 1, 2}),
}


@pytest.mark.parametrize(("conditions", "wanted"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_filter_means_the_same_in_a_listing_a_count_a_match_and_a_literal_scan(
    crew: Any, conditions: Filter, wanted: set[int]
) -> None:
    ids = _history(crew)
    expected = {ids[at] for at in wanted}
    with crew.engine.read() as snapshot:
        head = snapshot.head().sequence
        listed = snapshot.versions(conditions, head, 0, limit=100)
        assert {version.memory_id for version in listed} == expected
        assert snapshot.count_versions(conditions, head, 0) == len(expected)
        for term, literal in (("breakout", "breakout"), ("earnings", "earnings")):
            holding = {v.memory_id for v in listed if literal in v.text}
            matched = {snapshot.version_at(sequence).memory_id
                       for sequence, _ in snapshot.match(term, conditions, head, 0, limit=100)}  # fmt: skip
            scanned = {snapshot.version_at(at).memory_id
                       for at in snapshot.containing(literal, conditions, head, 0, scan=100)}  # fmt: skip
            assert matched == holding
            assert scanned == holding


def test_since_and_until_bound_when_a_version_was_written_both_included(crew: Any) -> None:
    _history(crew)
    with crew.engine.read() as snapshot:
        head = snapshot.head().sequence
        times = [version.effective_at for version in snapshot.versions(Filter(), head, 0, limit=9)]
        for since in (None, min(times), min(times) + 1):
            for until in (None, max(times), max(times) - 1):
                inside = [t for t in times if (since or 0) <= t <= (until or FAR)]
                assert snapshot.count_versions(Filter(since=since, until=until), head, 0) == len(inside)


def test_an_expired_memory_is_in_no_listing_count_match_or_scan_from_its_instant_on(crew: Any) -> None:
    draft = Draft(MemoryRecorded(text="short lived", expires_at=FAR), "memory", new_id("mem"), "memory")
    cut = _append(crew, draft)
    with crew.engine.read() as snapshot:
        for at, standing in ((FAR - 1, 1), (FAR, 0), (FAR + 1, 0)):
            assert len(snapshot.versions(Filter(), cut, at, limit=9)) == standing
            assert snapshot.count_versions(Filter(), cut, at) == standing
            assert len(snapshot.match("lived", Filter(), cut, at, limit=9)) == standing
            assert len(snapshot.containing("lived", Filter(), cut, at, scan=9)) == standing


def test_a_literal_scan_looks_at_the_newest_texts_only_and_reads_no_pattern_characters(crew: Any) -> None:
    for text in ("100% sure", "100 percent", "a_b", "axb", "*", "?", "[x]"):
        crew.write(text)
    with crew.engine.read() as snapshot:
        head = snapshot.head().sequence
        for literal, count in (("100%", 1), ("a_b", 1), ("*", 1), ("?", 1), ("[x]", 1), ("%", 1), ("x", 2)):
            assert len(snapshot.containing(literal, Filter(), head, 0, scan=100)) == count, literal
        assert snapshot.containing("100%", Filter(), head, 0, scan=3) == []


def test_entries_meet_every_condition_and_come_in_order(crew: Any) -> None:
    ids = _history(crew)
    with crew.engine.read() as snapshot:
        everything = list(snapshot.entries(EntryFilter(limit=1_000)))
        assert [entry.sequence for entry in everything] == list(range(1, len(everything) + 1))
        for name, value in (
            ("agent", "bob"), ("event_type", "thesis.updated"), ("symbol", "IBM"), ("kind", "lesson"),
            ("subject_id", ids[0]), ("session_id", "ses-1"),
        ):  # fmt: skip
            found = list(snapshot.entries(EntryFilter(**{name: value})))
            assert found == [entry for entry in everything if getattr(entry, name) == value]
            assert found
        assert list(snapshot.entries(EntryFilter(after=3, limit=2))) == everything[3:5]
        assert list(snapshot.entries(EntryFilter(until_sequence=3))) == everything[:3]
        assert list(snapshot.entries(EntryFilter(newest_first=True, limit=2))) == everything[:-3:-1]


def test_what_is_not_there_is_none(crew: Any) -> None:
    with crew.engine.read() as snapshot:
        assert snapshot.entry(99) is None
        assert snapshot.entry_of_event("ev_none") is None
        assert snapshot.version("mem_none", 99) is None
        assert snapshot.version_at(99) is None
        assert snapshot.retrieval("ret_none") is None
        assert snapshot.replay("ann", "tool", "none") is None
        assert snapshot.last_delivery("ann", "ses-1", None, "state") is None
        assert not snapshot.has_session("ses-none", "ann")
        assert snapshot.totals(99) == (0, 0)
        assert snapshot.history("mem_none", 99) == []
