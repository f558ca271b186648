"""What is refused before it is a call: hosts, origins, paths, tokens and bodies. Each body says what to do."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

PATHS = ("/mcp", "/sse", "/messages/")
OPEN = '[agents.solo]\nprofile = "solo"\n'


def method_of(path: str) -> str:
    return "GET" if path == "/sse" else "POST"


def bound_addresses(port: int) -> set[str]:
    """The addresses that listen on a port, as the kernel tells (hex, host order)."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, number = local.partition(":")
            if state == "0A" and int(number, 16) == port:
                found.add(address)
    return found


def test_by_default_only_this_machine_is_listened_to(desk: HttpDesk) -> None:
    """P185."""
    assert bound_addresses(desk.port) == {"0100007F"}


def test_health_tells_everybody_that_all_is_well_and_nothing_else(desk: HttpDesk) -> None:
    """P185."""
    with desk.raw() as http:
        found = http.get("/healthz")
        assert found.json() == {"status": "ok", "degraded": []}
        assert "server" not in found.headers
        assert http.head("/healthz").content == b""
        desk.refused(http.post("/healthz"), 405, "method_refused")


@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/none"])
def test_a_host_that_the_server_does_not_go_by_is_named_with_the_option_to_set(
    desk: HttpDesk, path: str
) -> None:
    """P171."""
    with desk.raw("trader", Host="mem.example.test") as http:
        told = desk.refused(http.request(method_of(path), path), 421, "host_refused")
    assert "mem.example.test" in told["message"]
    assert "[http] allowed_hosts" in told["hint"]


@pytest.mark.parametrize(
    ("allowed", "sent", "served"),
    [
        ("mem.example.test", "mem.example.test", True),
        ("mem.example.test", "mem.example.test:8443", True),
        ("mem.example.test", "MEM.example.test.", True),
        ("mem.example.test:8443", "mem.example.test:8443", True),
        ("mem.example.test:8443", "mem.example.test", False),
        ("mem.example.test:8443", "mem.example.test:9", False),
        ("mem.example.test", "evil.mem.example.test", False),
        ("mem.example.test", "mem.example.test@evil", False),
        ("mem.example.test", "mem.example.test/evil", False),
        ("mem.example.test", "localhost", True),
        ("mem.example.test", "[::1]", True),
        ("mem.example.test", "[::1]:99", True),
        ("mem.example.test", "[::1", False),
        ("mem.example.test", "localhost:abc", False),
        ("mem.example.test", "", False),
    ],
)
def test_an_allowed_host_is_served_with_and_without_its_port(allowed: str, sent: str, served: bool) -> None:
    """P171."""
    from server.http.names import Names
    from server.http.refusals import Refused

    names = Names([allowed], [])
    scope = {"scheme": "http", "headers": [(b"host", sent.encode())]}
    if served:
        assert names.check(scope) is None
        return
    with pytest.raises(Refused) as refused:
        names.check(scope)
    assert refused.value.status == 421


def test_a_host_named_twice_or_not_at_all_is_refused() -> None:
    from server.http.names import Names
    from server.http.refusals import Refused

    names = Names([], [])
    for hosts in ([], [b"localhost", b"localhost"]):
        with pytest.raises(Refused):
            names.check({"scheme": "http", "headers": [(b"host", host) for host in hosts]})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
def test_a_page_of_another_origin_is_refused(desk: HttpDesk, path: str, origin: str) -> None:
    with desk.raw("trader", Origin=origin) as http:
        told = desk.refused(http.request(method_of(path), path), 403, "origin_refused")
    assert "[http] allowed_origins" in told["hint"]


def test_an_allowed_page_may_send_and_read(start_desk: StartDesk) -> None:
    desk = start_desk(OPEN + '[http]\nallowed_origins = ["https://desk.example"]\n')
    page = {"Origin": "https://desk.example"}
    with desk.raw(**page) as http:
        asked = http.options("/mcp", headers={"Access-Control-Request-Method": "POST"})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://desk.example"
        body, headers = desk.modern("tools/list")
        found = http.post("/mcp", json=body, headers=headers)
        assert found.status_code == 200
        assert found.headers["access-control-allow-origin"] == "https://desk.example"
        assert "Mcp-Session-Id" in found.headers["access-control-expose-headers"]


def test_an_unknown_path_says_where_mcp_is(desk: HttpDesk) -> None:
    with desk.raw("trader") as http:
        for path in ("/", "/mcp/", "/none", "/.well-known/oauth-protected-resource"):
            assert "/mcp" in desk.refused(http.get(path), 404, "not_found")["hint"]


@pytest.mark.parametrize(("path", "method"), [("/mcp", "PUT"), ("/sse", "POST"), ("/messages/", "GET")])
def test_a_wrong_method_is_told_the_right_ones(desk: HttpDesk, path: str, method: str) -> None:
    with desk.raw("trader") as http:
        found = http.request(method, path)
        desk.refused(found, 405, "method_refused")
        assert found.headers["allow"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "sent",
    [
        [],
        [""],
        ["Bearer"],
        ["Basic dHJhZGVyOnRva2Vu"],
        ["Bearer wrong"],
        ["Bearer trader-token-of-at-least-twenty-character"],
        ["Bearer trader-token-of-at-least-twenty-characters2"],
        ["Bearer trader-token-of-at-least-twenty-characters x"],
        ["Bearer trader-token-of-at-least-twenty-characters", "Bearer wrong"],
        [
            "Bearer trader-token-of-at-least-twenty-characters",
            "Bearer trader-token-of-at-least-twenty-characters",
        ],
    ],
)
def test_no_token_or_a_wrong_one_is_refused_and_never_served_as_the_launch(
    desk: HttpDesk, path: str, sent: list[str]
) -> None:
    """P156."""
    with desk.raw() as http:
        headers = [("Authorization", value) for value in sent]
        request = http.build_request(method_of(path), path, headers=[*http.headers.multi_items(), *headers])
        found = http.send(request)
    desk.refused(found, 401, "unauthorized")
    challenge = found.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="deskbook"')
    assert ("invalid_token" in challenge) is bool(sent)


