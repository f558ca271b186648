"""The token commands as a person gives them: what goes to which stream, exit codes, and no secret anywhere else."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server import cli, tokens
from server.sections import AgentSettings
from server.token_file import read_records
from server.tokens import Bearer, TokenFault, Tokens, new_token, token_path
from store.clock import format_instant

DESK = """
[agents.trader]
profile = "trader"
strategy = "carry"
token_env = "TRADER_TOKEN"
[agents.watcher]
profile = "researcher"
read_only = true
"""
AGENTS = {name: AgentSettings(profile="trader") for name in ("trader", "watcher", "local")}
LONG = "correct-horse-battery-staple"
TOKEN = re.compile(r"dbk_[a-z2-7]{16}_[a-z2-7]{52}")
NOW = 1_772_461_800


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "desk.toml"
    path.write_text(DESK, encoding="utf-8")
    return path


@pytest.fixture
def run(root: Path, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a token command in this process on the test's config and root."""

    def start(*words: str, on: Path | None = config) -> Ran:
        place = ["--root", str(root), *(["--config", str(on)] if on else [])]
        monkeypatch.setattr("sys.argv", ["deskbook", "token", *words, *place])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        code = end.value.code
        return Ran(code if isinstance(code, int) else 0, said.out, said.err)

    return start


@pytest.fixture
def known(root: Path) -> Callable[[], Tokens]:
    return lambda: Tokens(token_path(root), AGENTS, {})


def id_of(token: str) -> str:
    return token.split("_")[1]


def listed(run: Run) -> list[dict[str, Any]]:
    return list(json.loads(run("list", "--json").out)["tokens"])


def test_new_prints_the_token_alone_and_tells_the_rest_beside_it(
    run: Run, root: Path, known: Callable[[], Tokens]
) -> None:
    ran = run("new", "trader")
    assert ran.code == 0
    token = ran.out.removesuffix("\n")
    assert TOKEN.fullmatch(token)
    assert known().check(token) == Bearer(id_of(token), "trader", read_only=False)
    assert token.split("_")[2] not in ran.err
    for said in (
        id_of(token), '"trader"', "profile trader", "strategy carry", "never expires", "shown this once",
        str(token_path(root)), "Authorization: Bearer", "never in a URL",
        f"`deskbook token revoke {id_of(token)} --config {root.parent / 'desk.toml'} --root {root}`",
    ):  # fmt: skip
        assert said in ran.err


def test_new_prints_json_for_programs(run: Run, known: Callable[[], Tokens]) -> None:
    made = json.loads(run("new", "trader", "--json").out)
    assert list(made) == ["token", "id", "agent", "expires"]
    assert (made["id"], made["agent"], made["expires"]) == (id_of(made["token"]), "trader", None)
    assert isinstance(known().check(made["token"]), Bearer)


