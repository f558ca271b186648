"""What arrives on a line: bodies that are no message, too large or too slow, and what is no HTTP at all."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

OPEN = '[agents.solo]\nprofile = "solo"\n'

DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001
BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 400),
    "no JSON": (b"{", 400),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400),
    "a number": (b"1", 400),
    "null": (b"null", 400),
    "no method": (b'{"jsonrpc":"2.0","id":1}', 400),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400),
    "an id that is none": (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', 400),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400),
    "params that are none": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', 400),
    "too deep": (DEEP, 400),
    "a digit too many": (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', 400),
    "NUL bytes": (b"\0" * 64, 400),
    "UTF-16": ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), 400),
    "compressed, says nobody": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", 400),
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("newer", [True, False])
def test_a_body_that_is_no_message_is_refused_and_opens_nothing(
    desk: HttpDesk, what: str, newer: bool
) -> None:
    """P183."""
    content, status = BODIES[what]
    headers = {"Content-Type": "application/json"} | ({"MCP-Protocol-Version": "2026-07-28"} if newer else {})
    with desk.raw("trader") as http:
        found = http.post("/mcp", content=content, headers=headers)
        assert found.status_code == status, found.text
        assert "mcp-session-id" not in found.headers
        desk.refused(found, 400, "malformed")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_is_refused(desk: HttpDesk, content_type: str | None) -> None:
    """P183."""
    session = desk.initialize("trader")
    headers = {"Mcp-Session-Id": session} | ({"Content-Type": content_type} if content_type else {})
    with desk.raw("trader") as http:
        assert (
            400 <= http.post("/mcp", content=json.dumps(desk.rpc("ping")), headers=headers).status_code < 500
        )


SIZES = "[http]\nmax_body_bytes = 2000\n"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("path", ["/mcp", "/messages/"])
def test_a_body_over_the_cap_is_refused_whether_its_length_is_told_or_not(
    start_desk: StartDesk, path: str, told: bool
) -> None:
    """P183."""
    desk = start_desk(OPEN + SIZES)

    def chunks() -> Any:
        for _ in range(300):
            yield b"x" * 10

    with desk.raw() as http:
        content = b"x" * 3_000 if told else chunks()
        found = desk.refused(http.post(path, content=content), 413, "body_too_large")
        assert "max_body_bytes" in found["hint"]
        assert http.get("/healthz").status_code == 200


def test_a_huge_length_that_is_only_told_is_refused_before_a_byte_is_read(desk: HttpDesk) -> None:
    """P183."""
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {desk.bearer('trader')['Authorization']}\r\n"
    with socket.create_connection(("127.0.0.1", desk.port), 60) as line:
        line.sendall((head + f"Content-Length: {10**15}\r\n\r\n").encode())
        assert b"413" in line.recv(100)


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /mcp HTTP/9.9\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    ],
    ids=range(7),
)
def test_what_is_no_http_hurts_nobody(desk: HttpDesk, raw: bytes) -> None:
    """P183."""
    with socket.create_connection(("127.0.0.1", desk.port), 60) as line:
        answer = b""
        with suppress(OSError):  # it may hang up before it was told everything
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            answer = line.recv(100)
    assert answer == b"" or b" 4" in answer[:14]
    with desk.raw() as http:
        assert http.get("/healthz").status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said", [b"", b"POST /mcp HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /h"]
)
async def test_a_line_that_never_finishes_a_request_is_closed(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    import asyncio

    import uvicorn

    from server.http import lines

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    monkeypatch.setattr(lines, "HEAD_SECONDS", 0.05)
    config = uvicorn.Config(app, http=lines.PatientProtocol, lifespan="off", log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    state = uvicorn.server.ServerState()
    listener = await loop.create_server(
        lambda: lines.PatientProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with listener:
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(said)
        answer = await asyncio.wait_for(reader.read(), 60)  # to the end that the server makes
        assert answer.startswith(b"HTTP/1.1 204") is said.startswith(b"GET")
        writer.close()
        await writer.wait_closed()


def test_a_websocket_is_not_served(desk: HttpDesk) -> None:
    ask = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "eA==",
    }
    with desk.raw("trader", **ask) as http:
        assert 400 <= http.get("/mcp").status_code < 500
