"""A configuration that is wrong is refused by name, with what was found and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from server.sections import Sections
from server.settings import load_settings
from store.errors import ConfigError
from store.names import name_fault

Refuse = Callable[..., ConfigError]


@pytest.fixture
def refuse(tmp_path: Path) -> Refuse:
    def _refuse(text: str, *, environ: dict[str, str] | None = None, **flags: object) -> ConfigError:
        path = tmp_path / "desk.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            load_settings(config=path, flags=flags, environ=environ or {})
        return caught.value

    return _refuse


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ('[stor]\nroot = "x"', "stor", "store"),
        ("[limits]\ncalls_per_minut = 5", "limits.calls_per_minut", "limits.calls_per_minute"),
        ("[limits]\nCalls_Per_Minute = 5", "limits.Calls_Per_Minute", "limits.calls_per_minute"),
        ('[agents.a]\nprofile = "trader"\nread_onyl = true', "agents.a.read_onyl", "agents.a.read_only"),
        ('[agents.profile]\nprofil = "trader"', "agents.profile.profil", "agents.profile.profile"),
        ('[agents."a b"]\nprofil = "x"', 'agents."a b".profil', 'agents."a b".profile'),
        (
            '[agents.a]\nprofile = "trader"\nclock = { mod = "live" }',
            "agents.a.clock.mod",
            "agents.a.clock.mode",
        ),
        ('[profiles.p]\nextend = "trader"', "profiles.p.extend", "profiles.p.extends"),
        ('strategy = "x"', "strategy", "store.strategy"),
        ("[store]\ncalls_per_minute = 5", "store.calls_per_minute", "limits.calls_per_minute"),
        ('[approval]\nlessons = "ask"', "approval.lessons", "approval.lesson"),
    ],
)
def test_an_unknown_key_is_refused_with_a_near_miss(refuse: Refuse, text: str, key: str, meant: str) -> None:
    error = refuse(text)
    assert f'{key} is not a key of Deskbook (did you mean "{meant}"?).' in error.message


def test_an_unknown_key_without_a_near_miss_lists_what_the_table_takes(refuse: Refuse) -> None:
    error = refuse("[store]\nxyzzy = 1")
    assert error.message == (
        "store.xyzzy is not a key of Deskbook; [store] takes: root, strategy, durability."
    )
    assert error.field == "store.xyzzy"


@pytest.mark.parametrize("key", ["config", "origins", "agent", "run"])
def test_what_only_the_launch_sets_is_no_key_of_the_file(refuse: Refuse, key: str) -> None:
    assert f"{key} is not a key of Deskbook" in refuse(f'{key} = "x"').message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[limits]\nreply_chars = 0",
            "limits.reply_chars is 0; allowed: a whole number from 2000 to 1000000.",
        ),
        ('[limits]\nreply_chars = "5000"', 'limits.reply_chars is "5000"; allowed: a whole number from'),
        ("[limits]\ncalls_per_minute = true", "limits.calls_per_minute is true; allowed: a whole number"),
        ("[limits]\ntext_chars = 100001", "limits.text_chars is 100001; allowed: a whole number from 100 to"),
        ("[http]\nport = 1.5", "http.port is 1.5; allowed: a whole number from 0 to 65535."),
        ("[http]\nport = 1979-05-27", "http.port is 1979-05-27; allowed: a whole number"),
        ('[store]\ndurability = "FULL"', 'store.durability is "FULL"; allowed: "full" or "normal".'),
        ("[store]\nroot = 3", "store.root is 3; allowed: the path of a folder."),
        ('[store]\nroot = ""', 'store.root is ""; allowed: the path of a file or folder.'),
        ('[store]\nstrategy = ""', "store.strategy is empty; allowed: text of 1 to 128 characters"),
        ('[store]\nstrategy = "a\\u0007"', "store.strategy holds a control character; allowed: text of 1"),
        (f'[store]\nstrategy = "{"s" * 129}"', "store.strategy has 129 characters, more than 128; allowed:"),
        ("store = 3", "store is 3; allowed: a table [store]."),
        ("[agents]\na = 3", "agents.a is 3; allowed: a table [agents.a]."),
        ("agents = []", "agents is a list; allowed: tables [agents.NAME]."),
        ("[agents.a]", "agents.a.profile is missing; allowed: the name of a profile."),
        ('[agents.""]\nprofile = "trader"', "agents has a name that is empty; allowed: text of 1"),
        (
            '[agents.a]\nprofile = "trader"\nclock = "live"',
            'agents.a.clock is "live"; allowed: a table [agents',
        ),
        ('[clock]\nmode = "simulate"', 'clock.mode is "simulate"; allowed: "live" or "simulated".'),
        ('[profiles.p]\nallow = "search"', 'profiles.p.allow is "search"; allowed: a list of action names.'),
        ("[profiles.p]\nallow = [1]", "profiles.p.allow[0] is 1; allowed: text, in a list of action names."),
        ('[review]\nlesson = "3m"', 'review.lesson is "3m"; allowed: an age such as "12h", "30d" or "8w"'),
        ("[review]\nlesson = 90", "review.lesson is 90; allowed: an age"),
        ('[review]\nlesson = "0d"', 'review.lesson is "0d"; allowed: an age'),
        ('[review]\nlesson = "36526d"', 'review.lesson is "36526d"; allowed: an age'),
        ('[review]\nlesson = "٣d"', "allowed: an age"),
        ('[retention]\nkeep = "never"', 'retention.keep is "never"; allowed: an age'),
        ('[approval]\nmemory = "yes"', 'approval.memory is "yes"; allowed: "auto", "review" or "ask".'),
        ('[approval]\nlesson = "ask"', 'approval.lesson is "ask"; allowed: "auto" or "review".'),
        ('[approval]\norder_action = "review"', 'approval.order_action is "review"; allowed: "auto".'),
        (
            '[approval.profiles.trader]\nthesis = "ask"',
            'approval.profiles.trader.thesis is "ask"; allowed: "auto" or "review".',
        ),
        (
            '[review]\nconflicts = "oldest"',
            'review.conflicts is "oldest"; allowed: "ask", "newest" or "newest_validated".',
        ),
        (
            '[review.expires]\nlesson = "soon"',
            'review.expires.lesson is "soon"; allowed: an age such as "12h"',
        ),
        (
            '[screening]\nsecrets = "allow"',
            'screening.secrets is "allow"; allowed: "refuse", "mask" or "keep".',
        ),
        (
            "[symbols.aliases]\nA = 1",
            "symbols.aliases.A is neither text nor a table; allowed: text, or a table such as",
        ),
        (
            "[symbols.aliases]\nA = { until = 2022-06-09 }",
            "symbols.aliases.A has no text as its to; allowed: text",
        ),
        (
            '[symbols.aliases]\nA = { to = "B", till = 2022-06-09 }',
            'symbols.aliases.A has the key "till"; allowed',
        ),
        (
            '[symbols.aliases]\nA = { to = "B", until = 2022 }',
            "symbols.aliases.A has no date as its until; allowed",
        ),
        (
            '[symbols.aliases]\nA = { to = "B", from = "June" }',
            'A has "June" as its from; allowed: a date such as',
        ),
        (
            '[symbols.aliases]\nA = { to = "B", from = 2022-06-09T09:30:00 }',
            'A has "2022-06-09T09:30:00" as its from',
        ),
        (
            '[symbols.aliases]\nA = { to = "B", from = 2022-06-09, until = 2022-06-09 }',
            'symbols.aliases cannot be used: The alias "A" ends before it begins.',
        ),
        (
            '[symbols.aliases]\nA = "B"\nB = "A"',
            "symbols.aliases cannot be used: The alias A leads back to itself. Name the symbol that stays",
        ),
        (
            '[symbols.aliases]\nA = "B"\na = "C"',
            "The aliases of A lead to B and to C at once, from any date on.",
        ),
        ('[symbols.aliases]\n" " = "B"', 'symbols.aliases cannot be used: The alias " " has a blank symbol.'),
        ('[symbols]\naliases = ["A"]', "symbols.aliases is a list; allowed: a table of text to text, or"),
        ("[log]\nlevel = 3", "log.level is 3; allowed: debug, info, warning, error, critical."),
    ],
)
def test_a_wrong_value_names_its_key_what_was_found_and_what_is_allowed(
    refuse: Refuse, text: str, expected: str
) -> None:
    assert expected in refuse(text).message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("allowed_hosts", v)
            for v in ("https://a.example", "a.example/x", "*", "u@a.example", "", "a b", "a:0", "a:x")
        ),
        *(
            ("allowed_origins", v)
            for v in ("a.example", "https://a.example/x", "https://*", "ftp://a.example", "null")
        ),
    ],
)
def test_a_name_or_origin_that_could_never_match_is_refused(refuse: Refuse, key: str, value: str) -> None:
    assert f"http.{key}" in refuse(f'[http]\n{key} = ["{value}"]').message


def test_several_faults_are_told_at_once_and_the_rest_counted(refuse: Refuse) -> None:
    error = refuse("[limits]\na1 = 1\nb1 = 1\nc1 = 1\nd1 = 1\ne1 = 1\nf1 = 1\ng1 = 1")
    assert len(error.message.splitlines()) == 6
    assert error.message.endswith("and 2 more.")


def test_a_fault_of_a_variable_or_flag_is_told_by_its_own_name(refuse: Refuse) -> None:
    assert refuse("", environ={"DESKBOOK_STRATEGY": "a\x07"}).message.startswith("DESKBOOK_STRATEGY holds")
    assert refuse("", port=70_000).message.startswith("--port is 70000; allowed: a whole number from 0")
    assert refuse("", agent="\udc80").message.startswith("--agent ")
    assert refuse("", root=" ").message.startswith('--root is " "; allowed')
    assert refuse("", strategy="").message.startswith("--strategy is empty; allowed")


def test_a_flag_that_settings_do_not_know_is_refused(refuse: Refuse) -> None:
    assert 'did you mean "root"' in refuse("", rot="x").message


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("America/NewYork", "America/New_York"),
        ("utc", "UTC"),
        ("../../etc/passwd", None),
        ("/etc/localtime", None),
        ("America", None),
        ("", None),
        ("A\\u0000B", None),
    ],
)
def test_an_unknown_time_zone_is_refused(refuse: Refuse, zone: str, near: str | None) -> None:
    message = refuse(f'[clock]\ntimezone = "{zone}"').message
    assert message.startswith("clock.timezone is ")
    assert "allowed: an IANA name" in message
    assert near is None or f'did you mean "{near}"' in message


def test_a_missing_file_says_so_with_its_path_and_the_next_step(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as caught:
        load_settings(config=missing, flags={}, environ={})
    assert str(missing) in caught.value.message
    assert "deskbook init" in (caught.value.hint or "")
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_settings(config=None, flags={}, environ={"DESKBOOK_CONFIG": str(missing)})


def test_a_folder_is_no_config_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load_settings(config=tmp_path, flags={}, environ={})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[store]\nroot = \n", 2),
        ("\n\n[store\n", 3),
        ('[store]\nroot = "a"\nroot = "b"\n', 3),
        ('a = """', 1),
    ],
)
def test_a_syntax_error_names_its_line(refuse: Refuse, text: str, line: int) -> None:
    message = refuse(text).message
    assert "is not valid TOML" in message
    assert f"at line {line}," in message


