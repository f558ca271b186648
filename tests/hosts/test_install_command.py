"""deskbook install and uninstall, as typed: what they write, print, refuse and say next."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.commands.own_command import own_command
from server.hosts.documents import standing
from server.hosts.places import file_of
from server.hosts.table import HOSTS

Run = Callable[..., Any]
WRITABLE = [name for name, host in HOSTS.items() if host.writable]
DESKBOOK = str(Path(sys.executable).with_name("deskbook"))
GUARD = 60
FRAMES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)  # fmt: skip


def place(name: str, home: Path) -> Path:
    return file_of(HOSTS[name], "user", {"HOME": str(home)}, Path.cwd())


def entry(name: str, path: Path, entry_name: str = "deskbook") -> Any:
    return standing(path.read_text(encoding="utf-8"), HOSTS[name], entry_name)


@pytest.mark.parametrize("name", WRITABLE)
def test_an_installed_entry_starts_a_server_from_anywhere_with_no_environment(
    name: str, run: Run, home: Path, desk: Path
) -> None:
    assert run("install", name, "--config", "../home/desk.toml", "--agent", "trader").code == 0
    wanted = entry(name, place(name, home))
    assert wanted["command"] == DESKBOOK
    assert wanted["args"] == ["serve", "--config", str(desk), "--agent", "trader"]
    done = subprocess.run(
        [wanted["command"], *wanted["args"]],
        input="".join(json.dumps(frame) + "\n" for frame in FRAMES),
        capture_output=True,
        text=True,
        cwd="/",
        env={},
        timeout=GUARD,
        check=False,
    )
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, done.stdout.splitlines())}
    assert replies[1]["serverInfo"]["name"] == "deskbook"
    assert "open_thesis" in {tool["name"] for tool in replies[2]["tools"]}
    assert done.returncode == 0


@pytest.mark.parametrize("name", WRITABLE)
def test_install_twice_then_uninstall_twice_ends_cleanly(name: str, run: Run, home: Path, desk: Path) -> None:
    words = ("install", name, "--config", str(desk), "--agent", "trader")
    first = run(*words)
    path = place(name, home)
    assert (first.code, first.err) == (0, "")
    assert str(path) in first.out
    assert f"next: restart {HOSTS[name].title}" in first.out
    before = path.read_bytes()
    again = run(*words)
    assert again.code == 0
    assert "already installed" in again.out
    assert path.read_bytes() == before
    gone = run("uninstall", name)
    assert gone.code == 0
    assert entry(name, path) is None
    assert f"{path}.bak-1" in gone.out
    absent = run("uninstall", name)
    assert absent.code == 0
    assert "nothing to remove" in absent.out


@pytest.mark.parametrize("name", WRITABLE)
def test_uninstall_where_there_is_no_file_says_so_and_makes_none(name: str, run: Run, home: Path) -> None:
    ran = run("uninstall", name)
    assert ran.code == 0
    assert "nothing to remove" in ran.out
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("name", HOSTS)
def test_print_writes_nothing_and_prints_a_whole_file(name: str, run: Run, home: Path, desk: Path) -> None:
    before = set(home.rglob("*"))
    ran = run("install", name, "--config", str(desk), "--agent", "trader", "--print")
    assert ran.code == 0
    found = standing(ran.out, HOSTS[name], "deskbook")
    assert DESKBOOK in json.dumps(found)
    assert str(place(name, home)) in ran.err
    assert set(home.rglob("*")) == before


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if not host.writable])
def test_a_host_that_is_only_printed_is_refused_with_its_file_named(name: str, run: Run, home: Path) -> None:
    todo = {"install": "--print", "uninstall": f'Take "deskbook" under {".".join(HOSTS[name].path)} out of'}
    for command, said in todo.items():
        ran = run(command, name)
        assert ran.code == 2
        assert said in ran.err
        assert str(place(name, home)) in ran.err
    assert list(home.iterdir()) == []


def test_another_entry_of_that_name_is_replaced_only_by_force(run: Run, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    text = '{\n  // mine\n  "mcpServers": {"deskbook": {"command": "npx"}},\n}\r\n'
    path.write_bytes(text.encode())
    refused = run("install", "cursor")
    assert refused.code == 2
    assert str(path) in refused.err
    assert '"deskbook"' in refused.err
    assert "--force" in refused.err
    refused = run("uninstall", "cursor")
    assert refused.code == 2
    assert "does not look like one of deskbook" in refused.err
    assert path.read_bytes() == text.encode()
    assert run("install", "cursor", "--force").code == 0
    assert entry("cursor", path)["args"] == ["serve"]
    assert path.with_name("mcp.json.bak-1").read_bytes() == text.encode()
    assert "// mine" in path.read_text()
    assert run("install", "cursor", "--name", "second").code == 0
    assert run("uninstall", "cursor").code == 0
    assert entry("cursor", path) is None
    assert entry("cursor", path, "second") is not None


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("cursor", '{\n  "a": 1,\n  b: 2\n}', "line 3, column 3"),
        ("codex", "a = 1\nb = = 2\n", "line 2, column 5"),
    ],
)
def test_a_file_that_does_not_parse_is_left_alone(
    name: str, text: str, at: str, run: Run, home: Path
) -> None:
    path = place(name, home)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    for command in ("install", "uninstall"):
        ran = run(command, name)
        assert ran.code == 2
        assert at in ran.err
        assert str(path) in ran.err
    assert path.read_text() == text
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_project_scope_and_a_file_of_ones_own_are_written_there(
    run: Run, home: Path, tmp_path: Path
) -> None:
    assert run("install", "vscode", "--scope", "project").code == 0
    assert entry("vscode", tmp_path / "project" / ".vscode" / "mcp.json")["type"] == "stdio"
    assert run("install", "codex", "--file", "own.toml").code == 0
    assert entry("codex", tmp_path / "project" / "own.toml") is not None
    assert list(home.iterdir()) == []
    assert run("uninstall", "vscode", "--scope", "project").code == 0
    assert run("install", "codex", "--file", "own.toml", "--scope", "user").code == 2
    assert run("install", "claude-desktop", "--scope", "project").code == 2


@pytest.mark.parametrize(
    ("words", "url", "variable"),
    [
        (("--config", "{desk}", "--agent", "trader"), "http://127.0.0.1:9000/mcp", "DESKBOOK_TRADER_TOKEN"),
        (
            ("--config", "{desk}", "--agent", "researcher"),
            "http://127.0.0.1:9000/mcp",
            "DESKBOOK_RESEARCHER_TOKEN",
        ),
        ((), "http://127.0.0.1:8765/mcp", "DESKBOOK_TOKEN"),
        (("--url", "https://desk.example/mcp", "--token-env", "MINE"), "https://desk.example/mcp", "MINE"),
        (("--no-token",), "http://127.0.0.1:8765/mcp", None),
    ],
)
def test_an_http_entry_names_the_address_and_the_variable(
    words: tuple[str, ...], url: str, variable: str | None, run: Run, home: Path, desk: Path
) -> None:
    given = [word.format(desk=desk) for word in words]
    ran = run("install", "codex", "--transport", "http", *given)
    assert ran.code == 0
    held = {"url": url} | ({} if variable is None else {"bearer_token_env_var": variable})
    assert entry("codex", home / ".codex" / "config.toml") == held
    assert "serve" in ran.out
    assert "--transport http" in ran.out
    assert (variable is None) or variable in ran.out


def test_an_address_that_shows_nothing_of_ours_is_taken_out_only_by_force(run: Run, home: Path) -> None:
    words = ("--transport", "http", "--url", "https://desk.example/mcp", "--token-env", "MINE")
    assert run("install", "codex", *words).code == 0
    assert run("uninstall", "codex").code == 2
    assert run("uninstall", "codex", "--force").code == 0
    assert entry("codex", home / ".codex" / "config.toml") is None


def test_a_server_with_a_certificate_is_called_over_https(run: Run, home: Path) -> None:
    config = home / "d.toml"
    config.write_text('[http]\ntls_cert = "c.pem"\ntls_key = "k.pem"\n[agents.a]\nprofile = "solo"\n')
    ran = run("install", "cursor", "--config", str(config), "--transport", "http", "--print")
    assert json.loads(ran.out)["mcpServers"]["deskbook"]["url"] == "https://127.0.0.1:8765/mcp"


def test_an_open_server_is_told_whom_everybody_is(run: Run, desk: Path) -> None:
    words = ("install", "cursor", "--transport", "http", "--no-token", "--config", str(desk))
    ran = run(*words, "--agent", "trader", "--root", "r")
    root = Path.cwd() / "r"
    assert f"serve --config {desk} --root {root} --transport http --agent trader" in ran.out
    assert "token new" not in ran.out


def test_http_says_how_to_make_a_token_unless_the_config_names_its_variable(run: Run, desk: Path) -> None:
    words = ("install", "claude-code", "--transport", "http", "--config", str(desk), "--agent")
    assert f"token new researcher --config {desk}" in run(*words, "researcher").out
    assert "token new" not in run(*words, "trader", "--force").out


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("desk.lan", "desk.lan")]
)
def test_a_server_on_every_address_is_called_on_this_machine(
    host: str, url: str, run: Run, home: Path
) -> None:
    (home / "d.toml").write_text(f'[http]\nhost = "{host}"\n[agents.a]\nprofile = "solo"\n')
    ran = run("install", "cursor", "--config", str(home / "d.toml"), "--transport", "http", "--print")
    assert json.loads(ran.out)["mcpServers"]["deskbook"]["url"] == f"http://{url}:8765/mcp"


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.http and host.reference])
def test_a_token_in_the_environment_is_never_written_or_printed(
    name: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBOOK_TOKEN", "hunter2-secret")
    ran = run("install", name, "--transport", "http", "--print")
    said = ran.out + ran.err
    if HOSTS[name].writable:
        done = run("install", name, "--transport", "http")
        said += done.out + done.err + place(name, home).read_text()
    assert "hunter2" not in said
    assert "DESKBOOK_TOKEN" in said or "deskbook-local-token" in said


@pytest.mark.parametrize(
    "words",
    [
        ["install", "emacs"], ["install", "curser"], ["install"], ["uninstall", "emacs"],
        ["install", "cursor", "--config", "/nowhere/desk.toml"],
        ["install", "cursor", "--config", "{desk}"], ["install", "cursor", "--config", "{desk}", "--agent", "tradr"],
        ["install", "cursor", "--agent", "trader"], ["install", "cursor", "--name", "a b"],
        ["install", "cursor", "--name", ""], ["install", "cursor", "--name", "a.b"],
        ["install", "cursor", "--url", "http://127.0.0.1:1/mcp"], ["install", "cursor", "--no-token"],
        ["install", "cursor", "--token-env", "X"], ["install", "cursor", "--transport", "sse"],
        ["install", "cursor", "--transport", "http", "--url", "ftp://x"],
        ["install", "cursor", "--transport", "http", "--url", "http://me:secret@x/mcp"],
        ["install", "cursor", "--transport", "http", "--url", "http://x/mcp?token=secret"],
        ["install", "cursor", "--transport", "http", "--token-env", "sk-secret"],
        ["install", "cursor", "--transport", "http", "--token-env", "X", "--no-token"],
        ["install", "claude-desktop", "--transport", "http"], ["install", "zed", "--transport", "http", "--print"],
        ["install", "cursor", "--strategy", ""], ["uninstall", "cursor", "--name", "a b"],
    ],
)  # fmt: skip
def test_wrong_usage_exits_2_says_what_is_wrong_and_writes_nothing(
    words: list[str], run: Run, home: Path, desk: Path
) -> None:
    ran = run(*[word.format(desk=desk) for word in words])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.strip()
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err
    assert set(home.iterdir()) == {desk}


def test_what_this_shell_would_serve_goes_into_the_entry_whole(
    run: Run, home: Path, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBOOK_CONFIG", str(desk))
    monkeypatch.setenv("DESKBOOK_AGENT", "researcher")
    assert run("install", "cursor", "--root", "../r", "--strategy", "b").code == 0
    assert entry("cursor", home / ".cursor" / "mcp.json")["args"] == [
        "serve", "--config", str(desk), "--agent", "researcher",
        "--root", str(home.parent / "r"), "--strategy", "b",
    ]  # fmt: skip


def test_without_the_command_beside_it_the_interpreter_runs_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    assert own_command() == (str(tmp_path / "python3"), "-m", "server")


def test_a_linked_settings_file_stays_a_link_and_both_places_are_named(run: Run, home: Path) -> None:
    kept = home / "dotfiles" / "codex.toml"
    kept.parent.mkdir()
    kept.write_text('model = "x" # mine\n')
    (home / ".codex").mkdir()
    link = home / ".codex" / "config.toml"
    link.symlink_to(kept)
    ran = run("install", "codex")
    assert link.is_symlink()
    assert str(kept) in ran.out
    assert str(link) in ran.out
    assert tomllib.loads(kept.read_text())["mcp_servers"]["deskbook"]["args"] == ["serve"]
    assert run("uninstall", "codex").code == 0
    assert kept.read_text() == 'model = "x" # mine\n'
