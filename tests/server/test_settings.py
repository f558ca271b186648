"""How a config file, variables and flags become one settings object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from server.aliases import Meaning
from server.settings import Settings, load_settings
from store.errors import ConfigError

Write = Callable[[str], Path]
Load = Callable[..., Settings]
DAY_US = 86_400_000_000


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(text: str) -> Path:
        path = tmp_path / "desk.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


@pytest.fixture
def load(write: Write) -> Load:
    def _load(text: str, *, environ: dict[str, str] | None = None, **flags: object) -> Settings:
        return load_settings(config=write(text), flags=flags, environ=environ or {})

    return _load


def test_without_a_file_everything_has_a_sane_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.settings.user_data_path", lambda name: tmp_path / "platform" / name)
    settings = load_settings(config=None, flags={}, environ={})
    assert settings.config is None
    assert settings.store.root == tmp_path / "platform" / "deskbook"
    assert (settings.store.strategy, settings.store.durability) == ("default", "full")
    assert (settings.clock.mode, settings.clock.run, settings.clock.timezone) == ("live", None, "UTC")
    limits = settings.limits
    assert (limits.calls_per_minute, limits.reply_chars) == (600, 32_000)
    assert (limits.state_chars, limits.text_chars) == (16_000, 100_000)
    assert settings.log.level == "INFO"
    assert dict(settings.agents) == {}


def test_an_empty_file_says_the_same_as_none(load: Load) -> None:
    empty = load("").model_dump(exclude={"config"})
    assert empty == load_settings(config=None, flags={}, environ={}).model_dump(exclude={"config"})


def test_a_flag_wins_over_a_variable_and_that_over_the_file(load: Load) -> None:
    text = '[store]\nstrategy = "file"'
    environ = {"DESKBOOK_STRATEGY": "environment"}
    assert load(text).store.strategy == "file"
    assert load(text, environ=environ).store.strategy == "environment"
    assert load(text, environ=environ, strategy="flag").store.strategy == "flag"


def test_a_flag_that_was_not_given_changes_nothing(load: Load) -> None:
    settings = load('[store]\nstrategy = "file"', strategy=None, root=None, log_level=None)
    assert settings.store.strategy == "file"
    assert dict(settings.origins) == {}


def test_an_empty_variable_counts_as_not_set(load: Load) -> None:
    names = ("ROOT", "STRATEGY", "RUN", "AGENT", "LOG_LEVEL", "EXPORT", "CONFIG")
    settings = load('[log]\nlevel = "error"', environ={f"DESKBOOK_{name}": "" for name in names})
    assert settings.log.level == "ERROR"
    assert (settings.run, settings.agent) == (None, None)


def test_settings_say_what_set_a_key(load: Load) -> None:
    settings = load("", environ={"DESKBOOK_RUN": "r", "DESKBOOK_STRATEGY": "s"}, strategy="t")
    assert dict(settings.origins) == {"run": "DESKBOOK_RUN", "store.strategy": "--strategy"}
    assert settings.set_at_launch("run") == "environment"
    assert settings.set_at_launch("store.strategy") == "flag"
    assert settings.set_at_launch("log.level") is None


def test_the_config_may_be_named_by_a_variable_and_a_flag_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text('[store]\nstrategy = "a"')
    (tmp_path / "b.toml").write_text('[store]\nstrategy = "b"')
    monkeypatch.chdir(tmp_path)
    environ = {"DESKBOOK_CONFIG": "a.toml"}
    named = load_settings(config=None, flags={}, environ=environ)
    assert (named.config, named.store.strategy) == (tmp_path / "a.toml", "a")
    assert load_settings(config=Path("b.toml"), flags={}, environ=environ).store.strategy == "b"


def test_a_relative_root_in_the_file_is_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "desk.toml").write_text('[store]\nroot = "../ledgers"')
    monkeypatch.chdir(tmp_path)
    settings = load_settings(config=Path("etc/desk.toml"), flags={}, environ={})
    assert settings.store.root == tmp_path / "ledgers"


def test_a_relative_root_in_a_variable_or_flag_is_relative_to_the_working_directory(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert load("", environ={"DESKBOOK_ROOT": "x"}).store.root == here / "x"
    assert load("", environ={"DESKBOOK_ROOT": "x"}, root=Path("y")).store.root == here / "y"


def test_a_tilde_is_the_home_folder(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    expected = tmp_path / "home" / "ledgers"
    assert load('[store]\nroot = "~/ledgers"').store.root == expected
    assert load("", root="~/ledgers").store.root == expected


def test_the_default_root_is_never_relative_to_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.settings.user_data_path", lambda name: Path("share") / name)
    with pytest.raises(ConfigError) as caught:
        load_settings(config=None, flags={}, environ={})
    assert "absolute" in caught.value.message
    assert "--root" in (caught.value.hint or "")


@pytest.mark.parametrize("level", ["debug", "DEBUG", "Debug", " debug "])
def test_a_log_level_is_read_in_any_case_p169(load: Load, level: str) -> None:
    assert load(f'[log]\nlevel = "{level}"').log.level == "DEBUG"
    assert load("", environ={"DESKBOOK_LOG_LEVEL": level}).log.level == "DEBUG"
    assert load("", log_level=level).log.level == "DEBUG"


def test_an_empty_log_level_means_the_default_p169(load: Load) -> None:
    assert load('[log]\nlevel = ""').log.level == "INFO"
    assert load("", environ={"DESKBOOK_LOG_LEVEL": ""}).log.level == "INFO"
    assert load("", log_level="").log.level == "INFO"


@pytest.mark.parametrize("level", ["nonsense", "WARN", "10", "ınfo"])
def test_a_nonsense_log_level_is_a_clear_error_p169(load: Load, level: str) -> None:
    attempts: list[tuple[str, Callable[[], Settings]]] = [
        ("log.level", lambda: load(f'[log]\nlevel = "{level}"')),
        ("DESKBOOK_LOG_LEVEL", lambda: load("", environ={"DESKBOOK_LOG_LEVEL": level})),
        ("--log-level", lambda: load("", log_level=level)),
    ]
    for name, attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert caught.value.message.startswith(f'{name} is "{level}"')
        assert "debug, info, warning, error, critical" in caught.value.message


@pytest.mark.parametrize(("text", "enabled"), [("0", False), ("false", False), ("No", False), ("1", True)])
def test_export_can_be_switched_by_a_variable(load: Load, text: str, enabled: bool) -> None:
    assert load("", environ={"DESKBOOK_EXPORT": text}).export.enabled is enabled


def test_a_switch_that_is_neither_is_refused(load: Load) -> None:
    with pytest.raises(ConfigError, match='DESKBOOK_EXPORT is "maybe"; allowed: 1 or 0'):
        load("", environ={"DESKBOOK_EXPORT": "maybe"})


@pytest.mark.parametrize(
    ("text", "days"), [("24h", 1), ("30d", 30), ("8w", 56), ("36525d", 36_525), (" 1d ", 1)]
)
def test_ages_are_read_into_microseconds(load: Load, text: str, days: int) -> None:
    assert load(f'[review]\nlesson = "{text}"').review.lesson == days * DAY_US
    assert load(f'[retention]\nkeep = "{text}"').retention.keep == days * DAY_US


def test_content_may_be_kept_for_ever(load: Load) -> None:
    assert load('[retention]\nkeep = "forever"').retention.keep is None


def test_aliases_are_a_table_of_symbols(load: Load) -> None:
    symbols = load('[symbols.aliases]\n"GOOG.US" = "GOOG"\n"比特币" = "BTC/USD"').symbols
    assert dict(symbols.aliases) == {"GOOG.US": Meaning("GOOG"), "比特币": Meaning("BTC/USD")}
    assert symbols.rules.normalise("goog.us", None) == "GOOG"


@pytest.mark.parametrize(
    "date", ['"2022-06-09"', "2022-06-09", '"2022-06-09T00:00:00Z"', "2022-06-08T20:00:00-04:00"]
)
def test_an_alias_ends_on_a_date(load: Load, date: str) -> None:
    """P071"""
    settings = load(f'[symbols.aliases]\nFB = {{ to = "META", until = {date} }}')
    end = 19_152 * DAY_US
    assert dict(settings.symbols.aliases) == {"FB": Meaning("META", until_us=end)}
    assert settings.symbols.rules.normalise("fb", end - 1) == "META"
    assert settings.symbols.rules.normalise("fb", end) == "FB"
    assert '"FB":{"to":"META","until":"2022-06-09T00:00:00Z"}' in settings.model_dump_json()


def test_the_time_zone_is_ready_to_use(load: Load) -> None:
    assert load('[clock]\ntimezone = "America/New_York"').clock.zone.key == "America/New_York"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_bytes(b'\xef\xbb\xbf[store]\r\nstrategy = "s"\r\n')
    assert load_settings(config=path, flags={}, environ={}).store.strategy == "s"


def test_the_run_that_a_command_reads_comes_from_flag_variable_or_file(load: Load) -> None:
    text = '[clock]\nmode = "simulated"\nrun = "file"'
    assert load("").run is None
    assert load(text).run == "file"
    assert load(text, environ={"DESKBOOK_RUN": "variable"}).run == "variable"
    assert load(text, environ={"DESKBOOK_RUN": "variable"}, run="flag").run == "flag"
    assert load(text, run="flag").clock.run == "file"


def test_settings_are_frozen_through_and_through(load: Load) -> None:
    settings = load('[agents.a]\nprofile = "trader"\n[symbols.aliases]\nA = "B"')
    with pytest.raises(ValidationError):
        settings.limits.reply_chars = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        settings.agents["b"] = settings.agents["a"]  # type: ignore[index]
    with pytest.raises(TypeError, match="does not support item assignment"):
        settings.symbols.aliases["C"] = "D"  # type: ignore[index]


def test_settings_can_be_written_out(load: Load) -> None:
    text = load('[agents.a]\nprofile = "trader"\n[symbols.aliases]\nA = "B"', strategy="s").model_dump_json()
    assert '"aliases":{"A":"B"}' in text
    assert '"origins":{"store.strategy":"--strategy"}' in text
