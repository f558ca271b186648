"""How a stdio server ends: end of input, signals, a client that is gone, calls that do not end."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import tty
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import PipedDesk, StartDesk

ERAS = ("handshake", "modern")
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def ended_in_order(desk: PipedDesk) -> bool:
    told = desk.log().splitlines()
    marks = [line for line in told if line in {"lifespan left", "drained", "returned"}]
    return marks == ["lifespan left", "drained", "returned"]


@pytest.mark.parametrize("era", ERAS)
def test_at_end_of_input_what_was_read_is_answered_and_the_server_exits(
    start_desk: StartDesk, era: str
) -> None:
    """P163."""
    desk = start_desk()
    desk.open(era)
    desk.send(*(desk.tool(era, n, "echo", n=n) for n in range(200)))
    desk.close_input()
    assert sorted(m["id"] for m in desk.rest()) == list(range(200))
    assert desk.wait() == 0
    assert ended_in_order(desk)


def test_it_exits_at_end_of_input_though_no_request_ever_came(start_desk: StartDesk) -> None:
    """P163."""
    desk = start_desk()
    desk.close_input()
    assert desk.rest() == []
    assert desk.wait() == 0
    assert ended_in_order(desk)


def test_a_last_line_without_a_newline_is_answered(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("modern")
    desk.send(b'{"jsonrpc":"2.0","id":1,"method":5}')
    desk.close_input()
    assert desk.reply(1)["error"]["code"] == -32600
    assert desk.wait() == 0


def test_a_last_line_over_the_cap_is_answered(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("modern")
    desk.send(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 300_000)
    desk.close_input()
    assert desk.reply(1)["error"]["data"]["received"] == 300_034
    assert desk.wait() == 0


def test_a_call_in_flight_at_end_of_input_is_waited_for(start_desk: StartDesk, fifo: Path) -> None:
    desk = start_desk()
    desk.open("modern")
    desk.send(desk.tool("modern", 1, "hold", fifo=str(fifo)))
    desk.close_input()
    fifo.write_text("after the end")
    assert desk.text(1) == "after the end"
    assert desk.rest() == []
    assert desk.wait() == 0


@pytest.mark.parametrize("tool", ["hold", "stuck"])
def test_a_call_that_never_ends_is_answered_for_and_given_up(
    start_desk: StartDesk, fifo: Path, tool: str
) -> None:
    desk = start_desk("--patience", "0.2")
    desk.open("handshake")
    desk.open("modern")
    calls = [desk.tool(era, era, tool, fifo=str(fifo)) for era in ERAS]
    desk.send(*calls, desk.tool("modern", "modern", "echo", parked=1))
    writer = os.open(fifo, os.O_WRONLY)
    desk.close_input()
    told = [(m["id"], m["error"]["code"], m["error"]["data"]["stored"]) for m in desk.rest()]
    assert sorted(told) == [
        ("handshake", -32000, "unknown"),
        ("modern", -32000, "no"),
        ("modern", -32000, "unknown"),
    ]
    assert desk.wait() == 0
    assert "drained" in desk.log()
    os.close(writer)


def test_a_handler_that_waits_for_the_client_is_told_that_it_has_gone(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("handshake")
    desk.send(desk.tool("handshake", 1, "ask"))
    asked = desk.next_message()
    assert asked is not None
    desk.close_input()
    assert "closed" in str(desk.reply(1))
    assert desk.wait() == 0
    assert ended_in_order(desk)


def test_an_open_subscription_does_not_hold_up_the_end(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("modern")
    listen = desk.request("modern", "sub", "subscriptions/listen", notifications={"toolsListChanged": True})
    desk.send(listen)
    assert desk.next_message() is not None
    desk.close_input()
    desk.rest()
    assert desk.wait() == 0
    assert ended_in_order(desk)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("era", ERAS)
def test_on_a_signal_calls_in_flight_are_answered_and_the_server_returns(
    start_desk: StartDesk, fifo: Path, era: str, stop: signal.Signals
) -> None:
    desk = start_desk("--level", "INFO", "--patience", "50")
    desk.open(era)
    desk.send(desk.tool(era, 1, "hold", fifo=str(fifo)))
    with fifo.open("w") as release:  # opens once the call is in flight
        desk.process.send_signal(stop)
        desk.wait_for_log("stopping")
        release.write("still answered")
    assert desk.text(1) == "still answered"
    assert desk.rest() == []
    assert desk.wait() == 0
    assert ended_in_order(desk)


@pytest.mark.parametrize("stop", STOPS)
def test_a_signal_wakes_a_loop_that_waits_whichever_thread_takes_it(
    start_desk: StartDesk, fifo: Path, stop: signal.Signals
) -> None:
    """A signal just before the loop begins to wait interrupts nothing either; here it cannot, every time."""
    desk = start_desk("--level", "INFO", "--patience", "50")
    desk.open("modern")
    desk.send(desk.tool("modern", 1, "signal", fifo=str(fifo), signum=int(stop)))
    with fifo.open("w") as release:
        release.write("now\n")
        release.flush()
        desk.wait_for_log("stopping")
        release.write("still answered")
    assert desk.text(1) == "still answered"
    assert desk.rest() == []
    assert desk.wait() == 0


@pytest.mark.parametrize("stop", STOPS)
def test_on_a_signal_an_idle_server_returns(start_desk: StartDesk, stop: signal.Signals) -> None:
    desk = start_desk()
    desk.open("handshake")
    desk.process.send_signal(stop)
    assert desk.rest() == []
    assert desk.wait() == 0
    assert ended_in_order(desk)


def test_a_signal_cuts_the_wait_at_end_of_input_short(start_desk: StartDesk, fifo: Path) -> None:
    desk = start_desk("--level", "INFO", "--stop-patience", "0.1", "--patience", "1000")
    desk.open("modern")
    desk.send(desk.tool("modern", 1, "hold", fifo=str(fifo)))
    writer = os.open(fifo, os.O_WRONLY)
    desk.close_input()
    desk.process.send_signal(signal.SIGTERM)
    assert desk.reply(1)["error"]["data"]["stored"] == "unknown"
    assert desk.wait() == 0
    os.close(writer)


def test_a_second_signal_exits_at_once(start_desk: StartDesk, fifo: Path) -> None:
    desk = start_desk("--level", "INFO", "--patience", "1000")
    desk.open("modern")
    desk.send(desk.tool("modern", 1, "stuck", fifo=str(fifo)))
    writer = os.open(fifo, os.O_WRONLY)
    desk.process.send_signal(signal.SIGTERM)
    desk.wait_for_log("stopping")
    desk.process.send_signal(signal.SIGTERM)
    assert desk.wait() == 128 + signal.SIGTERM
    os.close(writer)


def test_nohup_is_respected(start_desk: StartDesk) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        desk = start_desk()
    finally:
        signal.signal(signal.SIGHUP, before)
    desk.open("modern")
    desk.process.send_signal(signal.SIGHUP)
    desk.send(desk.tool("modern", 1, "echo", a=1))
    assert desk.text(1) == "{'a': int 1}"


def test_a_client_that_stopped_listening_ends_the_server_though_its_input_is_open(
    start_desk: StartDesk,
) -> None:
    desk = start_desk()
    desk.open("modern")
    assert desk.process.stdout is not None
    desk.process.stdout.close()
    desk.send(desk.tool("modern", 1, "echo", a=1))
    assert desk.wait() == 0
    assert ended_in_order(desk)


def test_input_may_come_from_a_file(start_desk: StartDesk, tmp_path: Path) -> None:
    script = tmp_path / "frames"
    script.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\nnonsense\n')
    with script.open("rb") as frames:
        desk = start_desk(stdin=frames)
    assert desk.reply(1)["result"] == {}
    assert desk.reply(None)["error"]["code"] == -32700
    assert desk.rest() == []
    assert desk.wait() == 0


@pytest.mark.parametrize("blocking", [True, False])
def test_input_may_come_from_a_socket(start_desk: StartDesk, blocking: bool) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(blocking)
    with ours:
        with theirs:
            desk = start_desk(stdin=theirs)
        ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert desk.reply(1)["result"] == {}
        ours.sendall(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')  # it has found nothing to read by now
        assert desk.reply(2)["result"] == {}
        ours.shutdown(socket.SHUT_WR)
        assert desk.rest() == []
        assert desk.wait() == 0


@pytest.mark.parametrize("hang_up", [True, False])
def test_input_may_come_from_a_terminal(start_desk: StartDesk, hang_up: bool) -> None:
    ours, theirs = pty.openpty()
    if hang_up:
        tty.setraw(theirs)
    desk = start_desk(stdin=theirs)
    os.close(theirs)
    os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert desk.reply(1)["result"] == {}
    if hang_up:
        os.close(ours)
    else:
        os.write(ours, b"\x04")
    assert desk.rest() == []
    assert desk.wait() == 0
    if not hang_up:
        os.close(ours)


def test_it_starts_with_its_error_output_closed(desk_command: list[str]) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    shell = ["sh", "-c", '"$@" 2>&-', "sh", *desk_command]
    done = subprocess.run(shell, input=frame, stdout=subprocess.PIPE, timeout=60, check=False)
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
