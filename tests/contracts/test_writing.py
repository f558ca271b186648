"""Every engine: one transaction takes all that wait, each caller stands or falls alone, and knows what became."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import pytest

from store.engines.base import Transaction
from store.errors import Conflict, OutcomeUnknown, StoreBusy, StoreClosed, StoreFull
from store.rows import EntryFilter

GUARD = 30.0


def _entries(engine: Any) -> list[Any]:
    with engine.read() as snapshot:
        return list(snapshot.entries(EntryFilter(limit=10_000)))


def test_a_job_reads_what_it_has_written_itself(crew: Any) -> None:
    def job(transaction: Transaction) -> tuple[int, int]:
        entry = crew.note("mine")(transaction)
        head = transaction.head()
        assert head is not None
        return head.sequence, entry.sequence

    head, written = crew.engine.write(job, timeout=GUARD)
    assert head == written


def test_jobs_that_wait_are_committed_together_and_answered_only_after_the_commit(crew: Any) -> None:
    blocked = crew.block()
    first = crew.queue(crew.note("first"))
    last_gate = type(crew.gate)()

    def last(transaction: Transaction) -> Any:
        entry = crew.note("last")(transaction)
        last_gate.pass_through()
        return entry

    second = crew.queue(last)
    crew.gate.open()
    last_gate.wait_until_reached()
    assert blocked.result(GUARD) is None
    assert not first.done(), "answered before the commit it shares"
    assert crew.texts() == [], "visible before the commit it shares"
    last_gate.open()
    assert second.result(GUARD).sequence == first.result(GUARD).sequence + 1
    assert crew.texts() == ["first", "last"]


def test_an_error_of_one_caller_undoes_that_caller_alone(crew: Any) -> None:
    blocked = crew.block()

    def fails(transaction: Transaction) -> None:
        crew.note("half written")(transaction)
        raise Conflict("no")

    before, failed, after = (crew.queue(job) for job in (crew.note("before"), fails, crew.note("after")))
    crew.gate.open()
    wait((blocked, before, failed, after), GUARD)
    with pytest.raises(Conflict, match="no"):
        failed.result()
    assert after.result().sequence == before.result().sequence + 1
    assert crew.texts() == ["before", "after"]


def test_an_error_of_a_caller_alone_undoes_all_it_wrote(crew: Any) -> None:
    before = crew.write("there before")

    def fails(transaction: Transaction) -> None:
        crew.note("half written")(transaction)
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        crew.engine.write(fails, timeout=GUARD)
    assert crew.write("afterwards").sequence == before.sequence + 1
    assert crew.texts() == ["there before", "afterwards"]


@pytest.mark.parametrize("writes", [False, True], ids=["before it writes", "after it wrote"])
def test_whoever_shares_a_transaction_with_an_error_is_answered_once_and_by_its_last_run(
    crew: Any, writes: bool
) -> None:
    blocked = crew.block()
    runs: list[str] = []

    def counted(text: str) -> Callable[[Transaction], Any]:
        def job(transaction: Transaction) -> Any:
            runs.append(text)
            return crew.note(text)(transaction)

        return job

    def fails(transaction: Transaction) -> None:
        if writes:
            crew.note("half written")(transaction)
        raise Conflict("no")

    first, failed, last = (crew.queue(job) for job in (counted("first"), fails, counted("last")))
    crew.gate.open()
    wait((blocked, first, failed, last), GUARD)
    with pytest.raises(Conflict, match="no"):
        failed.result()
    # What failed before it wrote anything costs nobody a second run.
    assert runs == (["first", "first", "last"] if writes else ["first", "last"])
    entries = {entry.sequence: entry.event_id for entry in _entries(crew.engine)}
    assert [entries[job.result().sequence] for job in (first, last)] == [
        job.result().event_id for job in (first, last)
    ]
    assert crew.texts() == ["first", "last"]


def test_a_rebuild_that_fails_beside_other_writes_undoes_itself_alone(crew: Any) -> None:
    crew.write("there before")
    blocked = crew.block()

    def stop(_: int) -> None:
        raise Conflict("no")

    first = crew.queue(crew.note("first"))
    failed = crew.run(lambda: crew.engine.rebuild(stop))
    crew.house.wait_for_queue(crew.engine, 2)
    crew.gate.open()
    wait((blocked, first, failed), GUARD)
    with pytest.raises(Conflict, match="no"):
        failed.result()
    assert crew.texts() == ["there before", "first"]


def test_a_lost_transaction_costs_nobody_but_the_caller_who_lost_it(crew: Any) -> None:
    crew.write("there before")
    crew.house.limit_space(crew.engine, spare_pages=60)
    blocked = crew.block()
    jobs = [crew.note("small"), crew.note("huge " * 20_000 * 5), crew.note("small too")]
    before, failed, after = (crew.queue(job) for job in jobs)
    crew.gate.open()
    wait((blocked, before, failed, after), GUARD)
    with pytest.raises(StoreFull) as fault:
        failed.result()
    assert fault.value.stored == "no"
    assert after.result().sequence == before.result().sequence + 1
    assert crew.texts() == ["there before", "small", "small too"]


def test_sequences_stay_gap_free_whatever_fails_between(crew: Any) -> None:
    blocked = crew.block()

    def fails(transaction: Transaction) -> None:
        crew.note("never")(transaction)
        raise ValueError("never")

    answers = [crew.queue(fails if at % 3 == 1 else crew.note(f"note {at}")) for at in range(20)]
    crew.gate.open()
    wait((blocked, *answers), GUARD)
    entries = _entries(crew.engine)
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert sum(answer.exception() is None for answer in answers) == len(crew.texts())


def test_a_write_behind_a_foreign_transaction_is_busy_in_time_and_stores_nothing(crew: Any) -> None:
    crew.write("there before")
    with crew.house.hold_transaction(), pytest.raises(StoreBusy) as fault:
        crew.engine.write(crew.note("too late"), timeout=0.2)
    assert (fault.value.stored, fault.value.retryable) == ("no", True)
    assert crew.write("in time").sequence == 4
    assert crew.texts() == ["there before", "in time"]


def test_a_write_behind_another_process_lock_is_busy_in_time_and_stores_nothing(crew: Any) -> None:
    crew.write("there before")
    with crew.house.hold_lock(), pytest.raises(StoreBusy) as fault:
        crew.engine.write(crew.note("too late"), timeout=0.2)
    assert (fault.value.stored, fault.value.retryable) == ("no", True)
    assert crew.write("in time").sequence == 4
    assert crew.texts() == ["there before", "in time"]


def test_the_lock_of_a_killed_process_is_free_again(crew: Any) -> None:
    with crew.house.hold_lock() as holder:
        waiting = crew.run(lambda: crew.write("afterwards"))
        holder.kill()
        assert waiting.result(GUARD).sequence == 3


def test_readers_never_wait_for_a_writer(crew: Any) -> None:
    crew.write("there before")
    blocked = crew.block()
    assert crew.texts() == ["there before"], "beside a writer of this process"
    crew.gate.open()
    blocked.result(GUARD)
    with crew.house.hold_lock(), crew.house.hold_transaction():
        assert crew.texts() == ["there before"], "beside a writer of another process"


def test_a_commit_that_does_not_end_in_time_has_an_unknown_outcome(crew: Any) -> None:
    def slow(transaction: Transaction) -> Any:
        entry = crew.note("slow", idempotency_key="k1")(transaction)
        crew.gate.pass_through()
        return entry

    with pytest.raises(OutcomeUnknown) as fault:
        crew.engine.write(slow, timeout=0.1, grace=0.1)
    assert (fault.value.stored, fault.value.retryable) == ("unknown", True)
    crew.gate.open()
    crew.write("the writer lives on")
    assert crew.texts() == ["slow", "the writer lives on"]
    with crew.engine.read() as snapshot:
        assert snapshot.replay("ann", "tool", "k1").sequence == 3, "the key tells what became of it"


def test_close_finishes_what_is_queued_and_takes_nothing_more(crew: Any) -> None:
    blocked = crew.block()
    queued = [crew.queue(crew.note(f"note {at}")) for at in range(5)]
    closing = crew.run(crew.engine.close)
    crew.house.wait_for_closing(crew.engine)
    with pytest.raises(StoreClosed) as fault:
        crew.engine.write(crew.note("too late"), timeout=GUARD)
    assert fault.value.stored == "no"
    crew.gate.open()
    wait((blocked, closing, *queued), GUARD)
    assert [answer.result().sequence for answer in queued] == [3, 4, 5, 6, 7]
    assert closing.exception() is None


def test_closing_twice_is_harmless(crew: Any) -> None:
    crew.engine.close()
    crew.engine.close()
    with pytest.raises(StoreClosed):
        crew.engine.write(crew.note("too late"), timeout=GUARD)


def test_two_open_engines_share_one_sequence_and_one_chain(new_crew: Any) -> None:
    one, other = new_crew(), new_crew()
    for at in range(5):
        one.write(f"one {at}")
        other.write(f"other {at}")
    entries = _entries(one.engine)
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.event_type for entry in entries].count("genesis") == 1
    assert len(other.texts()) == 10


def test_a_snapshot_does_not_see_what_is_committed_after_it_began(crew: Any) -> None:
    crew.write("before")
    with crew.engine.read() as early:
        seen = early.head()
        crew.write("after")
        assert early.head() == seen
        assert early.totals(1_000) == (1, 1)
    assert crew.texts() == ["before", "after"]
