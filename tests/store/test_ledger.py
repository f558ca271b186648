"""The ledger binds whose it is, notes when its clock goes wrong, and opens a session with its first entry."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store import Client
from store.audit import verify
from store.caller import Caller
from store.clock import format_instant
from store.commands import OpenThesis, Remember, UpdateThesis
from store.errors import ClockError, DeskbookError, ForeignFile, NotFound
from store.paths import ledger_path

SECOND = 1_000_000


def _types(seat: Any) -> list[str]:
    return [entry.event_type for entry in seat.entries()]


def test_the_first_entry_binds_store_strategy_and_run(open_seat: Any) -> None:
    live, run = open_seat("alpha"), open_seat("alpha", "2020 crash")
    for seat, name, mode in ((live, None, "live"), (run, "2020 crash", "simulated")):
        (genesis,) = seat.entries()
        content = json.loads(genesis.content)
        assert (genesis.sequence, genesis.event_type, genesis.agent) == (1, "genesis", "deskbook")
        assert (content["strategy"], content.get("run"), content["mode"]) == ("alpha", name, mode)
        assert (genesis.strategy, genesis.run_id) == ("alpha", name)
        assert content["store_id"] == genesis.subject_id
    assert live.book.genesis.store_id != run.book.genesis.store_id


def test_every_entry_carries_whose_it_is(open_seat: Any) -> None:
    seat = open_seat("alpha", "r1")
    who = Caller("bob", "trader", "ses-9", "remember", model_call_id="call-7", now=seat.clock.us)
    seat.book.execute(who, Remember(text="x"), idempotency_key=" k1 ")
    entry = seat.entries()[-1]
    assert (entry.strategy, entry.run_id, entry.agent, entry.profile) == ("alpha", "r1", "bob", "trader")
    assert (entry.session_id, entry.model_call_id, entry.tool) == ("ses-9", "call-7", "remember")
    assert (entry.idempotency_key, entry.effective_at) == ("k1", who.now)
    assert entry.recorded_at > seat.clock.us - SECOND
    assert len(entry.content_salt) == 16


@pytest.mark.parametrize("run", [None, "r1"])
def test_a_ledger_swapped_in_from_another_strategy_is_refused(
    open_seat: Any, tmp_path: Path, run: str | None
) -> None:
    theirs = open_seat("theirs", run)
    theirs.book.close()
    ours = ledger_path(tmp_path, "ours", run)
    ours.parent.mkdir(parents=True)
    shutil.copy(theirs.path, ours)
    before = ours.read_bytes()
    with pytest.raises(ForeignFile, match="another strategy or run"):
        open_seat("ours", run)
    assert ours.read_bytes() == before
    report = verify(ours, "ours", run)
    assert not report.sound
    assert report.findings[0].sequence == 1


def test_a_run_swapped_in_for_the_live_ledger_is_refused(open_seat: Any, tmp_path: Path) -> None:
    run = open_seat("alpha", "r1")
    run.book.close()
    shutil.copy(run.path, ledger_path(tmp_path, "alpha", None))
    with pytest.raises(ForeignFile):
        open_seat("alpha")


def test_a_genesis_entry_that_cannot_be_read_is_an_error_of_ours(open_seat: Any, raw: Any) -> None:
    seat = open_seat()
    seat.book.close()
    connection = raw(seat.path)
    connection.execute(
        "DROP TRIGGER memory_events_no_update; UPDATE memory_events SET content = '{' WHERE sequence = 1"
    )
    connection.close()
    with pytest.raises(DeskbookError):
        open_seat()


def test_a_session_begins_with_its_first_other_entry_and_in_the_same_transaction(seat: Any) -> None:
    client = Client(transport="stdio", name="probe", version="1.2", protocol_version="2025-11-25")
    who = Caller("ann", "solo", "ses-7", "remember", client=client)
    assert _types(seat) == ["genesis"]
    with pytest.raises(NotFound):
        seat.book.execute(who, UpdateThesis(thesis_id="ths_none", text="x"))
    assert _types(seat) == ["genesis"], "a call that failed has opened a session"
    seat.book.execute(who, Remember(text="x"))
    seat.book.execute(who, Remember(text="y"))
    assert _types(seat) == ["genesis", "session.started", "memory.recorded", "memory.recorded"]
    started = seat.entries()[1]
    assert (started.subject_id, started.session_id, started.agent) == ("ses-7", "ses-7", "ann")
    assert json.loads(started.content) == {
        "transport": "stdio", "client_name": "probe", "client_version": "1.2", "protocol_version": "2025-11-25",
    }  # fmt: skip
    assert started.effective_at == seat.entries()[2].effective_at


def test_each_agent_and_session_has_a_first_entry_of_its_own(seat: Any) -> None:
    for agent, session in (("ann", "s1"), ("bob", "s1"), ("ann", "s2"), ("ann", "s1")):
        seat.do(Remember(text="x"), agent, session=session)
    started = [(entry.agent, entry.session_id) for entry in seat.entries("session.started")]
    assert started == [("ann", "s1"), ("bob", "s1"), ("ann", "s2")]


def test_a_search_or_a_showing_opens_a_session_too(seat: Any) -> None:
    seat.find("anything")
    seat.state(seat.caller(session="ses-2"))
    assert _types(seat) == [
        "genesis", "session.started", "memory.retrieved", "session.started", "memory.delivered",
    ]  # fmt: skip


def test_a_clock_that_steps_back_is_an_entry_and_the_sequence_still_rises(seat: Any) -> None:
    seat.do(Remember(text="before"))
    before = seat.book.head().effective_at
    seat.clock.us -= 3_600 * SECOND
    seat.do(Remember(text="after"))
    seat.do(Remember(text="after that"))
    assert _types(seat)[-4:] == ["memory.recorded", "clock.anomaly", "memory.recorded", "memory.recorded"]
    anomaly = seat.entries("clock.anomaly")[0]
    after = seat.entries()[-2].effective_at
    assert json.loads(anomaly.content) == {"previous": before, "observed": after}
    assert after < before, "the reading was bent"
    assert [entry.sequence for entry in seat.entries()] == list(range(1, 7))
    assert verify(seat.path, "default", None).sound


def test_an_as_of_read_never_shows_what_a_clock_gone_wrong_recorded_later(seat: Any) -> None:
    seat.do(Remember(text="early"))
    early = seat.clock.us
    seat.clock.us += 3_600 * SECOND
    seat.do(Remember(text="far ahead"))
    seat.clock.us = early + SECOND
    seat.do(Remember(text="back again"))
    assert [hit["text"] for hit in seat.find(as_of=early + 2 * SECOND)["hits"]] == ["early"]
    assert len(seat.find()["hits"]) == 3


def test_time_in_a_run_never_goes_back_and_the_error_names_both_times(open_seat: Any) -> None:
    seat = open_seat("default", "r1")
    noon = seat.clock.us + 3_600 * SECOND
    thesis = seat.do(OpenThesis(text="x"), now=noon)
    count = len(seat.entries())
    early = noon - 1
    for call in (
        lambda: seat.do(Remember(text="x"), now=early),
        lambda: seat.find(who=seat.caller(now=early)),
        lambda: seat.get(thesis.id, who=seat.caller(now=early)),
        lambda: seat.state(seat.caller(now=early)),
    ):
        with pytest.raises(ClockError) as fault:
            call()
        assert format_instant(early) in fault.value.message
        assert format_instant(noon) in fault.value.message
        assert (fault.value.field, fault.value.stored) == ("now", "no")
    assert len(seat.entries()) == count
    assert seat.do(Remember(text="the same instant is fine"), now=noon).effective_at == noon


def test_a_run_begins_at_its_first_calls_time(open_seat: Any) -> None:
    seat = open_seat("default", "r1", begins=86_400 * SECOND)
    assert seat.entries()[0].effective_at == 86_400 * SECOND
    with pytest.raises(ClockError):
        seat.do(Remember(text="x"), now=0)
    assert seat.do(Remember(text="x"), now=86_400 * SECOND).sequence == 3


def test_a_run_without_a_time_is_not_begun(open_seat: Any) -> None:
    with pytest.raises(ClockError):
        open_seat("default", "r2", begins=None)


def test_a_live_ledger_refuses_a_simulated_time_and_a_run_refuses_to_do_without(open_seat: Any) -> None:
    live, run = open_seat(), open_seat("default", "r1")
    for seat, now in ((live, 1), (run, None)):
        for call in (
            lambda seat=seat, now=now: seat.do(Remember(text="x"), now=now),
            lambda seat=seat, now=now: seat.find(who=seat.caller(now=now)),
            lambda seat=seat, now=now: seat.state(seat.caller(now=now)),
        ):
            with pytest.raises(ClockError) as fault:
                call()
            assert fault.value.field == "now"
        assert len(seat.entries()) == 1


def test_refusals_and_failures_are_entries_without_their_arguments(open_seat: Any) -> None:
    seat = open_seat("default", "r1")
    early = seat.caller(now=0)
    seat.book.note_denied(early, "remember_decision", 3)
    seat.book.note_failed(early, "update_thesis", "not_found", "thesis_id")
    denied, failed = seat.entries()[-2:]
    assert json.loads(denied.content) == {"tool": "remember_decision", "count": 3}
    assert json.loads(failed.content) == {
        "tool": "update_thesis", "code": "not_found", "field": "thesis_id", "count": 1,
    }  # fmt: skip
    assert denied.effective_at == seat.entries()[0].effective_at, "the run's clock was turned back"
    assert verify(seat.path, "default", "r1").sound