def test_the_name_of_the_scheme_may_be_in_lower_case(desk: HttpDesk) -> None:
    """P156."""
    token = desk.bearer("trader")["Authorization"].removeprefix("Bearer ")
    body, headers = desk.modern("tools/list")
    with desk.raw(Authorization=f"bearer {token}") as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200


def test_a_token_in_the_address_is_no_token(desk: HttpDesk) -> None:
    token = desk.bearer("trader")["Authorization"].removeprefix("Bearer ")
    with desk.raw() as http:
        for name in ("token", "access_token", "authorization"):
            desk.refused(http.post("/mcp", params={name: token}), 401, "unauthorized")
    assert token not in desk.log()


@pytest.mark.parametrize("args", [("--host", "0.0.0.0"), ("--host", "::")])
def test_a_server_that_others_could_reach_does_not_start_without_a_token(
    start_desk: StartDesk, args: tuple[str, ...]
) -> None:
    """P156."""
    desk = start_desk(OPEN, *args)
    assert desk.process.wait(60) == 2
    assert "deskbook token new" in desk.log()


def test_a_server_that_others_could_reach_does_not_start_without_the_names_it_goes_by(
    start_desk: StartDesk,
) -> None:
    desk = start_desk(OPEN.replace("\n", '\ntoken_env = "SOLO_TOKEN"\n', 1), "--host", "0.0.0.0")
    assert desk.process.wait(60) == 2
    assert "allowed_hosts" in desk.log()


def test_a_server_that_others_can_reach_takes_its_own_names_and_this_machines(start_desk: StartDesk) -> None:
    config = '[agents.solo]\ntoken_env = "SOLO_TOKEN"\nprofile = "solo"\n[http]\nallowed_hosts = ["desk.example"]\n'
    desk = start_desk(config, "--host", "0.0.0.0")
    body, headers = desk.modern("tools/list")
    address = f"http://127.0.0.1:{desk.port}"
    with httpx2.Client(base_url=address, headers={**desk.bearer("solo"), **headers, "Accept": "*/*"}) as http:
        for host in ("desk.example", "127.0.0.1"):
            assert http.post("/mcp", json=body, headers={"Host": host}).status_code == 200
        desk.refused(http.post("/mcp", json=body, headers={"Host": "0.0.0.0"}), 421, "host_refused")


def test_an_open_server_serves_the_one_agent_it_was_started_for_and_takes_no_token(
    start_desk: StartDesk,
) -> None:
    desk = start_desk(OPEN)
    body, headers = desk.modern("tools/list")
    with desk.raw() as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200
        desk.refused(
            http.post("/mcp", json=body, headers={**headers, "Authorization": "Bearer x"}),
            401,
            "unauthorized",
        )
    assert "everybody on this machine is solo" in desk.log()


def test_a_server_of_several_agents_without_any_token_does_not_start(start_desk: StartDesk) -> None:
    desk = start_desk('[agents.a]\nprofile = "trader"\n[agents.b]\nprofile = "trader"\n')
    assert desk.process.wait(60) == 2
    assert "deskbook token new AGENT" in desk.log()


def test_a_server_started_for_one_agent_refuses_another_agents_token(start_desk: StartDesk) -> None:
    config = (
        (Path(__file__).with_name("conftest.py")).read_text().split('DESK = """', 1)[1].split('"""', 1)[0]
    )
    desk = start_desk(config, "--agent", "trader")
    body, headers = desk.modern("tools/list")
    with desk.raw("trader") as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200
    with desk.raw("researcher") as http:
        desk.refused(http.post("/mcp", json=body, headers=headers), 403, "wrong_agent")


def test_a_port_that_is_taken_is_named(start_desk: StartDesk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        desk = start_desk(OPEN, "--port", str(port))
        assert desk.process.wait(60) == 2
    assert str(port) in desk.log()
    assert "Traceback" not in desk.log()


def test_a_label_sent_twice_is_refused(desk: HttpDesk) -> None:
    body, headers = desk.modern("tools/list")
    with desk.raw("trader") as http:
        twice = [("Deskbook-Run", "a"), ("Deskbook-Run", "b")]
        request = http.build_request(
            "POST", "/mcp", json=body, headers=[*http.headers.multi_items(), *headers.items(), *twice]
        )
        desk.refused(http.send(request), 400, "bad_header")


def test_the_store_that_is_gone_is_named_by_health_and_by_nothing_more(start_desk: StartDesk) -> None:
    desk = start_desk(OPEN)
    body, headers = desk.modern("tools/call", name="remember", arguments={"text": "kept"})
    with desk.raw() as http:
        assert http.post("/mcp", json=body, headers=headers).status_code == 200
        desk.root.rename(desk.root.with_name("elsewhere"))
        found = http.get("/healthz")
    assert found.status_code == 503
    assert found.json() == {"status": "degraded", "degraded": ["store"]}
