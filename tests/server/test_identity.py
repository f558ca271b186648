"""Who a process serves is fixed when it starts, by its config and command line alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from server.identity import Identity, launch_identity
from server.settings import load_settings
from store.errors import ConfigError

Start = Callable[..., Identity]

DESK = """
[store]
strategy = "momentum"
[agents.researcher]
profile = "researcher"
[agents.trader]
profile = "trader"
strategy = "carry"
[agents.watcher]
profile = "trader"
read_only = true
[agents.narrow]
profile = "quiet"
[profiles.quiet]
extends = "trader"
read_only = true
"""


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def _start(
        text: str | None, agent: str | None = None, *, environ: dict[str, str] | None = None, **flags: object
    ) -> Identity:
        path = None
        if text is not None:
            path = tmp_path / "desk.toml"
            path.write_text(text, encoding="utf-8")
        return launch_identity(load_settings(config=path, flags=flags, environ=environ or {}), agent)

    return _start


@pytest.mark.parametrize("agent", [None, "local"])
def test_without_a_config_one_person_starts_p137(start: Start, agent: str | None) -> None:
    identity = start(None, agent)
    assert (identity.agent, identity.profile.name, identity.strategy) == ("local", "solo", "default")
    assert (identity.mode, identity.run, identity.inherit) == ("live", None, "none")
    assert not identity.read_only


@pytest.mark.parametrize("agent", ["trader", "LOCAL", "", "\x1b[31m"])
def test_without_a_config_no_other_agent_starts(start: Start, agent: str) -> None:
    with pytest.raises(ConfigError) as caught:
        start(None, agent)
    assert 'the only agent is "local"' in caught.value.message
    assert "deskbook init" in (caught.value.hint or "")
    assert "\x1b" not in caught.value.message


def test_an_agent_is_who_its_table_says(start: Start) -> None:
    researcher, trader = start(DESK, "researcher"), start(DESK, "trader")
    assert (researcher.agent, researcher.profile.name) == ("researcher", "researcher")
    assert (trader.agent, trader.profile.name) == ("trader", "trader")


def test_an_agent_has_its_own_strategy_or_that_of_the_desk_p133(start: Start) -> None:
    assert start(DESK, "researcher").strategy == "momentum"
    assert start(DESK, "trader").strategy == "carry"


def test_a_strategy_given_at_launch_wins_over_both(start: Start) -> None:
    assert start(DESK, "trader", strategy="other").strategy == "other"
    assert start(DESK, "trader", environ={"DESKBOOK_STRATEGY": "other"}).strategy == "other"


@pytest.mark.parametrize("agent", ["watcher", "narrow"])
def test_read_only_in_agent_or_profile_makes_the_identity_read_only(start: Start, agent: str) -> None:
    identity = start(DESK, agent)
    assert identity.read_only
    assert identity.profile.read_only
    assert identity.profile.actions == {"search", "get", "state", "list_unreconciled"}


def test_the_agent_is_named_by_argument_flag_or_variable(start: Start) -> None:
    environ = {"DESKBOOK_AGENT": "researcher"}
    assert start(DESK, environ=environ).agent == "researcher"
    assert start(DESK, environ=environ, agent="trader").agent == "trader"
    assert start(DESK, "trader", environ=environ).agent == "trader"


def test_an_agent_that_the_config_does_not_name_does_not_start(start: Start) -> None:
    with pytest.raises(ConfigError) as caught:
        start(DESK, "tradr")
    assert 'names no agent "tradr" (did you mean "trader"?)' in caught.value.message
    assert '"researcher", "trader", "watcher", "narrow"' in caught.value.message


def test_local_is_nobody_where_a_config_names_agents(start: Start) -> None:
    with pytest.raises(ConfigError, match='names no agent "local"'):
        start(DESK, "local")


def test_the_only_agent_of_a_config_is_taken_unnamed(start: Start) -> None:
    assert start('[agents.solo]\nprofile = "solo"').agent == "solo"


def test_one_of_several_agents_must_be_named(start: Start) -> None:
    with pytest.raises(ConfigError) as caught:
        start(DESK)
    assert 'several agents: "researcher", "trader"' in caught.value.message
    assert "--agent" in (caught.value.hint or "")


@pytest.mark.parametrize("agent", [None, "local", "trader"])
def test_a_config_without_agents_starts_nobody(start: Start, agent: str | None) -> None:
    with pytest.raises(ConfigError, match="names no agent, so none can start"):
        start('[store]\nstrategy = "s"', agent)


SIMULATED = """
[clock]
mode = "simulated"
run = "desk-run"
inherit = "live"
[agents.desk]
profile = "trader"
[agents.own]
profile = "trader"
clock = { run = "own-run", inherit = "none" }
[agents.live]
profile = "trader"
clock = { mode = "live" }
"""


@pytest.mark.parametrize(
    ("agent", "mode", "run", "inherit"),
    [
        ("desk", "simulated", "desk-run", "live"),
        ("own", "simulated", "own-run", "none"),
        ("live", "live", None, "none"),
    ],
)
def test_an_agents_clock_is_laid_over_the_desks(
    start: Start, agent: str, mode: str, run: str | None, inherit: str
) -> None:
    identity = start(SIMULATED, agent)
    assert (identity.mode, identity.run, identity.inherit) == (mode, run, inherit)


def test_one_agent_may_be_simulated_on_a_live_desk(start: Start) -> None:
    identity = start('[agents.a]\nprofile = "trader"\nclock = { mode = "simulated" }')
    assert (identity.mode, identity.run) == ("simulated", None)


def test_a_run_flag_fixes_the_run_of_a_simulated_agent(start: Start) -> None:
    assert start(SIMULATED, "desk", run="flag-run").run == "flag-run"
    assert start(SIMULATED, "own", run="flag-run").run == "flag-run"


def test_a_run_flag_on_a_live_agent_does_not_start(start: Start) -> None:
    for text, agent in ((DESK, "trader"), (SIMULATED, "live"), (None, None)):
        with pytest.raises(ConfigError, match="a live agent has no run"):
            start(text, agent, run="r")


def test_a_run_variable_is_a_label_and_never_replaces_the_fixed_run(start: Start) -> None:
    environ = {"DESKBOOK_RUN": "label"}
    assert start(SIMULATED, "desk", environ=environ).run == "desk-run"
    assert start(DESK, "trader", environ=environ).run is None


def test_an_identity_cannot_be_changed(start: Start) -> None:
    identity = start(DESK, "researcher")
    with pytest.raises(FrozenInstanceError):
        identity.agent = "trader"  # type: ignore[misc]
