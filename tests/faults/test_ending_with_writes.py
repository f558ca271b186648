"""A server that ends while writes are in flight: what it answered is stored, what it owes is written."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Look, StartHand, StartServer

BURST = 300
ENDS = (
    "end of input",
    signal.SIGTERM,
    pytest.param(signal.SIGINT, marks=pytest.mark.faults),
    pytest.param(signal.SIGHUP, marks=pytest.mark.faults),
)


@pytest.mark.parametrize("how", ENDS)
def test_what_was_answered_before_the_end_is_stored_and_what_was_not_is_whole_or_absent(
    start_server: StartServer, look: Look, how: str | signal.Signals
) -> None:
    server = start_server().open()
    server.remember("first")
    server.send(
        *(
            server.frame("tools/call", name="remember", arguments={"text": f"in flight {n}"})
            for n in range(BURST)
        )
    )
    server.wait_for_answers(10)
    if isinstance(how, signal.Signals):
        server.process.send_signal(how)
    else:
        server.close_input()
    assert server.wait() == 0
    answered = {body["event_id"] for body in server.stored().values()}
    assert answered <= look.event_ids()
    if how == "end of input":
        assert len(answered) == BURST + 1
    texts = look.texts()
    assert len(set(texts)) == len(texts) >= len(answered)
    look.assert_sound()


@pytest.mark.parametrize("how", ENDS)
def test_refused_calls_that_were_counted_are_written_at_the_end(
    start_server: StartServer, desk_config: Path, look: Look, how: str | signal.Signals
) -> None:
    server = start_server("--config", str(desk_config), "--agent", "researcher").open()
    for n in range(5):
        refused = server.call("remember_decision", text=f"not mine {n}", symbol="SPY", action="buy")
        assert refused.body["code"] == "permission_denied"
    for _ in range(3):
        assert server.call("remember", text="").body["code"] == "invalid_input"
    if isinstance(how, signal.Signals):
        server.process.send_signal(how)
    else:
        server.close_input()
    assert server.wait() == 0
    rows = look.rows(
        "SELECT event_type, content FROM memory_events WHERE event_type LIKE '%.%' ORDER BY sequence"
    )
    counts = [
        (event, json.loads(content)["count"])
        for event, content in rows
        if event in {"permission.denied", "call.failed"}
    ]
    assert sorted(counts) == [
        ("call.failed", 1),
        ("call.failed", 2),
        ("permission.denied", 1),
        ("permission.denied", 4),
    ]
    look.assert_sound()


@pytest.mark.faults
@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM])
def test_a_server_that_waits_for_a_held_ledger_at_its_end_spends_no_time_on_it(
    start_server: StartServer, start_hand: StartHand, ledger: Path, look: Look, how: str | signal.Signals
) -> None:
    """P163."""
    server = start_server().open()
    server.remember("first")
    hand = start_hand("hold-lock", ledger)
    assert hand.says() == "held"
    held = server.begin("remember", text="held at the end")
    ping = server.ask("ping")
    assert server.message(ping)["result"] == {}
    before = server.cpu_seconds()
    spent: list[float] = []

    def watch() -> None:
        while server.process.poll() is None:
            spent.append(server.cpu_seconds() - before)
            threading.Event().wait(0.05)

    watcher = threading.Thread(target=watch)
    if isinstance(how, signal.Signals):
        server.process.send_signal(how)
    else:
        server.close_input()
    watcher.start()
    assert server.wait() == 0
    watcher.join()
    assert max(spent) < 1.0
    message = server.message(held)
    told = message.get("error", {}).get("data") or json.loads(message["result"]["content"][0]["text"])
    assert told["stored"] in {"no", "unknown"}
    hand.go()
    assert hand.says() == "released"
    if told["stored"] == "no":
        assert look.texts() == ["first"]
    look.assert_sound()
