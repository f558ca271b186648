"""A running HTTP server as doctor sees it: a real one, each refusal made for real, and servers that are none."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.doctor.calling import check_url
from server.doctor.findings import Finding
from server.doctor.web import Credential
from server.tokens import new_token, revoke, token_path

if TYPE_CHECKING:
    from conftest import Doctor, MakeCertificate, StartHttp

DAY = 86_400 * 10**6
UNKNOWN = "dbk_aaaaaaaaaaaaaaaa_" + "a" * 52


@pytest.fixture
def trader(root: Path) -> str:
    """A token of the trader."""
    return new_token(token_path(root), "trader").token


def test_a_server_is_listed_as_the_agent_of_the_token_sees_it(
    doctor: Doctor, start_http: StartHttp, desk: Path, trader: str, root: Path, contents_of: Any
) -> None:
    url = start_http(desk)
    before = contents_of(root)
    told = doctor("--url", f"{url}/mcp", "--token-env", "MINE", MINE=trader)
    assert told.code == 0, told.out
    assert [finding["check"] for finding in told.findings] == ["connect", "health", "initialize", "sees"]
    assert told.of("sees")[0]["found"].startswith("17 tools: ")
    assert "answered as trader in" in told.of("initialize")[0]["found"]
    assert trader not in told.out
    assert trader.rpartition("_")[2] not in told.out
    assert contents_of(root) == before


def test_every_401_is_explained_by_what_is_wrong_with_the_token(
    start_http: StartHttp, desk: Path, root: Path, trader: str
) -> None:
    path = token_path(root)
    nobodys = new_token(path, "analyst").token
    expired = new_token(path, "trader", lasts=DAY, now=lambda: 1e9).token
    ended = new_token(path, "trader")
    revoke(path, ids=[ended.record.id])
    url = f"{start_http(desk)}/mcp"
    cases: list[tuple[str | None, str | None, str, str]] = [
        (None, None, "no token was sent", "--token-env"),
        ("MINE", None, "MINE is not set", "Set MINE"),
        ("MINE", UNKNOWN, "MINE is refused", "deskbook token list"),
        ("MINE", nobodys, "MINE is refused", "no longer in the config"),
        ("MINE", "dbk_something-that-is-no-token", "MINE is refused", "something else than a token"),
        ("MINE", expired, "has expired", "deskbook token new"),
        ("MINE", ended.token, "was revoked", "on purpose"),
    ]
    for variable, value, found, todo in cases:
        fault = fault_of(list(check_url(url, Credential(variable, value))), "initialize")
        assert fault.found.startswith("401 ")
        assert found in fault.found
        assert todo in str(fault.next)
        assert value is None or value not in str(fault)
    seen = [finding.mark for finding in check_url(url, Credential("MINE", trader))]
    assert set(seen) == {"ok"}


def fault_of(found: list[Finding], check: str) -> Finding:
    (fault,) = [finding for finding in found if finding.mark == "FAIL"]
    assert fault.name == check, fault
    assert fault.next
    return fault


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Bearer dbk_abc", "Bearer"),
        ("two words that are long enough", "blanks"),
        ("ends-with-a-line-end-of-a-file\n", "line ends"),
        ("short", "5 characters"),
    ],
)
def test_a_variable_that_cannot_hold_a_token_is_explained_before_anything_is_sent(
    value: str, said: str
) -> None:
    (fault,) = check_url("http://127.0.0.1:9/mcp", Credential("MINE", value))
    assert (fault.name, fault.mark) == ("token", "FAIL")
    assert said in fault.found
    assert value not in fault.found


def test_a_wrong_path_a_wrong_host_name_and_a_wrong_scheme_are_explained(
    start_http: StartHttp, desk: Path, trader: str
) -> None:
    url = start_http(desk)
    port = url.rpartition(":")[2]
    token = Credential("MINE", trader)
    for path in ("", "/", "/mpc", "/mcp/", "/desk/mcp"):
        fault = fault_of(list(check_url(f"{url}{path}", token)), "initialize")
        assert fault.found.startswith("404 ")
        assert f"Use {url}/mcp:" in str(fault.next)
    fault = fault_of(list(check_url(f"{url}/sse", token)), "initialize")
    assert fault.found.startswith("405 ")
    assert f"{url}/mcp" in str(fault.next)
    fault = fault_of(list(check_url(f"http://127.1:{port}/mcp", token)), "initialize")
    assert fault.found.startswith("421 ")
    assert 'allowed_hosts = ["127.1"]' in str(fault.next)
    fault = fault_of(list(check_url(url.replace("http:", "https:") + "/mcp", token)), "tls")
    assert f"{url}/mcp" in str(fault.next)


def test_what_may_be_a_secret_in_an_address_is_not_shown(serve: Callable[..., str]) -> None:
    url = serve(answering(307, Location="/mcp?key=hunter2")).replace("://", "://me:hunter2@")
    for scheme in ("http", "https"):
        found = list(check_url(f"{url.replace('http', scheme)}/mpc?key=hunter2", Credential(None)))
        assert found[-1].mark == "FAIL"
        assert "hunter2" not in str(found)


def test_a_server_of_another_agent_is_explained(start_http: StartHttp, desk: Path, trader: str) -> None:
    url = start_http(desk, "--agent", "researcher")
    fault = fault_of(list(check_url(f"{url}/mcp", Credential("MINE", trader))), "initialize")
    assert fault.found.startswith("403 ")
    assert "another agent" in fault.found


def test_a_token_for_a_server_that_takes_none_is_explained(start_http: StartHttp, desk: Path) -> None:
    url = start_http(desk, "--agent", "trader")
    assert {finding.mark for finding in check_url(f"{url}/mcp", Credential(None))} == {"ok"}
    fault = fault_of(list(check_url(f"{url}/mcp", Credential("MINE", UNKNOWN))), "initialize")
    assert "takes no tokens" in fault.found
    assert "Authorization header away" in str(fault.next)


def test_a_server_that_is_unwell_is_told_by_its_own_word(
    start_http: StartHttp, desk: Path, trader: str, root: Path
) -> None:
    url = start_http(desk)
    root.rename(root.with_name("elsewhere"))
    found = list(check_url(f"{url}/mcp", Credential("MINE", trader)))
    (health,) = [finding for finding in found if finding.name == "health"]
    assert health.mark == "FAIL"
    assert "store" in health.found


def test_a_port_where_nobody_listens_and_a_name_that_leads_nowhere_are_explained() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        (fault,) = check_url(f"http://127.0.0.1:{port}/mcp", Credential(None))
    assert (fault.name, fault.mark) == ("connect", "FAIL")
    assert "refuses connections" in fault.found
    assert "deskbook serve" in str(fault.next)
    (fault,) = check_url("http://no-such-host.invalid/mcp", Credential(None))
    assert "leads nowhere" in fault.found


@pytest.mark.parametrize(
    ("address", "days", "trusted", "said"),
    [
        ("127.0.0.1", 1, False, "signed by itself"),
        ("127.0.0.1", -1, True, "has expired"),
        ("127.0.0.2", 1, True, "not for the name 127.0.0.1"),
    ],
)
def test_a_certificate_that_clients_refuse_is_explained(
    make_certificate: MakeCertificate,
    monkeypatch: pytest.MonkeyPatch,
    serve: Callable[..., str],
    address: str,
    days: int,
    trusted: bool,
    said: str,
) -> None:
    files = make_certificate(address, days)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
    url = serve(lambda handler: handler.send_error(500), tls=files)
    (fault,) = check_url(f"{url}/mcp", Credential(None))
    assert (fault.name, fault.mark) == ("tls", "FAIL")
    assert said in fault.found
    assert fault.next


def test_a_server_with_tls_is_called_by_https_and_explained_by_http(
    doctor: Doctor, start_http: StartHttp, desk: Path, make_certificate: MakeCertificate
) -> None:
    cert, key = make_certificate()
    desk.write_text(f'{desk.read_text()}[http]\ntls_cert = "{cert}"\ntls_key = "{key}"\n')
    url = start_http(desk, "--agent", "trader")
    told = doctor("--url", f"{url}/mcp", SSL_CERT_FILE=str(cert))
    assert told.code == 0, told.out
    fault = doctor("--url", f"{url.replace('https', 'http')}/mcp").only_fault("initialize")
    assert "speaks TLS" in fault["found"]
    assert f"{url}/mcp" in fault["next"]
    fault = doctor("--url", f"{url}/mcp").only_fault("tls")
    assert "SSL_CERT_FILE" in fault["next"]


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Runs an HTTP server that answers every request as told; gives its address."""
    running: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[Any], None], tls: tuple[Path, Path] | None = None) -> str:
        def answer_any(handler: Any) -> None:
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            answer(handler)

        answers = dict.fromkeys(("do_GET", "do_POST", "do_DELETE"), answer_any)
        handler = type("Handler", (BaseHTTPRequestHandler,), {**answers, "log_message": lambda *_: None})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def answering(status: int, body: str = "", **headers: str) -> Callable[[Any], None]:
    def answer(handler: Any) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


