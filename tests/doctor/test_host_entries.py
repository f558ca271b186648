"""The entry in a host's file as doctor sees it: one that `install` wrote, and each thing that can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.doctor.entries import Looked, check_entry
from server.hosts.table import HOSTS
from server.tokens import new_token, token_path

if TYPE_CHECKING:
    from conftest import Doctor, StartHttp, Words

    from server.doctor.findings import Finding


@pytest.mark.parametrize("host", ["claude-desktop", "vscode", "codex"])
def test_an_installed_entry_is_started_as_the_host_would_and_nothing_is_changed(
    doctor: Doctor, deskbook: Words, desk: Path, host: str, home: Path, contents_of: Any, tmp_path: Path
) -> None:
    done = deskbook("install", host, "--config", str(desk), "--agent", "trader")
    assert done.returncode == 0, done.stderr
    before = contents_of(tmp_path)
    told = doctor(host)
    assert told.code == 0, told.out
    checks = [finding["check"] for finding in told.findings]
    assert checks == [
        "entry",
        "command",
        "config",
        "root",
        "ledger default",
        "start the entry",
        "sees the entry",
    ]
    assert str(home) in told.of("entry")[0]["found"]
    assert told.of("sees the entry")[0]["found"].startswith("17 tools: ")
    assert contents_of(tmp_path) == before


def test_an_entry_that_is_only_printed_is_read_where_the_person_put_it(
    doctor: Doctor, deskbook: Words, desk: Path, tmp_path: Path
) -> None:
    printed = deskbook("install", "opencode", "--print", "--config", str(desk), "--agent", "trader").stdout
    file = tmp_path / "opencode.json"
    file.write_text(printed)
    told = doctor("opencode", "--file", str(file))
    assert told.code == 0, told.out
    assert told.of("sees the entry")


@pytest.fixture
def look(tmp_path: Path, home: Path) -> Callable[..., list[Finding]]:
    """Looks at an entry of Cursor, or of another host, that reads so."""

    def run(entry: Any, host: str = "cursor", variable: str | None = None, **environ: str) -> list[Finding]:
        file = tmp_path / "host.json"
        table: Any = entry
        for name in reversed((*HOSTS[host].path, "deskbook")):
            table = {name: table}
        file.write_text(json.dumps(table))
        looked = Looked(HOSTS[host], "deskbook", file, variable)
        return list(check_entry(looked, {"HOME": str(home), **environ}))

    return run


def fault_of(found: list[Finding], check: str) -> Finding:
    (fault,) = [finding for finding in found if finding.mark == "FAIL"]
    assert fault.name == check, fault
    assert fault.next
    return fault


def stdio(command: str, *words: str) -> dict[str, Any]:
    return {"command": command, "args": ["serve", *words]}


def test_a_missing_file_a_missing_entry_and_a_broken_file_are_explained(doctor: Doctor, home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    fault = doctor("cursor").only_fault("entry")
    assert str(file) in fault["found"]
    assert "deskbook install cursor" in fault["next"]
    assert not file.parent.exists()
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    assert 'no entry "deskbook" under mcpServers' in doctor("cursor").only_fault("entry")["found"]
    file.write_text('{"mcpServers": {\n oops')
    assert "line 2" in doctor("cursor").only_fault("entry")["found"]


def test_a_command_that_is_not_there_is_explained_and_nothing_is_started(
    look: Callable[..., list[Finding]], desk: Path, tmp_path: Path
) -> None:
    words = ("--config", str(desk), "--agent", "trader")
    found = look(stdio(str(tmp_path / "gone/bin/deskbook"), *words))
    assert "there is no command" in fault_of(found, "command").found
    assert not [finding for finding in found if finding.name.startswith("start")]
    assert "no absolute path" in fault_of(look(stdio("deskbook", *words)), "command").found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--config", "desk.toml", "--agent", "trader"), "no whole path"),
        (("--config", "/nowhere/desk.toml", "--agent", "trader"), "no config file"),
        (("--config=DESK", "--agent=tradr"), 'did you mean "trader"'),
        (("--config", "DESK"), "several agents"),
    ],
)
def test_an_entry_that_names_a_wrong_config_or_agent_is_explained(
    look: Callable[..., list[Finding]], desk: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    command = tmp_path / "deskbook"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    found = look(stdio(str(command), *(word.replace("DESK", str(desk)) for word in words)))
    assert said in fault_of(found, "config").found
    assert not [finding for finding in found if finding.name.startswith("start")]


def test_the_entrys_own_environment_is_given_to_its_server(
    look: Callable[..., list[Finding]], tmp_path: Path
) -> None:
    command = tmp_path / "deskbook"
    command.write_text('#!/bin/sh\necho "$DESKBOOK_ROOT $SHELLS_OWN $PWD" >&2\nexit 1\n')
    command.chmod(0o755)
    entry = stdio(str(command)) | {"env": {"DESKBOOK_ROOT": "${env:BASE}/root"}, "disabled": True}
    found = look(entry, BASE=str(tmp_path), SHELLS_OWN="hidden")
    assert fault_of(found, "start the entry").lines == (f"{tmp_path}/root  /",)
    assert [finding.found for finding in found if finding.mark == "warn"] == ["it is switched off"]


def test_an_entry_of_another_program_is_named(look: Callable[..., list[Finding]]) -> None:
    found = look({"command": "/bin/false"})
    assert "does not look like one of Deskbook's" in found[1].found
    assert fault_of(found, "start the entry").found == "it ended with code 1 before it answered"
    known = look({"command": "/bin/false", "args": ["--config", "/d.toml", "--agent", "trader"]})[1]
    assert "`deskbook install cursor --config /d.toml --agent trader --force` writes it anew" in str(
        known.next
    )
    assert "neither a command nor an address" in fault_of(look({"deskbook": 1}), "entry").found
    schemeless = fault_of(look({"url": "localhost:8765/mcp"}), "entry")
    assert schemeless.next == "Write http:// in front: http://localhost:8765/mcp"
    assert "is no table" in fault_of(look("deskbook"), "entry").found


def test_an_http_entry_is_called_with_the_token_that_it_refers_to(
    doctor: Doctor,
    deskbook: Words,
    look: Callable[..., list[Finding]],
    start_http: StartHttp,
    desk: Path,
    root: Path,
    home: Path,
) -> None:
    token = new_token(token_path(root), "trader").token
    url = f"{start_http(desk)}/mcp"
    install = ("--config", str(desk), "--agent", "trader", "--transport", "http", "--url", url)
    for host in ("claude-code", "codex"):
        assert deskbook("install", host, *install, "--token-env", "MINE").returncode == 0
        told = doctor(host, MINE=token)
        assert told.code == 0, told.out
        assert told.of("sees")
        assert token not in told.out
        assert "MINE is not set" in doctor(host).only_fault("initialize")["found"]
    assert deskbook("install", "vscode", *install).returncode == 0
    told = doctor("vscode")
    assert "asks a person" in told.marked("warn")[0]["found"]
    assert told.only_fault("initialize")
    assert doctor("vscode", "--token-env", "MINE", MINE=token).code == 0

    written = look({"url": url, "headers": {"Authorization": f"Bearer {token}"}})
    (warning,) = [finding for finding in written if finding.mark == "warn" and finding.name == "token"]
    assert "written out" in warning.found
    assert written[-1].name == "sees"
    assert token not in str(written)
