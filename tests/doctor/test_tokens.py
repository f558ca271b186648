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
    def run(**environ: str) -> list[Finding]:
        settings = load_settings(config=desk, flags={}, environ={})
        return list(check_tokens(Subject(settings, (), environ)))

    return run


def secrets_of(made: Minted) -> set[str]:
    return {made.token, made.token.rpartition("_")[2], made.record.sha256}


def test_where_no_token_was_ever_made_nothing_is_wrong(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    (finding,) = look()
    assert finding.mark == "ok"
    assert "none was ever made" in finding.found
    assert not root.exists()


def test_tokens_in_force_are_counted_and_agents_without_one_named(
    look: Callable[..., list[Finding]], root: Path
) -> None:
    path = token_path(root)
    new_token(path, "trader")
    revoke(path, ids=[new_token(path, "trader").record.id])
    (finding,) = look()
    assert finding.mark == "ok"
    assert finding.found.startswith(f"1 of 2 in force in {path}")
    assert "lets in researcher" in finding.found


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
    assert f"deskbook token revoke {nobodys.record.id}" in str(first.next)
    assert "expired" in second.found
    assert "deskbook token new trader" in str(second.next)
    text = str(found)
    assert not any(secret in text for made in (nobodys, expired) for secret in secrets_of(made))


def test_a_variable_that_an_agent_names_and_nobody_set_is_named(
    look: Callable[..., list[Finding]], desk: Path
) -> None:
    desk.write_text(desk.read_text() + 'token_env = "TRADER_TOKEN"\n')
    unset = [finding for finding in look() if finding.mark == "warn"]
    assert "TRADER_TOKEN" in unset[0].found
    value = "trader-token-of-twenty-characters"
    found = look(TRADER_TOKEN=value)
    assert {finding.mark for finding in found} == {"ok"}
    assert value not in str(found)


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
