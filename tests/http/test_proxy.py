"""The server behind nginx, with the very configuration that docs/http.md shows."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

ROOT = Path(__file__).resolve().parents[2]
GUARD = 60.0
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CONFIG = '[agents.trader]\nprofile = "trader"\ntoken_env = "TRADER_TOKEN"\n[http]\nallowed_hosts = ["desk.example"]\n'
WHOLE = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""

pytestmark = pytest.mark.interop


@pytest.fixture
def proxied(start_desk: StartDesk, tmp_path: Path, certificate: Path) -> Iterator[tuple[HttpDesk, str]]:
    """A server behind the documented proxy, and the proxy's address."""
    desk = start_desk(CONFIG)
    (server,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "http.md").read_text(), re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for shown, meant in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/desk.pem", str(certificate)),
        ("/etc/ssl/desk.key", str(certificate.with_suffix(".key"))),
        ("http://127.0.0.1:8765", desk.url),
    ):
        assert shown in server
        server = server.replace(shown, meant)
    (tmp_path / "nginx.conf").write_text(WHOLE.format(folder=tmp_path, server=server))
    assert NGINX is not None, "install nginx (Debian: nginx-light)"
    command = [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True, capture_output=True, timeout=GUARD)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as nginx:
        try:
            yield desk, f"https://127.0.0.1:{port}"
        finally:
            nginx.terminate()
            nginx.wait(GUARD)


@pytest.mark.anyio
async def test_calls_and_streams_go_through_the_documented_proxy(proxied: tuple[HttpDesk, str]) -> None:
    """P171 and P179: by the name it goes by; a stream's first event comes through at once, unbuffered."""
    desk, address = proxied
    sent = {"Accept": "application/json, text/event-stream", "Host": "desk.example", **desk.bearer("trader")}
    async with httpx2.AsyncClient(base_url=address, verify=False, headers=sent, timeout=GUARD) as http:
        with anyio.fail_after(GUARD):
            body, headers = desk.modern("tools/call", name="remember", arguments={"text": "through a proxy"})
            while True:
                try:
                    answer = await http.post("/mcp", json=body, headers=headers)
                    break
                except httpx2.ConnectError:  # the proxy is not up yet
                    await anyio.sleep(0.05)
            assert "result" in desk.answer(answer)
            listen, headers = desk.modern(
                "subscriptions/listen", notifications={"resourceSubscriptions": ["memory://state"]}
            )
            async with http.stream("POST", "/mcp", json=listen, headers=headers) as stream:
                lines = stream.aiter_lines()
                while "acknowledged" not in await anext(lines):
                    pass
            async with http.stream("GET", "/sse") as stream:
                lines = stream.aiter_lines()
                while "session_id=" not in await anext(lines):
                    pass
        refused = await http.post("/mcp", json=body, headers={**headers, "Host": "other.example"})
        desk.refused(refused, 421, "host_refused")
