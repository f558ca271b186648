"""How an HTTP server ends, and what becomes of clients that leave in the middle."""

from __future__ import annotations

import json
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

GUARD = 60.0
# A key that belongs to no certificate here.
FOREIGN_KEY = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    .decode()
)
WRITES: dict[str, dict[str, Any]] = {
    "remember": {"text": "kept"},
    "remember_proposal": {"text": "kept"},
    "remember_risk_note": {"text": "kept"},
    "remember_lesson": {"text": "kept"},
    "remember_decision": {"text": "kept", "action": "hold"},
    "open_thesis": {"text": "kept"},
}


def sent_by_hand(desk: HttpDesk, agent: str, body: dict[str, Any], headers: dict[str, str]) -> bytes:
    """A whole request as it goes over the line."""
    content = json.dumps(body).encode()
    lines = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Content-Length": str(len(content)),
        **desk.bearer(agent),
        **headers,
    }
    head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return head.encode() + b"\r\n" + content


def texts(desk: HttpDesk) -> list[str]:
    return [json.loads(entry.content)["text"] for entry in desk.entries("memory.recorded")]


def event(lines: Iterator[str], request_id: Any) -> dict[str, Any]:
    """The answer to a request, out of a stream of events."""
    for line in lines:
        if line.startswith("data: {") and json.loads(line[6:]).get("id") == request_id:
            return dict(json.loads(line[6:]))
    raise AssertionError("the stream ended without the answer")


def remember(desk: HttpDesk, request_id: Any, text: str, **more: Any) -> dict[str, Any]:
    return desk.rpc("tools/call", request_id, name="remember", arguments={"text": text, **more})


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_stream_and_the_process_with_code_0(start_desk: StartDesk, signum: int) -> None:
    desk = start_desk()
    session = desk.initialize("trader")
    listen, headers = desk.modern(
        "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://state"]}
    )
    with (
        desk.raw("trader") as http,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as standing,
        http.stream("GET", "/sse") as legacy,
        http.stream("POST", "/mcp", json=listen, headers=headers) as listening,
    ):
        lines = listening.iter_lines()
        while "acknowledged" not in next(lines):
            pass
        desk.process.send_signal(signum)
        assert "result" in event(lines, listen["id"])  # told that it ended, not cut off
        for stream in (standing, legacy):
            for _ in stream.iter_raw():
                pass
    assert desk.process.wait(GUARD) == 0
    assert "Traceback" not in desk.log()


def test_a_write_in_an_older_session_is_answered_before_the_end(
    start_desk: StartDesk, held_ledger: Any
) -> None:
    desk = start_desk()
    session = {"Mcp-Session-Id": desk.initialize("trader")}
    with desk.raw("trader") as http:
        assert desk.answer(http.post("/mcp", json=remember(desk, 1, "first"), headers=session))["result"]
        with held_ledger(desk.root):
            stream = http.stream("POST", "/mcp", json=remember(desk, 2, "second"), headers=session)
            answer = stream.__enter__()  # the head comes when the call has begun
            desk.process.send_signal(signal.SIGTERM)
            desk.wait_for_log("ending; calls in flight")
            desk.refused(http.post("/mcp", json=remember(desk, 3, "third"), headers=session), 503, "ending")
        assert not event(answer.iter_lines(), 2)["result"]["isError"]
        stream.__exit__(None, None, None)
    assert desk.process.wait(GUARD) == 0
    assert texts(desk) == ["first", "second"]


def test_a_write_without_a_session_is_answered_before_the_end(
    start_desk: StartDesk, held_ledger: Any
) -> None:
    desk = start_desk()
    body, headers = desk.modern("tools/call", name="remember", arguments={"text": "first"})
    with desk.raw("trader") as http:
        assert desk.answer(http.post("/mcp", json=body, headers=headers))["result"]
        with held_ledger(desk.root), socket.create_connection(("127.0.0.1", desk.port), GUARD) as line:
            body, headers = desk.modern("tools/call", name="remember", arguments={"text": "second"})
            line.sendall(sent_by_hand(desk, "trader", body, headers))
            listed, headers = desk.modern("tools/list")
            assert http.post("/mcp", json=listed, headers=headers).status_code == 200
            desk.process.send_signal(signal.SIGTERM)
            desk.wait_for_log("ending; calls in flight")
            line.settimeout(GUARD)
            kept = line.dup()
        answer = b""
        while part := kept.recv(65_536):
            answer += part
        kept.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert desk.process.wait(GUARD) == 0
    assert texts(desk) == ["first", "second"]


