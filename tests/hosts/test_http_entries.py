"""HTTP entries of several agents in one host: a variable for each, and the address they call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.addresses import served_at, with_scheme
from server.sections import HttpSettings
from server.settings import load_settings
from server.token_variables import agent_word, token_variable

Run = Callable[..., Any]
NAMES = ("plain", "Risk Desk", "risk-desk", "ÆØÅ", "1st", "x" * 128, "y" * 127 + "ß", "named", "DESKBOOK")


def test_two_agents_in_one_host_have_a_variable_each(run: Run, home: Path, desk: Path) -> None:
    desk.write_text(desk.read_text().replace('token_env = "DESKBOOK_TRADER_TOKEN"\n', ""))
    words = ("install", "cursor", "--config", str(desk), "--transport", "http")
    first = run(*words, "--agent", "trader")
    second = run(*words, "--agent", "researcher", "--name", "desk-researcher")
    assert (first.code, second.code) == (0, 0)
    held = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert {name: entry["headers"]["Authorization"] for name, entry in held.items()} == {
        "deskbook": "Bearer ${env:DESKBOOK_TRADER_TOKEN}",
        "desk-researcher": "Bearer ${env:DESKBOOK_RESEARCHER_TOKEN}",
    }
    assert "set DESKBOOK_RESEARCHER_TOKEN to it" in second.out
    assert "warning" not in first.out + second.out


@pytest.mark.parametrize("host", ["cursor", "codex", "claude-code"])
def test_a_variable_that_another_entry_uses_is_warned_of(run: Run, host: str) -> None:
    words = ("install", host, "--transport", "http", "--token-env", "MINE")
    assert "warning" not in run(*words).out
    assert "warning" not in run(*words).out, "it is the same entry"
    second = run(*words, "--name", "second")
    assert second.code == 0
    assert 'warning: "deskbook" in this file takes its token from MINE too' in second.out
    assert "--token-env NAME" in second.out


def test_a_host_that_asks_asks_for_each_entry_and_agent(run: Run, home: Path, desk: Path) -> None:
    words = ("install", "vscode", "--config", str(desk), "--transport", "http", "--agent")
    run(*words, "trader")
    run(*words, "researcher", "--name", "second")
    ran = run(*words, "researcher", "--force")
    assert "warning" not in ran.out
    held = json.loads((home / ".config" / "Code" / "User" / "mcp.json").read_text())
    ids = [each["id"] for each in held["inputs"]]
    assert sorted(ids) == ["deskbook-researcher-token", "second-researcher-token"], (
        "no id asks for two tokens"
    )


def test_every_agent_of_a_config_has_a_variable_and_word_of_its_own(home: Path) -> None:
    tables = "".join(f"[agents.{json.dumps(name, ensure_ascii=False)}]\nprofile = 'solo'\n" for name in NAMES)
    tables += "[agents.taker]\nprofile = 'solo'\ntoken_env = 'DESKBOOK_NAMED_TOKEN'\n"
    config = home / "many.toml"
    config.write_text(tables, encoding="utf-8")
    settings = load_settings(config=config, flags={}, environ={})
    variables = [token_variable(settings, name) for name in settings.agents]
    words = [agent_word(settings, name) for name in settings.agents]
    assert len(set(variables)) == len(set(words)) == len(settings.agents)
    assert all(re.fullmatch(r"[A-Z_][A-Z0-9_]{0,127}", variable) for variable in variables)
    assert all(re.fullmatch(r"[a-z0-9_]+", word) for word in words)
    assert token_variable(settings, "plain") == "DESKBOOK_PLAIN_TOKEN"
    assert token_variable(settings, "taker") == "DESKBOOK_NAMED_TOKEN"
    for name in ("Risk Desk", "risk-desk"):
        assert re.fullmatch(r"DESKBOOK_RISK_DESK_[0-9A-F]{6}_TOKEN", token_variable(settings, name))
    alone = load_settings(config=None, flags={}, environ={})
    assert token_variable(alone, "local") == "DESKBOOK_TOKEN"


def test_the_help_says_which_variable_it_is(run: Run) -> None:
    told = " ".join(run("install", "--help").out.split())
    assert "the agent's token_env" in told
    assert "DESKBOOK_TOKEN" in told


@pytest.mark.parametrize(
    ("http", "address"),
    [
        ({"host": "0.0.0.0", "allowed_hosts": ["desk.example", "b"]}, "http://desk.example:8765/mcp"),
        ({"host": "::", "allowed_hosts": ["desk.example:9443"], "port": 0}, "http://desk.example:9443/mcp"),
        ({"host": "10.0.0.1", "allowed_hosts": ["[::2]"], "port": 1}, "http://[::2]:1/mcp"),
        ({"host": "127.0.0.2", "allowed_hosts": ["desk.example"]}, "http://127.0.0.2:8765/mcp"),
        ({"host": "localhost", "allowed_hosts": ["desk.example"]}, "http://localhost:8765/mcp"),
        ({"host": "[::1]"}, "http://[::1]:8765/mcp"),
        ({"port": 0}, None),
    ],
)
def test_a_server_that_others_reach_is_called_by_its_first_name(
    http: dict[str, Any], address: str | None
) -> None:
    assert served_at(HttpSettings(**http)) == address


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("localhost:8765/mcp", "http://localhost:8765/mcp"),
        ("127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("//desk.example/mcp", "http://desk.example/mcp"),
        ("[::1]:1/mcp", "http://[::1]:1/mcp"),
        ("localhost", "http://localhost"),
        ("ftp://x/mcp", None),
        ("me:secret@localhost:1/mcp", None),
        ("localhost/mcp?token=secret", None),
        ("dbk_abc_def", None),
        ("sk-secret", None),
    ],
)
def test_an_address_without_its_scheme_is_completed_and_no_secret_is(text: str, meant: str | None) -> None:
    assert with_scheme(text) == meant


def test_install_says_how_the_address_is_written(run: Run) -> None:
    ran = run("install", "cursor", "--transport", "http", "--url", "localhost:8765/mcp")
    assert ran.code == 2
    assert "Write http:// in front: --url http://localhost:8765/mcp" in ran.err