@pytest.mark.parametrize(("age", "seconds"), [("12h", 43_200), ("90d", 7_776_000), ("8w", 4_838_400)])
def test_a_token_may_expire_after_hours_days_or_weeks(
    run: Run, root: Path, age: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = json.loads(run("new", "trader", "--expires", age, "--json").out)
    (record,) = read_records(token_path(root))
    assert record.expires == record.created + seconds * 1_000_000
    assert made["expires"] == format_instant(record.expires)
    assert abs(record.created / 1_000_000 - time.time()) < 3_600


def test_a_token_may_be_read_only_and_carry_a_label(run: Run, root: Path) -> None:
    assert "read-only" in run("new", "trader", "--read-only", "--label", "the laptop").err
    assert "read-only" in run("new", "watcher").err
    narrowed, watcher = read_records(token_path(root))
    assert (narrowed.read_only, narrowed.label) == (True, "the laptop")
    assert (watcher.read_only, watcher.label) == (False, None), "its profile says so already"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("new",), "AGENT"),
        (("new", "tradr"), 'did you mean "trader"?'),
        (("new", "local"), 'names no agent "local"'),
        (("new", "trader", "--expires", "soon"), "--expires"),
        (("new", "trader", "--expires", "0d"), "--expires"),
        (("new", "trader", "--expires", "90"), "12h"),
        (("new", "trader", "--label", "a\nb"), "--label"),
        (("new", "trader", "--label", "x" * 129), "--label"),
        (("revoke",), "--agent"),
        (("revoke", "abcdefghij234567", "--agent", "trader"), "--agent"),
        (("revoke", "env:trader"), "TRADER_TOKEN"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_wrong_usage_exits_2_and_makes_nothing(
    run: Run, root: Path, words: tuple[str, ...], said: str
) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not root.exists()


def test_without_a_config_the_one_agent_is_local(run: Run, known: Callable[[], Tokens]) -> None:
    ran = run("new", "local", on=None)
    assert known().check(ran.out.strip()) == Bearer(id_of(ran.out), "local", read_only=False)
    refused = run("new", "trader", on=None)
    assert refused.code == 2
    assert 'the only agent is "local"' in refused.err


def test_a_list_of_nothing_makes_nothing(run: Run, root: Path) -> None:
    ran = run("list", on=None)
    assert (ran.code, ran.err) == (0, "")
    assert str(token_path(root)) in ran.out
    assert "token new" in ran.out
    assert not root.exists()


def _fill(root: Path) -> dict[str, str]:
    """One token of every standing; ids by standing."""
    path = token_path(root)
    made = {
        "active": new_token(path, "trader", label="the laptop"),
        "expired": new_token(path, "trader", lasts=3_600_000_000, now=lambda: NOW),
        "revoked": new_token(path, "watcher", read_only=True),
        "no such agent": new_token(path, "former"),
    }
    tokens.revoke(path, ids=[made["revoked"].record.id], now=lambda: NOW)
    return {standing: each.token for standing, each in made.items()}


def test_a_list_tells_how_every_token_stands(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _fill(root)
    monkeypatch.delenv("TRADER_TOKEN", raising=False)
    ran = run("list")
    assert ran.code == 0
    heading, *lines, variable = ran.out.splitlines()
    assert heading.split() == ["id", "agent", "profile", "made", "expires", "standing", "rights", "label"]
    for (standing, token), line in zip(made.items(), lines, strict=True):
        assert line.startswith(id_of(token))
        assert standing in line
    assert "the laptop" in lines[0]
    ends = heading.index("expires")
    assert lines[0][ends:].startswith("never ")
    assert lines[1][ends:].startswith("2026-03-02T15:30:00Z ")
    assert "revoked 2026-03-02T14:30:00Z" in lines[2]
    assert lines[2][heading.index("rights") :].startswith("read-only ")
    assert "no such agent in this config" in lines[3]
    assert variable.startswith("env:trader ")
    assert "from TRADER_TOKEN, not set in this shell" in variable
    monkeypatch.setenv("TRADER_TOKEN", LONG)
    assert "TRADER_TOKEN, set in this shell" in run("list").out.splitlines()[-1]


def test_a_list_for_programs_has_the_same(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _fill(root)
    monkeypatch.setenv("TRADER_TOKEN", LONG)
    told = json.loads(run("list", "--json").out)
    assert told["file"] == str(token_path(root))
    assert [(each["id"], each["status"]) for each in told["tokens"]] == [
        (id_of(token), standing) for standing, token in made.items()
    ]
    assert list(told["tokens"][0]) == [
        "id", "agent", "profile", "status", "created", "expires", "revoked", "read_only", "label"
    ]  # fmt: skip
    assert [each["profile"] for each in told["tokens"]] == ["trader", "trader", "researcher", None]
    assert told["tokens"][1]["expires"] == "2026-03-02T15:30:00Z"
    assert told["variables"] == [
        {"id": "env:trader", "agent": "trader", "profile": "trader", "variable": "TRADER_TOKEN", "set": True}
    ]


def test_no_command_shows_a_secret_or_a_hash(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _fill(root)
    monkeypatch.setenv("TRADER_TOKEN", LONG)
    ids = [id_of(token) for token in made.values()]
    said = [
        run("list"),
        run("list", "--json"),
        run("revoke", *ids),
        run("revoke", "--agent", "trader"),
        run("list"),
    ]
    text = "".join(ran.out + ran.err for ran in said)
    assert [ran.code for ran in said] == [0] * 5
    private = [LONG, *(token.split("_")[2] for token in made.values())]
    private += [record.sha256 for record in read_records(token_path(root))]
    assert [each for each in private if each in text] == []


def test_a_list_shows_times_in_the_zone_of_the_config(run: Run, root: Path, config: Path) -> None:
    config.write_text(f'[clock]\ntimezone = "America/New_York"\n{DESK}', encoding="utf-8")
    new_token(token_path(root), "trader", now=lambda: NOW)
    assert "2026-03-02T09:30:00-05:00" in run("list").out
    assert listed(run)[0]["created"] == "2026-03-02T14:30:00Z"


def test_revoke_ends_tokens_on_a_standing_server_and_may_be_said_again(
    run: Run, known: Callable[[], Tokens]
) -> None:
    first, second, kept = (run("new", "trader").out.strip() for _ in range(3))
    server = known()
    ran = run("revoke", id_of(first), id_of(second))
    assert ran.code == 0
    assert "2 tokens revoked; running servers refuse them from now on" in ran.out
    assert server.check(first) is server.check(second) is TokenFault.REVOKED
    assert isinstance(server.check(kept), Bearer)
    again = run("revoke", id_of(first))
    assert again.code == 0
    assert "already" in again.out
    assert "0 tokens revoked" in again.out


def test_revoke_takes_all_tokens_of_an_agent(run: Run, known: Callable[[], Tokens]) -> None:
    made = [run("new", "trader").out.strip() for _ in range(2)]
    other = run("new", "watcher").out.strip()
    ran = run("revoke", "--agent", "trader")
    assert ran.code == 0
    assert "TRADER_TOKEN is not among them" in ran.out
    assert [known().check(token) for token in made] == [TokenFault.REVOKED] * 2
    assert isinstance(known().check(other), Bearer)


def test_revoke_takes_tokens_of_an_agent_that_is_gone_from_the_config(run: Run, root: Path) -> None:
    new_token(token_path(root), "former")
    assert "1 token revoked" in run("revoke", "--agent", "former").out
    assert listed(run)[0]["status"] == "revoked"


def test_revoke_of_an_agent_without_tokens_is_done_and_of_nobody_is_not(run: Run) -> None:
    ran = run("revoke", "--agent", "watcher")
    assert (ran.code, ran.out) == (0, "0 tokens revoked\n")
    ran = run("revoke", "--agent", "watchr")
    assert (ran.code, ran.out) == (1, "")
    assert 'did you mean "watcher"?' in ran.err


def test_an_id_of_no_token_is_exit_1_and_revokes_nothing(run: Run) -> None:
    token = run("new", "trader").out.strip()
    close = id_of(token)[:-1] + ("a" if id_of(token)[-1] != "a" else "b")
    ran = run("revoke", id_of(token), close)
    assert (ran.code, ran.out) == (1, "")
    assert f'id number 2 of the 2 given (did you mean "{id_of(token)}"?)' in ran.err
    assert listed(run)[0]["status"] == "active"


def test_a_whole_token_given_for_its_id_is_ended_and_never_repeated(run: Run) -> None:
    token = run("new", "trader").out.strip()
    ran = run("revoke", token)
    assert ran.code == 0
    unknown = f"dbk_abcdefghij234567_{token.split('_')[2]}"
    missed = run("revoke", unknown)
    strange = run("revoke", LONG)
    assert (missed.code, strange.code) == (1, 1)
    text = "".join(each.out + each.err for each in (ran, missed, strange))
    assert token.split("_")[2] not in text
    assert LONG not in text
    assert listed(run)[0]["status"] == "revoked"


@pytest.mark.parametrize(
    "words", [("new", "trader"), ("list",), ("revoke", "abcdefghij234567")], ids=" ".join
)
def test_a_file_that_others_can_read_is_exit_1_with_the_command_that_mends_it_p158(
    run: Run, root: Path, words: tuple[str, ...]
) -> None:
    new_token(token_path(root), "trader")
    token_path(root).chmod(0o644)
    ran = run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert f"chmod 600 {token_path(root)}" in ran.err


@pytest.mark.parametrize("command", ["new", "list", "revoke"])
def test_every_option_has_help(run: Run, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    options = [line for line in ran.out.splitlines() if line.strip().startswith("--")]
    assert options
    for line in options:
        assert len(line.split(maxsplit=1)) == 2, line


@pytest.mark.parametrize("words", [("revoke",), ("revoke", "abcdefghij234567"), ("list",)])
def test_a_command_in_a_hint_has_the_config_and_root_of_the_run(
    run: Run, root: Path, config: Path, words: tuple[str, ...]
) -> None:
    if words == ("list",):
        config.write_text('[agents.trader]\nprofile = "trader"\n')
    ran = run(*words)
    command = "token new AGENT" if words == ("list",) else "token list"
    assert f"`deskbook {command} --config {config} --root {root}`" in ran.out + ran.err
