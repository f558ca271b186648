"""Somebody else holds the ledger: writers wait or are told, readers are served, and nothing comes late."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Answer, Look, Server, StartHand, StartServer

pytestmark = pytest.mark.faults

WRITE_DEADLINE = 10.0
SEARCH_DEADLINE = 2.0
PROMPT = 0.5
"""Seconds within which an answer that waits for no lock is here, on a machine that does other things as well."""

RAW = ("sqlite", "locked", "database is", "busyerror", "apsw", "flock", "traceback")


@pytest.fixture
def server(start_server: StartServer) -> Server:
    """A server whose ledger is open and holds one thesis."""
    server = start_server().open()
    server.remember("before the lock", symbol="AAPL")
    assert not server.call("get_memory_state").is_error
    return server


HOLDS = ("a transaction from outside", "the lock of a writer", "the lock of a stopped writer")


@pytest.fixture(params=HOLDS)
def held(
    request: pytest.FixtureRequest,
    server: Server,
    start_hand: StartHand,
    start_server: StartServer,
    ledger: Path,
) -> object:
    """The ledger held by another process; `go` lets go of it."""
    if request.param == "a transaction from outside":
        hand = start_hand("hold-transaction", ledger)
    else:
        hand = start_hand("hold-lock", ledger)
    assert hand.says() == "held"
    if request.param == HOLDS[2]:
        hand.process.send_signal(signal.SIGSTOP)
    return hand


def release(hand: object) -> None:
    hand.process.send_signal(signal.SIGCONT)  # type: ignore[attr-defined]
    hand.go()  # type: ignore[attr-defined]
    assert hand.says() == "released"  # type: ignore[attr-defined]


def assert_typed(answer: Answer, code: str, stored: str = "no") -> None:
    assert answer.is_error
    assert (answer.body["code"], answer.body["stored"]) == (code, stored)
    assert answer.body["retryable"] is True
    assert answer.body["hint"]
    told = str(answer.body).casefold()
    assert not [word for word in RAW if word in told]


def test_a_write_waits_for_a_short_transaction_and_succeeds(
    server: Server, start_hand: StartHand, ledger: Path, look: Look
) -> None:
    """P003."""
    hand = start_hand("hold-transaction-for", ledger, 3)
    assert hand.says() == "held"
    answer = server.call("remember", text="during the hold")
    assert not answer.is_error, answer.body
    assert answer.seconds < WRITE_DEADLINE
    assert look.texts() == ["before the lock", "during the hold"]
    look.assert_sound()


def test_while_the_ledger_is_held_readers_are_served_and_writers_are_told(
    server: Server, held: object, look: Look
) -> None:
    """P005, P165."""
    write = server.begin("remember", text="too late")
    search = server.begin("search_memory", query="lock")
    others = {
        "ping": server.ask("ping"),
        "list": server.ask("tools/list"),
        "state": server.begin("get_memory_state"),
        "resource": server.ask("resources/read", uri="memory://state"),
    }
    assert server.message(others["ping"])["result"] == {}
    assert server.message(others["list"])["result"]["tools"]
    assert max(server.seconds(others["ping"]), server.seconds(others["list"])) < PROMPT

    # The state was shown before and has not changed, so its showing is on record already.
    for name in ("state", "resource"):
        state = server.result(others[name])
        assert not state.is_error
        assert state.seconds < PROMPT

    memory_id = state.body["recent"][0].split()[2]
    got = server.call("get_memory", memory_id=memory_id)
    assert not got.is_error
    assert got.body["recorded"] is False
    assert got.seconds < PROMPT

    found = server.result(search)
    assert_typed(found, "not_recorded")
    assert found.seconds < SEARCH_DEADLINE + PROMPT

    refused = server.result(write)
    assert_typed(refused, "store_busy")
    assert refused.seconds < WRITE_DEADLINE + PROMPT

    entries = look.sequences()
    release(held)
    after = server.remember("after the lock")
    assert look.texts() == ["before the lock", "after the lock"]
    assert after["sequence"] == len(entries) + 1  # nothing of the refused calls came in between
    look.assert_sound()


@pytest.mark.parametrize("held", HOLDS[:1], indirect=True)
def test_a_burst_of_searches_on_a_held_ledger_does_not_hold_up_the_state(
    server: Server, held: object, look: Look
) -> None:
    searches = [server.begin("search_memory", query=f"lock {number}") for number in range(60)]
    state = server.call("get_memory_state")
    assert not state.is_error
    assert state.seconds < PROMPT
    answers = [server.result(search) for search in searches]
    for answer in answers:
        assert_typed(answer, "not_recorded")
    assert max(answer.seconds for answer in answers[:16]) < SEARCH_DEADLINE + PROMPT
    release(held)
    assert not server.call("search_memory", query="lock").is_error
    assert look.rows("SELECT count(*) FROM memory_retrievals") == [(1,)]


@pytest.mark.parametrize("held", HOLDS[:1], indirect=True)
def test_a_burst_of_writes_on_a_held_ledger_is_refused_whole_and_never_stored(
    server: Server, held: object, look: Look
) -> None:
    writes = [server.begin("remember", text=f"refused {number}") for number in range(60)]
    state = server.call("get_memory_state")
    assert state.seconds < PROMPT
    for write in writes:
        assert_typed(server.result(write), "store_busy")
    release(held)
    server.remember("after the lock")
    assert look.texts() == ["before the lock", "after the lock"]
    look.assert_sound()


def test_a_server_starts_and_reads_while_the_ledger_is_held(
    server: Server, held: object, start_server: StartServer
) -> None:
    second = start_server().open()
    state = second.call("get_memory_state")
    assert not state.is_error
    assert state.body["recorded"] is False
    assert state.body["counts"]["memories"] == 1
    assert_typed(second.call("search_memory", query="lock"), "not_recorded")
    release(held)
    assert second.call("search_memory", query="lock").body["total"] == 1


def test_a_ledger_that_cannot_be_made_for_a_held_lock_is_refused_in_time(
    start_server: StartServer, start_hand: StartHand, ledger: Path, look: Look
) -> None:
    ledger.parent.mkdir(parents=True)
    ledger.with_name(ledger.name + ".lock").touch(0o600)
    hand = start_hand("hold-lock", ledger)
    assert hand.says() == "held"
    server = start_server().open()
    write = server.begin("remember", text="too early")
    ping = server.ask("ping")
    assert server.message(ping)["result"] == {}
    refused = server.result(write)
    assert_typed(refused, "store_busy")
    assert refused.seconds < WRITE_DEADLINE + PROMPT
    release(hand)
    server.remember("in time")
    assert look.texts() == ["in time"]
    look.assert_sound()