def test_a_write_on_the_legacy_stream_is_answered_before_the_end(
    start_desk: StartDesk, held_ledger: Any
) -> None:
    desk = start_desk()
    initialize = desk.rpc(
        "initialize",
        1,
        protocolVersion="2024-11-05",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )
    with desk.raw("trader") as http, http.stream("GET", "/sse") as stream:
        lines = stream.iter_lines()
        path = next(line for line in lines if line.startswith("data: "))[6:]
        http.post(path, json=initialize)
        assert event(lines, 1)["result"]["protocolVersion"] == "2024-11-05"
        http.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        http.post(path, json=remember(desk, 2, "first"))
        assert not event(lines, 2)["result"]["isError"]
        with held_ledger(desk.root):
            assert http.post(path, json=remember(desk, 3, "second")).status_code == 202
            desk.process.send_signal(signal.SIGTERM)
            desk.wait_for_log("ending; calls in flight")
            desk.refused(http.post(path, json=remember(desk, 4, "third")), 503, "ending")
        assert not event(lines, 3)["result"]["isError"]
        for _ in lines:  # and then the stream ends
            pass
    assert desk.process.wait(GUARD) == 0
    assert texts(desk) == ["first", "second"]


def test_a_stream_that_is_listened_on_over_the_legacy_pair_is_told_that_it_ends(
    start_desk: StartDesk,
) -> None:
    desk = start_desk()
    with desk.raw("trader") as http, http.stream("GET", "/sse") as stream:
        lines = stream.iter_lines()
        path = next(line for line in lines if line.startswith("data: "))[6:]
        listen, _ = desk.modern(
            "subscriptions/listen", 7, notifications={"resourceSubscriptions": ["memory://state"]}
        )
        assert http.post(path, json=listen).status_code == 202
        while "acknowledged" not in next(lines):
            pass
        desk.process.send_signal(signal.SIGTERM)
        assert "result" in event(lines, 7)
    assert desk.process.wait(GUARD) == 0
    assert "every ledger is closed" in desk.log()


def test_a_client_that_reads_nothing_does_not_hold_up_the_end(
    start_desk: StartDesk, held_ledger: Any
) -> None:
    desk = start_desk()
    session = {"Mcp-Session-Id": desk.initialize("trader")}
    with desk.raw("trader") as http:
        desk.answer(http.post("/mcp", json=remember(desk, 1, "first"), headers=session))
    with held_ledger(desk.root), socket.create_connection(("127.0.0.1", desk.port), GUARD) as line:
        line.sendall(sent_by_hand(desk, "trader", remember(desk, 2, "second"), session))
        desk.process.send_signal(signal.SIGTERM)
        assert desk.process.wait(GUARD) == 0  # though its call never came to its turn


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_clients_that_close_their_line_in_the_middle_hurt_nobody(desk: HttpDesk, era: str) -> None:
    """P177: after the head, within the body, before the answer, 200 times; stored once at most, found by its key."""
    session = {"Mcp-Session-Id": desk.initialize("trader")} if era == "legacy" else {}
    healthy = {"Mcp-Session-Id": desk.initialize("researcher")}
    for number in range(200):
        arguments = {"text": f"{era} {number}", "idempotency_key": f"{era}-{number}"}
        body, headers = desk.modern("tools/call", number, name="remember", arguments=arguments)
        if era == "legacy":
            body, headers = desk.rpc("tools/call", number, name="remember", arguments=arguments), session
        whole = sent_by_hand(desk, "trader", body, headers)
        head_ends = whole.index(b"\r\n\r\n") + 4
        cut = (head_ends, head_ends + 40, len(whole))[number % 3]
        with socket.create_connection(("127.0.0.1", desk.port), GUARD) as line:
            line.sendall(whole[:cut])
    with desk.raw("researcher") as http:
        assert (
            "tools" in desk.answer(http.post("/mcp", json=desk.rpc("tools/list"), headers=healthy))["result"]
        )
    again = {"text": f"{era} 2", "idempotency_key": f"{era}-2"}  # one whose request had arrived whole
    body, headers = desk.modern("tools/call", name="remember", arguments=again)
    with desk.raw("trader") as http:
        told = json.loads(
            desk.answer(http.post("/mcp", json=body, headers=headers))["result"]["content"][0]["text"]
        )
    stored = [text for text in texts(desk) if text.startswith(era)]
    assert len(stored) == len(set(stored))
    assert f"{era} 2" in stored
    assert told["id"]
    assert "Traceback" not in desk.log()


