"""What of a Lumibot memory stands in the ledger, and what the report says of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import Caller, Filter, SearchRequest
from store.audit import verify
from store.commands import CloseThesis, Remember
from store.errors import Conflict, ForeignFile
from store.ids import IMPORT
from store.importers.lumibot import importing
from store.importers.lumibot.survey import Survey
from store.leaks import find_leaks

Bring = Callable[..., Any]
ADDED = {
    "decision.recorded": 1,
    "import.kept": 8,
    "lesson.recorded": 2,
    "memory.recorded": 12,
    "memory.retrieved": 3,
    "proposal.recorded": 2,
    "risk_note.recorded": 3,
    "thesis.closed": 3,
    "thesis.opened": 6,
    "thesis.updated": 1,
}
DEFECTS = {
    "blank_text": 1,
    "broken_json": 2,
    "broken_time": 1,
    "closed_again": 1,
    "duplicate": 1,
    "hash_mismatch": 2,
    "index_only": 1,
    "kind_by_remember": 1,
    "out_of_order": 1,
    "outcome_unknown": 1,
    "phantom_thesis": 2,
    "reopened_thesis": 1,
    "repaired": 8,
    "retrieval_missing": 1,
    "sequence_gap": 2,
    "thesis_of_another_kind": 1,
    "validated_there": 1,
}
WHO = Caller("ann", "solo", "ses-1", "tool")


def _reader(session: str = "ses-1") -> Caller:
    return Caller("ann", "solo", session, "tool")


def test_everything_is_added_once_and_every_defect_is_counted(bring: Bring, read: Any) -> None:
    report = bring()
    assert report.added == ADDED
    assert report.defects.totals == DEFECTS
    assert sum(report.rows.values()) == 40
    assert verify(Path(report.path), "Momentum Bot", None).findings == ()
    ledger = read()
    counts: dict[str, int] = {}
    for entry in ledger.entries:
        counts[entry.event_type] = counts.get(entry.event_type, 0) + 1
    rest = {"genesis": 1, "session.started": 1, "import.begun": 1, "import.ended": 1}
    assert counts == ADDED | rest


def test_a_second_import_adds_nothing_and_finds_the_same(bring: Bring, read: Any) -> None:
    first = bring()
    again = bring(agent="somebody else")
    assert (again.added, again.known) == ({}, 40)
    assert again.defects.content() == first.defects.content()
    assert len(read().entries) == sum(ADDED.values()) + 4


def test_a_source_that_grew_adds_exactly_its_new_rows(
    bring: Bring, grow: Callable[[], None], read: Any
) -> None:
    bring()
    before = read()
    grow()
    report = bring()
    assert report.added == {"memory.recorded": 1, "memory.retrieved": 1, "thesis.updated": 1}
    after = read()
    assert after.entries[: len(before.entries)] == before.entries
    assert [entry.event_type for entry in after.entries[len(before.entries) :]] == [
        "session.started", "import.begun", "memory.recorded", "memory.retrieved", "thesis.updated", "import.ended",
    ]  # fmt: skip
    note, search, update = after.entries[-4:-1]
    assert update.subject_id == before.entry("A thesis from nowhere.").subject_id
    assert update.retrieval_id == search.subject_id
    (found,) = [c for c in after.contents("memory.retrieved") if c["query"] == "grown"]
    assert found["selected"] == [{"id": note.subject_id, "version": 1}]
    assert verify(Path(report.path), "Momentum Bot", None).sound


def test_the_entries_are_the_importers_and_the_sources_word_is_content(bring: Bring, read: Any) -> None:
    bring(agent="maria")
    ledger = read()
    entry = ledger.entry("AAPL breaks out of its base.")
    assert (entry.agent, entry.profile, entry.tool, entry.model_call_id) == (
        "maria", "importer", "import lumibot", None,
    )  # fmt: skip
    assert abs(entry.effective_at - entry.recorded_at) < 60_000_000
    block = ledger.about("AAPL breaks out of its base.")[0]["imported"]
    assert block["agent"] == "trader"
    assert block["model_call_id"] == "call-1"
    assert block["source_at"] == 1_736_174_220_000_000  # 2025-01-06T09:37:00-05:00
    assert block["source_subject"].startswith("thesis_")
    assert block["import_id"].startswith(f"{IMPORT}_")
    assert block["metadata"] == {"conviction": 0.8, "direction": "long"}


def test_the_import_names_its_file_by_hash(bring: Bring, read: Any, lumibot_memory: Path) -> None:
    held = lumibot_memory.read_bytes()
    bring()
    (begun,) = read().contents("import.begun")
    assert begun["files"] == [
        {"name": "memory.sqlite", "bytes": len(held), "sha256": hashlib.sha256(held).hexdigest()}
    ]
    assert (begun["system"], begun["versions"], begun["rows"]) == ("lumibot", ["1"], 39)
    assert begun["strategies"] == ["Momentum Bot"]
    assert lumibot_memory.read_bytes() == held
    assert {path.name for path in lumibot_memory.parent.iterdir()} == {"memory.sqlite"}
    (ended,) = read().contents("import.ended")
    assert ended["added"] == ADDED
    assert {code: found["total"] for code, found in ended["defects"].items()} == DEFECTS


def test_tags_and_metadata_that_an_update_dropped_stand_in_the_thesis(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    thesis = ledger.entry("AAPL breaks out of its base.").subject_id
    body = ledger.book.get(_reader(), thesis, detailed=True).body
    memory = body["memory"]
    assert memory["status"] == "closed"
    assert memory["tags"] == ["swing", "breakout"]
    assert memory["text"] == "AAPL holds above its base."
    assert memory["details"]["direction"] == "long"
    assert memory["details"]["outcome"] == {
        "result": "win", "pnl": "125.5", "return_pct": "6.7", "note": "Sold into strength.",
    }  # fmt: skip
    kept = memory["details"]["imported"]["metadata"]
    assert kept == {"conviction": 0.8, "direction": "long", "stop": "185", "outcome": {"days": 12}}
    events = [step["event"] for step in body["history"]]
    assert events == ["thesis.opened", "thesis.updated", "thesis.closed"]


def test_a_thesis_opened_again_becomes_one_of_its_own(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    old = ledger.entry("AAPL breaks out of its base.").subject_id
    again = ledger.about("AAPL bases again.")[0]
    assert again["imported"]["follows"] == old
    assert again["imported"]["defects"] == ["reopened_thesis"]
    assert again["tags"] == ["swing", "breakout"]
    assert ledger.entry("AAPL bases again.").symbol == "AAPL"


def test_a_decision_that_became_a_thesis_stays_a_decision(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    decision = ledger.entry("Bought the breakout.")
    made = ledger.about("A decision turned into a thesis.")[0]
    assert made["imported"]["follows"] == decision.subject_id
    body = ledger.book.get(_reader(), decision.subject_id).body["memory"]
    assert (body["kind"], body["status"]) == ("decision", "recorded")
    assert body["details"]["evidence"] == {"close": 187.3, "stop": None}


def test_phantom_theses_begin_where_they_were_changed(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    assert ledger.entry("A thesis from nowhere.").symbol == "MSFT"
    opened, closed = ledger.about("Closed before it began.")
    assert opened["imported"]["defects"] == ["phantom_thesis"]
    assert (closed["pnl"], closed["note"]) == ("-3", "Closed before it began.")
    _, closed, second = ledger.about("TSLA fades.")
    assert (closed["note"], second["text"]) == ("Stopped out.", "Stopped out, again.")
    assert second["imported"]["metadata"]["outcome"] == {"result": "loss"}


def test_a_validated_lesson_is_proposed_and_keeps_the_old_word(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    lesson = ledger.entry("Wait for the close.")
    body = ledger.book.get(_reader(), lesson.subject_id).body["memory"]
    assert body["status"] == "proposed"
    assert body["details"]["outcome"] == {"trades": 3, "validated": True}
    assert body["details"]["imported"]["status"] == "validated"
    assert ledger.book.state(_reader()).body["counts"]["validated_lessons"] == 0


def test_what_cannot_be_kept_is_repaired_and_says_so(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()

    def block(text: str) -> dict[str, Any]:
        return dict(ledger.about(text)[0]["imported"])

    assert block("(no text in the source)")["repaired"] == ["text: blank in the source"]
    assert block("A note with odd numbers.")["metadata"] == {"pe": "NaN", "big": "1" + "0" * 20}
    assert ledger.about("A NUL \ufffd within.")[0]["tags"] == ["fine"]
    assert block("No UTF-8: \ufffd")["metadata"] == {"half": "\ufffd"}
    assert ledger.entry("An odd symbol.").symbol is None
    assert any(mark.startswith("symbol: ") for mark in block("An odd symbol.")["repaired"])
    assert len(ledger.about("long long")[0]["text"]) == 100_000
    assert "source_at" not in block("A plan of its own kind.")
    assert ledger.about("An action of its own.")[0]["imported"]["metadata"] == {"action": "Accumulate slowly"}
    assert ledger.entry("Unicode symbol.").symbol == "目标"  # only the source's index still had it
    assert ledger.about("A decision that a read-only agent wrote.")[0]["category"] == "decision"


def test_broken_columns_are_taken_from_the_payload_or_told(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    fade = ledger.about("Gaps fade.")[0]
    assert fade["outcome"] == {"seen": 1}
    assert fade["imported"]["repaired"] == ["metadata_json: broken, taken from the payload"]
    risk = ledger.about("Earnings on Thursday.")[0]["imported"]
    assert risk["repaired"] == ["payload_json: broken, '['", "tags_json: broken, 'x'"]
    assert risk["defects"] == ["broken_json", "hash_mismatch", "repaired"]


def test_searches_link_and_are_no_ones_sight_here(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    found = {c["query"]: c for c in ledger.contents("memory.retrieved")}
    assert found["everything"]["total"] == 1_202
    assert len(found["everything"]["candidates"]) <= 50
    decision = ledger.entry("Bought the breakout.")
    assert (
        found["everything"]["selected"][0]["id"]
        == ledger.entry("A decision turned into a thesis.").subject_id
    )
    (search,) = [e for e in ledger.entries if e.subject_id == decision.retrieval_id]
    assert search.event_type == "memory.retrieved"
    assert search.sequence < decision.sequence
    with ledger.book._engine.read() as snapshot:
        assert snapshot.shown("trader", None, None, 0) == {}
        assert snapshot.shown("trader", "call-1", None, 0) == {}


def test_orders_of_the_source_are_kept_and_none_waits_for_an_answer(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    kept = [content["imported"]["source_type"] for content in ledger.contents("import.kept")]
    assert kept == [
        "order.intent", "order.action_outcome", "order.submitted", "order.intent", "order.action_outcome",
        "agent_warning", "agent.tool_started", "thesis.closed",
    ]  # fmt: skip
    intent, outcome = [e for e in ledger.entries if e.event_type == "import.kept"][:2]
    assert intent.subject_id == outcome.subject_id
    body = ledger.book.unreconciled(_reader(), None, 10).body
    assert (body["total"], body["open_orders_total"]) == (0, 0)


def test_search_and_state_say_that_a_memory_is_imported_and_its_own_time(bring: Bring, read: Any) -> None:
    bring()
    book = read().book
    request = SearchRequest(query="Nestlé 目标价", conditions=Filter(), limit=5)
    hit = book.search(_reader(), request).body["hits"][0]
    assert hit["text"] == "Rates were cut: Nestlé 目标价 95."
    assert (hit["imported"], hit["source_at"], hit["source_agent"]) == (
        True,
        "2025-01-06T14:31:00Z",
        "researcher",
    )
    state = book.state(_reader()).body
    assert all(thesis["imported"] for thesis in state["open_theses"])
    thesis = next(t for t in state["open_theses"] if t["text"] == "AAPL bases again.")
    steps = book.explain(thesis["id"]).body["steps"]
    assert steps[0]["source_at"] == thesis["source_at"]
    assert "(imported of 2025-01-06T" in "\n".join(book.explain(thesis["id"]).lines())


def test_a_rebuild_gives_the_same_and_a_native_change_goes_on_from_it(bring: Bring, read: Any) -> None:
    bring()
    ledger = read()
    thesis = ledger.entry("A thesis from nowhere.").subject_id
    before = ledger.book.get(_reader(), thesis).body["memory"]
    ledger.book.rebuild(lambda _: None)
    assert ledger.book.get(_reader(), thesis).body["memory"] == before | {"age": before["age"]}


def test_a_ledger_with_other_entries_is_refused_unless_it_is_meant(
    bring: Bring, read: Any, root: Path, open_seat: Callable[..., Any]
) -> None:
    seat = open_seat("mine", root=root)
    seat.do(Remember(text="Already here."))
    with pytest.raises(Conflict) as fault:
        bring(strategy="mine")
    assert fault.value.field == "--strategy"
    assert len(seat.entries()) == 3
    assert bring(strategy="mine", into_existing=True).added == ADDED
    seat.do(Remember(text="And on."))
    assert bring(strategy="mine").added == {}


def test_an_agent_may_work_on_before_the_next_import(
    bring: Bring, grow: Callable[[], None], read: Any
) -> None:
    bring()
    ledger = read()
    thesis = ledger.entry("A thesis from nowhere.")
    ledger.book.execute(WHO, CloseThesis(thesis_id=thesis.subject_id, result="sold"))
    grow()
    assert bring().added == {"memory.recorded": 1, "memory.retrieved": 1, "thesis.opened": 1}
    again = read().about("Grown: held on.")[0]
    assert again["imported"]["follows"] == thesis.subject_id


def test_a_dry_run_says_what_is_new_and_writes_nothing(bring: Bring, root: Path) -> None:
    report = bring(dry_run=True)
    assert sum(report.added.values()) == 40
    assert report.defects.totals == DEFECTS
    assert not root.exists()
    bring()
    assert bring(dry_run=True).added == {}


def test_an_index_behind_its_events_is_a_defect() -> None:
    survey = Survey()
    survey.latest["thesis_1"] = "event_2"
    assert survey.behind("thesis_1", "event_1")
    assert not survey.behind("thesis_1", "event_2")
    assert survey.defects.ids == {"projection_behind": ["thesis_1"]}


def test_a_run_that_inherits_an_import_sees_it_from_then_on_and_leaks_nothing(
    bring: Bring, root: Path, open_seat: Callable[..., Any]
) -> None:
    moment = 1_900_000_000_000_000  # later than any import under test

    class Later:
        def now(self) -> int:
            return moment

    bring(strategy="live", clock=Later())
    for run, begins, found in (("before", moment - 1, 0), ("after", moment, 1)):
        seat = open_seat("live", run, root=root, begins=begins, inherit="live")
        who = Caller("ann", "solo", "ses-1", "tool", now=begins)
        for detailed in (False, True):
            hits = seat.find("Nestlé", who=who, detailed=detailed)["hits"]
            assert [hit["source_at"] for hit in hits] == ["2025-01-06T14:31:00Z"] * found
        report = find_leaks(root, "live", run)
        assert (report.searches, report.leaks) == (2, ())


def test_two_imports_at_once_add_each_row_once(
    bring: Bring, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH", 5)
    reports: list[Any] = []

    def meanwhile(done: int, total: int) -> None:
        if not reports:
            reports.append(bring(agent="second"))

    first = bring(progress=meanwhile)
    (second,) = reports
    added = {name: first.added.get(name, 0) + second.added.get(name, 0) for name in ADDED}
    assert added == ADDED
    assert first.added != {}
    assert second.added != {}
    assert verify(Path(first.path), "Momentum Bot", None).findings == ()
    blocks = [json.loads(entry.content).get("imported") for entry in read().entries]
    assert len({(block["source_type"], block["source_id"]) for block in blocks if block}) == 40


def test_a_ledger_that_was_never_begun_is_begun(bring: Bring, root: Path) -> None:
    place = root / "s"
    place.mkdir(parents=True)
    (place / "memory.sqlite").touch()
    report = bring(strategy="s")
    assert report.added == ADDED
    assert verify(Path(report.path), "s", None).findings == ()


def test_a_ledger_that_was_moved_here_takes_nothing(
    bring: Bring, root: Path, open_seat: Callable[..., Any]
) -> None:
    seat = open_seat("other", root=root)
    seat.book.close()
    seat.path.parent.rename(root / "s")
    with pytest.raises(ForeignFile):
        bring(strategy="s")
    assert verify(root / "s" / "memory.sqlite", "other", None).entries == 1