@pytest.mark.parametrize(
    ("text", "section", "line"),
    [
        ('[approval]\nlesson = "review"\n[review]\n[approval]\nlesson = "auto"', "approval", 4),
        ('[agents.a]\nprofile = "trader"\n\n[agents.a]\nprofile = "trader"', "agents.a", 4),
        ('[agents."a b"]\nprofile = "trader"\n[agents."a b"]', 'agents."a b"', 3),
        ("[review]\n[review.expires]\n[review.expires]\n", "review.expires", 3),
    ],
)
def test_a_section_that_stands_twice_is_named_with_how_to_merge_it(
    refuse: Refuse, text: str, section: str, line: int
) -> None:
    error = refuse(text)
    assert f"has the section [{section}] twice, the second time at line {line}." in error.message
    assert error.field == section
    assert "Merge the two" in str(error.hint)


def test_a_file_that_is_not_utf_8_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_bytes(b'[store]\nstrategy = "\xff"\n')
    with pytest.raises(ConfigError, match="not UTF-8 at line 2"):
        load_settings(config=path, flags={}, environ={})


def test_a_file_of_endless_nesting_or_size_is_refused(refuse: Refuse) -> None:
    assert "nested too deeply" in refuse("a = " + "[" * 50_000).message
    assert "larger than" in refuse("#" * 1_100_000).message


