"""Many servers on one root, and one root for many installations."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

if TYPE_CHECKING:
    from conftest import Look, Server, StartServer

pytestmark = pytest.mark.faults

IDLE, BUSY = 25, 5
START_BOUND = 2.0
"""Seconds that the handed case allows to shake hands, and to write first."""


def test_a_thirty_first_server_starts_and_writes_beside_thirty_others(
    start_server: StartServer, look: Look, ledger: Path
) -> None:
    """P007."""
    began = time.monotonic()
    start_server().open()
    alone = time.monotonic() - began  # what a start takes on this machine, with whatever else it does now
    servers: list[Server] = [start_server() for _ in range(IDLE + BUSY)]
    for number, server in enumerate(servers):
        server.open()
        if number % 2:  # half of the idle ones have the ledger open, half have only shaken hands
            assert not server.call("get_memory_state").is_error
    busy = servers[IDLE:]

    outside = apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READWRITE)
    outside.execute("BEGIN IMMEDIATE; ROLLBACK")  # at once: no idle server holds a transaction
    busy_pages, logged, moved = outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy_pages, logged, moved) == (0, 0, 0)  # no idle server holds a snapshot either
    outside.close()

    asked = {
        server: [server.begin("remember", text=f"busy {n} writes {m}") for m in range(40)]
        for n, server in enumerate(busy)
    }
    began = time.monotonic()
    last = start_server().open()
    shaken = time.monotonic() - began
    first = last.call("remember", text="the thirty-first")
    assert not first.is_error
    assert shaken < START_BOUND + alone
    assert first.seconds < START_BOUND
    for server, requests in asked.items():
        assert not any(server.result(request).is_error for request in requests)
    assert len(look.texts()) == BUSY * 40 + 1
    look.assert_sound()
    for server in (*servers, last):
        server.close_input()
    assert [server.wait() for server in (*servers, last)] == [0] * (IDLE + BUSY + 1)
    look.assert_sound()


def test_another_installation_in_another_folder_finds_what_the_first_one_stored(
    start_server: StartServer, tmp_path: Path
) -> None:
    """P012: two environments, two working directories, one user's folder for data."""
    home = {"XDG_DATA_HOME": str(tmp_path / "share"), "HOME": str(tmp_path / "home")}
    places = []
    for name in ("first", "second"):
        venv = tmp_path / name / "venv"
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(venv)], check=True
        )
        packages = next(venv.glob("lib/python*/site-packages"))
        (packages / "outer.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
        places.append((str(venv / "bin" / "python"), str(tmp_path / name)))

    interpreter, cwd = places[0]
    first = start_server(rooted=False, environ=home, interpreter=interpreter, cwd=cwd).open()
    first.remember("stored by the first installation")
    assert first.end() == 0
    before = set((tmp_path / "first").rglob("memory.sqlite*"))
    assert before == set()
    subprocess.run(["rm", "-rf", str(tmp_path / "first")], check=True)

    interpreter, cwd = places[1]
    second = start_server(rooted=False, environ=home, interpreter=interpreter, cwd=cwd).open()
    found = second.call("search_memory", query="installation").body
    assert [hit["text"] for hit in found["hits"]] == ["stored by the first installation"]
    kept = list((tmp_path / "share").rglob("memory.sqlite"))
    assert kept == [tmp_path / "share" / "deskbook" / "default" / "memory.sqlite"]
