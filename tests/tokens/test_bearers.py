"""Who the bearer of a token is: made, narrowed, expired, revoked, read from a variable, and never guessed."""

from __future__ import annotations

import hmac
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import token_file, tokens
from server.sections import AgentSettings
from server.settings import load_settings
from server.token_file import read_records
from server.tokens import Bearer, TokenFault, Tokens, agents_of, new_token, revoke, token_path
from store.errors import ConfigError, NotFound
from store.paths import folder_name

if TYPE_CHECKING:
    from conftest import Hands, Open

REPOSITORY = Path(__file__).resolve().parents[2]
HOUR_US = 3_600_000_000
AGENTS = {name: AgentSettings(profile="trader") for name in ("trader", "researcher")}
BY_VARIABLE = {
    "trader": AgentSettings(profile="trader", token_env="TRADER_TOKEN"),
    "researcher": AgentSettings(profile="researcher", token_env="RESEARCHER_TOKEN"),
}
LONG = "correct-horse-battery-staple"
OTHER = "another-horse-battery-staple"


def secret_of(token: str) -> str:
    return token.split("_")[2]


def test_a_token_stands_for_its_agent(path: Path, opened: Open, now: Hands) -> None:
    made = new_token(path, "trader", now=now)
    other = new_token(path, "researcher", read_only=True, now=now)
    known = opened()
    assert known.check(made.token) == Bearer(made.record.id, "trader", read_only=False)
    assert known.check(other.token) == Bearer(other.record.id, "researcher", read_only=True)
    assert known.alive(made.record.id)
    assert known.required
    assert known.usable


def test_a_token_is_told_by_its_form_and_holds_256_random_bits(path: Path) -> None:
    made = [new_token(path, "trader").token for _ in range(20)]
    for token in made:
        assert re.fullmatch(r"dbk_[a-z2-7]{16}_[a-z2-7]{52}", token)
    assert len({secret_of(token) for token in made}) == 20
    assert {token[-1] for token in made} <= set("aq")  # 51 characters carry 255 bits, the last one the 256th


def test_no_file_holds_the_secret_and_nothing_shows_it_or_its_hash(path: Path, opened: Open) -> None:
    made = new_token(path, "trader", label="laptop")
    known = opened(BY_VARIABLE, TRADER_TOKEN=LONG)
    known.check(made.token)
    stored = path.read_text()
    assert secret_of(made.token) not in stored
    shown = repr(made) + repr(known) + repr(read_records(path)) + str(known)
    for private in (secret_of(made.token), LONG, made.record.sha256):
        assert private not in shown
    assert LONG not in repr(vars(known))
    assert secret_of(made.token) not in repr(vars(known))


def test_nothing_is_logged_of_a_token_that_is_refused(
    path: Path, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = new_token(path, "trader")
    known = opened()
    path.chmod(0o644)
    known.check(made.token)
    assert made.token not in caplog.text
    assert secret_of(made.token) not in caplog.text
    assert made.record.sha256 not in caplog.text


@pytest.mark.parametrize(
    ("secret", "fault"),
    [
        (None, TokenFault.MISSING),
        ("", TokenFault.MALFORMED),
        ("short", TokenFault.MALFORMED),
        ("x" * 1_025, TokenFault.MALFORMED),
        ("twenty characters or more", TokenFault.MALFORMED),
        ("ein-schönes-langes-wort-hier", TokenFault.MALFORMED),
        ("lone-surrogate-\ud800-is-no-text", TokenFault.MALFORMED),
        ("dbk_", TokenFault.MALFORMED),
        ("dbk_abcdefghij234567_tooshort", TokenFault.MALFORMED),
        ("dbk_ABCDEFGHIJ234567_" + "a" * 52, TokenFault.MALFORMED),
        ("dbk_abcdefghij234567_" + "a" * 52 + "\n", TokenFault.MALFORMED),
        ("dbk_abcdefghij234567_" + "a" * 52, TokenFault.UNKNOWN),
        ("a-token-of-some-other-make", TokenFault.UNKNOWN),
    ],
)  # fmt: skip
def test_what_is_no_token_of_ours_is_refused_with_its_reason(
    path: Path, opened: Open, secret: str | None, fault: TokenFault
) -> None:
    new_token(path, "trader")
    assert opened().check(secret) is fault


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokens, dict[str, str]]:
    """Three live tokens, one of them from a variable, and who they stand for."""
    path = token_path(tmp_path_factory.mktemp("desk"))
    made = {new_token(path, agent).token: agent for agent in AGENTS}
    known = Tokens(path, {**AGENTS, "harness": AgentSettings(profile="harness", token_env="V")}, {"V": LONG})
    return known, made | {LONG: "harness"}


