"""The tokens as doctor sees them: nobody's, expired, unset, and a file that cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from server.doctor.bearers import check_tokens
from server.doctor.findings import Finding
from server.doctor.subject import Subject
from server.settings import load_settings
from server.tokens import Minted, new_token, revoke, token_path

DAY = 86_400 * 10**6


@pytest.fixture
def look(desk: Path) -> Callable[..., list[Finding]]:
    def run(agent: str | None = None, **environ: str) -> list[Finding]:
        settings = load_settings(config=desk, flags={"agent": agent}, environ={})
        return list(check_tokens(Subject(settings, (), environ)))

    return run


def secrets_of(made: Minted) -> set[str]:
    return {made.token, made.token.rpartition("_")[2], made.record.sha256}


def test_where_no_token_was_ever_made_nothing_is_wrong(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    (finding,) = look(agent="trader")
    assert finding.mark == "ok"
    assert "none was ever made; HTTP on this machine needs none" in finding.found
    assert not root.exists()


def test_several_agents_without_a_token_are_told_that_http_needs_one_for_each(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    (finding,) = look()
    assert finding.mark == "warn"
    assert "HTTP needs one for each of the 2 agents" in finding.found
    assert "`deskbook token new researcher`, `deskbook token new trader`" in str(finding.next)
    assert not root.exists()


def test_a_server_that_others_can_reach_needs_a_token_for_one_agent_too(
    look: Callable[..., list[Finding]], desk: Path
) -> None:
    desk.write_text(desk.read_text() + '[http]\nhost = "0.0.0.0"\n')
    (finding,) = look(agent="trader")
    assert finding.mark == "warn"
    assert "0.0.0.0" in finding.found


def test_tokens_in_force_are_counted_and_agents_without_one_are_a_warning(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    path = token_path(root)
    new_token(path, "trader")
    revoke(path, ids=[new_token(path, "trader").record.id])
    finding, without = look()
    assert (finding.mark, without.mark) == ("ok", "warn")
    assert finding.found == f"in force: 1 of 2 in {path}"
    assert "no token lets in researcher over HTTP" in without.found
    assert "`deskbook token new researcher`" in str(without.next)
    assert [finding.mark for finding in look(agent="trader")] == ["ok"]


def test_a_token_nobody_has_and_an_expired_one_are_explained_without_their_secrets(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    path = token_path(root)
    nobodys = new_token(path, "analyst")
    expired = new_token(path, "trader", lasts=DAY, now=lambda: 1e9)
    found = look()
    (first,) = [finding for finding in found if nobodys.record.id in finding.found]
    (second,) = [finding for finding in found if expired.record.id in finding.found]
    assert (first.mark, second.mark) == ("warn", "warn")
    assert "no agent analyst" in first.found
    assert "[agents.analyst]" in str(first.next)
    assert "revoke" not in str(found)
    assert "expired" in second.found
    assert "deskbook token new trader" in str(second.next)
    text = str(found)
    assert not any(secret in text for made in (nobodys, expired) for secret in secrets_of(made))


def test_a_variable_that_an_agent_names_and_nobody_set_is_named(
    look: Callable[..., list[Finding]], desk: Path, root: Path
) -> None:
    desk.write_text(desk.read_text() + 'token_env = "TRADER_TOKEN"\n')
    new_token(token_path(root), "researcher")
    (unset,) = [finding for finding in look() if finding.mark == "warn"]
    assert "TRADER_TOKEN" in unset.found
    value = "trader-token-of-twenty-characters"
    (finding,) = look(TRADER_TOKEN=value)
    assert finding.mark == "ok"
    assert finding.found.endswith(", 1 in variables")
    assert value not in str(finding)


@pytest.mark.parametrize("value", ["short", "a" * 30 + " "])
def test_a_variable_that_stops_the_server_is_a_fault(
    look: Callable[..., list[Finding]], desk: Path, value: str
) -> None:
    desk.write_text(desk.read_text() + 'token_env = "T_TOK"\n')
    (finding,) = look(T_TOK=value)
    assert finding.mark == "FAIL"
    assert "T_TOK holds no token that can be used" in finding.found
    assert finding.next
    assert value not in str(finding)


def test_without_a_config_the_tokens_of_one_are_never_called_nobodys(root: Path) -> None:
    for agent in ("trader", "researcher", "trader"):
        new_token(token_path(root), agent)
    settings = load_settings(config=None, flags={"root": str(root)}, environ={})
    counted, warning = check_tokens(Subject(settings, (), {}))
    assert (counted.mark, warning.mark) == ("ok", "warn")
    assert "made for agents of a config: researcher, trader" in warning.found
    assert "--config" in str(warning.next)
    assert "revoke" not in str(warning)


@pytest.mark.parametrize("harm", ["open", "damaged", "newer"])
def test_a_file_that_cannot_be_trusted_is_explained(
    look: Callable[..., list[Finding]], root: Path, harm: str
) -> None:
    path = token_path(root)
    new_token(path, "trader")
    if harm == "open":
        path.chmod(0o644)
    else:
        path.write_text("{}" if harm == "damaged" else '{"version": 9, "tokens": []}')
    (finding,) = look()
    assert finding.mark == "FAIL"
    said = {"open": f"chmod 600 {path}", "damaged": "damaged", "newer": "version 9"}[harm]
    assert said in finding.found
    assert finding.next