@pytest.mark.parametrize(
    ("status", "body", "headers", "found", "todo"),
    [
        (200, "<html>Welcome</html>", {}, "not in MCP", "/mcp"),
        (200, '{"jsonrpc": "2.0", "id": 1, "result": {}}', {}, "not in MCP", "/mcp"),
        (404, "<html>", {}, "nothing is served at the path /mcp", "proxy"),
        (405, "", {}, "takes no posted messages", "/mcp"),
        (413, "", {}, "too large", "max_body_bytes"),
        (401, "", {}, "no token was sent", "--token-env"),
        (403, "", {}, "will not serve", "does not look like Deskbook"),
        (429, "", {}, "no room", "again"),
        (501, "", {}, "no MCP server", "Check host"),
        (502, "", {}, "a proxy answers", "deskbook serve"),
        (307, "", {"Location": "https://elsewhere.example/mcp"}, "https://elsewhere.example/mcp", "itself"),
    ],
)
def test_a_server_that_is_none_of_ours_is_explained(
    serve: Callable[..., str], status: int, body: str, headers: dict[str, str], found: str, todo: str
) -> None:
    url = serve(answering(status, body, **headers))
    fault = fault_of(list(check_url(f"{url}/mcp", Credential(None))), "initialize")
    assert found in fault.found
    assert todo in str(fault.next)


def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(serve: Callable[..., str]) -> None:
    reached: list[str] = []
    other = serve(lambda handler: reached.append(handler.path) or answering(200)(handler))
    url = serve(answering(308, Location=f"{other}/mcp"))
    fault_of(list(check_url(f"{url}/mcp", Credential("MINE", UNKNOWN))), "initialize")
    assert reached == []


def test_a_port_that_speaks_no_http_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # the test is over
                    return
                with connection, suppress(OSError):
                    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
                    connection.recv(4096)

        threading.Thread(target=speak, daemon=True).start()
        found = list(check_url(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", Credential(None)))
    assert "does not speak HTTP" in fault_of(found, "initialize").found