@pytest.mark.parametrize("tool", WRITES)
def test_a_call_whose_answer_was_lost_can_be_sent_again(desk: HttpDesk, tool: str) -> None:
    """P181: the same key gives the first answer, with other arguments a conflict; an error says what is stored."""
    key = {"idempotency_key": f"key of {tool}"}

    def call(**arguments: Any) -> dict[str, Any]:
        body, headers = desk.modern("tools/call", name=tool, arguments=arguments)
        with desk.raw("trader") as http:
            result = desk.answer(http.post("/mcp", json=body, headers=headers))["result"]
        return dict(json.loads(result["content"][0]["text"]))

    body, headers = desk.modern("tools/call", name=tool, arguments={**WRITES[tool], **key})
    with socket.create_connection(("127.0.0.1", desk.port), GUARD) as line:
        line.sendall(sent_by_hand(desk, "trader", body, headers))
        assert (
            line.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
        )  # committed, and the rest is never read
    first, again = call(**WRITES[tool], **key), call(**WRITES[tool], **key)
    assert first == again
    other = call(**{**WRITES[tool], "text": "another"}, **key)
    assert (other["code"], other["stored"]) == ("idempotency_conflict", "no")
    assert call(**WRITES[tool])["id"] != first["id"] or first["warnings"] is not None


def test_standing_streams_are_kept_alive_and_told_not_to_be_buffered(desk: HttpDesk) -> None:
    """P179: as heads say; that a comment comes within 30 s is the transports' own interval, read here."""
    from mcp.server import _streamable_http_modern as newer
    from sse_starlette.sse import EventSourceResponse

    assert EventSourceResponse.DEFAULT_PING_INTERVAL < 30
    assert newer._SSE_PING_INTERVAL < 30
    session = desk.initialize("trader")
    listen, headers = desk.modern(
        "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://state"]}
    )
    with (
        desk.raw("trader") as http,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as standing,
        http.stream("GET", "/sse") as legacy,
        http.stream("POST", "/mcp", json=listen, headers=headers) as listening,
    ):
        for stream in (standing, legacy, listening):
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["x-accel-buffering"] == "no"
            assert "no-" in stream.headers["cache-control"]


@pytest.mark.faults
def test_an_idle_stream_hears_something_before_a_proxy_would_cut_it(desk: HttpDesk) -> None:
    """P179: each kind of stream, idle, is sent a comment within 30 s."""
    session = desk.initialize("trader")
    listen, headers = desk.modern(
        "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://state"]}
    )
    with (
        httpx2.Client(
            base_url=desk.url, headers={"Accept": "*/*", **desk.bearer("trader")}, timeout=30
        ) as http,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as standing,
        http.stream("GET", "/sse") as legacy,
        http.stream("POST", "/mcp", json=listen, headers=headers) as listening,
    ):
        for stream in (standing, legacy, listening):
            assert next(line for line in stream.iter_lines() if line.startswith(":"))


def test_a_server_with_a_certificate_speaks_tls(
    start_desk: StartDesk, tmp_path: Path, certificate: Path
) -> None:
    config = '[agents.solo]\nprofile = "solo"\n[http]\ntls_cert = "desk.pem"\ntls_key = "desk.key"\n'
    desk = start_desk(config)
    assert desk.url.startswith("https://127.0.0.1")
    body, headers = desk.modern("tools/list")
    trusting = ssl.create_default_context(cafile=str(certificate))
    with httpx2.Client(base_url=desk.url, verify=trusting, headers={"Accept": "*/*"}) as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("spoil", ["missing", "swapped", "foreign", "no PEM"])
def test_files_that_are_no_certificate_and_key_are_named(
    start_desk: StartDesk, tmp_path: Path, certificate: Path, spoil: str
) -> None:
    cert, key = certificate, certificate.with_suffix(".key")
    if spoil == "missing":
        cert.unlink()
    elif spoil == "swapped":
        cert, key = key, cert
    elif spoil == "foreign":
        key.write_text(FOREIGN_KEY)
    else:
        cert.write_text("no PEM")
    desk = start_desk(f'[agents.solo]\nprofile = "solo"\n[http]\ntls_cert = "{cert}"\ntls_key = "{key}"\n')
    assert desk.process.wait(GUARD) == 2
    assert str(cert) in desk.log()
    assert "Traceback" not in desk.log()


def test_half_a_certificate_is_refused(start_desk: StartDesk) -> None:
    desk = start_desk('[agents.solo]\nprofile = "solo"\n[http]\ntls_cert = "desk.pem"\n')
    assert desk.process.wait(GUARD) == 2
    assert "http.tls_key" in desk.log()