@pytest.mark.parametrize(
    "text",
    [
        '[agents.a]\nprofile = "trader"\ntoken = "hunter2"',
        '[agents.a]\nprofile = "trader"\ntoken_evn = "hunter2"',
        '[agents.a]\nprofile = "trader"\ntoken_env = "hunter2"',
        '[agents.a]\nprofile = "trader"\npassword = "hunter2"',
        '[publish]\nkey = "hunter2"',
        '[publish]\nkey_env = "hunter2"',
        '[checkpoint]\nkey = "hunter2"',
        '[publish]\nendpoint = "https://me:hunter2@example.test"',
        '[embedding]\nurl = "https://hunter2@example.test"',
        '[embedding]\napi_key = "hunter2"',
        '[http]\nbearer = "hunter2"',
        'token = "hunter2"',
    ],
)
def test_a_secret_in_the_file_is_refused_with_advice_and_never_shown(refuse: Refuse, text: str) -> None:
    error = refuse(text)
    assert "hunter2" not in error.message + (error.hint or "")
    assert "secret" in error.message or "not shown" in error.message


def test_the_advice_for_a_token_is_the_key_that_names_its_variable(refuse: Refuse) -> None:
    message = refuse('[agents.a]\nprofile = "trader"\ntoken = "x"').message
    assert 'agents.a.token_env = "DESKBOOK_AGENT_TOKEN"' in message
    for section in ("publish", "checkpoint"):
        assert f'{section}.key_env = "' in refuse(f'[{section}]\napi-key = "x"').message


