"""An endpoint that answers what is no vector, refuses, hangs or cannot be reached."""

from __future__ import annotations

import base64
import math
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.embedding import endpoint as module
from store.embedding.endpoint import KEY_VARIABLE, Endpoint
from store.errors import EmbeddingFailed

Failure = Callable[..., EmbeddingFailed]
MakeCertificate = Callable[..., tuple[Path, Path]]


def vectors(*given: Any) -> Callable[[list[str]], Any]:
    """An answer of these vectors, whatever was asked."""
    return lambda texts: {"data": [{"index": at, "embedding": each} for at, each in enumerate(given)]}


def b64(*values: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (vectors(), "0 vectors to 1 texts"),
        (vectors([1.0], [2.0]), "2 vectors to 1 texts"),
        (vectors([math.nan, 1.0]), "not finite"),
        (vectors([1.0, -math.inf]), "not finite"),
        (vectors(b64(1, math.nan)), "not finite"),
        (vectors(base64.b64encode(b"\x01\x00\xa0\x7f").decode()), "not finite"),
        (vectors([0.0, 0, -0.0]), "zeros"),
        (vectors(b64(0, 0)), "zeros"),
        (vectors([]), "no list of numbers"),
        (vectors([1.0] * 8_193), "vectors of 8,193 numbers"),
        (vectors(""), "no list of numbers"),
        (vectors([[1.0]]), "no list of numbers"),
        (vectors([1.0, [1.0]]), "no list of numbers"),
        (vectors([1.0, None]), "no list of numbers"),
        (vectors(["1.0"]), "no list of numbers"),
        (vectors([True]), "no list of numbers"),
        (vectors([10**400]), "no list of numbers"),
        (vectors(None), "no list of numbers"),
        (vectors({"a": 1}), "no list of numbers"),
        (vectors("!!!!"), "no list of numbers"),
        (vectors("AAAA"), "no list of numbers"),
        (vectors("é"), "no list of numbers"),
        (lambda texts: {"data": [{"index": 1, "embedding": [1.0]}]}, "which vector is whose"),
        (lambda texts: {"data": [{"index": False, "embedding": [1.0]}]}, "which vector is whose"),
        (lambda texts: {"data": [{"index": "0", "embedding": [1.0]}]}, "which vector is whose"),
        (lambda texts: {"data": [{"index": 0}]}, "no list of vectors"),
        (lambda texts: {"data": [[1.0]]}, "no list of vectors"),
        (lambda texts: {"data": None}, "no list of vectors"),
        (lambda texts: {"error": {"message": f"sk-secret-0123456789 {texts}"}}, "no list of vectors"),
        (lambda texts: [], "no list of vectors"),
        (lambda texts: None, "no list of vectors"),
    ],
)
def test_a_reply_without_the_right_vectors(
    service: Any, endpoint: Endpoint, answer: Callable[[list[str]], Any], said: str, failure: Failure
) -> None:
    service.answer = answer
    fault = failure(endpoint)
    assert said in fault.message
    assert not fault.retryable
    service.answer = service.listed
    assert endpoint.embed(["a"]).shape == (1, 4)  # nothing of the wrong reply is remembered


def test_one_index_twice(service: Any, endpoint: Endpoint, failure: Failure) -> None:
    service.answer = lambda texts: {"data": [{"index": 0, "embedding": [1.0]}] * 2}
    assert "which vector is whose" in failure(endpoint, "a", "b").message


def test_vectors_of_two_sizes_in_one_reply(service: Any, endpoint: Endpoint, failure: Failure) -> None:
    service.answer = vectors([1.0], [1.0, 2.0])
    assert "different sizes" in failure(endpoint, "a", "b").message


