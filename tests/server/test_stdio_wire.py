"""A real server over pipes, in raw frames: whatever arrives is answered, and only frames leave."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import PipedDesk, StartDesk

ERAS = ("handshake", "modern")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(start_desk: StartDesk, era: str) -> PipedDesk:
    """A server that has said hello in one era."""
    started = start_desk()
    started.open(era)
    return started


def still_serves(desk: PipedDesk, era: str) -> None:
    desk.send(desk.tool(era, "still", "echo", a=1))
    assert desk.text("still") == "{'a': int 1}"


def test_only_frames_reach_stdout_whatever_is_printed_warned_or_logged(
    start_desk: StartDesk, era: str
) -> None:
    """P161."""
    desk = start_desk("--level", "DEBUG")
    desk.open(era)
    desk.send(desk.tool(era, 1, "shout"), desk.tool(era, 2, "crash"), desk.tool(era, 3, "bytes_result"))
    assert desk.text(1) == "done"
    assert desk.reply(2)
    assert desk.reply(3)
    still_serves(desk, era)
    desk.close_input()
    desk.rest()  # every line is parsed strictly as it is read
    assert desk.wait() == 0
    log = desk.log()
    for stray in (
        "printed before serving",
        "a stray print",
        "half a line",
        "bytes straight to descriptor 1",
        "a child process",
        "DeprecationWarning",
        "debug line",
        "error line",
    ):
        assert stray in log
        assert stray.encode() not in b"".join(desk.lines)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"nonsense", -32700),
        (b'{"jsonrpc":"2.0","method":"ping"', -32700),
        (b"\xff\xfe{}", -32700),
        (b'{"jsonrpc":"2.0","method":"ping","params":{"t":"a\x00b"}}', -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"[]", -32600),
        (b"42", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","method":"ping","params":' + b"[" * 10_000, -32600),
    ],
)
def test_a_line_that_is_no_request_gets_an_error_and_the_server_lives_on(
    desk: PipedDesk, era: str, raw: bytes, code: int
) -> None:
    desk.send(raw + b"\n")
    assert desk.reply(None)["error"]["code"] == code
    still_serves(desk, era)


def test_a_bad_line_is_answered_under_its_id_unless_that_id_is_in_flight(
    desk: PipedDesk, era: str, fifo: Path
) -> None:
    desk.send(b'{"jsonrpc":"2.0","id":70,"method":5}\n')
    assert desk.reply(70)["error"]["code"] == -32600
    desk.send(desk.tool(era, 70, "hold", fifo=str(fifo)), b'{"jsonrpc":"2.0","id":70,"method":"x",}\n')
    assert desk.reply(None)["error"]["code"] == -32700
    fifo.write_text("the real answer")
    assert desk.text(70) == "the real answer"


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_tolerated(
    start_desk: StartDesk, era: str
) -> None:
    desk = start_desk()
    frame = json.dumps(desk.request("modern", 1, "server/discover")).encode()
    desk.send(b"\xef\xbb\xbf" + frame + b"\r\n\n\r\n   \n")
    assert desk.reply(1)["result"]
    desk.open(era)
    still_serves(desk, era)
    assert desk.unclaimed == []


def test_a_notification_that_is_malformed_or_unknown_is_never_answered(desk: PipedDesk, era: str) -> None:
    for params in ([1], {"requestId": [1]}, {"requestId": True}, {"requestId": "nobody"}, {}):
        desk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    desk.send({"jsonrpc": "2.0", "method": "notifications/odd"}, b'{"jsonrpc":"2.0","id":99,"result":{}}\n')
    still_serves(desk, era)
    assert desk.unclaimed == []


def test_a_frame_over_the_cap_is_refused_by_size_with_its_id_and_bounded_memory(
    desk: PipedDesk, era: str
) -> None:
    """P053 (stdio part)."""
    opening = json.dumps(desk.tool(era, 5, "echo"))[:-3].encode() + b'"text":"'
    block = b"x" * (1 << 20)
    desk.send(b'{"id":5,' + opening[1:])
    for _ in range(128):
        desk.send(block)
    desk.send(b'"}}}\n')
    error = desk.reply(5)["error"]
    assert error["code"] == -32600
    assert error["data"]["limit"] == 200_000
    assert error["data"]["received"] > 128 * len(block)
    assert str(error["data"]["received"]) in error["message"]
    assert "200000" in error["message"]
    still_serves(desk, era)
    assert peak_memory_of(desk) < 160 * 2**20  # an idle server needs about 75 MiB; the frame alone had 128


def test_a_frame_just_under_the_cap_is_served(desk: PipedDesk, era: str) -> None:
    desk.send(desk.tool(era, 6, "echo", text="x" * 199_000))
    assert desk.text(6) == "{'text': str of 199002}"


def test_surrogates_and_numbers_outside_json_reach_the_tool_and_the_reply_is_strict_json(
    desk: PipedDesk, era: str
) -> None:
    """P051 (transport part)."""
    frame = json.dumps(desk.tool(era, 1, "echo", HERE=0)).encode()
    odd = b'"lone":"\\ud800","nan":NaN,"inf":-Infinity,"far":1e999,"\\udc00":1,"endless":' + b"9" * 5_000
    desk.send(frame.replace(b'"HERE": 0', odd) + b"\n")
    assert desk.text(1) == (
        r"{'lone': str '\ud800', 'nan': float nan, 'inf': float -inf, 'far': float inf, "
        r"'\udc00': int 1, 'endless': float inf}"
    )


def test_a_nul_reaches_the_tool(desk: PipedDesk, era: str) -> None:
    """P049 (transport part)."""
    desk.send(desk.tool(era, 1, "echo", text="pre\0suf"))
    assert desk.text(1) == r"{'text': str 'pre\x00suf'}"


@pytest.mark.parametrize(
    "spot",
    [
        {"method": "tools/\ud800"},
        {"params": {"name": "ec\ud800ho", "arguments": {}}},
        {"params": {"name": "echo", "arguments": {}, "\ud800": 1}},
        {"params": {"name": "echo", "arguments": [1]}},
        {"params": {"name": float("nan")}},
        {"params": {"name": "echo", "arguments": {}, "_meta": {"a\ud800": "\ud800", "n": float("nan")}}},
        {"params": {"name": "echo", "arguments": {}, "_meta": {"progressToken": float("nan")}}},
        {"params": {"name": "echo", "arguments": {}, "_meta": {"progressToken": "\ud800"}}},
    ],
)
def test_odd_values_outside_the_arguments_are_answered(
    desk: PipedDesk, era: str, spot: dict[str, Any]
) -> None:
    frame = desk.request(era, 1, "tools/call")
    spot = json.loads(json.dumps(spot))
    meta = frame["params"].get("_meta", {})
    frame.update(spot)
    frame["params"]["_meta"] = {**meta, **frame["params"].get("_meta", {})}
    desk.send(frame)
    answer = desk.reply(1)
    assert ("result" in answer) != ("error" in answer)
    still_serves(desk, era)


def test_what_json_cannot_carry_in_a_result_is_replaced(desk: PipedDesk, era: str) -> None:
    """P051 (transport part)."""
    desk.send(desk.tool(era, 1, "bad_result"))
    result = desk.reply(1)["result"]
    assert result["content"][0]["text"] == "lone \ufffd here"
    assert result["structuredContent"] == {"number": None, "far": None, "low": ["\ufffd"]}
    still_serves(desk, era)


def test_an_exception_the_sdk_lets_through_shows_the_client_nothing_of_its_text(
    desk: PipedDesk, era: str
) -> None:
    desk.send(desk.request(era, 1, "resources/list"))
    assert desk.reply(1)["error"] == {"code": -32603, "message": "Internal server error"}
    assert b"secret" not in b"".join(desk.lines)
    still_serves(desk, era)


def test_one_slow_call_does_not_hold_up_the_others(desk: PipedDesk, era: str, fifo: Path) -> None:
    """P165 (transport part)."""
    desk.send(desk.tool(era, "slow", "hold", fifo=str(fifo)))
    desk.send(desk.request(era, "list", "tools/list"), desk.tool(era, "quick", "echo", a=1))
    if era == "handshake":
        desk.send(desk.request(era, "ping", "ping"))
        assert desk.reply("ping")["result"] == {}
    assert desk.text("quick") == "{'a': int 1}"
    assert desk.reply("list")["result"]["tools"]
    fifo.write_text("at last")
    assert desk.text("slow") == "at last"


def test_a_burst_of_calls_on_one_pipe_gets_the_right_answers(desk: PipedDesk, era: str) -> None:
    desk.send(*(desk.tool(era, n, "echo", n=n) for n in range(600)))
    for n in range(600):
        assert desk.text(n) == f"{{'n': int {n}}}"
    assert desk.unclaimed == []


def test_both_eras_share_one_pipe_in_either_order(start_desk: StartDesk) -> None:
    for order in (ERAS, ERAS[::-1]):
        desk = start_desk()
        for era in order:
            desk.open(era)
        for era in (*order, *order):
            desk.send(desk.tool(era, era, "echo", said=era))
            assert desk.text(era) == f"{{'said': str '{era}'}}"
        desk.close_input()
        assert desk.rest() == []
        assert desk.wait() == 0
        assert desk.log().count("lifespan entered") == 1


def test_requests_before_any_hello_are_answered_in_their_own_era(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.send(desk.request("handshake", 1, "ping"), desk.request("handshake", 2, "tools/list"))
    assert desk.reply(1)["result"] == {}
    assert "error" in desk.reply(2)
    desk.send(desk.request("modern", 3, "tools/list"))
    assert desk.reply(3)["result"]["tools"]


def test_a_request_without_an_envelope_on_a_modern_pipe_is_told_what_it_lacks(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("modern")
    desk.send(desk.request("handshake", 1, "tools/list"))
    assert desk.reply(1)["error"]["code"] == -32602


@pytest.mark.parametrize("second", ERAS)
@pytest.mark.parametrize("first", ERAS)
def test_two_calls_in_flight_under_one_id_are_answered_each_in_order(
    start_desk: StartDesk, fifo: Path, first: str, second: str
) -> None:
    desk = start_desk()
    desk.open("handshake")
    desk.open("modern")
    desk.send(desk.tool(first, 7, "hold", fifo=str(fifo)), desk.tool(second, 7, "echo", a=1))
    desk.send(desk.tool(second, "other", "echo", a=2))
    assert desk.text("other") == "{'a': int 2}"
    assert desk.unclaimed == []
    fifo.write_text("first")
    assert desk.text(7) == "first"
    assert desk.text(7) == "{'a': int 1}"
    assert desk.unclaimed == []


def test_a_cancellation_reaches_the_loop_that_owns_the_call(start_desk: StartDesk, fifo: Path) -> None:
    for era in ERAS:
        desk = start_desk()
        desk.open("handshake")
        desk.open("modern")
        desk.send(desk.tool(era, 9, "hold", fifo=str(fifo)), desk.tool("handshake", 9, "echo", parked=1))
        writer = os.open(fifo, os.O_WRONLY)  # opens once the call has opened its end: it is in flight
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        desk.send(cancel)
        still_serves(desk, "modern")
        desk.close_input()
        assert desk.rest() == []
        assert desk.wait() == 0
        os.close(writer)


def test_a_request_under_the_id_of_an_open_subscription_is_refused(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("modern")
    listen = desk.request("modern", "sub", "subscriptions/listen", notifications={"toolsListChanged": True})
    desk.send(listen)
    acknowledged = desk.next_message()
    assert acknowledged is not None
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    desk.send(desk.tool("modern", "sub", "echo", a=1))
    assert "sub" in desk.reply(None)["error"]["message"]
    still_serves(desk, "modern")


def test_a_handler_may_ask_the_client_in_the_handshake_era(start_desk: StartDesk) -> None:
    desk = start_desk()
    desk.open("handshake")
    desk.open("modern")
    desk.send(desk.tool("handshake", 1, "ask"))
    asked = desk.next_message()
    assert asked is not None
    assert asked["method"] == "ping"
    desk.send({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    assert desk.text(1) == "answered"


@pytest.mark.parametrize("answer", [{"result": "garbage"}, {"result": None}, {"result": []}, {"error": "no"}])
def test_an_answer_that_is_malformed_ends_the_wait_of_whoever_asked(
    start_desk: StartDesk, answer: dict[str, Any]
) -> None:
    desk = start_desk()
    desk.open("handshake")
    desk.send(desk.tool("handshake", 1, "ask"))
    asked = desk.next_message()
    assert asked is not None
    desk.send({"jsonrpc": "2.0", "id": asked["id"]} | answer)
    assert desk.reply(1)["error"]["code"] == -32600
    still_serves(desk, "handshake")


@pytest.mark.parametrize("answer", ["garbage", None, 5, [], {}, {"action": "perhaps"}])
def test_a_person_whose_client_answers_with_no_answer_has_not_been_asked(
    start_serve: StartDesk, tmp_path: Path, answer: Any
) -> None:
    config = tmp_path / "desk.toml"
    config.write_text('[agents.local]\nprofile = "solo"\n[approval]\nmemory = "ask"\n')
    desk = start_serve("--config", str(config), "--agent", "local")
    desk.open("handshake", elicitation={})
    desk.send(desk.tool("handshake", 1, "remember", text="keep this"))
    asked = desk.next_message()
    assert asked is not None
    assert asked["method"] == "elicitation/create"
    desk.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
    assert desk.reply(1)["result"]["structuredContent"]["review_state"] == "pending"


def test_a_loop_that_breaks_is_answered_for_and_started_anew(start_desk: StartDesk) -> None:
    desk = start_desk("--fail-at-first")
    desk.send(desk.request("modern", 1, "tools/list"))
    assert desk.reply(1)["error"] == {"code": -32603, "message": "Internal server error"}
    desk.open("modern")
    still_serves(desk, "modern")


def peak_memory_of(desk: PipedDesk) -> int:
    """The largest resident size a living server has had, in bytes; `wait4` would count its parent in."""
    status = Path(f"/proc/{desk.process.pid}/status").read_text()
    (peak,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1]) * 1024


def send_unread(desk: PipedDesk, frames: bytes, answers: int) -> None:
    """Send as much as the server takes without being read from, then the rest while reading each answer."""
    assert desk.process.stdin is not None
    fd = desk.process.stdin.fileno()
    os.set_blocking(fd, False)
    rest = memoryview(frames)
    # The wait only tells a server that has stopped reading from a slow one.
    while rest and select.select([], [fd], [], 1.0)[1]:
        rest = rest[os.write(fd, rest) :]
    assert rest, "the server took everything without one answer being read"
    for _ in range(answers):
        while rest and select.select([], [fd], [], 0)[1]:
            rest = rest[os.write(fd, rest) :]
        assert desk.next_message() is not None


def test_a_client_that_does_not_read_makes_the_server_stop_reading_not_grow(
    desk: PipedDesk, era: str
) -> None:
    total = 2_000
    frames = (json.dumps(desk.tool(era, n, "big", size=100_000)).encode() + b"\n" for n in range(total))
    send_unread(desk, b"".join(frames), total)
    assert peak_memory_of(desk) < 160 * 2**20  # all answers together have 200 MB


def test_a_flood_of_bad_lines_from_a_client_that_does_not_read_is_held_back(desk: PipedDesk) -> None:
    send_unread(desk, b"x\n" * 200_000, 200_000)
