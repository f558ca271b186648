"""The table of hosts: each row whole, each snippet in configs/hosts, and each place where the host looks."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from server.hosts.documents import installed, snippet, uninstalled
from server.hosts.entries import DEFAULT_URL, entry_of, is_ours, own_input
from server.hosts.launch import Http, Stdio
from server.hosts.places import file_of
from server.hosts.table import HOSTS, Host, System
from server.sections import HttpSettings
from store.errors import ConfigError

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "hosts"
COMMAND = "/home/you/deskbook/.venv/bin/deskbook"
STDIO = Stdio(COMMAND, ("serve", "--config", "/home/you/desk.toml", "--agent", "trader"))
WRITTEN = {"claude-desktop", "claude-code", "cursor", "vscode", "codex"}
PRINTED = {"gemini-cli", "opencode", "windsurf", "zed"}


def http(host: Host) -> Http:
    return Http("http://127.0.0.1:8765/mcp", "DESKBOOK_TRADER_TOKEN" if host.reference else None, "trader")


def snippets() -> dict[str, str]:
    """What configs/hosts holds, by the table: file name and text."""
    made = {}
    for host in HOSTS.values():
        made[f"{host.name}.{host.format}"] = snippet(host, STDIO, "deskbook")
        if host.http is not None:
            made[f"{host.name}-http.{host.format}"] = snippet(host, http(host), "deskbook")
    return made


def table_of(text: str, host: Host) -> dict[str, Any]:
    return tomllib.loads(text) if host.format == "toml" else json.loads(text)


def test_every_host_has_its_files_and_every_file_belongs_to_a_host() -> None:
    files = {
        path.name: path.read_bytes().decode()
        for path in CONFIGS.iterdir()
        if path.suffix in {".json", ".toml"}
    }
    assert files == snippets()


def test_five_hosts_are_written_and_four_are_printed() -> None:
    assert {host.name for host in HOSTS.values() if host.writable} == WRITTEN
    assert {host.name for host in HOSTS.values() if not host.writable} == PRINTED


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_row_is_whole(host: Host) -> None:
    assert host.source
    assert set(host.user) == set(get_args(System))
    assert (host.http is None) == (host.elsewhere is not None)
    entry = entry_of(host, STDIO, "deskbook")
    assert is_ours(entry)
    assert COMMAND in json.dumps(entry)
    assert "Slot" not in repr(entry)
    if host.http is not None:
        called = entry_of(host, http(host), "deskbook")
        assert is_ours(called)
        assert http(host).url in called.values()
        assert "Slot" not in repr(called)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_an_open_server_is_entered_without_any_trace_of_a_token(host: Host) -> None:
    if host.http is None:
        return
    text = snippet(host, Http("http://127.0.0.1:8765/mcp", None), "deskbook")
    assert not any(
        word in text.casefold() for word in ("token", "bearer", "authorization", "headers", "input")
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-code", "Bearer ${DESKBOOK_TRADER_TOKEN}"),
        ("cursor", "Bearer ${env:DESKBOOK_TRADER_TOKEN}"),
        ("vscode", "Bearer ${input:deskbook-trader-token}"),
        ("gemini-cli", "Bearer ${DESKBOOK_TRADER_TOKEN}"),
        ("opencode", "Bearer {env:DESKBOOK_TRADER_TOKEN}"),
        ("windsurf", "Bearer ${env:DESKBOOK_TRADER_TOKEN}"),
    ],
)
def test_a_token_is_referred_to_as_the_host_reads_it(name: str, said: str) -> None:
    entry = entry_of(HOSTS[name], http(HOSTS[name]), "deskbook")
    assert entry["headers"] == {"Authorization": said}


def test_codex_is_told_the_variable_alone() -> None:
    assert entry_of(HOSTS["codex"], http(HOSTS["codex"]), "x") == {
        "url": "http://127.0.0.1:8765/mcp",
        "bearer_token_env_var": "DESKBOOK_TRADER_TOKEN",
    }


def test_hosts_that_cannot_are_refused_with_the_next_step() -> None:
    with pytest.raises(ConfigError) as desktop:
        entry_of(HOSTS["claude-desktop"], Http(DEFAULT_URL, None), "deskbook")
    assert "Connectors" in (desktop.value.hint or "")
    with pytest.raises(ConfigError) as zed:
        entry_of(HOSTS["zed"], Http(DEFAULT_URL, "DESKBOOK_TOKEN"), "deskbook")
    assert "--no-token" in (zed.value.hint or "")


def test_the_default_address_is_that_of_an_unchanged_config() -> None:
    settings = HttpSettings()
    assert f"http://{settings.host}:{settings.port}/mcp" == DEFAULT_URL


@pytest.mark.parametrize(
    ("name", "system", "environ", "place"),
    [
        ("claude-desktop", "darwin", {}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {"APPDATA": "/r"}, "/r/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("claude-code", "linux", {}, "/h/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("cursor", "win32", {}, "/h/.cursor/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("vscode", "darwin", {"XDG_CONFIG_HOME": "/x"}, "/h/Library/Application Support/Code/User/mcp.json"),
        ("codex", "linux", {"CODEX_HOME": "/k"}, "/k/config.toml"),
        ("codex", "linux", {"CODEX_HOME": ""}, "/h/.codex/config.toml"),
        ("gemini-cli", "linux", {}, "/h/.gemini/settings.json"),
        ("opencode", "linux", {}, "/h/.config/opencode/opencode.json"),
        ("windsurf", "linux", {}, "/h/.codeium/windsurf/mcp_config.json"),
        ("zed", "darwin", {}, "/h/.config/zed/settings.json"),
    ],
)
def test_the_users_file_is_where_the_host_looks(
    name: str, system: str, environ: dict[str, str], place: str
) -> None:
    assert file_of(HOSTS[name], "user", {"HOME": "/h"} | environ, Path("/p"), system) == Path(place)


def test_a_projects_file_lies_in_the_project() -> None:
    places = {
        name: str(file_of(host, "project", {}, Path("/p")))
        for name, host in HOSTS.items()
        if "project" in host.scopes
    }
    assert places == {
        "claude-code": "/p/.mcp.json",
        "cursor": "/p/.cursor/mcp.json",
        "vscode": "/p/.vscode/mcp.json",
        "codex": "/p/.codex/config.toml",
        "gemini-cli": "/p/.gemini/settings.json",
        "opencode": "/p/opencode.json",
        "zed": "/p/.zed/settings.json",
    }
    with pytest.raises(ConfigError, match="for the user alone"):
        file_of(HOSTS["claude-desktop"], "project", {}, Path("/p"))
    with pytest.raises(ConfigError, match="HOME"):
        file_of(HOSTS["cursor"], "user", {}, Path("/p"))


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "/a/deskbook", "args": ["serve"]}, True),
        ({"command": "C:\\a\\deskbook.exe", "args": ["serve", "--agent", "x"]}, True),
        ({"command": "/a/python3", "args": ["-m", "server", "serve"]}, True),
        ({"command": ["/a/deskbook", "serve"]}, True),
        ({"url": DEFAULT_URL}, True),
        ({"url": "https://desk.example/mcp", "headers": {"Authorization": "Bearer ${DESKBOOK_TOKEN}"}}, True),
        ({"command": "/a/deskbook", "args": ["status"]}, False),
        ({"command": "npx", "args": ["-y", "deskbook-like", "serve"]}, False),
        ({"url": "https://other.example/mcp"}, False),
        ({"deskbook": True}, False),
        ({}, False),
        ("deskbook serve", False),
        (None, False),
    ],
)
def test_an_entry_of_ours_is_told_from_anothers(entry: object, ours: bool) -> None:
    assert is_ours(entry) is ours


VSCODE = HOSTS["vscode"]
PROMPT = own_input(VSCODE, "deskbook", "trader")


@pytest.mark.parametrize(
    "inputs", ["[]", '[ {"id": "other", "type": "promptString"} ]', "[\n    // mine\n  ]"]
)
def test_inputs_of_others_stay_and_ours_comes_and_goes(inputs: str) -> None:
    text = '{\n  "inputs": ' + inputs + ',\n  "servers": {} // all\n}\n'
    added = installed(text, VSCODE, http(VSCODE), "deskbook")
    assert "promptString" in added
    assert uninstalled(added, VSCODE, "deskbook") == text


def test_an_input_that_something_else_uses_stays() -> None:
    text = installed("", VSCODE, http(VSCODE), "deskbook")
    used = json.loads(text)
    used["servers"]["second"] = used["servers"]["deskbook"]
    removed = json.loads(uninstalled(json.dumps(used), VSCODE, "deskbook"))
    assert removed == {"inputs": [PROMPT], "servers": {"second": used["servers"]["second"]}}
    assert json.loads(uninstalled(json.dumps(removed), VSCODE, "second"))["inputs"] == [PROMPT]


def test_an_input_of_that_id_that_stands_already_is_used_and_never_removed() -> None:
    mine = {"id": "deskbook-trader-token", "type": "promptString", "description": "My own words"}
    text = json.dumps({"inputs": [mine], "servers": {}})
    added = installed(text, VSCODE, http(VSCODE), "deskbook")
    assert json.loads(added)["inputs"] == [mine]
    assert uninstalled(added, VSCODE, "deskbook") == text


def test_going_back_to_stdio_takes_the_input_away() -> None:
    text = installed("", VSCODE, http(VSCODE), "deskbook")
    assert json.loads(installed(text, VSCODE, STDIO, "deskbook"))["inputs"] == []


def test_every_agent_and_entry_has_a_prompt_of_its_own() -> None:
    def called(agent: str) -> Http:
        return Http(DEFAULT_URL, "DESKBOOK_TOKEN", agent)

    text = installed("", VSCODE, called("trader"), "deskbook")
    text = installed(text, VSCODE, called("trader"), "second")
    text = installed(text, VSCODE, called("researcher"), "second")
    assert [each["id"] for each in json.loads(text)["inputs"]] == [
        "deskbook-trader-token",
        "second-researcher-token",
    ]
    assert json.loads(uninstalled(text, VSCODE, "second"))["inputs"] == [PROMPT]