def test_another_size_than_before(service: Any, endpoint: Endpoint, failure: Failure) -> None:
    endpoint.embed(["a"])
    service.answer = vectors([1.0] * 5)
    fault = failure(endpoint)
    assert "5 numbers, and of 4 before" in fault.message
    assert not fault.retryable
    service.answer = service.listed
    endpoint.embed(["a"])


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{", b"\xff\xfe", b"[" * 100_000, b'{"data":' + b"9" * 5_000]
)
def test_a_reply_that_is_no_json(service: Any, endpoint: Endpoint, body: bytes, failure: Failure) -> None:
    service.reply = service.answering(200, body)
    assert "no list of vectors" in failure(endpoint).message


@pytest.mark.parametrize("announced", [True, False])
def test_a_reply_that_is_too_large_is_not_read_to_its_end(
    service: Any, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, announced: bool, failure: Failure
) -> None:
    monkeypatch.setattr(module, "REPLY_BYTES", 100_000)
    length = {"Content-Length": "100001"} if announced else {"Transfer-Encoding": "chunked"}

    def reply(handler: Any, made: bytes) -> None:
        handler.send_response(200)
        handler.send_header(*next(iter(length.items())))
        handler.end_headers()
        piece = b" " * 100_001
        handler.wfile.write(piece if announced else b"%x\r\n%b\r\n" % (len(piece), piece))
        service.released.wait(30)  # the chunked reply never ends

    service.reply = reply
    fault = failure(endpoint)
    assert "more than 64 MiB" in fault.message
    assert not fault.retryable


def test_the_largest_reply_is_64_mib() -> None:
    assert module.REPLY_BYTES == 64 * 2**20


@pytest.mark.parametrize(
    ("status", "retryable", "said", "hint"),
    [
        (400, False, "does not take the request", "embedding.model"),
        (401, False, "asks for a key", f"Set {KEY_VARIABLE}"),
        (403, False, "does not allow", f"Set {KEY_VARIABLE}"),
        (404, False, "no such address or model", "before /embeddings"),
        (408, True, "waited too long", "Try again"),
        (413, False, "too large", "256 KiB"),
        (418, False, "refuses the request", "embedding.url"),
        (429, True, "too often", "quota"),
        (500, True, "failed", "Try again"),
        (503, True, "failed", "Try again"),
        (529, True, "failed", "Try again"),
    ],
)
def test_a_refusal(
    service: Any, endpoint: Endpoint, status: int, retryable: bool, said: str, hint: str, failure: Failure
) -> None:
    service.reply = service.answering(status, f"Incorrect key {service.key} for {service.text}".encode())
    fault = failure(endpoint)
    assert said in fault.message
    assert f"({status})" in fault.message
    assert hint in str(fault.hint)
    assert fault.retryable is retryable
    assert len(service.asked) == 1  # asked once


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(
    service: Any, endpoint: Endpoint, start_service: Callable[..., Any], status: int, failure: Failure
) -> None:
    other = start_service()
    service.reply = service.answering(status, b"", Location=f"{other.url}/embeddings?hush")
    fault = failure(endpoint)
    assert "redirect" in fault.message
    assert not fault.retryable
    assert other.asked == []


def test_after_a_failure_the_next_request_is_served(
    service: Any, endpoint: Endpoint, failure: Failure
) -> None:
    for status in (500, 401, 302):
        service.reply = service.answering(status, b"x" * 70_000)
        failure(endpoint)
    service.reply = service.answering(200)
    assert endpoint.embed(["a"]).shape == (1, 4)


def silent(handler: Any, made: bytes) -> None:
    handler.server.released.wait(30)


def dribbled(handler: Any, made: bytes, head: bytes) -> None:
    handler.wfile.write(head)
    while not handler.server.released.wait(0.05):
        handler.wfile.write(b" ")


@pytest.mark.parametrize(
    "reply",
    [
        silent,
        lambda handler, made: dribbled(handler, made, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        lambda handler, made: dribbled(handler, made, b"HTTP/1.1 200 OK\r\nX: "),
    ],
    ids=["nothing", "body", "head"],
)
def test_a_server_that_hangs_is_left_in_time(
    service: Any, connect: Callable[..., Endpoint], reply: Callable[[Any, bytes], None], failure: Failure
) -> None:
    service.reply = reply
    fault = failure(connect(service.url, timeout=0.3))
    assert "did not answer within 0.3 s" in fault.message
    assert fault.retryable


def test_a_server_that_does_not_even_shake_hands(connect: Callable[..., Endpoint], failure: Failure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fault = failure(connect(f"https://127.0.0.1:{listening.getsockname()[1]}", timeout=0.3))
    assert "did not answer" in fault.message


def test_a_refused_connection(connect: Callable[..., Endpoint], failure: Failure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    fault = failure(connect(f"http://127.0.0.1:{port}"))
    assert "cannot be reached" in fault.message
    assert fault.retryable


def test_a_name_that_leads_nowhere(
    connect: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch, failure: Failure
) -> None:
    def nowhere(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert failure(connect("https://nowhere.example")).retryable


def test_a_name_that_is_none(connect: Callable[..., Endpoint], failure: Failure) -> None:
    assert "cannot be reached" in failure(connect(f"https://{'a' * 64}.example")).message


@pytest.mark.parametrize(
    "sent", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_connection_that_breaks_off(
    service: Any, endpoint: Endpoint, sent: bytes, failure: Failure
) -> None:
    def reply(handler: Any, made: bytes) -> None:
        handler.wfile.write(sent)
        handler.close_connection = True

    service.reply = reply
    fault = failure(endpoint)
    assert "broke off" in fault.message
    assert fault.retryable


def test_a_connection_that_idled_out_is_made_anew(service: Any, endpoint: Endpoint) -> None:
    service.reply = lambda handler, made: (
        service.answering(200)(handler, made),
        setattr(handler, "close_connection", True),
    )[0]
    for _ in range(3):
        endpoint.embed(["a"])
        deadline = time.monotonic() + 10
        while not idle_end(endpoint) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(service.clients) == 3


def idle_end(endpoint: Endpoint) -> bool:
    """Whether the server's end of the idle connection has arrived."""
    assert endpoint._pool is not None
    return all(connection.has_expired() for connection in endpoint._pool.connections)


def test_https_with_a_trusted_certificate(
    start_service: Callable[..., Any],
    connect: Callable[..., Endpoint],
    make_certificate: MakeCertificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = make_certificate()
    monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
    service = start_service(files)
    assert connect(service.url).embed(["a", "b"]).shape == (2, 4)
    assert service.headers[0]["authorization"] == f"Bearer {service.key}"


@pytest.mark.parametrize(
    ("made", "trusted"), [({}, False), ({"address": "127.0.0.2"}, True), ({"days": -1}, True)]
)
def test_https_with_a_certificate_that_will_not_do(
    start_service: Callable[..., Any],
    connect: Callable[..., Endpoint],
    make_certificate: MakeCertificate,
    monkeypatch: pytest.MonkeyPatch,
    made: dict[str, Any],
    trusted: bool,
    failure: Failure,
) -> None:
    files = make_certificate(**made)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
    service = start_service(files)
    fault = failure(connect(service.url))
    assert "certificate" in fault.message
    assert "SSL_CERT_FILE" in str(fault.hint)
    assert service.asked == []


def test_https_to_a_server_of_plain_http(
    service: Any, connect: Callable[..., Endpoint], failure: Failure
) -> None:
    assert "cannot be reached" in failure(connect(service.url.replace("http:", "https:"))).message
    assert service.asked == []