@given(text=st.one_of(st.none(), st.text(), st.text(alphabet="dbk_abcdefgh234567-", max_size=90)))
def test_any_text_is_refused_unless_it_is_a_token_made(
    desk: tuple[Tokens, dict[str, str]], text: str | None
) -> None:
    known, made = desk
    assert isinstance(known.check(text), TokenFault) == (text not in made)


@given(data=st.data())
def test_a_token_with_anything_changed_is_refused(
    desk: tuple[Tokens, dict[str, str]], data: st.DataObject
) -> None:
    known, made = desk
    token = data.draw(st.sampled_from(sorted(made)))
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, len(token)))
    forged = token[:start] + data.draw(st.text(alphabet=token, max_size=4)) + token[end:]
    found = known.check(forged)
    if forged in made:
        assert isinstance(found, Bearer)
        assert found.agent == made[forged]
    else:
        assert isinstance(found, TokenFault)


def test_every_comparison_takes_the_same_time_and_unknown_ids_are_compared_too_p156(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_token(path, "trader")
    known = opened(BY_VARIABLE, TRADER_TOKEN=LONG, RESEARCHER_TOKEN=OTHER)
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(tokens, "hmac", type("Watched", (), {"compare_digest": staticmethod(compare)}))
    wrong = made.token[:-2] + ("aa" if made.token[-2] != "a" else "ba")
    for secret in (made.token, wrong, "dbk_abcdefghij234567_" + "a" * 52, LONG, OTHER, "x" * 40):
        compared.clear()
        known.check(secret)
        assert len(compared) == 3, "the file's hash or a stand-in, then every variable's"
        assert sum(one == other for one, other in compared) == (secret in {made.token, LONG, OTHER})
        assert {len(side) for pair in compared for side in pair} == {64}, (
            "hashes, never the secrets themselves"
        )


def test_a_token_expires_at_its_second(path: Path, opened: Open, now: Hands) -> None:
    now.seconds += 0.75
    made = new_token(path, "trader", lasts=HOUR_US, now=now)
    known = opened()
    end = int(now.seconds) + 3_600
    assert made.record.expires == end * 1_000_000
    now.seconds = end - 0.001
    assert isinstance(known.check(made.token), Bearer)
    assert known.usable
    now.seconds = float(end)
    assert known.check(made.token) is TokenFault.EXPIRED
    assert not known.alive(made.record.id)
    assert not known.usable
    assert known.required


def test_a_revoked_token_is_refused_by_a_server_that_stands(path: Path, opened: Open) -> None:
    made, kept = new_token(path, "trader"), new_token(path, "trader")
    known = opened()
    assert isinstance(known.check(made.token), Bearer)
    revoke(path, ids=[made.record.id])
    assert not known.alive(made.record.id)
    assert known.check(made.token) is TokenFault.REVOKED
    assert known.alive(kept.record.id)
    assert known.usable
    revoke(path, agent="trader")
    assert known.check(kept.token) is TokenFault.REVOKED
    assert not known.usable
    assert known.required


def test_a_token_made_later_is_taken_and_from_then_on_one_is_required(path: Path, opened: Open) -> None:
    known = opened()
    assert not known.required
    assert not known.usable
    made = new_token(path, "trader")
    assert known.required
    assert isinstance(known.check(made.token), Bearer)


def test_only_who_holds_a_whole_token_learns_what_became_of_it(path: Path, opened: Open) -> None:
    made = new_token(path, "trader")
    revoke(path, ids=[made.record.id])
    guess = f"dbk_{made.record.id}_" + "a" * 52
    assert opened().check(guess) is TokenFault.UNKNOWN


def test_a_token_of_an_agent_that_the_config_no_longer_names_is_unknown(path: Path, opened: Open) -> None:
    made = new_token(path, "former")
    known = opened()
    assert known.check(made.token) is TokenFault.UNKNOWN
    assert not known.alive(made.record.id)
    assert not known.usable
    assert known.required


def test_a_variable_holds_the_token_of_its_agent(opened: Open) -> None:
    known = opened(BY_VARIABLE, TRADER_TOKEN=LONG, RESEARCHER_TOKEN=OTHER)
    assert known.check(LONG) == Bearer("env:trader", "trader", read_only=False)
    assert known.check(OTHER) == Bearer("env:researcher", "researcher", read_only=False)
    assert known.alive("env:trader")
    assert known.usable
    assert known.missing_variables() == []


@pytest.mark.parametrize("environ", [{}, {"TRADER_TOKEN": ""}])
def test_a_variable_without_a_token_lets_nobody_in(opened: Open, environ: dict[str, str]) -> None:
    known = opened(BY_VARIABLE, **environ)
    assert known.required
    assert not known.usable
    assert known.missing_variables() == ["TRADER_TOKEN", "RESEARCHER_TOKEN"]
    assert isinstance(known.check(""), TokenFault)
    assert not known.alive("env:trader")


@pytest.mark.parametrize(
    "weak",
    ["x" * 19, "twenty characters or so", "a-token-with-a-newline\n", "wörter-ohne-zahl-aber-lang", "x" * 1_025],
)  # fmt: skip
def test_a_weak_token_in_a_variable_does_not_start_and_is_not_shown(opened: Open, weak: str) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(BY_VARIABLE, TRADER_TOKEN=weak)
    assert caught.value.field == "agents.trader.token_env"
    assert "TRADER_TOKEN" in caught.value.message
    assert weak not in f"{caught.value.message}{caught.value.hint}"


def test_two_agents_with_one_token_do_not_start(opened: Open) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(BY_VARIABLE, TRADER_TOKEN=LONG, RESEARCHER_TOKEN=LONG)
    assert caught.value.field == "agents.researcher.token_env"
    assert LONG not in f"{caught.value.message}{caught.value.hint}"


def test_a_variable_with_a_token_of_another_agent_does_not_start(path: Path, opened: Open) -> None:
    made = new_token(path, "trader")
    with pytest.raises(ConfigError, match="RESEARCHER_TOKEN") as caught:
        opened(BY_VARIABLE, RESEARCHER_TOKEN=made.token)
    assert secret_of(made.token) not in f"{caught.value.message}{caught.value.hint}"


def test_a_token_that_file_and_variable_know_is_judged_by_the_file(path: Path, opened: Open) -> None:
    made = new_token(path, "trader", read_only=True)
    known = opened(BY_VARIABLE, TRADER_TOKEN=made.token)
    assert known.check(made.token) == Bearer(made.record.id, "trader", read_only=True)
    revoke(path, ids=[made.record.id])
    assert known.check(made.token) is TokenFault.REVOKED
    assert not known.alive("env:trader")
    assert not known.usable


def test_revoking_is_done_once_and_says_what_stood_before(path: Path, now: Hands) -> None:
    made = new_token(path, "trader", now=now)
    assert revoke(path, ids=[made.record.id], now=now) == [made.record]
    at = int(now.seconds) * 1_000_000
    now.seconds += 60
    (again,) = revoke(path, ids=[made.record.id], now=now)
    assert again.revoked == at
    assert read_records(path) == (again,)


def test_an_unknown_id_revokes_nothing_and_names_the_nearest(path: Path) -> None:
    made = new_token(path, "trader")
    close = made.record.id[:-1] + ("a" if made.record.id[-1] != "a" else "b")
    with pytest.raises(NotFound, match=f'did you mean "{made.record.id}"') as caught:
        revoke(path, ids=[made.record.id, close])
    assert "Nothing was revoked" in caught.value.message
    assert close not in caught.value.message
    assert read_records(path) == (made.record,)


def test_revoking_where_no_token_was_made_makes_nothing(path: Path) -> None:
    with pytest.raises(NotFound):
        revoke(path, ids=["abcdefghij234567"])
    assert revoke(path, agent="trader") == []
    assert not path.parent.exists()


@given(name=st.text(min_size=1, max_size=128))
def test_no_strategys_folder_has_the_name_of_a_token_file(name: str) -> None:
    for taken in (token_file.FILE, token_file.LOCK, f"{token_file.FILE}.new"):
        assert "." in taken
        assert folder_name(taken) != taken
    try:
        assert "." not in folder_name(name)
    except UnicodeEncodeError:  # a lone surrogate is refused as a name before
        assert any("\ud800" <= character <= "\udfff" for character in name)


def test_without_a_config_the_one_agent_is_local(tmp_path: Path) -> None:
    alone = load_settings(config=None, flags={"root": str(tmp_path)}, environ={})
    assert {name: agent.profile for name, agent in agents_of(alone).items()} == {"local": "solo"}
    config = tmp_path / "desk.toml"
    config.write_text('[agents.a]\nprofile = "trader"')
    named = load_settings(config=config, flags={"root": str(tmp_path)}, environ={})
    assert agents_of(named) == named.agents


def test_tokens_are_known_without_a_protocol_or_a_web_library() -> None:
    code = "import sys, server.tokens; print(sorted({'mcp', 'starlette', 'anyio', 'uvicorn'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
