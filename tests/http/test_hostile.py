"""Clients that mean harm, or are confused: what they reach for, what they hold, and what it costs the others."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from server.http import gate
from server.http.journal import LINES_KEPT, Journal

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

GUARD = 60.0
SMALL = """
[http]
max_body_bytes = 20000
[agents.researcher]
profile = "researcher"
token_env = "RESEARCHER_TOKEN"
"""


@contextmanager
def legacy_stream(desk: HttpDesk, agent: str) -> Iterator[tuple[httpx2.Client, str, Iterator[str]]]:
    """An open stream pair: a client, the path to post to, and the lines that come."""
    with desk.raw(agent) as http, http.stream("GET", "/sse") as stream:
        lines = stream.iter_lines()
        yield http, next(line for line in lines if line.startswith("data: "))[6:], lines


def event(lines: Iterator[str], request_id: Any) -> dict[str, Any]:
    for line in lines:
        if line.startswith("data: {") and json.loads(line[6:]).get("id") == request_id:
            return dict(json.loads(line[6:]))
    raise AssertionError("the stream ended without the answer")


@pytest.mark.parametrize(
    "query",
    [
        "session_id={theirs}&x=?session_id={mine}",
        "session_id={theirs}&session_id={mine}",
        "session_id={mine}&session_id={theirs}",
        "x=?session_id={mine}&session_id={theirs}",
        "session_id=&session_id={theirs}",
        "session_id={theirs}#session_id={mine}",
        "Session_id={mine};session_id={theirs}",
    ],
)
def test_no_spelling_of_a_query_reaches_another_tokens_stream(desk: HttpDesk, query: str) -> None:
    with (
        legacy_stream(desk, "trader") as (http, theirs, lines),
        legacy_stream(desk, "researcher") as (other, mine, _),
    ):
        named = {"theirs": theirs.partition("=")[2], "mine": mine.partition("=")[2]}
        other.post(f"/messages/?{query.format(**named)}", json=desk.rpc("ping", 5))
        http.post(theirs, json=desk.rpc("initialize", 6, protocolVersion="2024-11-05", capabilities={},
                                        clientInfo={"name": "t", "version": "1"}))  # fmt: skip
        first = next(json.loads(line[6:]) for line in lines if line.startswith("data: {"))
        assert first["id"] == 6  # and no answer to what the other posted


def test_a_session_of_one_transport_is_none_of_the_others(desk: HttpDesk) -> None:
    session = desk.initialize("trader")
    with legacy_stream(desk, "trader") as (http, path, _):
        desk.refused(
            http.post("/messages/", params={"session_id": session}, json=desk.rpc("ping")),
            404,
            "session_not_found",
        )
        headers = {"Mcp-Session-Id": path.partition("=")[2]}
        desk.refused(http.post("/mcp", json=desk.rpc("ping"), headers=headers), 404, "session_not_found")


def test_one_legacy_session_listens_on_a_few_streams_and_no_more(desk: HttpDesk) -> None:
    with legacy_stream(desk, "trader") as (http, path, _):
        for number in range(5):
            listen, _headers = desk.modern(
                "subscriptions/listen", number, notifications={"resourceSubscriptions": ["memory://state"]}
            )
            answer = http.post(path, json=listen)
            if number < 4:
                assert answer.status_code == 202
        assert desk.refused(answer, 429, "too_many_streams")["retryable"]


def test_an_id_is_used_once_at_a_time(desk: HttpDesk, start_desk: StartDesk, held_ledger: Any) -> None:
    desk = start_desk()
    session = {"Mcp-Session-Id": desk.initialize("trader")}
    write = desk.rpc("tools/call", 7, name="remember", arguments={"text": "t"})
    with desk.raw("trader") as http:
        desk.answer(http.post("/mcp", json=write, headers=session))
        with held_ledger(desk.root):
            waiting = http.stream("POST", "/mcp", json=write, headers=session)
            waiting.__enter__()
            desk.refused(http.post("/mcp", json=write, headers=session), 409, "id_in_use")
        waiting.__exit__(None, None, None)
        assert "result" in desk.answer(http.post("/mcp", json=write, headers=session))


def test_bodies_are_counted_until_their_calls_are_answered(start_desk: StartDesk, held_ledger: Any) -> None:
    desk = start_desk(SMALL)
    with legacy_stream(desk, "researcher") as (http, path, lines):
        http.post(path, json=desk.rpc("initialize", 0, protocolVersion="2024-11-05", capabilities={},
                                      clientInfo={"name": "t", "version": "1"}))  # fmt: skip
        http.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        large = {"text": "x" * 18_000}
        http.post(path, json=desk.rpc("tools/call", 1, name="remember", arguments=large))
        assert event(lines, 1)["result"]
        with held_ledger(desk.root):
            sent = [
                http.post(path, json=desk.rpc("tools/call", number, name="remember", arguments=large))
                for number in range(2, 24)
            ]
        taken = {number for number, answer in enumerate(sent, start=2) if answer.status_code == 202}
        assert taken == set(range(2, 19))  # seventeen of these are 16 of the largest
        desk.refused(sent[-1], 429, "rate_limited")
        answered: set[int] = set()
        while len(answered) < len(taken):
            line = next(lines)
            if line.startswith("data: {"):
                answered.add(json.loads(line[6:])["id"])
        assert answered == taken
        assert (
            http.post(path, json=desk.rpc("tools/call", 99, name="remember", arguments=large)).status_code
            == 202
        )


@pytest.mark.parametrize("wire", ["legacy", "sse"])
def test_a_call_that_waits_for_another_process_is_given_up_at_the_end(
    start_desk: StartDesk, held_ledger: Any, wire: str
) -> None:
    desk = start_desk()
    write = desk.rpc("tools/call", 9, name="remember", arguments={"text": "t"})
    session = {"Mcp-Session-Id": desk.initialize("trader")}
    with desk.raw("trader") as http:
        assert "result" in desk.answer(http.post("/mcp", json=write, headers=session))
        with held_ledger(desk.root):
            if wire == "sse":
                write, _ = desk.modern("tools/call", 9, name="remember", arguments={"text": "t"})
                with legacy_stream(desk, "trader") as (other, path, lines):
                    assert other.post(path, json=write).status_code == 202
                    desk.process.send_signal(signal.SIGTERM)
                    result = event(lines, 9)["result"]
            else:
                with http.stream(
                    "POST", "/mcp", json=write, headers=session
                ) as answer:  # its head: it has begun
                    desk.process.send_signal(signal.SIGTERM)
                    result = event(answer.iter_lines(), 9)["result"]
            assert desk.process.wait(GUARD) == 0
    told = json.loads(result["content"][0]["text"])
    assert (result["isError"], told["code"], told["stored"]) == (True, "outcome_unknown", "unknown")
    assert "Traceback" not in desk.log()
    assert "still held by another process" in desk.log()


def test_a_request_that_was_never_finished_is_no_reason_to_wait_or_to_fail(start_desk: StartDesk) -> None:
    desk = start_desk()
    token = desk.bearer("trader")["Authorization"]
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\nContent-Length: 99\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", desk.port), GUARD) as line:
        line.sendall(head.encode())
        desk.process.send_signal(signal.SIGTERM)
        assert desk.process.wait(GUARD) == 0
        line.settimeout(GUARD)
        assert b" 503 " in line.recv(100)
    assert "Traceback" not in desk.log()


@pytest.mark.anyio
async def test_who_does_not_read_is_cut_off_with_or_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    from server.http.names import Names

    async def never(_message: Any) -> None:
        await anyio.sleep_forever()

    async def nothing() -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    monkeypatch.setattr(gate, "STALLED_SECONDS", 0.01)
    monkeypatch.setattr(gate, "FAREWELL_SECONDS", 0.01)
    served: Any = gate.Gate(Names([], []), None, {}, None, None)  # type: ignore[arg-type]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/none",
        "scheme": "http",
        "headers": [(b"host", b"localhost")],
    }
    with anyio.fail_after(GUARD):
        await served(scope, nothing, never)


def test_a_log_that_nobody_reads_holds_up_nothing() -> None:
    reads, writes = os.pipe()
    stream = os.fdopen(writes, "w")
    root = logging.getLogger()
    before = root.handlers
    root.handlers = [logging.StreamHandler(stream)]
    journal = Journal()
    try:
        for number in range(LINES_KEPT + 5_000):  # far more than a pipe holds
            root.warning("line %d %s", number, "x" * 100)
        journal.close()
    finally:
        root.handlers = before
    said = bytearray()

    def read() -> None:
        while part := os.read(reads, 65_536):
            said.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    writing = journal._listener._thread
    if writing is not None:
        writing.join(GUARD)
    stream.close()
    reader.join(GUARD)
    os.close(reads)
    assert said.startswith(b"line 0 ")
    assert b"line 14999 " not in said
