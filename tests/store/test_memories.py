"""What each command does, and every way in which it is refused with nothing stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from store.commands import (
    CloseThesis,
    Decide,
    FlagMemory,
    NoteRisk,
    OpenThesis,
    Propose,
    ProposeLesson,
    Remember,
    ResolveMemory,
    UpdateThesis,
)
from store.errors import (
    AlreadyClosed,
    DeskbookError,
    IllegalTransition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    VersionConflict,
)
from store.limits import TEXT_CHARS

EACH_KIND = {
    "memory": (Remember(text="t", symbol="aapl", tags=("x",), category="macro"), "mem_", "active"),
    "proposal": (Propose(text="t", symbol="aapl", tags=("x",), action="BUY"), "prop_", "proposed"),
    "risk_note": (NoteRisk(text="t", symbol="aapl", tags=("x",)), "risk_", "active"),
    "decision": (Decide(text="t", symbol="aapl", tags=("x",), action=" Hold "), "dec_", "recorded"),
    "lesson": (ProposeLesson(text="t", symbol="aapl", tags=("x",), outcome={"pnl": "1"}), "les_", "proposed"),
    "thesis": (OpenThesis(text="t", symbol="aapl", tags=("x",), direction="Long"), "ths_", "open"),
}


@pytest.mark.parametrize(("kind", "case"), EACH_KIND.items())
def test_each_kind_is_stored_with_its_first_status_and_found_again(seat: Any, kind: str, case: Any) -> None:
    command, prefix, status = case
    written = seat.do(command)
    assert written.id.startswith(prefix)
    assert (written.kind, written.status, written.version, written.warnings) == (kind, status, 1, ())
    entry = seat.entries()[-1]
    assert (entry.sequence, entry.event_id) == (written.sequence, written.event_id)
    assert (entry.kind, entry.symbol, entry.subject_id) == (kind, "AAPL", written.id)
    assert json.loads(entry.content)["symbol_given"] == "aapl"
    (hit,) = seat.find("t", kind=kind, symbol="AAPL", status=status, tags=("x",))["hits"]
    assert hit["id"] == written.id


def test_a_tag_is_stored_once_and_its_spellings_are_kept_in_the_event(seat: Any) -> None:
    """P055"""
    given = ("decision", "decision ", "Decision")
    seat.do(Remember(text="x", tags=given))
    content = seat.last_content("memory.recorded")
    assert content["tags"] == ["decision"]
    assert content["tags_given"] == list(given)


def test_two_identical_entries_are_two_entries(seat: Any) -> None:
    """P097: of decisions and orders only the same key is folded; each is one of its own."""
    command = Decide(text="buy 10", symbol="AAPL", action="buy")
    ids = [
        seat.do(command).id,
        seat.do(command).id,
        seat.do(command, key="k1").id,
        seat.do(command, key="k2").id,
    ]
    ids += [seat.do(command, key="k2").id]
    assert len(set(ids)) == 4
    assert ids[3] == ids[4]
    assert seat.find("buy 10")["total"] == 4


def test_a_note_replaces_an_older_note_of_the_same_author(seat: Any) -> None:
    old = seat.do(Remember(text="margin call at 9"))
    new = seat.do(Remember(text="margin call at 10", supersedes=f" {old.id} "))
    assert seat.get(old.id)["memory"]["status"] == "superseded"
    assert seat.get(old.id)["memory"]["details"]["superseded_by"] == new.id
    assert seat.get(new.id)["memory"]["details"]["supersedes"] == old.id, "the id as the ledger knows it"
    assert seat.ids("margin call", status="active") == [new.id]


REVIEW = 1_800_000_000_000_000
UPDATES: dict[str, tuple[UpdateThesis, dict[str, Any]]] = {
    "nothing else": (UpdateThesis(thesis_id="", text="v2"), {}),
    "tags": (UpdateThesis(thesis_id="", text="v2", tags=("new",)), {"tags": ["new"]}),
    "no tags any more": (UpdateThesis(thesis_id="", text="v2", tags=()), {"tags": []}),
    "symbol": (UpdateThesis(thesis_id="", text="v2", symbol="msft"), {"symbol": "MSFT"}),
    "review date": (
        UpdateThesis(thesis_id="", text="v2", review_by=REVIEW), {"review_by": "2027-01-15T08:00:00Z"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("update", "changed"), UPDATES.values(), ids=UPDATES)
def test_an_update_replaces_the_text_and_keeps_what_it_does_not_name(
    seat: Any, update: UpdateThesis, changed: dict[str, Any]
) -> None:
    from dataclasses import replace

    opened = OpenThesis(
        text="v1", symbol="AAPL", direction="long", horizon="3 months", target="200", invalidation="below 170",
        review_by=REVIEW - 1_000_000, tags=("old", "swing"),
    )  # fmt: skip
    thesis = seat.do(opened)
    before = seat.get(thesis.id)["memory"]
    written = seat.do(replace(update, thesis_id=thesis.id), "bob")
    after = seat.get(thesis.id)["memory"]
    assert (written.version, after["text"], after["changed_by"], after["agent"]) == (2, "v2", "bob", "ann")
    for name in ("tags", "symbol", "review_by", "details", "created_at", "status"):
        assert after[name] == changed.get(name, before[name]), name
    assert seat.ids("v1") == []
    assert seat.ids("v2") == [thesis.id]


def test_the_terms_of_a_thesis_change_one_by_one(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="v1", direction="long", target="200"))
    seat.do(UpdateThesis(thesis_id=thesis.id, text="v2", target="220", horizon="weeks"))
    details = seat.get(thesis.id)["memory"]["details"]
    assert details == {"direction": "long", "target": "220", "horizon": "weeks"}


def test_a_second_open_thesis_on_a_symbol_is_allowed_and_said_so(open_seat: Any) -> None:
    """P093: long and short, one or two authors; another strategy knows nothing of it."""
    seat, other = open_seat(), open_seat("other")
    first = seat.do(OpenThesis(text="up", symbol="AAPL", direction="long"))
    second = seat.do(OpenThesis(text="down", symbol="aapl", direction="short"), "bob")
    assert first.warnings == ()
    warning, contradiction = second.warnings
    assert first.id in warning
    assert "long" in warning
    assert "ann" in warning
    assert first.id in contradiction
    assert second.extra["similar"] == [{"id": first.id, "why": "direction"}]
    third = seat.do(OpenThesis(text="sideways", symbol="AAPL"))
    assert len(third.warnings) == 2
    assert other.do(OpenThesis(text="up", symbol="AAPL")).warnings == ()
    assert {thesis["id"] for thesis in seat.state()["open_theses"]} == {first.id, second.id, third.id}
    seat.do(CloseThesis(thesis_id=first.id, result="x"))
    assert len(seat.do(OpenThesis(text="again", symbol="AAPL")).warnings) == 2
    assert seat.do(OpenThesis(text="no symbol")).warnings == ()


def test_a_close_keeps_its_outcome_flat_and_exact(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="x"))
    closed = seat.do(
        CloseThesis(
            thesis_id=thesis.id, result="win", pnl="12.50", return_pct="3.4%", exit_price="1e2", note=" ok "
        )
    )
    assert (closed.status, closed.version, closed.warnings) == ("closed", 2, ())
    details = seat.get(thesis.id)["memory"]["details"]
    assert details["outcome"] == {
        "result": "win", "pnl": "12.50", "return_pct": "3.4", "exit_price": "100", "note": "ok",
    }  # fmt: skip
    assert details["closed_by"] == "ann"


def test_a_close_without_an_outcome_is_allowed_and_said_so(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="x"))
    assert seat.do(CloseThesis(thesis_id=thesis.id)).warnings != ()


def test_the_same_close_twice_is_the_same_answer(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="x"))
    closing = CloseThesis(thesis_id=thesis.id, result="win", pnl="12.50")
    first = seat.do(closing)
    count = len(seat.entries())
    assert seat.do(closing) == first
    assert seat.do(CloseThesis(thesis_id=f" {thesis.id}", result="win ", pnl="12.50")) == first
    assert len(seat.entries()) == count


def test_a_close_after_another_close_is_refused_and_names_it(seat: Any, refused: Any) -> None:
    """P011: the loser learns at which sequence the thesis was closed."""
    thesis = seat.do(OpenThesis(text="x"))
    closed = seat.do(CloseThesis(thesis_id=thesis.id, return_pct="2"))
    with refused(seat, AlreadyClosed, "thesis_id", f"sequence {closed.sequence}"):
        seat.do(CloseThesis(thesis_id=thesis.id, return_pct="-1"), "bob")


def test_an_update_after_close_is_refused_and_names_what_to_do(seat: Any, refused: Any) -> None:
    """P091: a new thesis, or a lesson as a post-mortem."""
    thesis = seat.do(OpenThesis(text="x"))
    seat.do(CloseThesis(thesis_id=thesis.id, result="win"))
    with refused(seat, AlreadyClosed, "thesis_id") as fault:
        seat.do(UpdateThesis(thesis_id=thesis.id, text="new"))
    assert "open_thesis" in fault.value.hint
    assert "remember_lesson" in fault.value.hint
    assert seat.get(thesis.id)["memory"]["text"] == "x"


@pytest.mark.parametrize("which", ["unknown", "blank", "another strategy's", "a lesson's"])
@pytest.mark.parametrize("close", [True, False], ids=["close", "update"])
def test_a_thesis_id_that_names_none_is_refused_and_the_open_ones_are_named(
    open_seat: Any, refused: Any, which: str, close: bool
) -> None:
    """P089"""
    seat = open_seat()
    standing = seat.do(OpenThesis(text="x", symbol="AAPL"))
    other = {
        "unknown": lambda: "T-999",
        "blank": lambda: " ",
        "another strategy's": lambda: open_seat("other").do(OpenThesis(text="x")).id,
        "a lesson's": lambda: seat.do(ProposeLesson(text="x")).id,
    }[which]()
    kind = InvalidInput if which == "blank" else NotFound
    with refused(seat, kind, "thesis_id") as fault:
        command = CloseThesis(thesis_id=other) if close else UpdateThesis(thesis_id=other, text="y")
        seat.do(command)
    if which != "blank":
        assert standing.id in fault.value.hint
        assert "AAPL" in fault.value.hint


def test_without_an_open_thesis_the_error_says_how_to_make_one(seat: Any, refused: Any) -> None:
    """P089"""
    with refused(seat, NotFound, "thesis_id") as fault:
        seat.do(CloseThesis(thesis_id="ths_none"))
    assert "open_thesis" in fault.value.hint


def test_an_update_from_a_stale_view_is_a_version_conflict(open_seat: Any, refused: Any) -> None:
    """P009: the newer text never disappears; the second book is opened as another process would."""
    one, other = open_seat(), open_seat()
    thesis = one.do(OpenThesis(text="v1", symbol="AAPL"))
    assert other.get(thesis.id)["memory"]["version"] == 1
    one.do(UpdateThesis(thesis_id=thesis.id, text="v2", expected_version=1))
    with refused(other, VersionConflict, "expected_version", "at version 2, not 1"):
        other.do(UpdateThesis(thesis_id=thesis.id, text="v3 from stale view", expected_version=1))
    with refused(other, VersionConflict, "expected_version"):
        other.do(CloseThesis(thesis_id=thesis.id, result="x", expected_version=1))
    assert other.get(thesis.id)["memory"]["text"] == "v2"
    assert other.do(UpdateThesis(thesis_id=thesis.id, text="v3", expected_version=2)).version == 3
    assert [entry["content"].get("text") for entry in one.get(thesis.id)["history"]] == ["v1", "v2", "v3"]


def test_an_update_over_the_limit_is_refused_and_nothing_of_it_is_kept(open_seat: Any, refused: Any) -> None:
    """P061: neither in the ledger nor in the projection, nor after a restart."""
    seat = open_seat()
    thesis = seat.do(OpenThesis(text="v1"))
    with refused(seat, InvalidInput, "text", "100001 characters"):
        seat.do(UpdateThesis(thesis_id=thesis.id, text="x" * (TEXT_CHARS + 1)))
    seat.book.close()
    again = open_seat()
    assert again.get(thesis.id)["memory"]["text"] == "v1"
    assert again.get(thesis.id)["memory"]["version"] == 1


RESOLVED = {
    "memory": (Remember(text="x"), "retired"),
    "proposal": (Propose(text="x"), "withdrawn"),
    "risk_note": (NoteRisk(text="x"), "resolved"),
    "lesson": (ProposeLesson(text="x"), "retired"),
}


@pytest.mark.parametrize(("command", "status"), RESOLVED.values(), ids=RESOLVED)
def test_an_author_ends_what_is_its_own_once(seat: Any, refused: Any, command: Any, status: str) -> None:
    written = seat.do(command)
    with refused(seat, PermissionDenied, "memory_id", "written by ann"):
        seat.do(ResolveMemory(memory_id=written.id, status=status), "bob")
    with refused(seat, VersionConflict, "expected_version"):
        seat.do(ResolveMemory(memory_id=written.id, status=status, expected_version=7))
    ended = seat.do(ResolveMemory(memory_id=written.id, status=status, note="done"))
    assert (ended.status, ended.version) == (status, 2)
    assert seat.get(written.id)["memory"]["details"]["resolution_note"] == "done"
    with refused(seat, IllegalTransition, "status", "is (withdrawn|retired|resolved)"):
        seat.do(ResolveMemory(memory_id=written.id, status=status))


@pytest.mark.parametrize(("kind", "case"), EACH_KIND.items())
@pytest.mark.parametrize("status", ["validated", "superseded", "closed", "approved", "nonsense"])
def test_a_status_that_is_not_the_authors_to_give_is_refused(
    seat: Any, refused: Any, kind: str, case: Any, status: str
) -> None:
    written = seat.do(case[0])
    with refused(seat, IllegalTransition, "status"):
        seat.do(ResolveMemory(memory_id=written.id, status=status))


def test_a_flag_leaves_the_memory_as_it_is_and_shows_it_for_review(seat: Any) -> None:
    note, other = seat.do(Remember(text="x")), seat.do(Remember(text="y"))
    flag = FlagMemory(memory_id=note.id, reason="conflicting", other_id=f" {other.id} ", note="which one?")
    flagged = seat.do(flag, "bob")
    assert (flagged.id, flagged.status, flagged.version) == (note.id, "active", 1)
    (review,) = seat.state()["reviews_due"]
    assert (review["memory_id"], review["reason"], review["by"]) == (note.id, "conflicting", "bob")
    assert review["other_id"] == other.id
    assert "note" not in review  # it is put before every agent; whoever asks for the memory is shown it
    assert seat.get(note.id)["history"][-1]["content"]["note"] == "which one?"
    seat.do(ResolveMemory(memory_id=note.id, status="retired"))
    assert seat.state()["reviews_due"] == []


REFUSED: dict[str, tuple[Callable[[Any], Any], type[DeskbookError], str]] = {
    "a blank text": (lambda _: Remember(text="  "), InvalidInput, "text"),
    "half a character": (lambda _: Remember(text="\udc00"), InvalidInput, "text"),
    "a hidden character in a symbol": (lambda _: NoteRisk(text="x", symbol="A\u200b"), InvalidInput, "symbol"),
    "an expiry in the past": (lambda _: Remember(text="x", expires_at=1), InvalidInput, "expires_at"),
    "an unknown action": (lambda _: Decide(text="x", action="yolo"), InvalidInput, "action"),
    "no action": (lambda _: Decide(text="x", action=" "), InvalidInput, "action"),
    "an unknown direction": (lambda _: OpenThesis(text="x", direction="up"), InvalidInput, "direction"),
    "evidence that is a number": (lambda _: Decide(text="x", action="buy", evidence=3), InvalidInput, "evidence"),
    "NaN in an outcome": (lambda _: ProposeLesson(text="x", outcome=[float("nan")]), InvalidInput, "outcome[0]"),
    "an unknown thesis": (lambda _: Decide(text="x", action="buy", thesis_id="ths_x"), NotFound, "thesis_id"),
    "a note as thesis": (
        lambda seat: Decide(text="x", action="buy", thesis_id=seat.do(Remember(text="n")).id), NotFound, "thesis_id",
    ),
    "an unknown search": (
        lambda _: Decide(text="x", action="buy", retrieval_id="ret_x"), NotFound, "retrieval_id",
    ),
    "half a character in a search id": (
        lambda _: Decide(text="x", action="buy", retrieval_id="ret_\ud800"), InvalidInput, "retrieval_id",
    ),
    "superseding nothing": (lambda _: Remember(text="x", supersedes="mem_x"), NotFound, "supersedes"),
    "superseding a lesson": (
        lambda seat: Remember(text="x", supersedes=seat.do(ProposeLesson(text="n")).id),
        IllegalTransition, "supersedes",
    ),
    "superseding another's note": (
        lambda seat: Remember(text="x", supersedes=seat.do(Remember(text="n"), "bob").id),
        PermissionDenied, "supersedes",
    ),
    "resolving nothing": (lambda _: ResolveMemory(memory_id="mem_x", status="retired"), NotFound, "memory_id"),
    "flagging nothing": (lambda _: FlagMemory(memory_id="mem_x", reason="wrong"), NotFound, "memory_id"),
    "a conflict with nothing": (
        lambda seat: FlagMemory(memory_id=seat.do(Remember(text="n")).id, reason="conflicting", other_id="mem_x"),
        NotFound, "other_id",
    ),
    "a number that is a word": (
        lambda seat: CloseThesis(thesis_id=seat.do(OpenThesis(text="n")).id, pnl="lots"), InvalidInput, "pnl",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "field"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_by_its_field(
    seat: Any, refused: Any, make: Callable[[Any], Any], kind: type[DeskbookError], field: str
) -> None:
    command = make(seat)
    with refused(seat, kind, field):
        seat.do(command)


def test_a_memory_cannot_conflict_with_itself(seat: Any, refused: Any) -> None:
    note = seat.do(Remember(text="x"))
    with refused(seat, InvalidInput, "other_id"):
        seat.do(FlagMemory(memory_id=note.id, reason="conflicting", other_id=note.id))


def test_a_superseded_note_cannot_be_superseded_again(seat: Any, refused: Any) -> None:
    old = seat.do(Remember(text="x"))
    seat.do(Remember(text="y", supersedes=old.id))
    with refused(seat, IllegalTransition, "supersedes", "is superseded"):
        seat.do(Remember(text="z", supersedes=old.id))


def test_a_decision_names_the_search_and_the_thesis_it_rests_on(seat: Any) -> None:
    thesis = seat.do(OpenThesis(text="x", symbol="AAPL"))
    retrieval_id = seat.find("x")["retrieval_id"]
    evidence = {"close": 187.0, "series": [1.0, 1e21, -0.0], "deep": {"a": None}}
    decision = seat.do(
        Decide(
            text="buy",
            action="buy",
            thesis_id=f" {thesis.id}",
            retrieval_id=f"{retrieval_id} ",
            evidence=evidence,
        )
    )
    entry = seat.entries()[-1]
    assert entry.retrieval_id == retrieval_id
    details = seat.get(decision.id)["memory"]["details"]
    assert (details["thesis_id"], details["retrieval_id"]) == (thesis.id, retrieval_id)
    assert details["evidence"] == evidence


def test_another_strategys_search_is_not_known_here(open_seat: Any, refused: Any) -> None:
    seat, other = open_seat(), open_seat("other")
    retrieval_id = other.find("x")["retrieval_id"]
    with refused(seat, NotFound, "retrieval_id"):
        seat.do(Decide(text="x", action="buy", retrieval_id=retrieval_id))
