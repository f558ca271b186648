"""Whatever is written, the projections follow from the ledger alone and the past stays as it was."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Filter, SearchRequest
from store.audit import verify
from store.errors import NotFound
from store.lifecycle import STATUSES, STEPS, first_status
from store.rows import EntryFilter

WORDS = ("breakout", "earnings", "目标价", "Zürich", "v2.1", "risk-off", "margin", "the", "🚀", "50%")
KINDS = (
    "note note replace propose risk decide lesson open open update update close resolve flag search state get"
).split()
NUMBERS = st.floats(-1e18, 1e18) | st.integers(-100, 100)
EVIDENCE = st.none() | st.dictionaries(st.sampled_from(["close", "pe"]), NUMBERS, min_size=1, max_size=2)


def _steps(later: list[int]) -> st.SearchStrategy[list[Any]]:
    """What is done, in which words, about which earlier memory, by whom, and how much later."""
    one = st.tuples(
        st.sampled_from(KINDS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
        st.sampled_from([None, "AAPL", "brk.b", "BTC/USD"]),
        st.lists(st.sampled_from(["swing", "Value", "目标"]), max_size=3).map(tuple),
        st.integers(0, 30),
        EVIDENCE,
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(later),
    )
    return st.lists(one, min_size=1, max_size=25)


FORWARD = _steps([0, 0, 1, 1_000, 60_000_000])
UNSTEADY = _steps([0, 1, 1_000, 60_000_000, -1, -500, -60_000_000])
TABLES = (
    "memory_versions",
    "memory_retrievals",
    "memory_deliveries",
    "memory_sessions",
    "memory_flags",
    "memory_clock",
)


def _projections(history: Any) -> dict[str, list[Any]]:
    """Every row of every projection, and every word of the full-text index with its place."""
    connection = apsw.Connection(str(history.path))
    connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, memory_text, instance)")
    found = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}
    found["words"] = sorted(connection.execute("SELECT term, doc, col, offset FROM temp.words"))
    connection.close()
    return found


def _surface(history: Any, as_of: int | None) -> dict[str, Any]:
    """Everything an agent can be shown, without what tells one showing from another."""
    book, who = history.book, history.caller()
    seen: dict[str, Any] = {}
    for query in ("", *WORDS):
        for conditions in (Filter(), Filter(kind="thesis", status="open"), Filter(tags=("value",))):
            request = SearchRequest(query=query, conditions=conditions, as_of=as_of, limit=50, detailed=True)
            body = book.search(who, request).body
            seen[f"search {query} {conditions}"] = {
                k: v for k, v in body.items() if k not in ("retrieval_id", "cursor")
            }
    for memory_id in dict.fromkeys(history.ids):
        try:
            body = book.get(who, memory_id, as_of).body
        except NotFound:
            continue
        seen[memory_id] = {name: value for name, value in body.items() if name != "cursor"}
    for agent in ("ann", "bob"):
        seen[f"state of {agent}"] = book.state(history.caller(agent), as_of).body
    return seen


@settings(max_examples=40)
@given(FORWARD)
def test_projections_equal_a_rebuild_and_the_ledger_is_sound(new_history: Any, steps: list[Any]) -> None:
    with new_history() as history:
        for step in steps:
            history.step(step)
        before = _projections(history)
        history.book.rebuild(lambda _: None)
        assert _projections(history) == before
        assert verify(history.path, "s", "r1").findings == ()


@settings(max_examples=15)
@given(FORWARD)
def test_a_rebuild_changes_nothing_that_is_shown(new_history: Any, steps: list[Any]) -> None:
    with new_history() as history:
        for step in steps:
            history.step(step)
        now = history.clock.us
        history.clock.us += 1  # the readings themselves are entries: they must not lie within what they read
        before = _surface(history, now)
        history.book.rebuild(lambda _: None)
        assert _surface(history, now) == before


@settings(max_examples=25)
@given(UNSTEADY)
def test_a_live_ledger_under_an_unsteady_clock_stays_sound(new_history: Any, steps: list[Any]) -> None:
    with new_history(None) as history:
        for step in steps:
            history.step(step)
        entries = history.book.log(EntryFilter(limit=10_000))
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
        back = [b.event_type for a, b in pairwise(entries) if b.effective_at < a.effective_at]
        assert set(back) <= {"clock.anomaly"}, "a step back without its entry"
        assert verify(history.path, "s", None).findings == ()
        before = _projections(history)
        history.book.rebuild(lambda _: None)
        assert _projections(history) == before


@settings(max_examples=40)
@given(FORWARD)
def test_facts_follow_from_the_ledger_alone(new_history: Any, steps: list[Any]) -> None:
    with new_history() as history:
        for step in steps:
            history.step(step)
        entries = history.book.log(EntryFilter(limit=10_000))
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.event_type for entry in entries].count("genesis") == 1
    assert all(a.effective_at <= b.effective_at for a, b in pairwise(entries))
    begun = [(e.session_id, e.agent) for e in entries if e.event_type == "session.started"]
    assert len(begun) == len(set(begun)) == len({(e.session_id, e.agent) for e in entries[1:]})
    status: dict[str, tuple[str, str]] = {}
    for entry in entries:
        content = json.loads(entry.content)
        if entry.event_type.endswith((".recorded", ".opened")):
            status[entry.subject_id] = (entry.kind, first_status(entry.kind))
        elif entry.event_type in ("thesis.closed", "memory.status_changed"):
            kind, now = status[entry.subject_id]
            wanted = content.get("status", "closed")
            assert wanted in STEPS[kind][now]
            assert wanted in STATUSES[kind]
            status[entry.subject_id] = (kind, wanted)
        elif entry.event_type == "memory.retrieved":
            known = {(one["id"], one["version"]) for one in content["candidates"]}
            assert {(one["id"], one["version"]) for one in content["selected"]} <= known
            assert content["total"] >= len(content["candidates"])
            assert all(one["id"] in status for one in content["candidates"])
            assert content["cut"] < entry.sequence


def _compare_then(new_history: Any, run: str | None, steps: list[Any], place: int) -> None:
    with new_history(run) as whole:
        for step in steps:
            whole.step(step)
        entries = whole.book.log(EntryFilter(limit=10_000))
        then = entries[place % len(entries)].effective_at
        later = [entry.sequence for entry in entries if entry.effective_at > then]
        cut = min(later) - 1 if later else len(entries)
        # The readings themselves are entries: they must not lie within what they read.
        whole.clock.us = end = max(whole.clock.us, then) + 1
        seen = _surface(whole, then)
    if cut == 0:  # before the ledger itself: there is nothing to see
        assert all(body.get("total", 0) == 0 for body in seen.values())
        return
    with new_history(run) as early:
        for step in steps:
            if early.book.head().sequence == cut:
                break
            early.step(step)
        assert early.book.head().sequence == cut
        early.ids = whole.ids
        early.clock.us = end
        assert _surface(early, then) == seen


@settings(max_examples=30)
@given(FORWARD, st.integers(0, 100))
def test_what_is_shown_as_of_then_is_what_a_ledger_of_then_shows(
    new_history: Any, steps: list[Any], place: int
) -> None:
    """No look-ahead: search, single memory, history, state and counts, in a run."""
    _compare_then(new_history, "r1", steps, place)


@settings(max_examples=20)
@given(UNSTEADY, st.integers(0, 100))
def test_a_clock_gone_wrong_lets_nothing_of_later_through(
    new_history: Any, steps: list[Any], place: int
) -> None:
    """No look-ahead, in a live ledger whose clock steps back and forth."""
    _compare_then(new_history, None, steps, place)