@pytest.mark.parametrize("url", ["ftp://a", "https://", "https://a b", "http://a:99999", "http://[::1", "x"])
def test_an_address_that_cannot_be_reached_by_http_is_refused(refuse: Refuse, url: str) -> None:
    assert refuse(f'[publish]\nendpoint = "{url}"').message.startswith("publish.endpoint has a value")


def test_two_agents_may_not_share_a_token(refuse: Refuse) -> None:
    text = '[agents.a]\nprofile = "trader"\ntoken_env = "T"\n[agents.b]\nprofile = "trader"\ntoken_env = "T"'
    assert "agents.b.token_env names the variable that agents.a has" in refuse(text).message


def test_a_compatible_embedding_address_must_be_whole(refuse: Refuse) -> None:
    assert refuse('[embedding]\nprovider = "openai"').message.startswith("embedding.url is missing")
    whole = '[embedding]\nprovider = "openai"\nurl = "http://x"'
    assert refuse(whole).message.startswith("embedding.model is missing")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[clock]\nrun = "r"', "clock.run"),
        ('[clock]\ninherit = "live"', "clock.inherit"),
        ('[agents.a]\nprofile = "trader"\nclock = { run = "r" }', "agents.a.clock.run"),
        (
            '[clock]\nmode = "simulated"\n[agents.a]\nprofile = "solo"\nclock = { mode = "live", run = "r" }',
            "agents.a.clock.run",
        ),
    ],
)
def test_a_live_clock_takes_no_run(refuse: Refuse, text: str, key: str) -> None:
    error = refuse(text)
    assert error.field == key
    assert "a live clock has no run" in error.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[agents.a]\nprofile = "traider"',
            'agents.a.profile is "traider", which is no profile (did you mean "tr',
        ),
        ('[profiles.p]\nextends = "q"', 'profiles.p.extends is "q", which is no profile'),
        (
            '[profiles.p]\nallow = ["serch"]',
            'profiles.p.allow names "serch", which is no action (did you mean "se',
        ),
        ('[profiles.p]\nextends = "p"', "profiles.p.extends runs in a circle: p -> p"),
        ("[profiles.trader]", "profiles.trader would replace a built-in profile"),
    ],
)
def test_a_profile_that_does_not_resolve_stops_the_start_even_when_no_agent_has_it(
    refuse: Refuse, text: str, expected: str
) -> None:
    assert expected in refuse(text).message


@given(st.text(max_size=140))
def test_a_name_is_1_to_128_characters_without_control_characters(text: str) -> None:
    controls = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u2028", "\u2029"}
    assert (name_fault(text) is None) == (0 < len(text) <= 128 and controls.isdisjoint(text))


def test_every_key_says_what_is_allowed_in_it() -> None:
    def fields(model: type[BaseModel]) -> None:
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                fields(inner)
            else:
                assert field.description, f"{model.__name__}.{name}"

    fields(Sections)
